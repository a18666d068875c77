"""What a run leaves behind: one set of parameters from MAP, many draws from a sampler.

A draw takes 4 bytes (float32) for each entry of the U_d, residual rows included, and for each row's noise factor, and
8 for each entry of W and of the r_d x r_d covariances of new rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tuckergp.design import Design
from tuckergp.errors import InputError
from tuckergp.inference.diagnostics import Diagnostics, summarise
from tuckergp.model import Parameters, TuckerModel
from tuckergp.priors.ordinal import level_probabilities

__all__ = ["Draw", "Draws"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Draw:
    """One set of unknowns: what predictions need.

    Attributes
    ----------
    parameters : Parameters
        U_d (rows of E, then B) and W.
    alpha : float
        Shared noise precision.
    covariance : tuple of ndarray, shapes (r_d, r_d)
        Of a row of E that the data say nothing about, Lambda^-1 times the residual's variance.
    noise : tuple of ndarray or None, shapes (groups_d,)
        Noise precision of each group of rows relative to the shared one; None where a mode has none.
    cuts : ndarray, shape (K - 1,)
        Cut points of an ordinal likelihood; none otherwise.
    """

    parameters: Parameters
    alpha: float
    covariance: tuple[Floats, ...]
    noise: tuple[Floats | None, ...]
    cuts: Floats = field(default_factory=lambda: np.zeros(0))


def compact(draw: Draw) -> Draw:
    """The same draw in float32."""
    U = tuple(np.asarray(table, dtype=np.float32) for table in draw.parameters.U)
    noise = tuple(None if factors is None else np.asarray(factors, dtype=np.float32) for factors in draw.noise)
    parameters = Parameters(U, np.asarray(draw.parameters.W, dtype=np.float64))  # type: ignore[arg-type]
    return Draw(parameters, draw.alpha, draw.covariance, noise, draw.cuts)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Draws:
    """All draws kept, chain by chain.

    Attributes
    ----------
    model : TuckerModel
    chains : sequence of sequence of Draw
    traces : sequence of ndarray, shapes (draws, observations)
        F at some of the training observations, chain by chain: what convergence is judged by.
    sampled : bool
        False for a single most probable point, which says nothing of how sure it is.
    """

    model: TuckerModel
    chains: Sequence[Sequence[Draw]]
    sampled: bool
    traces: Sequence[Floats] = ()

    def diagnostics(self) -> Diagnostics:
        """R-hat and effective sample sizes of f at some of the training observations."""
        if not self.sampled:
            raise InputError("A most probable point has no draws to diagnose; use inference='gibbs'.")
        shortest = min(len(trace) for trace in self.traces)
        return summarise(np.stack([trace[:shortest] for trace in self.traces]))

    def __len__(self) -> int:
        return sum(len(chain) for chain in self.chains)

    def __iter__(self) -> Iterator[Draw]:
        for chain in self.chains:
            yield from chain

    def functions(self, design: Design, rng: np.random.Generator | None = None) -> Iterator[tuple[Floats, Floats]]:
        """F at every observation and the variance of the noise there, draw by draw, shapes (N,).

        Rows never seen have E = 0, the mean, or with ``rng`` a draw of it, as uncertainty needs.
        """
        for draw in self:
            psi = []
            for d, mode in enumerate(design.modes):
                factors = np.asarray(mode.table @ draw.parameters.U[d], dtype=np.float64)
                if rng is not None and mode.residual is not None:
                    new = np.flatnonzero(np.diff(mode.residual.indptr) == 0)
                    root = np.linalg.cholesky(draw.covariance[d])
                    factors[new] += rng.standard_normal((len(new), len(root))) @ root.T
                psi.append(factors)
            f = self.model.contract(psi, draw.parameters.W, design.index)
            yield f, self._noise_variance(draw, design)

    def probabilities(self, design: Design, rng: np.random.Generator) -> Iterator[Floats]:
        """Probability of every level at every observation of an ordinal model, draw by draw, shapes (N, K)."""
        for draw, (f, variance) in zip(self, self.functions(design, rng), strict=True):
            yield level_probabilities(f, draw.cuts, variance**-0.5)

    @staticmethod
    def _noise_variance(draw: Draw, design: Design) -> Floats:
        precision = np.full(design.n_observations, draw.alpha)
        for d, (mode, factors) in enumerate(zip(design.modes, draw.noise, strict=True)):
            if factors is not None:
                at_rows = np.append(factors, 1.0)[mode.groups]  # 1, the mean, for groups never seen
                precision *= at_rows[design.index[:, d]]
        return 1 / precision
