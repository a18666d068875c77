"""A fitted model: predictions and their uncertainty from its draws, in the units of the targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from tuckergp.checks import Allowed, check, one_of, probability
from tuckergp.errors import InputError
from tuckergp.inference.base import Info
from tuckergp.likelihoods import Likelihood
from tuckergp.likelihoods.given import Predicted
from tuckergp.model.design import Design
from tuckergp.posterior.draws import PREDICTION_SEED, Draws
from tuckergp.posterior.moments import Moments, summarised
from tuckergp.random import stream
from tuckergp.stopping import stop_if_unwanted

__all__ = ["Fit", "predict_with"]

Floats = npt.NDArray[np.float64]

# How many values of f, or of the factors of rows, are computed at once over all draws.
BLOCK = 4_000_000


LEVELS = Allowed(
    ("a list of probabilities between 0 and 1",),
    lambda value: np.ndim(value) == 1 and len(value) > 0 and all(map(probability().holds, value)),
)


@dataclass(frozen=True)
class Fit:
    """A fitted model: its draws, its learning curve, and predictions from them.

    Attributes
    ----------
    draws : Draws
    steps : list of Info
        The figures of each step.
    exposure : ndarray, shape (N,), or None
        Exposures of the counts to predict; None for ones. See `exposed`.
    """

    draws: Draws
    steps: list[Info]
    exposure: Floats | None = None

    @property
    def history(self) -> list[Info]:
        """The earlier name of ``steps``."""
        return self.steps

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of the model."""
        return self.draws.model.likelihood

    @property
    def mean(self) -> float:
        """The target that f = 0 stands for."""
        return self.likelihood.mean

    @property
    def scale(self) -> float:
        """How much larger the target is that f = 1 stands for."""
        return self.likelihood.scale

    @property
    def levels(self) -> Floats:
        """The values of ordered levels, (K,); empty for targets without levels."""
        return self.likelihood.levels

    def exposed(self, exposure: Floats | None) -> Self:
        """The same model, to predict counts with these exposures (N,)."""
        return replace(self, exposure=exposure)

    def in_units(self, mean: float, scale: float) -> Self:
        """The same model of targets mean + scale y in place of y, where targets are numbers with units."""
        model = replace(self.draws.model, likelihood=self.likelihood.in_other_units(mean, scale))
        return replace(self, draws=replace(self.draws, model=model))

    def only(self, s: int) -> Self:
        """The same model with draw s alone."""
        return replace(self, draws=self.draws.only(s))

    def blocks(self, design: Design, unseen: bool, noise: bool = True) -> Iterator[tuple[slice, Predicted]]:
        """f in all draws, for blocks of observations; with ``unseen``, rows that training did not have are drawn.

        Without ``noise``, noise factors of rows are left out where means do not depend on them.
        """
        noise = noise or not self.likelihood.linear
        step = self._block(design)
        for first in range(0, design.n_observations, step):
            stop_if_unwanted()
            rows = slice(first, min(first + step, design.n_observations))
            exposure = None if self.exposure is None else self.exposure[rows]
            block = design if design.n_observations <= step else design.take(np.arange(rows.start, rows.stop))
            rng = stream(PREDICTION_SEED) if unseen and self.draws.sampled else None
            yield rows, self.draws.predicted(block, rng, exposure, noise)

    def _block(self, design: Design) -> int:
        """How many observations to predict at once: fewer where each would bring rows of its own."""
        draws, ranks = max(len(self.draws), 1), self.draws.model.core.ranks
        step = max(1, BLOCK // draws)
        numbers = sum(min(step, table.n_rows) * draws * int(r) for table, r in zip(design.modes, ranks, strict=True))
        return step if numbers <= 8 * BLOCK else max(1, BLOCK // (draws * int(max(ranks))))

    def predict(self, design: Design) -> Floats:
        """The posterior mean in the units of the targets, shape (N,)."""
        self.draws.require_kept()
        out = np.empty(design.n_observations)
        for rows, at in self.blocks(design, unseen=not self.likelihood.linear, noise=False):
            out[rows] = self.likelihood.means(at).mean(axis=0)
        return out

    def _std(self, at: Predicted, include_noise: bool) -> Floats:
        """Standard deviations of new observations or, without noise, of their means over the draws, shape (N,)."""
        # by the law of total variance
        variance = self.likelihood.means(at).var(axis=0, ddof=min(1, len(at.f) - 1))
        if include_noise:
            variance = variance + self.likelihood.variances(at).mean(axis=0)
        return np.asarray(np.sqrt(variance))

    def mean_and_std(self, design: Design, include_noise: bool) -> tuple[Floats, Floats]:
        """Posterior mean and standard deviation (NaN for a MAP estimate) from one pass over the draws."""
        mean, std = np.empty(design.n_observations), np.full(design.n_observations, np.nan)
        for rows, at in self.blocks(design, unseen=True, noise=include_noise):
            mean[rows] = self.likelihood.means(at).mean(axis=0)
            if self.draws.sampled:
                std[rows] = self._std(at, include_noise)
        if self.likelihood.linear and self.draws.sampled:
            where = self._undetermined(design)
            if len(where):  # what is drawn there has a mean that is known exactly
                mean[where] = self.predict(design.take(where))
        return mean, std

    def _undetermined(self, design: Design) -> npt.NDArray[np.intp]:
        """The observations with a row whose factors a draw does not determine."""
        some = np.zeros(design.n_observations, dtype=bool)
        for d, table in enumerate(design.modes):
            some |= table.undetermined[design.index[:, d]]
        return np.flatnonzero(some)

    def quantiles(self, design: Design, levels: Sequence[float], include_noise: bool) -> Floats:
        """Quantiles of a new observation or, without noise, of its mean over the draws, shape (N, len(levels))."""
        self.require_draws("quantiles")
        check("quantiles", levels, LEVELS)
        out = np.empty((design.n_observations, len(levels)))
        for rows, at in self.blocks(design, unseen=True):
            if include_noise:
                out[rows] = self.likelihood.quantiles(at, levels)
            else:
                out[rows] = np.quantile(self.likelihood.means(at), levels, axis=0).T
        return out

    def interval(self, design: Design, share: float, include_noise: bool) -> Floats:
        """The bounds between which a new observation, or its mean, is with probability ``share``, shape (N, 2)."""
        check("interval", share, probability())
        if not include_noise:
            tail = (1 - float(share)) / 2
            return self.quantiles(design, [tail, 1 - tail], include_noise)
        self.require_draws("an interval")
        out = np.empty((design.n_observations, 2))
        for rows, at in self.blocks(design, unseen=True):
            out[rows] = self.likelihood.interval(at, float(share))
        return out

    def log_density(self, design: Design, y: Floats) -> Floats:
        """Log predictive density, or probability, of observations y (N,): that of the mixture of all draws."""
        self.draws.require_kept()
        out = np.empty(design.n_observations)
        for rows, at in self.blocks(design, unseen=True):
            logs = self.likelihood.log_densities(at, y[rows])
            out[rows] = logsumexp(logs, axis=0) - np.log(len(logs))
        return out

    def crps(self, design: Design, y: Floats) -> Floats:
        """Continuous ranked probability score of observations y (N,) under the mixture of all draws."""
        self.draws.require_kept()
        out = np.empty(design.n_observations)
        for rows, at in self.blocks(design, unseen=True):
            out[rows] = self.likelihood.crps(at, y[rows])
        return out

    def probabilities(self, design: Design) -> Floats:
        """Posterior mean probability of each level, shape (N, K); an error for targets without levels."""
        self.draws.require_kept()
        blocks = [self.likelihood.probabilities(at).mean(axis=0) for _, at in self.blocks(design, unseen=True)]
        return np.concatenate(blocks) if blocks else np.zeros((0, len(self.levels)))

    def moments(self) -> Moments:
        """Means and standard deviations accumulated while sampling, at the inputs asked for."""
        return summarised(self.draws.required_moments())

    def require_draws(self, what: str) -> None:
        """Raise an error where ``what`` needs draws and there is only a MAP estimate."""
        self.draws.require_kept()
        if not self.draws.sampled:
            sampler = self.likelihood.sampler
            raise InputError(f"A MAP estimate has no uncertainty; for {what} use inference={sampler!r}.")


def predict_with(
    fit: Fit,
    design: Design,
    return_std: bool,
    quantiles: Sequence[float] | float | None,
    interval: float | None,
    include_noise: bool,
) -> Any:
    """The posterior mean alone, or a tuple of it and what else was asked for, in the order of the arguments."""
    for name, flag in (("return_std", return_std), ("include_noise", include_noise)):
        check(name, flag, one_of(True, False))
    found: list[Floats] = []
    if return_std:
        fit.require_draws("a standard deviation")
        found += fit.mean_and_std(design, include_noise)
    else:
        found.append(fit.predict(design))
    if quantiles is not None:
        levels = [quantiles] if isinstance(quantiles, int | float) else quantiles
        found.append(fit.quantiles(design, levels, include_noise))
    if interval is not None:
        found.append(fit.interval(design, interval, include_noise))
    return tuple(found) if len(found) > 1 else found[0]
