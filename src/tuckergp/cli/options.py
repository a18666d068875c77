"""Options that several commands share, and the settings of a model as one of them.

Nothing slow is imported here, so that ``--help`` is fast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

if TYPE_CHECKING:
    from tuckergp.recommender import TuckerRecommender

__all__ = ["Items", "Json", "Model", "Output", "Quiet", "Ratings", "Settings", "Users", "number_list", "takes_settings"]

MODEL, COLUMNS = "Settings of the model", "Columns"

Ratings = Annotated[
    Path,
    typer.Argument(
        help="Table of ratings: CSV, JSON lines, Parquet, ..., or - for standard input.", show_default=False
    ),
]
Model = Annotated[Path, typer.Argument(help="File that fit has written.", show_default=False)]
Users = Annotated[Path | None, typer.Option(help="Table of users: user_id and attributes.", metavar="FILE")]
Items = Annotated[Path | None, typer.Option(help="Table of items: item_id and attributes.", metavar="FILE")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress; without a terminal there is none.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write to this file; the ending says how: .csv, .tsv, .parquet or .json."),
]


def _model(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=MODEL, **more)


def _column(name: str, what: str) -> Any:
    return typer.Option(name, help=f"Name of the column with {what}.", metavar="NAME", rich_help_panel=COLUMNS)


@dataclass(frozen=True)
class Settings:
    """Settings of a recommender as options of the command line; see `TuckerRecommender`."""

    rank: Annotated[int, _model(help="Length of the vectors of users and items.", min=1)] = 16
    inference: Annotated[
        str,
        _model(help="gibbs (sampling), als or sgd (a MAP estimate), vi (variational), ...", metavar="NAME"),
    ] = "gibbs"
    likelihood: Annotated[
        str,
        _model(help="auto (gaussian for ratings, else clicks), ordinal, student for outliers, ...", metavar="NAME"),
    ] = "auto"
    core: Annotated[Literal["identity", "full", "auto"], _model(help="Identity is matrix factorisation.")] = "identity"
    draws: Annotated[int, _model(help="Draws per chain (gibbs).", min=1)] = 250
    warmup: Annotated[int, _model(help="Sweeps before the draws (gibbs).", min=0)] = 50
    chains: Annotated[int, _model(help="Chains (gibbs).", min=1)] = 1
    side_information: Annotated[
        bool, _model("--side-information/--no-side-information", help="Use the tables of users and items.")
    ] = True
    implicit: Annotated[Literal["auto", "yes", "no"], _model(help="Also learn from co-rating.")] = "auto"
    time: Annotated[Literal["auto", "week", "month", "none"], _model(help="Drift over time.")] = "auto"
    noise: Annotated[Literal["auto", "shared", "rows"], _model(help="One noise, or one for each user and item.")] = (
        "auto"
    )
    context: Annotated[
        list[str], _model(help="Column of the ratings that says where or how; may be repeated.", metavar="NAME")
    ] = field(default_factory=list)
    rating_scale: Annotated[
        tuple[float, float] | None,
        _model(help="Lowest and highest possible rating.", metavar="LOW HIGH", show_default=False),
    ] = None
    duplicates: Annotated[Literal["keep", "mean", "last", "refuse"], _model(help="Ratings of one pair.")] = "keep"
    negatives: Annotated[int, _model(help="Bernoulli clicks: sampled pairs without a click, per click.", min=1)] = 16
    objective: Annotated[
        Literal["auto", "value", "rating"], _model(help="What lists are sorted by; value also learns what is chosen.")
    ] = "auto"
    exclude: Annotated[
        list[str], _model(help="Column to leave out: users.zip_code, items.title; may be repeated.", metavar="COLUMN")
    ] = field(default_factory=list)
    seed: Annotated[int, _model(help="Seed of all that is random.", min=0)] = 0
    jobs: Annotated[int | None, _model(help="Processes that run the chains; -1 for all cores.")] = None
    user_column: Annotated[str, _column("--user-column", "users")] = "user_id"
    item_column: Annotated[str, _column("--item-column", "items")] = "item_id"
    rating_column: Annotated[str, _column("--rating-column", "ratings")] = "rating"
    timestamp_column: Annotated[str, _column("--timestamp-column", "times")] = "timestamp"
    count_column: Annotated[str, _column("--count-column", "counts of clicks, such as plays")] = "count"

    @property
    def columns(self) -> dict[str, str]:
        """The names of columns that differ from the usual ones."""
        names = other_names(self.user_column, self.item_column, self.rating_column, self.timestamp_column)
        return names if self.count_column == "count" else {**names, "count": self.count_column}

    def recommender(self, **more: Any) -> TuckerRecommender:
        """A recommender, not yet fitted, with these settings; those in ``more`` replace them."""
        from tuckergp.recommender import TuckerRecommender

        same = (
            *("rank", "inference", "likelihood", "core", "draws", "warmup", "chains", "side_information", "noise"),
            *("context", "rating_scale", "duplicates", "negatives", "objective"),
        )
        given: dict[str, Any] = {name: getattr(self, name) for name in same}
        given |= {
            "implicit": {"auto": "auto", "yes": True, "no": False}[self.implicit],
            "time": None if self.time == "none" else self.time,
            "context": tuple(self.context),
            "columns": self.columns or None,
            "n_jobs": self.jobs,
            "random_state": self.seed,
        }
        return TuckerRecommender(**{**given, **more})


def other_names(user: str, item: str, rating: str, timestamp: str) -> dict[str, str]:
    """The names of columns that differ from the usual names, by the usual name."""
    named = {"user_id": user, "item_id": item, "rating": rating, "timestamp": timestamp}
    return {usual: name for usual, name in named.items() if usual != name}


def takes_settings(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of `Settings`, except some, as its parameter ``settings``."""
    hints = get_type_hints(Settings, include_extras=True)
    chosen = [one for one in fields(Settings) if one.name not in without]

    def default_of(one: Any) -> Any:
        return one.default_factory() if one.default is MISSING else one.default

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            settings = Settings(**{one.name: given.pop(one.name) for one in chosen})
            command(**given, settings=settings)

        own = signature(command, eval_str=True)
        parameters = [one for one in own.parameters.values() if one.name != "settings"]
        parameters += [
            Parameter(one.name, Parameter.KEYWORD_ONLY, default=default_of(one), annotation=hints[one.name])
            for one in chosen
        ]
        run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return wrap


def number_list(text: str | None, option: str) -> list[float] | None:
    """Read numbers that are separated by commas."""
    if text is None:
        return None
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        from tuckergp.errors import InputError

        raise InputError(
            f"{option} must be numbers with commas between them, such as 0.05,0.95, not {text!r}."
        ) from None
