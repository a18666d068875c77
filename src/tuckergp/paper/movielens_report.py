"""The documentation's tables of the MovieLens experiment, in Markdown, from its results file and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tuckergp.paper.movielens_search import VARIANTS

__all__ = ["TABLES", "batch_table", "buckets_table", "curves_table", "table"]


def table(results: dict[str, Any]) -> str:
    """The table of the documentation, in Markdown: model, paper, ours, chosen settings.

    Parameters
    ----------
    results : dict
        What the JSON file holds. Variants without a cell are left out.
    """
    cells = {name: cell for name, cell in results["cells"].items() if name.partition("/")[0] in VARIANTS}
    splits = sorted({name.partition("/")[2] for name in cells})
    lines = [
        f"| model | paper | {', '.join(splits)}: mean ± sd | {' | '.join(splits)} | chosen settings |",
        "|" + "---|" * (4 + len(splits)),
    ]
    for key, variant in VARIANTS.items():
        mine = {name.partition("/")[2]: cell for name, cell in cells.items() if name.partition("/")[0] == key}
        if not mine:
            continue
        scores = {split: math.inf if cell["test_rmse"] is None else cell["test_rmse"] for split, cell in mine.items()}
        each = [f"{scores[split]:.4f}" if split in scores else "" for split in splits]
        paper = f"{variant.paper[0]:.4f} ± {variant.paper[1]:.4f}"
        row = [variant.title, paper, _mean_sd(list(scores.values())), *each]
        lines.append(f"| {' | '.join([*row, _settings_of(mine.values())])} |")
    return "\n".join(lines) + "\n"


def _mean_sd(values: list[float]) -> str:
    mean = f"{np.mean(values):.4f}"
    return mean if len(values) < 2 else f"{mean} ± {np.std(values, ddof=1):.4f}"


def _settings_of(cells: Iterable[dict[str, Any]]) -> str:
    """Every setting with the values chosen, one where all splits agree."""
    cells = list(cells)
    names = {"sigma_u": "σ_u", "noise": "σ²", "step_u": "ε_u", "step_w": "ε_w", "init_scale": "U starts at"}
    columns = {label: [cell["settings"][key] for cell in cells] for key, label in names.items()}
    for k, letter in enumerate("abc"):
        columns[letter] = [None if cell["settings"]["side"] is None else cell["settings"]["side"][k] for cell in cells]
    learned = [cell for cell in cells if cell["settings"]["step_w"] is not None]
    columns["W starts at"] = [cell["settings"]["core_start"] for cell in learned]
    columns["epochs"] = [cell["epochs"] for cell in cells]
    shown = []
    for label, values in columns.items():
        distinct = sorted({value for value in values if value is not None})
        if distinct:
            shown.append(f"{label} {', '.join(v if isinstance(v, str) else f'{v:g}' for v in distinct)}")
    return "; ".join(shown)


def curves_table(results: dict[str, Any]) -> str:
    """Validation RMSE along the learning curves: best epoch, and what comes after it."""
    lines = ["| | best at epoch | best | at epoch 30 | last epoch | at the last |", "|---|---|---|---|---|---|"]
    for name, cell in _cells(results, "curve/"):
        variant, _, more = name.split("/", 1)[1].partition("/")
        start = more.partition("/")[2] or "chosen settings"
        curve = cell["validation_rmse"]
        label = f"{VARIANTS[variant].title}, {start} (sigma_u {cell['settings']['sigma_u']:g})"
        figures = [cell["best_epoch"], f"{min(curve):.4f}", f"{curve[29]:.4f}", len(curve), f"{curve[-1]:.4f}"]
        lines.append(f"| {' | '.join(map(str, [label, *figures]))} |")
    return "\n".join(lines) + "\n"


def batch_table(results: dict[str, Any]) -> str:
    """Test RMSE for every batch size, at the same step and with the step in proportion to the batch."""
    titles = {"batch": "same step", "batch_same_rate": "step in proportion to the batch"}
    return _by_column(results, "batch size", [(key, titles[key], "test_rmse") for key in titles])


def buckets_table(results: dict[str, Any]) -> str:
    """Validation and test RMSE for every number of hash buckets."""
    rows = [("buckets", "validation", "validation_rmse"), ("buckets", "test", "test_rmse")]
    return _by_column(results, "m", rows)


def _by_column(results: dict[str, Any], corner: str, rows: list[tuple[str, str, str]]) -> str:
    columns = list(dict.fromkeys(name.rsplit("/", 1)[1] for name, _ in _cells(results, f"{rows[0][0]}/")))
    shown = ["unhashed" if column == "none" else column for column in columns]
    lines = [f"| {corner} | {' | '.join(shown)} |", "|" + "---|" * (1 + len(columns))]
    for prefix, title, figure in rows:
        for variant in dict.fromkeys(name.split("/")[1] for name, _ in _cells(results, f"{prefix}/")):
            cells = {
                name.rsplit("/", 1)[1]: cell[figure]
                for name, cell in _cells(results, f"{prefix}/")
                if name.split("/")[1] == variant
            }
            values = ["diverges" if cells[column] is None else f"{cells[column]:.4f}" for column in columns]
            lines.append(f"| {VARIANTS[variant].title}, {title} | {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


def _cells(results: dict[str, Any], prefix: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, cell) for name, cell in results["cells"].items() if name.startswith(prefix)]


TABLES: dict[str, dict[str, Callable[[dict[str, Any]], str]]] = {
    "movielens_map.json": {
        "movielens_map": table,
        "movielens_curves": curves_table,
        "movielens_batch": batch_table,
        "movielens_buckets": buckets_table,
    }
}
"""By results file, then by the name that stands in the page's marker."""
