"""What a run leaves behind: one set of parameters from MAP, many draws from a sampler.

A draw takes 4 bytes (float32) for each entry of the U_d, residual rows included, for each row's noise factor, and for
the states of chains (M_d p r_d numbers, p = 1, 2, 3 for Matern-1/2, -3/2, -5/2), and 8 for each entry of W and of the
r_d x r_d covariances of new rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.likelihoods.levels import level_probabilities
from tuckergp.model.design import Design
from tuckergp.model.tucker import Parameters, TuckerModel, path_at_rows
from tuckergp.posterior.diagnostics import Diagnostics, summarise
from tuckergp.random import stream

if TYPE_CHECKING:
    from tuckergp.posterior.moments import Running

__all__ = ["Draw", "Draws"]

Floats = npt.NDArray[np.float64]

# Names the stream from which predictions draw rows never seen: the same in every call.
PREDICTION_SEED = 0


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
    watched : sequence of mapping of str to ndarray
        What else was watched, chain by chain: noise, precisions of blocks, log likelihoods, one row a draw.
    observations : sequence of int
        The training observations that were watched.
    moments : mapping of str to Running, or None
        Running moments of predictions, where they were asked for.
    first : tuple of int
        Chain and number of the first draw, which name its random stream.
    """

    model: TuckerModel
    chains: Sequence[Sequence[Draw]]
    sampled: bool
    traces: Sequence[Floats] = ()
    watched: Sequence[Mapping[str, Floats]] = ()
    observations: Sequence[int] = ()
    moments: Mapping[str, Running] | None = None
    first: tuple[int, int] = (0, 0)

    def diagnostics(self) -> Diagnostics:
        """R-hat and effective sample sizes of f at some of the training observations."""
        if not self.sampled:
            raise InputError("A most probable point has no draws to diagnose; use inference='gibbs'.")
        if not self.traces:
            raise InputError("Draws from a variational posterior are independent; judge it by elbo in fit_.history.")
        shortest = min(len(trace) for trace in self.traces)
        return summarise(np.stack([trace[:shortest] for trace in self.traces]))

    def require_kept(self) -> None:
        """Refuse predictions where only moments were kept."""
        if not any(self.chains):
            raise InputError("The draws were not kept: read moments_, or fit again with keep_draws=True to predict.")

    def required_moments(self) -> Mapping[str, Running]:
        """The running moments; refused where none were asked for."""
        if self.moments is None:
            raise InputError("No moments were kept; call fit with moments_of.")
        return self.moments

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
        for draw, own in self._with_streams(rng):
            psi = self.model.factors(draw.parameters, design) if own is None else self._draw_factors(draw, design, own)
            f = self.model.contract(psi, draw.parameters.W, design.index)
            yield f, self._noise_variance(draw, design, own)

    def _with_streams(self, rng: np.random.Generator | None) -> Iterator[tuple[Draw, np.random.Generator | None]]:
        """Every draw with a stream of its own, named by its chain and number, so that it can be used alone."""
        self.require_kept()
        seed = None if rng is None else int(rng.integers(2**63))
        for c, chain in enumerate(self.chains, start=self.first[0]):
            for number, draw in enumerate(chain, start=self.first[1]):
                yield draw, None if seed is None else stream(seed, c, number)

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

    def probabilities(self, design: Design, rng: np.random.Generator | None) -> Iterator[Floats]:
        """Probability of every level at every observation of an ordinal model, draw by draw, shapes (N, K)."""
        for draw, (f, variance) in zip(self, self.functions(design, rng), strict=True):
            yield level_probabilities(f, draw.cuts, variance**-0.5)

    @staticmethod
    def _noise_variance(draw: Draw, design: Design, rng: np.random.Generator | None) -> Floats:
        """Groups never seen have the mean factor, 1, or with ``rng`` that of some group of the training rows."""
        precision = np.full(design.n_observations, draw.alpha)
        for d, (mode, factors) in enumerate(zip(design.modes, draw.noise, strict=True)):
            if factors is not None:
                at_rows = np.append(factors, 1.0)[mode.groups]
                new = np.flatnonzero(mode.groups < 0)
                if rng is not None and len(new):
                    at_rows[new] = factors[rng.integers(len(factors), size=len(new))]
                precision *= at_rows[design.index[:, d]]
        return 1 / precision
