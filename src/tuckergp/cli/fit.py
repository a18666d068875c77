"""`tuckergp fit`: learn from a table of ratings and write the model to a file."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tuckergp.cli.options import Items, Json, Quiet, Settings, Users, takes_settings

__all__ = ["fit"]

Source = Annotated[
    str,
    typer.Argument(
        metavar="RATINGS",
        help="Table of ratings: CSV, JSON lines, Parquet, ..., - for standard input; for Spark hdfs://..., too.",
        show_default=False,
    ),
]
Written = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write the model to this file, such as model.tgp.", show_default=False),
]


@takes_settings()
def fit(
    ratings: Source,
    output: Written = None,
    users: Users = None,
    items: Items = None,
    max_time: Annotated[
        float | None, typer.Option(help="Seconds of learning after which to stop with the result so far.", min=0.0)
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder to which sampling is saved; the same command continues it.")
    ] = None,
    checkpoint_minutes: Annotated[float, typer.Option(help="Minutes between saves to the checkpoint.", min=0.0)] = 5.0,
    keep: Annotated[
        int | None, typer.Option(help="Draws to keep, evenly spread; fewer make a smaller file.", min=1)
    ] = None,
    engine: Annotated[
        Literal["local", "spark"], typer.Option(help="Where to learn; spark reads folders of Parquet, too.")
    ] = "local",
    master: Annotated[
        str | None, typer.Option(help="Spark's master: local[4], spark://host:7077, yarn, ...", show_default=False)
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(help="New folder where Spark leaves users as Parquet; in place of --output.", show_default=False),
    ] = None,
    out_of_core: Annotated[
        Path | None,
        typer.Option(help="Folder for scratch files, for a Parquet file larger than memory.", show_default=False),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    *,
    settings: Settings,
) -> None:
    """Learn from a table of ratings and write the model to a file.

    Ctrl-C and SIGTERM end learning early, with a model of what was learned so far; a second one gives up.
    """
    import time

    from tuckergp.cli.notes import collected, say
    from tuckergp.cli.tables import ratings_names, read_side, read_table, to_json
    from tuckergp.data.names import KEYS
    from tuckergp.errors import InputError
    from tuckergp.files import check_writable

    if (output is None) == (store is None):
        raise InputError("Say where the model goes: --output FILE, or for --engine spark --store FOLDER.")
    if output is not None:
        check_writable(output)
    here = engine == "local"
    for name, value in (("master", master), ("store", store)):
        if value is not None and here:
            raise InputError(f"--{name} is for --engine spark; leave it out, or add that.")
    if out_of_core is not None and not here:
        raise InputError("--out-of-core is for one machine; leave it out, or --engine spark.")
    names = ratings_names(Path(ratings), settings.columns) if here else settings.columns
    table: Any = Path(ratings)
    if out_of_core is None:
        table = read_table(table, "ratings", names, KEYS) if here else _spark_frame(ratings, master, names)
    sides = [read_side(path, side, names, settings.exclude) for path, side in _sides(users, items)]
    model = settings.recommender(columns=names or None)
    places: dict[str, Any] = {"scratch": out_of_core, "store": store}
    began = time.perf_counter()
    with collected() as notes:
        show_progress = False if quiet else None
        with _sigterm_is_ctrl_c():
            model = (model.fit if here else _by_spark(model))(
                table,
                *sides,
                checkpoint=checkpoint,
                checkpoint_minutes=checkpoint_minutes,
                max_time=max_time,
                keep=keep,
                progress=show_progress,
                **{name: place for name, place in places.items() if place is not None},
            )
    seconds = time.perf_counter() - began
    if output is not None:
        model.save(output)
    result = _summary_of_stored(model, seconds, notes) if output is None else summary(model, seconds, output, notes)
    if as_json:
        print(to_json(result))
        return
    show(result)
    say(*notes)


def _spark_frame(path: str, master: str | None, names: dict[str, str] | None) -> Any:
    """The ratings as a data frame of Spark."""
    from tuckergp.spark.frames import read_frame
    from tuckergp.spark.sessions import session

    return read_frame(session(master), path, names)


def _by_spark(model: Any) -> Any:
    """The fit of Spark with the settings of a model."""
    from tuckergp.spark import fit as fit_by_spark

    return partial(fit_by_spark, **model.get_params(deep=False))


@contextmanager
def _sigterm_is_ctrl_c() -> Iterator[None]:
    """Stop as after Ctrl-C where a scheduler asks to end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _sides(users: Path | None, items: Path | None) -> list[tuple[Path | None, str]]:
    return [(users, "users"), (items, "items")]


def _summary_of_stored(stored: Any, seconds: float, notes: list[str]) -> dict[str, Any]:
    """The same summary of a recommender whose users are in Parquet."""
    counts = {"ratings": int(stored.model.history_.ratings_per_item.sum()), "users": stored.users.count()}
    return {**summary(stored.model, seconds, None, notes), **counts, "model": stored.path}


def summary(model: Any, seconds: float, output: Path | None, notes: list[str]) -> dict[str, Any]:
    """A summary of the data, the method and the file written; a folder has no size."""
    from tuckergp.recommender.feature_report import FeatureReport

    history = model.history_
    names = ("table", "column", "use", "note")
    return {
        "model": str(output),
        "ratings": len(history),
        "users": len(history.ids[0]),
        "items": len(history.ids[1]),
        "clicks": history.clicks,
        "columns": model.columns_,
        "inference": model.inference,
        "likelihood": model.likelihood,
        "rank": model.rank,
        "draws": len(model.fit_.draws),
        "time": model.time_,
        "attributes": [dict(zip(names, row, strict=True)) for row in FeatureReport(model.features_).rows()],
        "seconds": round(seconds, 3),
        "megabytes": None if output is None else round(output.stat().st_size / 1e6, 3),
        "notes": notes,
    }


def show(result: dict[str, Any]) -> None:
    """Print the summary as text."""
    from tuckergp.data.names import words
    from tuckergp.inference import INFERENCES

    what = "clicks" if result["clicks"] else "ratings"
    print(
        f"Learned from {result['ratings']:,} {what} of {result['items']:,} items by {result['users']:,} users in "
        f"{result['seconds']:.1f} seconds."
    )
    if result["columns"]:
        print(f"Columns: {words(result['columns'])}.")
    drift = "" if result["time"] is None else f", drift by {result['time']}"
    draws = f", {result['draws']:,} draws" if "draws" in INFERENCES[result["inference"]].takes else ""
    print(f"Rank {result['rank']}, {result['inference']}, {result['likelihood']}{draws}{drift}.")
    for row in result["attributes"]:
        print(f"  {row['table']} {row['column']}: {row['use']} ({row['note']})")
    size = "" if result["megabytes"] is None else f" ({result['megabytes']:.1f} MB)"
    print(f"Saved as {result['model']}{size}.")
