"""Newcomers whose set is not known, in all draws of a fit; `tuckergp.model.newcomers` has what one draw says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.newcomers import NewcomerRegression, Newcomers
from tuckergp.posterior.draws import Draws, map_draws
from tuckergp.residuals.base import ModeDraws

__all__ = ["TrainingRows", "prior_of_rows"]

Floats = npt.NDArray[np.float64]

# The most observations that place newcomers, evenly spread among all.
MOST_OBSERVATIONS = 20_000


class TrainingRows:
    """The training rows of a fit, prepared for what its draws say of newcomers.

    Parameters
    ----------
    design : Design
        Of the training observations; modes without a set have no newcomers.
    """

    def __init__(self, design: Design) -> None:
        self.modes = {d: table for d, table in enumerate(design.modes) if table.set_block is not None}
        if not self.modes:
            return
        self.index = design.index[:: -(-len(design.index) // MOST_OBSERVATIONS)]
        self.observed = [table.take(self.index[:, d]) for d, table in enumerate(design.modes)]
        self.regressions = {
            d: NewcomerRegression(table.features_besides_set, design.index[:, d]) for d, table in self.modes.items()
        }

    def with_newcomers(self, draws: Draws) -> Draws:
        """The draws with what they say of newcomers in every mode that has a set."""
        if not self.modes or not len(draws):
            return draws
        each = [self._newcomers(draws.only(s)) for s in range(len(draws))]

        def change(d: int, mode: ModeDraws) -> ModeDraws:
            if d not in self.modes:
                return mode
            kept = Newcomers(*(np.stack(arrays) for arrays in zip(*(found[d] for found in each), strict=True)))
            return replace(mode, values={**mode.values, **kept.named()})

        return map_draws(draws, change)

    def _newcomers(self, draw: Draws) -> dict[int, Newcomers]:
        """What a single draw says of newcomers, by mode."""
        at = [draw.factors(d, table) for d, table in enumerate(self.observed)]
        found = {}
        for d, table in self.modes.items():
            z = np.zeros_like(at[d])  # without other modes all observations of a row are alike
            if len(at) > 1:
                z, _ = draw.model.core.others_in_draws(draw.W, [None if e == d else psi for e, psi in enumerate(at)], d)
            found[d] = self.regressions[d].given(draw.factors(d, table)[:, 0], self.index[:, d], z[:, 0])
        return found


def prior_of_rows(draws: Draws, d: int, table: ModeTable) -> tuple[Floats, list[Floats]]:
    """What features say of psi of rows never seen: the mean, (M, S, r), and the precision of each row, (S, r, r).

    All rows have the precision of E but those whose set is not known, and those with features that training did not
    have: the variance of these features' weights is added.
    """
    mode = draws.modes[d]
    newcomers = Newcomers.of(mode.values)
    covariance = {} if newcomers is None else dict.fromkeys(table.newcomers.tolist(), newcomers.covariance)
    if table.new is not None and "tau" in mode.values:
        variance, tau = table.new.variance, mode.values["tau"]
        for m in np.flatnonzero(variance.any(axis=0)).tolist():
            share = (variance[:, m] / tau[:, : len(variance)]).sum(axis=1)
            covariance[m] = covariance.get(m, mode.covariance) + share[:, None, None] * mode.values["spread"]
    precision = [mode.precision] * table.n_rows
    for m, own in covariance.items():
        precision[m] = np.ascontiguousarray(np.linalg.inv(own))
    return draws.factors(d, table), precision
