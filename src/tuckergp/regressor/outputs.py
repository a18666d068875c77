"""Several outputs: each is a row of one more mode, so that outputs share factors and say something about each other.

A table of inputs is repeated for each output, with the name of the output as one more column. Outputs are standardised
one by one, because their units differ. Inputs come first: rows are (input 0, output 0), (input 0, output 1), and so on.
What is asked of one output is answered by a model in its units (`ChosenOutput`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import r2_score

from tuckergp.data.grids import Coordinate, GridData
from tuckergp.data.standard import mean_and_std
from tuckergp.data.tables import Table, as_table
from tuckergp.errors import InputError
from tuckergp.inference import INFERENCES
from tuckergp.kernels import Identity
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.model.inputs import as_modes, exposure_of, targets_of
from tuckergp.model.mode import Mode
from tuckergp.posterior.moments import Moments
from tuckergp.regressor.learning import FittedRegressor
from tuckergp.regressor.reading import Observations, observations_of, read_observations, read_weights
from tuckergp.regressor.settings import RegressorSettings

__all__ = ["ONE_OUTPUT", "OneOutput", "Outputs", "read_outputs"]

Floats = npt.NDArray[np.float64]


class OneOutput:
    """The usual case: inputs and answers are as they are."""

    def inputs(self, table: Table) -> Table:
        """The rows to predict."""
        return table

    def settings(self, settings: RegressorSettings, table: Table) -> RegressorSettings:
        """The settings of the model, given those for its inputs."""
        return settings

    def of_inputs(self, modes: list[Mode]) -> list[Mode]:
        """Fitted modes with their columns of inputs alone."""
        return modes

    def exposure(self, exposure: Any) -> Any:
        """The exposures of the rows to predict."""
        return exposure

    def answers(self, found: Any, return_std: bool = False) -> Any:
        """The mean and what else was asked for, in the shape and units of the targets."""
        return found

    def covariances(self, found: Any) -> Any:
        """The mean and covariances."""
        return found

    def values(self, found: Floats) -> Floats:
        """Values of the targets, rows first."""
        return found

    def shaped(self, found: Floats) -> Floats:
        """Numbers without units, rows first."""
        return found

    def targets(self, y: Any, table: Table) -> Any:
        """Targets as the model knows them."""
        return _named(y)[0]

    def log_density(self, found: Floats, y: Any) -> Floats:
        """Log densities of targets."""
        return found

    def score(self, y: Any, predicted: Floats, weight: Any) -> float:
        """R^2 of predictions."""
        table = Table({}, "X", len(predicted))
        return float(r2_score(targets_of(_named(y)[0], table), predicted, sample_weight=read_weights(weight, table)))

    def moments(self, found: Moments | None) -> Moments | None:
        """Moments of predictions."""
        return found

    def chosen(self, output: str | int | None) -> OneOutput:
        """What answers for one output, which has to be named where there are several."""
        if output is not None:
            raise InputError(f"The model has one output; leave output={output!r} out.")
        return self

    def in_units(self, fitted: FittedRegressor) -> FittedRegressor:
        """The fitted model, whose answers `answers` and the like read."""
        return fitted

    def on_grid(self, grid: GridData, like: Any) -> GridData:
        """A grid with all dimensions that its predictions have."""
        return grid

    def flat(self, found: Floats) -> Floats:
        """Answers of `answers` with all rows of the model along the first axis."""
        return found


ONE_OUTPUT = OneOutput()


@dataclass(frozen=True)
class ChosenOutput(OneOutput):
    """One of several outputs, for which the model is one of a single function in the units of that output."""

    column: str
    name: str
    mean: float
    scale: float

    def inputs(self, table: Table) -> Table:
        """The same rows with the name of the output in one more column."""
        names = np.full(len(table), self.name, dtype=object)
        return Table({**table.columns, self.column: names}, table.name, len(table))

    def in_units(self, fitted: FittedRegressor) -> FittedRegressor:
        """The model of this output in its units."""
        return replace(fitted, fit=fitted.fit.in_units(self.mean, self.scale))


@dataclass(frozen=True)
class Outputs(OneOutput):
    """Several outputs of one model.

    Attributes
    ----------
    column : str
        What the column with the name of the output is called.
    names : list of str
        The outputs: columns of Y, or ``y0``, ``y1`` and so on.
    means, scales : list of float
        What 0 and 1 stand for in the units of each output.
    """

    column: str
    names: list[str]
    means: list[float]
    scales: list[float]

    def number(self, output: str | int) -> int:
        """The place of an output that is given by its name or its number."""
        if str(output) in self.names:
            return self.names.index(str(output))
        if isinstance(output, int | np.integer) and 0 <= output < len(self.names):
            return int(output)
        raise InputError(f"The model has no output {output!r}; its outputs are {', '.join(self.names)}.")

    def chosen(self, output: str | int | None) -> OneOutput:
        """What answers for the output of this name or number."""
        if output is None:
            raise InputError(f"The model has the outputs {', '.join(self.names)}; say which one with output=.")
        k = self.number(output)
        return ChosenOutput(self.column, self.names[k], self.means[k], self.scales[k])

    def inputs(self, table: Table) -> Table:
        """Each row of a table once for each output, which is named in one more column."""
        rows = np.repeat(np.arange(len(table)), len(self.names))
        levels = np.tile(np.array(self.names, dtype=object), len(table))
        return Table({**table.take(rows).columns, self.column: levels}, table.name, len(rows))

    def settings(self, settings: RegressorSettings, table: Table) -> RegressorSettings:
        """The modes of the inputs and that of the outputs, None stays open; each output has noise of its own.

        That is for an inference by name: an object has a noise of its own.
        """
        modes = settings.modes
        modes = None if modes is None else [*as_modes(modes, table), Mode(self.column, Identity())]
        named = isinstance(settings.inference, str) and "noise" in INFERENCES[settings.inference].takes
        own = named and LIKELIHOODS[settings.likelihood].row_noise
        return replace(settings, modes=modes, noise="rows" if own else settings.noise)

    def of_inputs(self, modes: list[Mode]) -> list[Mode]:
        """Fitted modes without the column of outputs; that of outputs alone is left out."""
        inputs = [tuple(name for name in mode.columns if name != self.column) for mode in modes]
        return [replace(mode, columns=own) for mode, own in zip(modes, inputs, strict=True) if own]

    def exposure(self, exposure: Any) -> Any:
        """The exposure of each input, for each of its outputs."""
        return exposure if np.ndim(exposure) == 0 else np.repeat(np.asarray(exposure), len(self.names))

    def answers(self, found: Any, return_std: bool = False) -> Any:
        """Means (N, K), standard deviations (N, K), quantiles (N, K, levels) and intervals (N, K, 2)."""
        if not isinstance(found, tuple):
            return self.values(found)
        sd = [self.shaped(found[1]) * np.array(self.scales)] if return_std else []
        return (self.values(found[0]), *sd, *(self.values(part) for part in found[1 + len(sd) :]))

    def covariances(self, found: Any) -> Any:
        """Means (N, K), and the covariances (N, N, K) of each output."""
        mean, whole = found
        K = len(self.names)
        return self.values(mean), np.stack([whole[k::K, k::K] * self.scales[k] ** 2 for k in range(K)], axis=2)

    def shaped(self, found: Floats) -> Floats:
        """Numbers (N K, ...) as (N, K, ...)."""
        return found.reshape(-1, len(self.names), *found.shape[1:])

    def values(self, found: Floats) -> Floats:
        """Values (N K, ...) in the units of each output, (N, K, ...)."""
        by_output = (-1, *(1,) * (found.ndim - 1))
        mean, scale = (np.array(numbers).reshape(by_output) for numbers in (self.means, self.scales))
        return np.asarray(mean + scale * self.shaped(found))

    def targets(self, y: Any, table: Table) -> Floats:
        """Targets (N, K) as one long row of standardised numbers; 0 stands for those that are missing."""
        return np.nan_to_num(((_numbers(y, table, self.names) - self.means) / self.scales).ravel())

    def log_density(self, found: Floats, y: Any) -> Floats:
        """Log densities (N, K) in the units of the outputs; NaN where the target is missing."""
        missing = np.isnan(_numbers(y, Table({}, "X", len(found) // len(self.names)), self.names))
        return np.where(missing, np.nan, self.shaped(found) - np.log(self.scales))

    def score(self, y: Any, predicted: Floats, weight: Any) -> float:
        """The mean of R^2 of the outputs, each where it is not missing."""
        table = Table({}, "X", len(predicted))
        Y, read = _numbers(y, table, self.names), read_weights(weight, table)
        weights = np.ones(len(Y)) if read is None else read
        there = [np.flatnonzero(~np.isnan(values)) for values in Y.T]
        each = [r2_score(Y[at, k], predicted[at, k], sample_weight=weights[at]) for k, at in enumerate(there)]
        return float(np.mean(each))

    def moments(self, found: Moments | None) -> Moments | None:
        """Moments of predictions, (N, K)."""
        if found is None:
            return None
        sd, sd_f = (self.shaped(each) * np.array(self.scales) for each in (found.std, found.std_f))
        levels = None if found.probabilities is None else self.shaped(found.probabilities)
        return Moments(self.values(found.mean), sd, sd_f, levels, found.draws)

    def on_grid(self, grid: GridData, like: Any) -> GridData:
        """A grid with one more dimension, the last: that of the outputs.

        Values are those of the variables of a Dataset that have the names of outputs.
        """
        if self.column in grid.columns:
            raise InputError(f"Predictions have a dimension {self.column!r}, which the grid has already; rename that.")
        values = np.full((*grid.values.shape, len(self.names)), np.nan)
        for k, name in enumerate(self.names):
            if name in getattr(like, "data_vars", ()):
                values[..., k] = like[name].transpose(*grid.dims).values
        names = Coordinate((self.column,), np.array(self.names))
        return replace(
            grid, dims=(*grid.dims, self.column), coords={**grid.coords, self.column: names}, values=values, name=None
        )

    def flat(self, found: Floats) -> Floats:
        """Answers (N, K, ...) as (N K, ...)."""
        return found.reshape(-1, *found.shape[2:])


def read_outputs(
    table: Table, y: Any, sample_weight: Any, exposure: Any, likelihood: str
) -> tuple[OneOutput, Observations]:
    """The observations of one output or of several, Y (N, K), in which NaN is a target that is missing."""
    y, names = _named(y)
    shape = _shape(y)
    if len(shape) != 2 or shape[1] < 2:
        return ONE_OUTPUT, read_observations(table, y, sample_weight, exposure, likelihood)
    names = [f"y{k}" for k in range(shape[1])] if names is None else names
    if len(set(names)) < len(names):
        raise InputError(f"Outputs need names that differ, but the columns of y are {', '.join(names)}.")
    Y = _numbers(y, table, names)
    weights, exposures = read_weights(sample_weight, table), exposure_of(exposure, len(table), likelihood)
    counted = ~np.isnan(Y) & (np.ones(len(Y)) if weights is None else weights)[:, None].astype(bool)
    if not counted.any(axis=0).all():
        raise InputError(f"Output {names[int(np.argmin(counted.any(axis=0)))]!r} has no value; leave it out.")
    K, rows = len(names), np.flatnonzero(counted)
    outputs = Outputs(_free_name(table), names, [0.0] * K, [1.0] * K)
    whole = replace(outputs.inputs(table).take(rows), numbers=rows // K)
    weight, exposed = (None if values is None else values[rows // K] for values in (weights, exposures))
    data = observations_of(whole, Y.ravel()[rows], weight, exposed, likelihood)
    data = data._replace(numbers=rows[data.numbers], outputs=K)
    return _standardised(outputs, data) if LIKELIHOODS[likelihood].linear else (outputs, data)


def _named(y: Any) -> tuple[Any, list[str] | None]:
    """Targets, as an array where they are a dict of columns or an Arrow table, and the names of their columns."""
    if isinstance(y, Mapping) or hasattr(y, "column_names"):
        columns = as_table(y, "the target").columns
        values = list(columns.values())
        return values[0] if len(values) == 1 else np.stack(values, axis=1), list(columns)
    names = getattr(y, "columns", None)
    return y, None if names is None else [str(name) for name in names]


def _shape(y: Any) -> tuple[int, ...]:
    """The shape of targets; that of rows of several lengths is that of one row each."""
    try:
        return np.asarray(y).shape
    except ValueError:
        return (len(y),)


def _numbers(y: Any, table: Table, names: Sequence[str]) -> Floats:
    """Y as numbers (N, K); NaN where a target is missing. Columns with these names may come in any order."""
    y, own = _named(y)
    if _shape(y) != (len(table), len(names)):
        shape = " x ".join(map(str, _shape(y)))
        raise InputError(f"X has {len(table)} rows and there are {len(names)} outputs, but y has shape {shape}.")
    values = np.asarray(y)
    order = names if own is None or set(own) != set(names) else own
    columns = {name: values[:, k] for k, name in enumerate(order)}
    numbers = Table(columns, "the target", len(values))
    return np.stack([numbers.numeric(name, missing=True) for name in names], axis=1)


def _standardised(outputs: Outputs, data: Observations) -> tuple[Outputs, Observations]:
    """The outputs with their means and standard deviations, and their targets in these units."""
    code = data.numbers % data.outputs
    weight = np.ones(len(code)) if data.weight is None else data.weight
    sizes = [mean_and_std(data.target[code == k], weight[code == k]) for k in range(data.outputs)]
    means, scales = [mean for mean, _ in sizes], [scale or 1.0 for _, scale in sizes]
    target = (data.target - np.array(means)[code]) / np.array(scales)[code]
    return replace(outputs, means=means, scales=scales), data._replace(target=target)


def _free_name(table: Table) -> str:
    """A name for the column of outputs that no column of the inputs has."""
    name = "output"
    while name in table:
        name += "_"
    return name
