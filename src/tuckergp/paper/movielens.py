"""The paper's MovieLens 100K table: MAP estimates with W = I or learned, without and with side information.

    python -m tuckergp.paper.movielens -o movielens_map.json

Settings and the number of epochs are chosen on a tenth of each split's own training part; the model is then refitted
to all of that part for as many steps, and the test part is scored once. ``--quick`` refits one split with settings
chosen before.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer

from tuckergp.data.datasets import load_movielens_100k
from tuckergp.errors import InputError
from tuckergp.paper.cells import Figures, fill
from tuckergp.paper.movielens_data import Entities, Ratings, carve, entities_of, ratings_of
from tuckergp.paper.movielens_report import table
from tuckergp.paper.movielens_search import BATCH, RANK, VARIANTS, Fit, Settings, Variant, search
from tuckergp.paper.store import Store, versions

__all__ = ["Split", "app", "cells", "checks", "chosen", "load_splits", "refit", "store_of"]

SPLITS = (1, 2, 3, 4, 5)
BATCH_SIZES = (10, 50, 100, 500, 1000)
BUCKETS = (50, 100, 200, 400, 800, 1600, 3200, 6400, 12800)
CURVE_EPOCHS = 150
CHECKED = ("pmf", "learn_w")
# Cells of the paper's grids with U started at its prior, for learning curves beside those of the chosen small starts
PRIOR_STARTS = {"pmf": Settings(0.1, 0.01, 1e-6, None, 1.0), "learn_w": Settings(0.1, 0.75, 1e-5, 1e-6, 1.0)}
PROTOCOL = (
    "choose on a tenth of the split's training part (successive halving over the paper's grids, early stopping), "
    "refit to the whole training part for the chosen number of gradient steps, score the test part once"
)


class Split:
    """One split: what to learn from and choose by, all of the training part, and the test part."""

    def __init__(self, entities: Entities, train: Ratings, test: Ratings, seed: int, number: int) -> None:
        learn, choose = carve(len(train), seed, number)
        self.number = number
        self.entities = entities
        self.learn, self.choose = train.take(learn), train.take(choose)
        self.train, self.test = train, test


def load_splits(data: Path | None, numbers: Iterable[int], seed: int = 0) -> list[Split]:
    """Some of the official splits u1..u5."""
    movielens = load_movielens_100k(data)
    entities = entities_of(movielens)
    splits = []
    for number in numbers:
        train, test = (ratings_of(entities, part) for part in movielens.split(number))
        splits.append(Split(entities, train, test, seed, number))
    return splits


def refit(split: Split, settings: Settings, epochs: int, seed: int, **options: Any) -> Fit:
    """Fit the whole training part for a given number of epochs; sees no test rating."""
    return Fit(split.entities, split.train, settings, seed, **options).run(epochs)


def epochs_of_refit(split: Split, epochs: int) -> int:
    """As many gradient steps as were chosen, in epochs of the whole training part, which has more of them.

    Parts within the training part bear this out: as many epochs as chosen would overfit.
    """
    return max(1, round(epochs * len(split.learn) / len(split.train)))


def choose_and_score(split: Split, variant: Variant, seed: int, rank: int = RANK) -> dict[str, Any]:
    """One cell of the table: search, refit, score."""
    start = time.perf_counter()
    choice = search(split.entities, split.learn, split.choose, variant, seed, rank)
    searched = time.perf_counter()
    epochs = epochs_of_refit(split, choice.epochs)
    fit = refit(split, choice.settings, epochs, seed, rank=rank)
    return {
        "settings": asdict(choice.settings),
        "chosen_epochs": choice.epochs,
        "epochs": epochs,
        "validation_rmse": _figure(choice.score),
        "train_rmse": _figure(fit.train_rmse[-1]),
        "test_rmse": _figure(fit.score(split.test)),
        "searched_epochs": choice.trained_epochs,
        "search_seconds": round(searched - start, 1),
        "refit_seconds": round(time.perf_counter() - searched, 1),
    }


def _figure(value: float, digits: int = 5) -> float | None:
    """Rounded for JSON, which knows no infinity: None stands for a fit that diverged."""
    return round(value, digits) if math.isfinite(value) else None


def chosen() -> dict[str, dict[str, Any]]:
    """What the full run chose: cell name -> ``settings``, ``epochs`` and the ``test_rmse`` they gave."""
    text = resources.files("tuckergp.paper").joinpath("movielens_chosen.json").read_text()
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found


def score_chosen(split: Split, name: str, seed: int) -> dict[str, Any]:
    """One cell of the table with the settings that the full run chose."""
    start = time.perf_counter()
    known = chosen()[name]
    fit = refit(split, Settings.from_json(known["settings"]), known["epochs"], seed)
    return {
        "settings": known["settings"],
        "epochs": known["epochs"],
        "train_rmse": _figure(fit.train_rmse[-1]),
        "test_rmse": _figure(fit.score(split.test)),
        "refit_seconds": round(time.perf_counter() - start, 1),
    }


def cells(splits: Iterable[Split], seed: int = 0, quick: bool = False) -> dict[str, Callable[[], Figures]]:
    """Those of the table, ``variant/u1`` and so on; quick ones take the settings that the full run chose."""
    found: dict[str, Callable[[], Figures]] = {}
    for split in splits:
        for key, variant in VARIANTS.items():
            name = f"{key}/u{split.number}"
            if quick:
                found[name] = partial(score_chosen, split, name, seed)
            else:
                found[name] = partial(choose_and_score, split, variant, seed)
    return found


def checks(split: Split, store: Store, seed: int = 0) -> dict[str, Callable[[], Figures]]:
    """Three claims around the table, with the split's chosen settings, W = I and learned, no side information.

    ``batch/...``: how sensitive SGD is to the mini-batch size. The update weighs a rating by step N / m, so smaller
    batches with the same step sizes learn faster; ``batch_same_rate/...`` shrinks the step sizes along with m.
    ``curve/...``: with W = I it soon overfits; does a learned W keep improving? ``buckets/...``: hashed ids against
    their number of buckets. The table's cells must be in the store when one of these is computed.
    """
    found: dict[str, Callable[[], Figures]] = {}
    for key in CHECKED:
        name = f"{key}/u{split.number}"
        settings = partial(_stored_settings, store, name)
        stop = partial(_stop_and_score, split, VARIANTS[key], seed)
        found[f"curve/{name}"] = partial(_curve, split, settings, seed)
        found[f"curve/{name}/prior start"] = partial(_curve, split, partial(PRIOR_STARTS.__getitem__, key), seed)
        for size in BATCH_SIZES:
            same_rate, pace = partial(_same_rate, settings, size), max(1, size // BATCH)
            found[f"batch/{name}/{size}"] = partial(stop, settings, batch_size=size, pace=pace)
            found[f"batch_same_rate/{name}/{size}"] = partial(stop, same_rate, batch_size=size)
        for n in (*BUCKETS, None):
            found[f"buckets/{name}/{n or 'none'}"] = partial(stop, settings, buckets=n)
    return found


def _stored_settings(store: Store, name: str) -> Settings:
    return Settings.from_json(store.results["cells"][name]["settings"])


def _same_rate(known: Callable[[], Settings], size: int) -> Settings:
    """Step sizes in proportion to the batch, so that a rating counts as much as in batches of the usual size."""
    settings = known()
    step_w = None if settings.step_w is None else settings.step_w * size / BATCH
    return replace(settings, step_u=settings.step_u * size / BATCH, step_w=step_w)


def _stop_and_score(
    split: Split, variant: Variant, seed: int, known: Callable[[], Settings], pace: int = 1, **options: Any
) -> Figures:
    """Early stopping on the validation part, ``pace`` times as patient, then refit and score as for the table."""
    settings = known()
    fit = Fit(split.entities, split.learn, settings, seed, **options)
    score = fit.watch(split.choose, pace * variant.rungs[-1].epochs, pace * variant.patience)
    epochs = epochs_of_refit(split, fit.best_epoch)
    test = refit(split, settings, epochs, seed, **options).score(split.test)
    return {
        "chosen_epochs": fit.best_epoch,
        "epochs": epochs,
        "validation_rmse": _figure(score),
        "test_rmse": _figure(test),
    }


def _curve(split: Split, known: Callable[[], Settings], seed: int) -> Figures:
    """Train and validation RMSE after every epoch, without stopping."""
    settings = known()
    fit = Fit(split.entities, split.learn, settings, seed)
    best = fit.watch(split.choose, CURVE_EPOCHS, CURVE_EPOCHS)
    return {
        "settings": asdict(settings),
        "best_epoch": fit.best_epoch,
        "best_validation_rmse": _figure(best),
        "last_validation_rmse": _figure(fit.held_rmse[-1]),
        "train_rmse": [_figure(value, 4) for value in fit.train_rmse],
        "validation_rmse": [_figure(value, 4) for value in fit.held_rmse],
    }


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise InputError(f"--splits must list numbers from 1 to 5, such as 1,3, not {text!r}.") from None


def store_of(path: Path | None, quick: bool, numbers: Iterable[int] = SPLITS, seed: int = 0) -> Store:
    """Where the cells are kept."""
    identity = {
        "experiment": "movielens_map", "protocol": PROTOCOL, "quick": quick, "seed": seed, "rank": RANK,
        "batch_size": BATCH,
    }  # fmt: skip
    command = f"python -m tuckergp.paper.movielens{' --quick' * quick} --splits {','.join(map(str, numbers))}"
    return Store(path, identity, {"command": command, "versions": versions()})


app = typer.Typer(add_completion=False)


@app.command()
def main(
    quick: Annotated[bool, typer.Option("--quick", help="One split, settings chosen before, no search.")] = False,
    splits: Annotated[str, typer.Option(help="Which official splits, such as 1,3; 1 with --quick.")] = "",
    data: Annotated[Path | None, typer.Option(help="The folder that holds ml-100k.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Results; a finished cell is kept.")] = None,
    checks_too: Annotated[
        bool,
        typer.Option("--checks/--no-checks", help="Batch sizes, learning curves and hashed ids on the first split."),
    ] = True,
    seed: Annotated[int, typer.Option(help="Names the validation parts, the starts and the orders.")] = 0,
) -> None:
    """Test RMSE on MovieLens 100K: W = I or learned, without and with side information."""
    try:
        numbers = _numbers(splits or ("1" if quick else "1,2,3,4,5"))
        store = store_of(output, quick, numbers, seed)
        parts = load_splits(data, numbers, seed)
        todo = cells(parts, seed, quick)
        if checks_too and not quick:
            todo |= checks(parts[0], store, seed)
        fill(store, todo, lambda line: typer.echo(line, err=True))
    except InputError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from None
    typer.echo(table(store.results))


if __name__ == "__main__":
    sys.exit(app())
