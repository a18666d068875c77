"""Helpers for tables of finished cells: selection by name, means and standard deviations over seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tuckergp.paper.experiment import Cells, Figures

__all__ = ["mean_and_sd", "median", "shown", "starting", "with_sd", "words"]


def starting(cells: Cells, start: str) -> list[Figures]:
    """The cells whose names begin with ``start``, such as one per seed."""
    return [cell for name, cell in cells.items() if name.startswith(start)]


def mean_and_sd(values: Sequence[float]) -> tuple[float, float | None]:
    """Mean and standard deviation, which is None for a single value."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else None


def words(mean: float, sd: float | None, digits: int = 4) -> str:
    """Mean and standard deviation as text."""
    return f"{mean:.{digits}f}" + ("" if sd is None else f" ± {sd:.{digits}f}")


def with_sd(values: Sequence[float], digits: int = 4) -> str:
    """Mean and standard deviation of values in words; nothing of nothing.

    Examples
    --------
    >>> with_sd([0.25, 0.26]), with_sd([0.25], 2), with_sd([])
    ('0.2550 ± 0.0071', '0.25', '')
    """
    return words(*mean_and_sd(values), digits) if len(values) else ""


def shown(cells: Sequence[Figures], figure: str, digits: int = 4) -> str:
    """Mean and standard deviation of a figure as text, over those cells that have it, such as one per seed."""
    return with_sd([float(cell[figure]) for cell in cells if figure in cell], digits)


def median(cells: Sequence[Figures], figure: str) -> str:
    """The median over cells as a whole number, for seconds."""
    return f"{np.median([cell[figure] for cell in cells]):.0f}"
