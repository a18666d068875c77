"""What a run leaves behind: one set of parameters from MAP, many draws from a sampler.

A draw takes 4 bytes (float32) for each entry of the U_d, residual rows included, for each row's noise factor, and for
the states of chains (M_d p r_d numbers, p = 1, 2, 3 for Matern-1/2, -3/2, -5/2), and 8 for each entry of W and of the
r_d x r_d covariances of new rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tuckergp.design import Design, ModeTable
from tuckergp.errors import InputError
from tuckergp.inference.diagnostics import Diagnostics, summarise
from tuckergp.model import Parameters, TuckerModel, path_at_rows
from tuckergp.priors.ordinal import level_probabilities

__all__ = ["Draw", "Draws"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Draw:
    """One set of unknowns: what predictions need.

    Attributes
    ----------
    parameters : Parameters
        U_d (rows of E, then B), W, and the states and lengthscales of chains.
    alpha : float
        Shared noise precision.
    covariance : tuple of ndarray, shapes (r_d, r_d)
        Of a row of E that the data say nothing about, Lambda^-1 times the residual's variance; for a chain, of a value
        far from all knots.
    noise : tuple of ndarray or None, shapes (M_d,)
        Noise precision of each row relative to the shared one; None where a mode has none.
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
    paths = tuple(
        None if path is None else path._replace(states=np.asarray(path.states, dtype=np.float32))
        for path in draw.parameters.paths
    )
    parameters = Parameters(U, np.asarray(draw.parameters.W, dtype=np.float64), paths)  # type: ignore[arg-type]
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

        Rows never seen have the mean of E, 0 or that of a chain given its states, or with ``rng`` a draw of it, as
        uncertainty needs. New values of a chain are drawn jointly.
        """
        for draw in self:
            psi = self.model.factors(draw.parameters, design) if rng is None else self._draw_factors(draw, design, rng)
            f = self.model.contract(psi, draw.parameters.W, design.index)
            yield f, self._noise_variance(draw, design)

    def _draw_factors(self, draw: Draw, design: Design, rng: np.random.Generator) -> list[Floats]:
        psi = self.model.factors(replace(draw.parameters, paths=()), design)
        paths = draw.parameters.paths or (None,) * len(psi)
        for d, (mode, path) in enumerate(zip(design.modes, paths, strict=True)):
            if mode.residual is not None:
                new = np.flatnonzero(np.diff(mode.residual.indptr) == 0)
                root = np.linalg.cholesky(draw.covariance[d])
                psi[d][new] += rng.standard_normal((len(new), len(root))) @ root.T
            elif mode.line is not None and path is not None:
                precision = np.asarray(np.linalg.inv(draw.covariance[d]), dtype=np.float64)
                psi[d] += path_at_rows(mode.line, path, precision, rng)
        return psi

    def probabilities(self, design: Design, rng: np.random.Generator) -> Iterator[Floats]:
        """Probability of every level at every observation of an ordinal model, draw by draw, shapes (N, K)."""
        for draw, (f, _) in zip(self, self.functions(design, rng), strict=True):
            yield level_probabilities(f, draw.cuts)

    @staticmethod
    def _noise_variance(draw: Draw, design: Design) -> Floats:
        precision = np.full(design.n_observations, draw.alpha)
        for d, (mode, factors) in enumerate(zip(design.modes, draw.noise, strict=True)):
            if factors is not None and mode.residual is not None:
                precision *= _at_rows(mode, factors)[design.index[:, d]]
        return 1 / precision


def _at_rows(mode: ModeTable, factors: Floats) -> Floats:
    """Noise factors of the rows of a table: those of the training rows they are, 1 for rows never seen."""
    residual = mode.residual
    if residual is None:
        return np.ones(mode.n_rows)
    out = np.ones(mode.n_rows)
    known = np.diff(residual.indptr) > 0
    out[known] = factors[residual.indices]
    return out
