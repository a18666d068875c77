"""MovieLens 100K by Gibbs sampling: ratings alone, side information, who-rated-what, weeks, ordinal levels.

    python -m tuckergp.paper.movielens_gibbs choose -o movielens_gibbs_choice.json
    python -m tuckergp.paper.movielens_gibbs test -o movielens_gibbs.json
    python -m tuckergp.paper.movielens_gibbs scarce -o movielens_scarce.json

``choose`` compares ranks on a tenth of each split's own training part. What it chose stands in `SETTINGS`; ``test``
learns from the whole training part with it and scores the test part once a seed. ``scarce`` thins the training part
and watches whether long chains get worse. Predictions are clipped to 1..5 everywhere.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import MovieLens, load_movielens_100k
from tuckergp.data.tables import Table
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.evaluation.baselines import Biases
from tuckergp.evaluation.metrics import rmse
from tuckergp.paper.cells import Cells, Figures, fill
from tuckergp.paper.movielens_data import attribute_tables, carve, entities_of
from tuckergp.paper.store import Store, versions
from tuckergp.random import stream

__all__ = ["SETTINGS", "Setting", "app", "attributes_of", "cells", "choices", "scarce", "score", "store_of"]

SEEDS = (0, 1, 2)
SPLITS = (1, 2, 3, 4, 5)
SHARES = (0.05, 0.2)
SWEEPS = (200, 2_000)
THINNED_KEY = 1_000_002
PROTOCOL = (
    "rank chosen on a tenth of the training parts, then learned from the whole training part, the test part scored "
    "once a seed; predictions clipped to 1..5"
)


@dataclass(frozen=True)
class Setting:
    """A row of the table: what the model may use, how it is run, what to compare with.

    Attributes
    ----------
    title : str
    tables : str
        Which attribute tables: none, the paper's, or all.
    options : dict
        Of `TuckerRecommender`, the chosen rank among them.
    ranks : tuple of int
        Those compared by ``choose``.
    reach, reach_u1 : float or None
        Test RMSE to reach, mean of u1..u5 and on u1.
    peer : str
        The best peer measured on the same splits.
    """

    title: str
    tables: str
    options: dict[str, Any]
    ranks: tuple[int, ...]
    reach: float
    reach_u1: float | None
    peer: str


_PLAIN: dict[str, Any] = {"implicit": False, "time": None, "draws": 250, "warmup": 50}
_LONG: dict[str, Any] = {"implicit": True, "draws": 300, "warmup": 60}

SETTINGS: dict[str, Setting] = {
    "ratings": Setting(
        "ratings alone", "none", {**_PLAIN, "rank": 15}, (10, 15), 0.8940, None,
        "0.8963 SMURFF BPMF, noise set by hand; 0.8967 myFM",
    ),
    "side": Setting(
        "+ the paper's side information", "paper", {**_PLAIN, "rank": 15}, (10, 15), 0.8860, None,
        "0.8887 SMURFF Macau, noise set by hand; 0.8911 myFM",
    ),
    "implicit": Setting(
        "+ release year and who-rated-what", "all", {**_LONG, "time": None, "rank": 32}, (12, 20, 32), 0.8755, 0.8800,
        "0.8803 myFM",
    ),
    "week": Setting(
        "+ the week of the rating", "all", {**_LONG, "time": "week", "rank": 32}, (12, 20, 32), 0.8710, 0.8785,
        "0.8778 myFM",
    ),
    "ordinal": Setting(
        "the same, ordinal likelihood", "all",
        {**_LONG, "time": "week", "likelihood": "ordinal", "rank": 32}, (), 0.8700, 0.8780,
        "0.8767 myFM",
    ),
}  # fmt: skip
"""By key; ranks are those that ``choose`` found best on the validation parts."""


def score(
    movielens: MovieLens, setting: Setting, train: Table, held: Table, seed: int, **options: Any
) -> dict[str, Any]:
    """Learn from ``train`` and score ``held``: RMSE, coverage of 90 % intervals, diagnostics, seconds."""
    began = time.perf_counter()
    users, items = attributes_of(movielens, setting.tables)
    options = {**setting.options, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        model = TuckerRecommender(**options, random_state=seed).fit(train, users, items)
    mean, band = model.predict(held, interval=0.9)
    truth = held.numeric("rating")
    diagnostics = model.fit_.draws.diagnostics()
    return {
        "options": options,
        "rmse": round(rmse(truth, mean), 5),
        "coverage": round(float(((band[:, 0] <= truth) & (truth <= band[:, 1])).mean()), 4),
        "worst_rhat": round(float(np.nanmax(diagnostics.rhat)), 3),
        "median_ess": round(float(np.nanmedian(diagnostics.ess_bulk)), 1),
        "seconds": round(time.perf_counter() - began, 1),
    }


def attributes_of(movielens: MovieLens, which: str) -> tuple[Table | None, Table | None]:
    """Tables of what is known of users and items: none, the paper's, or all."""
    if which == "none":
        return None, None
    if which == "paper":
        entities = entities_of(movielens)
        return entities.users, entities.items
    return attribute_tables(movielens)


def choices(movielens: MovieLens, splits: Iterable[int], keys: Iterable[str]) -> Cells:
    """Validation RMSE of every rank of every setting, cells ``key/rank 12/u1``; one seed."""
    found = {}
    for number in splits:
        base, _ = movielens.split(number)
        learn, held = (base.take(rows) for rows in carve(len(base), 0, number))
        for key in keys:
            for rank in SETTINGS[key].ranks:
                found[f"{key}/rank {rank}/u{number}"] = partial(
                    score, movielens, SETTINGS[key], learn, held, 0, rank=rank
                )
    return found


def cells(
    movielens: MovieLens, splits: Iterable[int], seeds: Iterable[int], keys: Iterable[str], **options: Any
) -> Cells:
    """Test RMSE with what was chosen, cells ``key/u1/seed 0``; other ``options`` of the model are for quick runs."""
    found = {}
    for seed in seeds:
        for number in splits:
            base, held = movielens.split(number)
            for key in keys:
                compute = partial(score, movielens, SETTINGS[key], base, held, seed, **options)
                found[f"{key}/u{number}/seed {seed}"] = compute
    return found


def scarce(movielens: MovieLens, splits: Iterable[int]) -> Cells:
    """A few ratings a user: cells ``5%/u1/200 sweeps`` and ``5%/u1/biases``, test RMSE."""
    found: dict[str, Callable[[], Figures]] = {}
    for number in splits:
        base, held = movielens.split(number)
        for share in SHARES:
            kept = np.sort(stream(0, THINNED_KEY, number).permutation(len(base))[: round(share * len(base))])
            train = base.take(kept)
            name = f"{share:.0%}/u{number}"
            for sweeps in SWEEPS:
                length = {"draws": sweeps - sweeps // 10, "warmup": sweeps // 10}
                compute = partial(score, movielens, SETTINGS["ratings"], train, held, 0, **length)
                found[f"{name}/{sweeps} sweeps"] = compute
            found[f"{name}/biases"] = partial(_score_biases, train, held)
    return found


def _score_biases(train: Table, held: Table) -> dict[str, Any]:
    return {"rmse": round(rmse(held.numeric("rating"), Biases(damping="auto").fit(train).predict(held)), 5)}


app = typer.Typer(add_completion=False, help=__doc__)
Data = Annotated[Path | None, typer.Option("--data", help="The folder that holds ml-100k.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="Results; a finished cell is kept.")]
Splits = Annotated[str, typer.Option("--splits", help="Which official splits, such as 1,3.")]
Keys = Annotated[str, typer.Option("--settings", help=f"Some of {', '.join(SETTINGS)}; empty for all.")]


@app.command("choose")
def choose_command(data: Data = None, output: Output = None, splits: Splits = "1,3,5", settings: Keys = "") -> None:
    """Compare ranks on validation parts."""
    _run("choose", data, output, lambda m: choices(m, _numbers(splits), _keys(settings)))


@app.command("test")
def evaluate_command(
    data: Data = None, output: Output = None, splits: Splits = "1,2,3,4,5", seeds: str = "0,1,2", settings: Keys = ""
) -> None:
    """Score the test parts with what was chosen."""
    _run("test", data, output, lambda m: cells(m, _numbers(splits), _numbers(seeds), _keys(settings)))


@app.command("scarce")
def scarce_command(data: Data = None, output: Output = None, splits: Splits = "1,2,3,4,5") -> None:
    """Thin the training parts to 5 % and 20 %, and compare short with long chains."""
    _run("scarce", data, output, lambda m: scarce(m, _numbers(splits)))


def store_of(command: str, path: Path | None, quick: bool = False) -> Store:
    """Where the cells of a command are kept."""
    identity = {"experiment": f"movielens_gibbs {command}", "protocol": PROTOCOL} | ({"quick": True} if quick else {})
    about = {"command": f"python -m tuckergp.paper.movielens_gibbs {command}", "versions": versions()}
    return Store(path, identity, about)


def _run(command: str, data: Path | None, output: Path | None, todo: Callable[[MovieLens], Cells]) -> None:
    try:
        fill(store_of(command, output), todo(load_movielens_100k(data)), lambda line: typer.echo(line, err=True))
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None


def _keys(text: str) -> list[str]:
    keys = text.split(",") if text else list(SETTINGS)
    for key in keys:
        if key not in SETTINGS:
            raise InputError(f"There is no setting {key!r}; choose among {', '.join(SETTINGS)}.")
    return keys


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise InputError(f"Numbers such as 1,3 are needed, not {text!r}.") from None


if __name__ == "__main__":
    sys.exit(app())
