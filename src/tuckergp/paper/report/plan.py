"""What is run for every part of the report: experiments with their stores, and pictures of fitted models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from tuckergp.data.datasets import load_california, load_movielens_100k, load_wind
from tuckergp.files import write_text
from tuckergp.paper import (
    california,
    columns,
    movielens,
    movielens_bpmf,
    movielens_calibration,
    movielens_gibbs,
    ratings,
    regression_figures,
    theory,
    variational,
    wind,
)
from tuckergp.paper.cells import Cells, store_of
from tuckergp.paper.report.svg import inline, look
from tuckergp.paper.store import Store

__all__ = ["PARTS", "Piece", "pieces"]

Piece: TypeAlias = tuple[Store, Cells]
"""Named pieces of work, and where their results are kept."""

CALIFORNIA_PICTURES = (
    "california_map",
    "california_components",
    "california_components_uniform",
    "california_components_la",
    "california_components_bay",
)
WIND_PICTURES = ("wind", "wind_chain")


def pieces(part: str, data: Path | None, folder: Path, quick: bool) -> list[Piece]:
    """All that a part of the report needs, in the order in which it is to be run."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    return PARTS[part](data, folder, quick)


def _movielens(data: Path | None, folder: Path, quick: bool) -> list[Piece]:
    numbers = movielens.SPLITS[:1] if quick else movielens.SPLITS
    splits = movielens.load_splits(data, numbers)
    table = movielens.store_of(folder / "movielens_map.json", quick, numbers)
    wanted = movielens.cells(splits, quick=quick)
    loaded = load_movielens_100k(data)
    sampled = movielens_gibbs.store_of("test", folder / "movielens_gibbs.json", quick)
    short: dict[str, Any] = {"rank": 4, "draws": 15, "warmup": 5} if quick else {}
    seeds = movielens_gibbs.SEEDS[:1] if quick else movielens_gibbs.SEEDS
    return [
        (table, wanted if quick else wanted | movielens.checks(splits[0], table)),
        (movielens_bpmf.store_of(folder / "movielens_bpmf.json", quick), movielens_bpmf.cells(loaded, quick)),
        (
            movielens_calibration.store_of(folder / "movielens_calibration.json", quick),
            movielens_calibration.cells(loaded, **short),
        ),
        (sampled, movielens_gibbs.cells(loaded, numbers, seeds, list(movielens_gibbs.SETTINGS), **short)),
    ]


def _california(data: Path | None, folder: Path, quick: bool) -> list[Piece]:
    split = california.split_of(load_california(data), quick)
    store = store_of("california", "test", california.PROTOCOL, folder / "california.json", quick)

    def draw() -> dict[str, Any]:
        return regression_figures.california_pictures(split, quick)

    return [(store, california.cells(split, store, quick)), _pictures(folder, CALIFORNIA_PICTURES, draw)]


def _wind(data: Path | None, folder: Path, quick: bool) -> list[Piece]:
    split = wind.split_of(load_wind(data), quick)
    store = store_of("wind", "test", wind.PROTOCOL, folder / "wind.json", quick)

    def draw() -> dict[str, Any]:
        return regression_figures.wind_pictures(split, store.results["cells"]["gp"]["hyperparameters"], quick)

    return [(store, wind.cells(split, store, quick)), _pictures(folder, WIND_PICTURES, draw)]


def _pictures(folder: Path, names: tuple[str, ...], draw: Callable[[], dict[str, Any]]) -> Piece:
    """Pictures that take a fitted model: files, drawn unless all are there."""

    def compute() -> dict[str, Any]:
        with look():
            made = draw()
        for name in names:
            write_text(folder / "figures" / f"{name}.svg", inline(made[name], name))
        return {"pictures": len(names)}

    there = all((folder / "figures" / f"{name}.svg").is_file() for name in names)
    return Store(None, {}, {}), {} if there else {f"pictures of {names[0].partition('_')[0]}": compute}


def _theory(data: Path | None, folder: Path, quick: bool) -> list[Piece]:
    store = store_of("theory", "test", theory.PROTOCOL, folder / "theory.json", quick)
    return [(store, theory.cells(data, quick))]


def _future(data: Path | None, folder: Path, quick: bool) -> list[Piece]:
    open_questions = ratings.store_of(folder / "ratings.json", quick)
    return [
        (open_questions, ratings.cells(ratings.load(data), open_questions, quick)),
        (variational.store_of(folder / "variational.json", quick), variational.cells(data, quick)),
        (columns.store_of(folder / "columns.json", quick), columns.cells(quick)),
    ]


PARTS: dict[str, Callable[[Path | None, Path, bool], list[Piece]]] = {
    "movielens": _movielens,
    "california": _california,
    "wind": _wind,
    "theory": _theory,
    "future": _future,
}
"""By name, in the order of the report."""
