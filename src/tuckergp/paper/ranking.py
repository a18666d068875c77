"""Lists of recommendations on MovieLens 100K, and a causal split in time: all contestants on the same candidates.

    python -m tuckergp.paper.ranking choose -o ranking_choice.json --peers python_with_implicit
    python -m tuckergp.paper.ranking test -o ranking.json --peers python_with_implicit

``choose`` compares settings on validation parts, a fifth of the training parts of the first seed. What it chose stands
in `CHOSEN`; ``test`` learns from the whole training parts with it and scores the test parts. Contestants of the package
`implicit` are run by the Python that ``--peers`` names, and left out where it does not have it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from tuckergp.data.datasets import MovieLens, load_movielens_100k
from tuckergp.data.splits import TimeSplit, UserHoldout
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.paper.ranking_peers import PEERS, available
from tuckergp.paper.ranking_scores import CONTESTANTS, Contest, counts, decision, measure
from tuckergp.paper.store import Store, versions

__all__ = ["CHOSEN", "GRIDS", "SEEDS", "SPLITS", "app", "choose", "evaluate", "parts"]

Report = Callable[[str], None]
Options = dict[str, Any]

SEEDS = (0, 1, 2)
SPLITS = {"user": "a fifth of every user's ratings, at random", "time": "the last fifth of all ratings"}
# Seeds of validation parts, which no test part has.
VALIDATION = 1_000
PROTOCOL = (
    "every rating is an interaction; relevant are test items rated 4 or 5, and in other columns all test items; "
    "candidates are all items that the user has not rated in the training part; settings chosen by NDCG@10 on a fifth "
    "of the first seed's training part, split alike; users without a training part get popularity from contestants "
    "that know nothing of them; predicted ratings are clipped to 1..5"
)


def _grid(**values: tuple[Any, ...]) -> list[Options]:
    return [dict(zip(values, combination, strict=True)) for combination in product(*values.values())]


GRIDS: dict[str, list[Options]] = {
    "popularity": [{}],
    "als": _grid(factors=(8, 16, 32), regularization=(1.0, 10.0, 100.0), alpha=(1.0, 4.0, 16.0)),
    "bpr": _grid(
        factors=(16, 64), learning_rate=(0.003, 0.01), regularization=(0.003, 0.01, 0.1), iterations=(30, 100)
    ),
    "clicks": [
        {"rank": 16, "negatives": 16},
        {"rank": 16, "negatives": 1000},  # all there are
        {"rank": 16, "negatives": 4},
        {"rank": 16, "negatives": 1000, "side_information": False},
        {"rank": 8, "negatives": 1000},
    ],
}
"""What ``choose`` compares, by contestant; the defaults of `implicit` where nothing is said."""

CHOSEN: dict[str, dict[str, Options]] = {
    "user": {
        "als": {"factors": 16, "regularization": 10.0, "alpha": 1.0},
        "bpr": {"factors": 16, "learning_rate": 0.003, "regularization": 0.003, "iterations": 100},
        "clicks": {"rank": 16, "negatives": 1000},
    },
    "time": {
        "als": {"factors": 16, "regularization": 10.0, "alpha": 4.0},
        "bpr": {"factors": 64, "learning_rate": 0.01, "regularization": 0.01, "iterations": 100},
        "clicks": {"rank": 8, "negatives": 1000},
    },
}
"""By split and contestant: the best of the grid on the validation part."""


def parts(ratings: Table, split: str, seed: int) -> tuple[Table, Table]:
    """Training and test part; a split in time has no seed."""
    splitter = UserHoldout(share=0.2, seed=seed) if split == "user" else TimeSplit(0.2)
    return next(splitter.split(ratings))


def choose(
    movielens: MovieLens, store: Store, splits: Iterable[str], names: Iterable[str], python: str, report: Report
) -> None:
    """Validation figures of every setting of the grids, cells ``user/als/{"factors": 8, ...}``."""
    for split in splits:
        base, _ = parts(movielens.ratings, split, SEEDS[0])
        contest = Contest.of(movielens, *parts(base, split, VALIDATION))
        for name in names:
            for options in GRIDS.get(name, []):
                compute = partial(measure, contest, name, options, SEEDS[0], python)
                _fill(store, f"{split}/{name}/{json.dumps(options)}", compute, report)


def evaluate(
    movielens: MovieLens,
    store: Store,
    splits: Iterable[str],
    seeds: Iterable[int],
    names: Iterable[str],
    python: str,
    report: Report,
) -> None:
    """Test figures with what was chosen, cells ``user/als/seed 0``.

    Also sizes of the parts, ``user/counts/seed 0``, and what ``time="auto"`` decides, ``user/auto/seed 0``.
    """
    for seed, split in product(seeds, splits):
        contest = Contest.of(movielens, *parts(movielens.ratings, split, seed))
        _fill(store, f"{split}/counts/seed {seed}", partial(counts, contest), report)
        for name in names:
            compute = partial(measure, contest, name, CHOSEN[split].get(name, {}), seed, python)
            _fill(store, f"{split}/{name}/seed {seed}", compute, report)
        if "week" in names:
            _fill(store, f"{split}/auto/seed {seed}", partial(decision, contest, seed), report)


def _fill(store: Store, name: str, compute: Callable[[], dict[str, Any]], report: Report) -> None:
    report(f"{name}: {store.cell(name, compute)}")


app = typer.Typer(add_completion=False, help=__doc__)
Data = Annotated[Path | None, typer.Option("--data", help="The folder that holds ml-100k.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Results; a finished cell is kept.")]
Splits = Annotated[str, typer.Option("--splits", help=f"Some of {', '.join(SPLITS)}; empty for all.")]
Names = Annotated[str, typer.Option("--contestants", help=f"Some of {', '.join(CONTESTANTS)}; empty for all.")]
Peers = Annotated[str, typer.Option("--peers", help="A Python that has the package implicit.")]


@app.command("choose")
def choose_command(
    data: Data = None,
    output: Output = None,
    splits: Splits = "",
    contestants: Names = "",
    peers: Peers = sys.executable,
) -> None:
    """Compare settings on validation parts."""
    _run("choose", data, output, contestants, peers, lambda m, s, names: choose(
        m, s, _some(splits, SPLITS, "split"), [name for name in names if name in GRIDS], peers, _say
    ))  # fmt: skip


@app.command("test")
def evaluate_command(
    data: Data = None,
    output: Output = None,
    splits: Splits = "",
    seeds: str = "0,1,2",
    contestants: Names = "",
    peers: Peers = sys.executable,
) -> None:
    """Score the test parts with what was chosen."""
    _run("test", data, output, contestants, peers, lambda m, s, names: evaluate(
        m, s, _some(splits, SPLITS, "split"), _numbers(seeds), names, peers, _say
    ))  # fmt: skip


def _run(
    name: str,
    data: Path | None,
    output: Path | None,
    contestants: str,
    peers: str,
    work: Callable[[MovieLens, Store, list[str]], None],
) -> None:
    try:
        names = _some(contestants, CONTESTANTS, "contestant")
        version = available(peers)
        if version is None and any(name in PEERS for name in names):
            _say(f"{peers} does not have implicit; {' and '.join(PEERS)} are left out.")
            names = [name for name in names if name not in PEERS]
        identity = {"experiment": f"ranking {name}", "protocol": PROTOCOL}
        also = {} if version is None else {"implicit": version}
        about = {"command": f"python -m tuckergp.paper.ranking {name}", "versions": {**versions(), **also}}
        work(load_movielens_100k(data), Store(output, identity, about), names)
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


def _say(line: str) -> None:
    typer.echo(line, err=True)


def _some(text: str, known: dict[str, Any], what: str) -> list[str]:
    names = text.split(",") if text else list(known)
    for name in names:
        if name not in known:
            raise InputError(f"There is no {what} {name!r}; choose among {', '.join(known)}.")
    return names


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise InputError(f"Numbers such as 0,2 are needed, not {text!r}.") from None


if __name__ == "__main__":
    sys.exit(app())
