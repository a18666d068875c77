"""Plots of the summands of f, as in the paper's figures of California; matplotlib is loaded when one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from math import ceil
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.regressor.columns import is_numeric
from tuckergp.regressor.components import Components

__all__ = ["Colour", "Places", "panels_of", "plot", "plot_bands"]

Floats: TypeAlias = npt.NDArray[np.float64]
Colour: TypeAlias = Literal["percentile", "uniform"]

MAP, BEHIND = "RdYlBu_r", "0.85"
"""Red is high, blue is low, and the background is grey so that the pale middle is visible."""

TICKS = (0, 10, 25, 50, 75, 90, 100)


def plot(
    parts: Components,
    table: Table,
    columns: str | Sequence[str] | None = None,
    colour: Colour = "percentile",
    extent: Sequence[float] | None = None,
    axes: Any = None,
) -> npt.NDArray[Any]:
    """Draw one panel per summand; the arguments are those of `TuckerGPRegressor.plot_components`."""
    if colour not in ("percentile", "uniform"):
        raise InputError(f"colour must be 'percentile' or 'uniform', not {colour!r}.")
    names = _columns(table, columns)
    inside = _inside(table, names, extent)
    panels = panels_of(axes, len(parts))
    places = [Places(table, name, inside) for name in names]
    values = parts.values[inside]
    if len(names) == 1:
        _draw_lines(panels, places[0], values)
    else:
        _draw_maps(panels, places, values, colour)
    for ax, label, size in zip(panels, parts.labels, values.std(axis=0), strict=True):
        ax.set_title(f"{label}, sd {size:.2g}", fontsize="medium")
        places[0].name_on(ax, "x")
        if len(names) == 2:
            places[1].name_on(ax, "y")
        else:
            ax.set_ylabel("value")
        if axes is None:
            ax.label_outer()
    return panels


def plot_bands(
    labels: Sequence[str],
    values: Floats,
    band: tuple[Floats, Floats] | None,
    table: Table,
    column: str | None = None,
    axes: Any = None,
) -> npt.NDArray[Any]:
    """Draw values (N, Q) over a column, one panel for each of Q labels, with bands where inputs differ in it alone."""
    (name,) = _columns(table, column)[:1]
    inside = np.ones(len(table), dtype=bool)
    panels, x = panels_of(axes, len(labels)), Places(table, name, inside)
    _draw_lines(panels, x, values)
    order = np.argsort(x.at, kind="stable")
    for q, (ax, label) in enumerate(zip(panels, labels, strict=True)):
        if band is not None and len(np.unique(x.at)) == len(x.at):
            ax.fill_between(x.at[order], band[0][order, q], band[1][order, q], alpha=0.25, linewidth=0)
        ax.set_title(label, fontsize="medium")
        x.name_on(ax, "x")
    return panels


class Places:
    """The values of a column as places along an axis of a plot; levels of text are numbered in their order."""

    def __init__(self, table: Table, name: str, rows: npt.NDArray[np.bool_] | slice = slice(None)) -> None:
        values = table[name][rows]
        self.name = name
        self.levels: list[str] | None = None
        if not is_numeric(values):
            levels, code = np.unique(values.astype(str), return_inverse=True)
            self.levels, values = levels.tolist(), code.astype(np.float64)
        self.at = values

    def name_on(self, ax: Any, which: Literal["x", "y"]) -> None:
        """Name an axis after the column, with the levels as its ticks where there are some."""
        getattr(ax, f"set_{which}label")(self.name)
        if self.levels is not None:
            getattr(ax, f"set_{which}ticks")(np.arange(len(self.levels)), self.levels)
        elif which == "x" and self.at.dtype.kind == "M":
            ax.tick_params("x", rotation=30)


def _columns(table: Table, columns: str | Sequence[str] | None) -> list[str]:
    if columns is None:
        numeric = [name for name, values in table.columns.items() if is_numeric(values)]
        if not numeric:
            raise InputError(f"{table.name} has no numeric columns to draw over; name one or two in columns.")
        return numeric[:2]
    names = [columns] if isinstance(columns, str) else list(columns)
    if not 1 <= len(names) <= 2:
        raise InputError(f"columns must name one or two columns to draw over, not {len(names)}.")
    return list(table.select(names).columns)


def _inside(table: Table, names: Sequence[str], extent: Sequence[float] | None) -> npt.NDArray[np.bool_]:
    inside = np.ones(len(table), dtype=bool)
    if extent is None:
        return inside
    if len(extent) != 2 * len(names):
        wanted = "(left, right)" if len(names) == 1 else "(left, right, bottom, top)"
        raise InputError(f"extent must be {wanted} in the units of {' and '.join(names)}, not {tuple(extent)}.")
    for name, low, high in zip(names, extent[::2], extent[1::2], strict=True):
        values = table[name]
        inside &= (values >= np.asarray(low, values.dtype)) & (values <= np.asarray(high, values.dtype))
    if not inside.any():
        raise InputError(f"None of the {len(table)} inputs is within extent={tuple(extent)}.")
    return inside


def panels_of(axes: Any, n: int, sharex: bool = True) -> npt.NDArray[Any]:
    """The axes to draw n panels in: those given, or new ones with one scale of values."""
    if axes is not None:
        given = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
        if len(given) < n:
            raise InputError(f"axes has {len(given)} entries for {n} panels; give one each, or ask for fewer.")
        return given[:n]
    try:
        pyplot: Any = import_module("matplotlib.pyplot")
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'tuckergp[plot]'.") from error
    across = 1 if n == 1 else 2 if n <= 4 else 3
    down = ceil(n / across)
    size = (4.2 * across + 0.8, 3.4 * down)
    figure, grid = pyplot.subplots(down, across, figsize=size, sharex=sharex, sharey=True, layout="constrained")
    flat = np.atleast_1d(np.asarray(grid, dtype=object)).ravel()
    for ax in flat[n:]:
        figure.delaxes(ax)
    return flat[:n]


def _draw_lines(panels: npt.NDArray[Any], x: Places, values: Floats) -> None:
    order = np.argsort(x.at, kind="stable")
    once = len(np.unique(x.at)) == len(x.at)
    for ax, column in zip(panels, values.T, strict=True):
        ax.axhline(0.0, color="0.8", linewidth=1)
        if once:
            ax.plot(x.at[order], column[order])
        else:  # other columns differ between inputs at one place
            ax.plot(x.at, column, ".", markersize=3, alpha=0.6)


def _draw_maps(panels: npt.NDArray[Any], places: Sequence[Places], values: Floats, colour: Colour) -> None:
    """Draw one map per panel, with the same colours for the same values in all of them."""
    shown, limits = values, (float(values.min()), float(values.max()))
    if colour == "percentile":
        pooled = np.sort(values.ravel())
        last = max(len(pooled) - 1, 1)
        # the middle of the ranks of equal values
        ranks = (np.searchsorted(pooled, values, "left") + np.searchsorted(pooled, values, "right") - 1) / 2
        shown, limits = 100 * ranks / last, (0.0, 100.0)
    else:  # zero is the middle, so that red adds and blue takes away
        largest = max(map(abs, limits)) or 1.0
        limits = (-largest, largest)
    for ax, column in zip(panels, shown.T, strict=True):
        image = _draw_map(ax, places[0].at, places[1].at, column, limits)
    bar = panels[0].figure.colorbar(image, ax=list(panels), shrink=0.8)
    if colour == "percentile":
        marks = zip(TICKS, np.percentile(values, TICKS), strict=True)
        bar.set_ticks(list(TICKS), labels=[f"{value:.2g} ({percent}%)" for percent, value in marks])
        bar.set_label("value (percentile)")
    else:
        bar.set_label("value")


def _draw_map(ax: Any, x: npt.NDArray[Any], y: npt.NDArray[Any], values: Floats, limits: tuple[float, float]) -> Any:
    """Draw tiles where the inputs are a full grid, dots otherwise."""
    (across, column), (down, row) = (np.unique(at, return_inverse=True) for at in (x, y))
    cells = len(across) * len(down)
    grid = min(len(across), len(down)) > 1 and cells == len(values)
    if grid and len(np.unique(row * len(across) + column)) == cells:
        tiles = np.empty((len(down), len(across)))
        tiles[row, column] = values
        return ax.pcolormesh(across, down, tiles, cmap=MAP, vmin=limits[0], vmax=limits[1], shading="nearest")
    size = float(np.clip(12_000 / len(values), 3, 40))
    ax.set_facecolor(BEHIND)
    # the extremes last, on top of what is near the middle
    order = np.argsort(np.abs(values - sum(limits) / 2), kind="stable")
    return ax.scatter(x[order], y[order], size, values[order], cmap=MAP, vmin=limits[0], vmax=limits[1], linewidths=0)
