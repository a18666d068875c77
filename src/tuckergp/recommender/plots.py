"""Plots with matplotlib, which is loaded when one is drawn: horizontal bars and waterfalls."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

__all__ = ["bars", "pair_of_axes", "waterfall"]

UP, DOWN, WHOLE = "tab:blue", "tab:red", "0.2"


def _axes(ax: Any, rows: int) -> Any:
    return _figure((7, 1 + 0.3 * rows))[1] if ax is None else ax


def pair_of_axes(*rows: int) -> Any:
    """Two axes, one above the other, for waterfalls of so many parts."""
    heights = [1.6 + 0.3 * count for count in rows]
    return _figure((7, sum(heights)), nrows=2, height_ratios=heights)[1]


def _figure(size: tuple[float, float], **shape: Any) -> Any:
    try:
        pyplot: Any = import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError("plot() needs matplotlib: pip install 'tuckergp[plot]'.") from error
    return pyplot.subplots(figsize=size, layout="constrained", **shape)


def bars(labels: Sequence[str], values: Sequence[float], errors: Sequence[float], title: str, ax: Any = None) -> Any:
    """Horizontal bars with errors, the first on top; returns the axes."""
    ax = _axes(ax, len(labels))
    ax.barh(np.arange(len(labels)), values, xerr=errors, color=[UP if value >= 0 else DOWN for value in values])
    return _finish(ax, labels, title)


def waterfall(labels: Sequence[str], values: Sequence[float], start: float, title: str, ax: Any = None) -> Any:
    """The base, bars that each begin where the one above ends, and the total; returns the axes."""
    labels, ends = ["base", *labels, "total"], start + np.cumsum([0.0, *values])
    ax = _axes(ax, len(labels))
    inner = np.arange(1, len(labels) - 1)
    ax.barh(inner, values, left=ends[:-1], color=[UP if value >= 0 else DOWN for value in values])
    for row, place in ((0, start), (len(labels) - 1, ends[-1])):
        ax.axvline(place, color="0.6", linewidth=1, linestyle=":")
        ax.plot(place, row, marker="o", color=WHOLE)
        ax.annotate(f"{place:.2f}", (place, row), textcoords="offset points", xytext=(6, -3))
    ax.use_sticky_edges = False  # room for the marks and their numbers, at the first bar's edge, too
    ax.margins(x=0.18)
    return _finish(ax, labels, title)


def _finish(ax: Any, labels: Sequence[str], title: str) -> Any:
    ax.set_yticks(np.arange(len(labels)), labels)
    ax.invert_yaxis()
    ax.set_title(title)
    return ax
