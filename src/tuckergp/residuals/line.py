"""Prior `chain`: psi = Phi B + E with rows on a line, E ~ N(0, K kron Lambda^-1), K a Matern correlation.

What a sampler and alternating least squares do with a `tuckergp.residuals.markov.Chain`: its lengthscale, the factors
given data, the weights given the factors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.model.mode_table import Line, Matrix, ModeTable
from tuckergp.model.tucker import Path, chain_of
from tuckergp.priors.hyper import log_slice
from tuckergp.priors.regression import Regression
from tuckergp.priors.rows import weights_given_factors as regress
from tuckergp.residuals.markov import Chain, independent_ranks, log_likelihood

__all__ = [
    "Chain",
    "ChainMode",
    "LengthscalePrior",
    "draw_mode",
    "lengthscale_given_data",
    "lengthscale_given_noise",
    "lengthscale_given_values",
    "log_likelihood",
    "mean_mode",
    "path_of",
    "residual_of",
    "weights_given_factors",
]

Floats = npt.NDArray[np.float64]

SLICE_WIDTH = 0.5


def weights_given_factors(
    chain: Chain,
    features: Matrix,
    blocks: Sequence[slice],
    psi: Floats,
    tau: Floats,
    start: Floats,
    precision: Floats | None = None,
    rng: np.random.Generator | None = None,
) -> Floats:
    """Mean of p(B | psi), (n, r), E of psi = Phi B + E being the chain; with ``rng``, a draw.

    Generalised least squares: whitened, features and factors are those of independent rows, and the regression is that
    of `tuckergp.priors.rows`, whose parameters these are. Whitening costs O(M n) and makes the features dense;
    ``blocks`` are the columns of them that share a precision ``tau`` (blocks,).
    """
    dense = np.asarray(sparse.csr_array(features).toarray() if sparse.issparse(features) else features)
    return regress(Regression(chain.whiten(dense), blocks), chain.whiten(psi), tau, start, precision, rng)


class LengthscalePrior(NamedTuple):
    """log lengthscale ~ N(log centre, spread^2): by default 95% within a factor of 19 of the centre.

    Attributes
    ----------
    centre : float
        The kernel's own lengthscale, the user's starting value.
    spread : float
        Standard deviation of the logarithm.
    """

    centre: float
    spread: float = 1.5

    def log_density(self, log_lengthscale: float) -> float:
        """Of the logarithm, up to a constant."""
        return -0.5 * ((log_lengthscale - float(np.log(self.centre))) / self.spread) ** 2


def lengthscale_given_data(
    chain: Chain,
    A: Floats,
    b: Floats,
    mean: Floats,
    precision: Floats,
    prior: LengthscalePrior,
    rng: np.random.Generator,
) -> Chain:
    """Draw the lengthscale with E integrated out; draw the states given data next, with the new chain returned.

    Mixes best by far and costs most, some six forward filters; `lengthscale_given_values` and `lengthscale_given_noise`
    take O(M r) a step. Parameters are those of `Chain.states_given_data`.
    """
    _, scaled, pull = independent_ranks(A, b, mean, precision)

    def log_density(x: float) -> float:
        value = chain.at(float(np.exp(x))).evidence_of(scaled, pull) + prior.log_density(x)
        return -np.inf if np.isnan(value) else value

    x = log_slice(log_density, float(np.log(chain.lengthscale)), SLICE_WIDTH, rng)
    return chain.at(float(np.exp(x)))


def lengthscale_given_values(
    chain: Chain, E: Floats, precision: Floats, prior: LengthscalePrior, rng: np.random.Generator
) -> Chain:
    """Draw the lengthscale given E (M, r), its centred form; the data are not asked. Returns the new chain."""
    scaled = E @ np.asarray(np.linalg.cholesky(precision))

    def log_density(x: float) -> float:
        other = chain.at(float(np.exp(x)))
        fit = -0.5 * (E.shape[1] * other.log_determinant + (other.whiten(scaled) ** 2).sum())
        return float(fit) + prior.log_density(x)

    x = log_slice(log_density, float(np.log(chain.lengthscale)), SLICE_WIDTH, rng)
    return chain.at(float(np.exp(x)))


def lengthscale_given_noise(
    chain: Chain,
    E: Floats,
    log_likelihood: Callable[[Floats], float],
    prior: LengthscalePrior,
    rng: np.random.Generator,
) -> tuple[Chain, Floats]:
    """Draw the lengthscale given Z of E = colour(Z), its whitened form: E moves with it, and the data decide.

    Returns the new chain and the new E (M, r). Alternate with `lengthscale_given_values` (interweaving, Yu and Meng
    2011): this one moves freely where the data say little about E, the other where they say much.

    Parameters
    ----------
    log_likelihood : callable
        log p(data | E) up to a constant, E (M, r).
    """
    Z = chain.whiten(E)

    def log_density(x: float) -> float:
        return log_likelihood(chain.at(float(np.exp(x))).colour(Z)) + prior.log_density(x)

    x = log_slice(log_density, float(np.log(chain.lengthscale)), SLICE_WIDTH, rng)
    moved = chain.at(float(np.exp(x)))
    return moved, moved.colour(Z)


class ChainMode(NamedTuple):
    """The unknowns of a mode with a chain: factors psi (M, r), weights B (n, r), the lengthscale."""

    psi: Floats
    B: Floats
    lengthscale: float


def draw_mode(
    table: ModeTable,
    statistics: tuple[Floats, Floats],
    mode: ChainMode,
    tau: Floats,
    precision: Floats,
    collapse: bool,
    rng: np.random.Generator,
) -> ChainMode:
    """One sweep over a mode with a chain: the lengthscale, E and psi given data and B, then B given psi.

    Parameters
    ----------
    statistics : ndarray, shapes (M, r, r) and (M, r)
        A and b of the rows, in the order of the table, noise precision included.
    mode : ChainMode
        The last draw; its factors are not read.
    tau : ndarray, shape (blocks,)
    precision : ndarray, shape (r, r)
        Lambda.
    collapse : bool
        Draw the lengthscale with E integrated out, the dearer and better way; else interweave the whitened and the
        centred form. Either leaves the posterior as it is, so a sampler may choose by sweep.
    """
    line = _line(table)
    A, b = (statistic[line.sorter] for statistic in statistics)
    mean = np.asarray(table.features @ mode.B)[line.sorter]
    inner, prior = precision / line.scale**2, LengthscalePrior(line.lengthscale)
    chain = chain_of(line, mode.lengthscale)
    if line.learn and collapse:
        chain = lengthscale_given_data(chain, A, b, mean, inner, prior, rng)
    noise = rng.standard_normal((*chain.noise_shape, len(precision)))
    E = chain.states_given_data(A, b, mean, inner, noise)[:, 0]
    if line.learn and not collapse:
        chain, E = lengthscale_given_noise(chain, E, lambda E: log_likelihood(E, A, b, mean), prior, rng)
        chain = lengthscale_given_values(chain, E, inner, prior, rng)
    psi = mean + E
    features = table.features[line.sorter]
    B = weights_given_factors(chain, features, table.blocks, psi, line.scale**2 * tau, mode.B, inner, rng)
    return ChainMode(line.to_rows(psi), B, chain.lengthscale)


def mean_mode(
    table: ModeTable, statistics: tuple[Floats, Floats], mode: ChainMode, tau: Floats, precision: Floats
) -> ChainMode:
    """The means of `draw_mode`, the lengthscale held fixed: factors given data, then weights given factors."""
    line = _line(table)
    A, b = (statistic[line.sorter] for statistic in statistics)
    chain = chain_of(line, mode.lengthscale)
    mean = np.asarray(table.features @ mode.B)[line.sorter]
    psi = mean + chain.states_given_data(A, b, mean, precision / line.scale**2)[:, 0]
    B = weights_given_factors(chain, table.features[line.sorter], table.blocks, psi, line.scale**2 * tau, mode.B)
    return ChainMode(line.to_rows(psi), B, mode.lengthscale)


def residual_of(table: ModeTable, psi: Floats, B: Floats) -> Floats:
    """E at the knots, (M, r)."""
    return np.asarray(psi - table.features @ B)[_line(table).sorter]


def path_of(table: ModeTable, mode: ChainMode, precision: Floats, rng: np.random.Generator | None = None) -> Path:
    """States of the chain given psi and B: their mean, or with ``rng`` a draw; needed for predictions alone."""
    line = _line(table)
    E = residual_of(table, mode.psi, mode.B)
    chain = chain_of(line, mode.lengthscale)
    noise = None if rng is None else rng.standard_normal((*chain.noise_shape, E.shape[1]))
    return Path(chain.states_given_values(E, precision / line.scale**2, noise), mode.lengthscale)


def _line(table: ModeTable) -> Line:
    if table.line is None:
        raise ValueError("this mode has no chain")
    return table.line
