"""The section on MovieLens 100K: the paper's table with all its rows, learning curves, calibration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tuckergp.paper import movielens_gibbs_report, movielens_report
from tuckergp.paper.movielens_bpmf import PAPER
from tuckergp.paper.movielens_gibbs import SETTINGS
from tuckergp.paper.movielens_search import VARIANTS
from tuckergp.paper.report.blocks import Block, Section, Table, Text
from tuckergp.paper.report.charts import calibration, dots, learning_curves
from tuckergp.paper.report.stored import Drawer, Stored
from tuckergp.paper.tables import Results, rows_of

__all__ = ["sections"]

PAPER_ROWS = {
    "bpmf": ("Bayesian PMF", PAPER, "movielens_bpmf", "test_rmse"),
    **{key: (one.title, one.paper, "movielens_map", "test_rmse") for key, one in VARIANTS.items()},
}
TITLES = {key: setting.title for key, setting in SETTINGS.items()}


def sections(stored: Stored, draw: Drawer) -> list[Section]:
    """What there is of it."""
    if not {"movielens_map", "movielens_gibbs", "movielens_bpmf"} & set(stored):
        return []
    rows = _rows(stored)
    blocks: list[Block] = [
        Text(
            "Test RMSE of ratings from 1 to 5 on the five official splits, mean and sd over splits. The first five "
            "rows are the paper's; settings are chosen on a tenth of each split's own training part, not by "
            "cross-validation, and the test part is scored once. The other rows are models that are sampled, which the "
            "paper does not have; their means are over splits and seeds. Predictions are clipped to 1..5."
        ),
        Table("Test RMSE on MovieLens 100K", _table(rows)),
        draw(
            "movielens_table",
            "Test RMSE with the sd over splits.",
            "A row a model with a dot for the paper's test RMSE and one for ours; sampled models have the least.",
            lambda: dots([(title, found) for title, found in rows if found], "test RMSE"),
        ),
        Text(
            "Where we differ: PMF is better here than in the paper, so that learning W gains nothing over W = I; from "
            "starts at draws of the prior the paper's order returns. Side information helps on every split, as the "
            "paper says."
        ),
    ]
    blocks += _map_blocks(stored.get("movielens_map"), draw)
    if "movielens_gibbs" in stored and (made := movielens_gibbs_report.gibbs_table(stored["movielens_gibbs"])):
        blocks.append(Table("Sampled models, with the aims set for them and the best peer measured", made))
    if found := stored.get("movielens_calibration"):
        cells = {TITLES[key]: cell for key, cell in found["cells"].items()}
        blocks.append(
            draw(
                "movielens_calibration",
                "Predictions of the first split in ten bins against mean ratings; and how often intervals of a given "
                "probability hold the rating. Dotted: as it should be.",
                "Mean ratings lie near the diagonal for all models, and intervals hold about as often as they say.",
                lambda: calibration(cells),
            )
        )
    return [Section("movielens", "Ratings: MovieLens 100K", blocks)]


def _rows(stored: Stored) -> list[tuple[str, dict[str, tuple[float, float | None]]]]:
    """Title, then mean and sd by source."""
    rows = []
    for key, (title, paper, store, figure) in PAPER_ROWS.items():
        found: dict[str, tuple[float, float | None]] = {"paper": paper}
        values = [c[figure] for n, c in _cells(stored.get(store), key) if c.get(figure) is not None]
        if values:
            found["ours"] = _mean_and_sd(values)
        rows.append((title, found))
    for key, setting in SETTINGS.items():
        by_split: dict[str, list[float]] = {}
        for name, cell in _cells(stored.get("movielens_gibbs"), key):
            by_split.setdefault(name.split("/")[1], []).append(cell["rmse"])
        if by_split:
            mean = _mean_and_sd([float(np.mean(values)) for values in by_split.values()])
            rows.append((f"sampled: {setting.title}", {"ours": mean}))
    return rows


def _cells(results: Results | None, key: str) -> list[tuple[str, Results]]:
    return [(name, cell) for name, cell in (results or {"cells": {}})["cells"].items() if name.split("/")[0] == key]


def _mean_and_sd(values: list[float]) -> tuple[float, float | None]:
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None


def _table(rows: list[tuple[str, dict[str, tuple[float, float | None]]]]) -> str:
    def shown(value: tuple[float, float | None] | None) -> str:
        if value is None:
            return ""
        return f"{value[0]:.4f}" + ("" if value[1] is None else f" ± {value[1]:.4f}")

    lines = [[title, shown(found.get("paper")), shown(found.get("ours"))] for title, found in rows]
    return rows_of(["model", "paper", "ours"], lines)


def _map_blocks(results: Results | None, draw: Drawer) -> list[Block]:
    curves = {
        f"{VARIANTS[name.split('/')[1]].title}{', from the prior' * name.endswith('prior start')}": cell
        for name, cell in (results or {"cells": {}})["cells"].items()
        if name.startswith("curve/")
    }
    if results is None or not curves:
        return []
    tables: dict[str, Callable[[Results], str]] = {
        "Along the learning curves, first split, validation RMSE": movielens_report.curves_table,
        "Test RMSE by the size of mini-batches": movielens_report.batch_table,
        "Ids hashed into m buckets": movielens_report.buckets_table,
    }
    picture = draw(
        "movielens_curves",
        "RMSE after every epoch of the paper's SGD, first split.",
        "With W = I validation error turns up after some ten epochs; with a learned W it falls for longer.",
        lambda: learning_curves(curves),
    )
    return [picture, *(Table(caption, make(results)) for caption, make in tables.items())]
