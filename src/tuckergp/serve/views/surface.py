"""A regression model over one or two of its columns: mean, band and components, the other columns held fixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.regressor import TuckerGPRegressor
from tuckergp.serve.views.cells import numbers

__all__ = ["columns_of", "surface"]

Floats = npt.NDArray[np.float64]

ALONG, ACROSS = 160, 48
"""Points of a series, and of either side of a map."""

MOST_LEVELS = 60
"""Levels of text that are shown along an axis."""

TOP = 4
BAND = (0.05, 0.95)
PLACES = (("longitude", "latitude"), ("lon", "lat"), ("lng", "lat"), ("x", "y"))
"""Names of columns that are a map by themselves."""


def columns_of(model: TuckerGPRegressor) -> dict[str, Any]:
    """The columns that a model reads, their usual values, and which one or two of them to show first."""
    used = model._used
    missing = [name for name in used if not model.column_values_.get(name)]
    if missing:
        raise InputError(
            f"The file does not say which values {missing[0]!r} takes, for an earlier version of tuckergp has written "
            f"it; fit the model again."
        )
    columns = [
        {"name": name, "kind": model.column_kinds_.get(name, "numbers"), "values": model.column_values_[name]}
        for name in used
    ]
    outputs = [] if model.outputs_ is None else model.outputs_.names
    return {"columns": columns, "first": _first(model, used), "latent": _latent(model), "outputs": outputs}


def _first(model: TuckerGPRegressor, used: list[str]) -> list[str]:
    """A map where there is one, else the series along dates, else along the first column with many values."""
    small = {name.casefold(): name for name in used}
    for pair in PLACES:
        if all(name in small for name in pair):
            return [small[name] for name in pair]
    dates = [name for name in used if model.column_kinds_.get(name) == "dates"]
    numeric = [name for name in used if model.column_kinds_.get(name) == "numbers"]
    return (dates or sorted(numeric, key=lambda name: -len(model.column_values_[name])) or used)[:1]


def _latent(model: TuckerGPRegressor) -> str | None:
    likelihood = model.fit_.likelihood
    return None if likelihood.linear else likelihood.latent


def surface(
    model: TuckerGPRegressor, along: list[str], fixed: Mapping[str, int], draw: int = -1, output: str | None = None
) -> dict[str, Any]:
    """Predictions on a grid of one or two columns.

    Parameters
    ----------
    model : TuckerGPRegressor
    along : list of str
        One column for a series, two for a map.
    fixed : mapping of str to int
        For each other column, which of its `column_values_` it has; the middle one where nothing is said.
    draw : int
        The draw whose components are shown.
    output : str or None
        The output that is shown, where there are several; None is the first.

    Returns
    -------
    dict
        ``axes``, ``mean`` and ``std`` (flat, the last axis varies fastest), with draws ``low`` and ``high`` of f, for a
        series also of a new observation, and the largest ``components`` of one draw.
    """
    about = columns_of(model)
    known = {column["name"]: column for column in about["columns"]}
    output = about["outputs"][0] if output is None and about["outputs"] else output
    for name in [*along, *fixed]:
        if name not in known:
            raise InputError(f"The model reads no column {name!r}; it reads {', '.join(known)}.")
    if not 1 <= len(along) <= 2 or len(set(along)) < len(along):
        raise InputError("A picture has one column, or two different ones.")
    axes = [_axis(known[name], ALONG if len(along) == 1 else ACROSS) for name in along]
    cells = [part.ravel() for part in np.meshgrid(*(np.arange(len(axis)) for axis in axes), indexing="ij")]
    inputs = {name: [axis[k] for k in part] for name, axis, part in zip(along, axes, cells, strict=True)}
    for name, column in known.items():
        if name not in inputs:
            inputs[name] = [_value(column, fixed.get(name))] * len(cells[0])
    table = as_table({name: inputs[name] for name in known}, "the grid")
    parts = model.components(table, draw=draw, top=TOP, output=output)
    shown = zip(parts.labels, parts.sizes.tolist(), parts.values.T, strict=True)
    return {
        "axes": [{"name": name, "values": axis} for name, axis in zip(along, axes, strict=True)],
        **_predicted(partial(model.predict, table, output=output), model.fit_.draws.sampled, len(along) == 1),
        "components": [{"label": label, "size": size, "values": numbers(values)} for label, size, values in shown],
        "base": parts.mean,
        "draws": len(model.fit_.draws),
    }


def _predicted(predict: Callable[..., Any], sampled: bool, series: bool) -> dict[str, Any]:
    """Mean and, from draws, the standard deviation and the band of f, and for a series of new observations."""
    if not sampled:
        return {"mean": numbers(predict()), "std": None, "bands": []}
    if not series:
        mean, std = predict(return_std=True, include_noise=False)
        return {"mean": numbers(mean), "std": numbers(std), "bands": []}
    bands = []
    for noise in (False, True):
        mean, ends = predict(quantiles=BAND, include_noise=noise)
        bands.append({"low": numbers(ends[:, 0]), "high": numbers(ends[:, 1]), "noise": noise})
    return {"mean": numbers(mean), "std": None, "bands": bands}


def _axis(column: Mapping[str, Any], points: int) -> list[Any]:
    """Values along an axis: evenly spaced between the lowest and the highest number or date, else the levels."""
    values = column["values"]
    if column["kind"] == "numbers" and len(values) > 2:
        return numbers(np.linspace(values[0], values[-1], points), 7)
    if column["kind"] == "dates" and len(values) > 2:
        ends = np.array([values[0], values[-1]], dtype="datetime64[s]").astype(np.int64)
        times = np.linspace(ends[0], ends[1], points).round().astype(np.int64).astype("datetime64[s]")
        return [str(text) for text in np.datetime_as_string(times)]
    return list(values[:MOST_LEVELS])


def _value(column: Mapping[str, Any], place: int | None) -> Any:
    values = column["values"]
    if place is None:
        return values[len(values) // 2]
    if not 0 <= place < len(values):
        raise InputError(f"{column['name']!r} has values 0 to {len(values) - 1}, not {place}.")
    return values[place]
