"""Code shared by the experiments on space and time: splits of rows, fitting and scoring, convergence, choices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp import Mode, TuckerGPRegressor
from tuckergp.evaluation.metrics import rmse
from tuckergp.paper.experiment import Cells, Figures, Rows, Work
from tuckergp.paper.run import quietly
from tuckergp.posterior.diagnostics import Diagnostics, summarise
from tuckergp.posterior.draws import Draws
from tuckergp.random import stream

__all__ = ["Part", "Split", "choice_table", "choices", "convergence", "fit_and_cover", "sampled", "tucker"]

Floats = npt.NDArray[np.float64]

HELD_OUT = 5
"""One in this many training rows is held out for choices."""
WATCHED = 200
"""The number of parameters, chosen at random, whose convergence is diagnosed, besides f at training inputs."""


@dataclass(frozen=True)
class Part:
    """Inputs as columns, and targets."""

    X: dict[str, npt.NDArray[Any]]
    y: Floats

    def take(self, rows: npt.NDArray[np.intp]) -> Part:
        """Some rows."""
        return Part({name: values[rows] for name, values in self.X.items()}, self.y[rows])


@dataclass(frozen=True)
class Split:
    """Training rows and test rows."""

    train: Part
    test: Part

    def score(self, model: Any) -> Figures:
        """RMSE of a fitted model on both parts, in the units of the targets."""
        parts = {"train_rmse": self.train, "test_rmse": self.test}
        return {name: round(rmse(part.y, model.predict(part.X)), 5) for name, part in parts.items()}


def tucker(modes: list[Mode], rank: int, inference: Any, seed: int, split: Split) -> TuckerGPRegressor:
    """A Tucker model with a full core, fitted to the training rows."""
    model = TuckerGPRegressor(modes, rank=rank, inference=inference, random_state=seed, core="full")
    quietly(model.fit, split.train.X, split.train.y)
    return model


def sampled(modes: list[Mode], rank: int, inference: Any, seed: int, split: Split) -> Figures:
    """Fit a Tucker model by a sampler: errors, convergence, and statistics of trajectories."""
    model = tucker(modes, rank, inference, seed, split)
    last = model.fit_.steps[-1].figures
    extra = {name: last[name] for name in ("divergences", "at_max_depth") if name in last}
    return split.score(model) | convergence(model) | extra


def fit_and_cover(split: Split, setting: Any, seed: int) -> Figures:
    """Fit a model by ``setting.fit(split, seed)``: errors, and coverage of 90 % intervals on test rows."""
    model = setting.fit(split, seed)
    _, interval = model.predict(split.test.X, interval=0.9)
    held = (interval[:, 0] <= split.test.y) & (split.test.y <= interval[:, 1])
    return split.score(model) | {"coverage": round(float(held.mean()), 4)}


def hold_out(split: Split, key: int) -> Split:
    """Split the training rows: four fifths to learn from, a fifth to choose by; ``key`` is that of the stream."""
    order = stream(0, key).permutation(len(split.train.y))
    cut = len(order) // HELD_OUT
    return Split(split.train.take(order[cut:]), split.train.take(order[:cut]))


def choices(candidates: Mapping[str, Any], split: Split) -> Work:
    """One cell per candidate, scored on held-out training rows."""
    return {name: partial(fit_and_cover, split, setting, 0) for name, setting in candidates.items()}


def choice_table(title_of: Callable[[str], str], cells: Cells) -> Rows:
    """RMSE on held-out training rows, the smallest first."""
    ordered = sorted(cells.items(), key=lambda pair: float(pair[1]["test_rmse"]))
    rows = [[title_of(name), f"{cell['test_rmse']:.4f}", f"{cell['seconds']:.0f}"] for name, cell in ordered]
    return [["model", "RMSE on held-out training rows", "seconds"], *rows]


def convergence(model: TuckerGPRegressor) -> Figures:
    """R-hat and bulk ESS, mean and sd: of f at training inputs, and of the entries of U and W.

    Those of parameters are only for comparison with the paper: rotating U_d and W accordingly does not change f, so
    chains that agree on f need not agree on them, and a chain may move among equivalent values for ever.
    """
    draws = model.fit_.draws
    return {"f": _summary(draws.diagnostics()), "parameters": _summary(summarise(_parameters(draws)))}


def _parameters(draws: Draws) -> Floats:
    """Some entries of U and W, shape (chains, draws, entries); for modes of features alone."""
    S = len(draws)
    entries = np.concatenate([*(mode.B.transpose(1, 0, 2).reshape(S, -1) for mode in draws.modes), draws.W], axis=1)
    chosen = np.sort(np.random.default_rng(0).permutation(entries.shape[1])[:WATCHED])
    return entries[:, chosen].astype(np.float64).reshape(len(draws.lengths), -1, len(chosen))


def _summary(diagnostics: Diagnostics) -> Figures:
    return {
        "rhat": [round(float(np.nanmean(diagnostics.rhat)), 3), round(float(np.nanstd(diagnostics.rhat)), 3)],
        "ess": [round(float(np.nanmean(diagnostics.ess_bulk)), 1), round(float(np.nanstd(diagnostics.ess_bulk)), 1)],
        "draws": diagnostics.chains * diagnostics.draws,
    }
