"""The trial behind ``modes=None``: short runs of each contender on some rows, judged by others that are held out."""

from __future__ import annotations

import contextlib
import time
import warnings
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.errors import DataWarning, NotConvergedWarning
from tuckergp.features import Field
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.random import stream
from tuckergp.regressor.answering import Asked, log_density, predict
from tuckergp.regressor.choice import Choice
from tuckergp.regressor.choosing import inference_of
from tuckergp.regressor.columns import useful
from tuckergp.regressor.contenders import Contender, contenders
from tuckergp.regressor.learning import FittedRegressor, fit_modes
from tuckergp.regressor.reading import Observations
from tuckergp.regressor.seasons import seasons_of
from tuckergp.regressor.settings import RegressorSettings
from tuckergp.running.control import Control
from tuckergp.running.loop import ctrl_c_interrupts

__all__ = ["choose"]

# The periods of columns, by name.
Seasons: TypeAlias = dict[str, list[float]]

LEAST_ROWS, FEWEST_ROWS = 250, 60
"""With fewer rows a trial only tells whether seasons help: it is judged by few; with fewer than the fewest, nothing."""

ROWS, HELD_OUT = 1_000, 400
"""How many rows a trial learns from, and by how many it is judged, at most; of few, a quarter."""

IN_GAPS, SHORTEST = 0.25, 0.05
"""Where there are seasons: the share of rows in gaps at most, which are held out too, and that of the span in each."""

HEAVY = 0.5
"""Excess kurtosis of held-out residuals from which Student's t is tried: of 400 normal ones it is 0 +- 0.25."""

WARMUP, DRAWS = 20, 20
"""Sweeps of each run, or as many as those of the fit where they are fewer."""


def choose(settings: RegressorSettings, data: Observations, seed: int, max_time: float | None) -> Choice | None:
    """The contender that gives held-out targets the highest mean log density; None where there is but one.

    Where seasons were found, rows in gaps are held out, too, and tell whether the best model has them. If it has none,
    the others are tried again as if no season had been found.

    With less than it takes in ``max_time`` seconds there is no choice, with a warning. Ctrl-C interrupts it: there is
    no result so far.
    """
    if len(data.target) < FEWEST_ROWS:
        return None
    until = None if max_time is None else time.monotonic() + max_time
    columns = useful(data.table)
    some = data.take(_split(data, seed)[0])
    seasons = seasons_of(some.table.select(columns), some.target, data.table, some.weight)
    try:
        return _tried(settings, data, columns, seasons, seed, until)
    except _TooShort:
        warnings.warn(
            "The time was too short to try out which modes suit the columns, so numbers lie on lines; raise max_time, "
            "or give modes.",
            DataWarning,
            stacklevel=5,
        )
        return None


class _TooShort(Exception):
    """A short run had not the time for its sweeps."""


def _tried(
    settings: RegressorSettings,
    data: Observations,
    columns: list[str],
    seasons: Seasons,
    seed: int,
    until: float | None,
) -> Choice | None:
    """The choice among models without seasons and, where there are some, with these seasons of columns."""
    some, held, near = _parts(data, seasons, seed)
    given: dict[str, Any] = {"seasons": seasons, "several": data.several, "columns": columns}
    names = list(contenders(data.table, weight=data.weight, **given))
    if few := len(data.target) < LEAST_ROWS:
        names = [name for name in names if seasons and name in ("lines", "lines with seasons")]
    if len(names) < 2:
        return None
    models = contenders(some.table, weight=some.weight, **given)
    trials = {name: _short(settings, models[name], some, seed, _left(until)) for name in names}
    scores = {name: _score(trial, held) for name, trial in trials.items()}
    best = max(scores, key=lambda name: scores[name])
    if seasons and not few and not models[best].seasonal:
        without = _tried(settings, data, columns, {}, seed, until)
        return None if without is None else replace(without, seasons=seasons)
    heavier, heavy = LIKELIHOODS[settings.likelihood].heavier, False
    if heavier is not None and not few and _may_have_outliers(data) and _kurtosis(trials[best], near) > HEAVY:
        with contextlib.suppress(_TooShort):
            robust = _short(replace(settings, likelihood=heavier), models[best], some, seed, _left(until))
            scores[f"{best} with heavy tails"] = _score(robust, held)
            heavy = _score(robust, near) > _score(trials[best], near)
    return Choice(best, scores, len(some.target), len(held.target), _lengthscales(trials[best]), heavy, seasons)


def _left(until: float | None) -> float | None:
    """Seconds until then; None for no limit."""
    return None if until is None else max(0.0, until - time.monotonic())


def _score(trial: FittedRegressor, held: Observations) -> float:
    """The mean log density of held-out targets."""
    return float(np.average(log_density(trial, held.table, held.target, None), weights=held.weight))


def _may_have_outliers(data: Observations) -> bool:
    """Whether noise with heavier tails may be tried: no weights, and so no equal rows, and one output."""
    return data.weight is None and not data.several


def _kurtosis(trial: FittedRegressor, held: Observations) -> float:
    """Excess kurtosis of held-out residuals in their predicted standard deviations."""
    mean, sd = predict(trial, held.table, False, Asked(return_std=True))
    squares = ((held.target - mean) / sd) ** 2
    return float(np.mean(squares**2) / np.mean(squares) ** 2 - 3)


class _Parts(NamedTuple):
    """Rows to learn from, rows to be judged by, and those of the latter that are in no gap.

    In gaps it is rather f that is uncertain than noise, so the others alone tell of its tails.
    """

    some: Observations
    held: Observations
    near: Observations


def _parts(data: Observations, seasons: Seasons, seed: int) -> _Parts:
    rows, at_random = _split(data, seed)
    in_gap = _in_gaps(data.table, seasons, stream(seed, 1, 5))
    held = np.sort(np.concatenate([at_random, rows[in_gap[rows]]]))
    near = at_random[~in_gap[at_random]]
    near = near if len(near) else at_random  # few inputs of many outputs may all be in gaps
    return _Parts(data.take(rows[~in_gap[rows]]), data.take(held), data.take(near))


def _split(data: Observations, seed: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The rows to learn from and those to be judged by, at random; all outputs of an input are on one side."""
    rng = stream(seed, 1, 4)
    order = rng.permutation(len(data.target))
    count = min(HELD_OUT, len(order) // 4)
    if data.several:
        order, count = _whole_inputs(data.inputs, count, rng)
    return np.sort(order[count : count + ROWS]), np.sort(order[:count])


def _in_gaps(table: Table, seasons: Seasons, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Which rows are in gaps of the first column with seasons, each of half a period at least; none without seasons.

    Between rows that are close a curve goes through a season as well as a season does.
    """
    if not seasons:
        return np.zeros(len(table), dtype=bool)
    name, periods = next(iter(seasons.items()))
    values = table.numeric(name)
    place = (values - values.min()) / max(max(periods) / 2, SHORTEST * np.ptp(values))
    cell = np.minimum(place, np.ceil(place.max()) - 1).astype(np.intp)  # the last value is no cell of its own
    order = rng.permutation(int(cell.max()) + 1)
    together = np.cumsum(np.bincount(cell)[order])
    return np.isin(cell, order[together <= IN_GAPS * len(values)])


def _whole_inputs(
    inputs: npt.NDArray[np.intp], count: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.intp], int]:
    """Rows in a random order of their inputs, and a number of them near ``count`` that splits no input."""
    _, number = np.unique(inputs, return_inverse=True)
    place = rng.permutation(int(number.max()) + 1)[number]
    order = np.argsort(place, kind="stable")
    ends = np.flatnonzero(np.diff(place[order])) + 1
    return order, int(ends[max(0, int(np.searchsorted(ends, count, side="right")) - 1)]) if len(ends) else 0


def _short(
    settings: RegressorSettings, contender: Contender, data: Observations, seed: int, max_time: float | None
) -> FittedRegressor:
    """A short run by the inference of the fit."""
    given: Any = inference_of(settings)
    lengths: dict[str, Any] = {"warmup": min(WARMUP, given.warmup), "draws": min(DRAWS, given.draws), "chains": 1}
    if isinstance(settings.inference, str):
        short = replace(settings, **lengths)
    else:
        short = replace(settings, inference=replace(given, **lengths, thin=1))
    short = replace(short, n_jobs=None, random_state=seed)
    with warnings.catch_warnings(), ctrl_c_interrupts():
        warnings.simplefilter("ignore", NotConvergedWarning)
        trial = fit_modes(contender.settings(short), data, Control(progress=False, max_time=max_time), seed)
    if len(trial.fit.steps) < lengths["warmup"] + lengths["draws"]:
        raise _TooShort
    return trial


def _lengthscales(trial: FittedRegressor) -> list[float]:
    """Of a field, the medians of its draws of lengthscales."""
    if not isinstance(trial.modes[0].residual, Field):
        return []
    drawn = np.asarray(trial.fit.draws.modes[0].values["lengthscale"], dtype=np.float64)
    return [float(scale) for scale in np.exp(np.median(np.log(drawn), axis=0))]
