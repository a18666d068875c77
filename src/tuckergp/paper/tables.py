"""Tables in Markdown from the cells of an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Results", "cells_of", "mean_and_sd", "rows_of", "shown"]

Results: TypeAlias = dict[str, Any]


def cells_of(results: Results, start: str) -> list[dict[str, Any]]:
    """Those whose names begin so, one a seed."""
    return [cell for name, cell in results["cells"].items() if name.startswith(start)]


def mean_and_sd(cells: Sequence[dict[str, Any]], figure: str) -> tuple[float | None, float | None]:
    """Over seeds; None where there is nothing, or one seed."""
    values = [float(cell[figure]) for cell in cells if figure in cell]
    if not values:
        return None, None
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None


def shown(cells: Sequence[dict[str, Any]], figure: str, digits: int = 4) -> str:
    """Mean and sd over seeds.

    Examples
    --------
    >>> shown([{"rmse": 0.25}, {"rmse": 0.26}], "rmse")
    '0.2550 ± 0.0071'
    """
    mean, sd = mean_and_sd(cells, figure)
    if mean is None:
        return ""
    return f"{mean:.{digits}f}" + ("" if sd is None else f" ± {sd:.{digits}f}")


def rows_of(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table with a head."""
    rows = [list(head), ["---"] * len(head), *map(list, lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
