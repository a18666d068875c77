"""Draws of what a line is made of: its lengthscales, shares of variance where it is a sum, and weights of features.

Each is a step that leaves the posterior invariant; `tuckergp.residuals.line` puts them together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from tuckergp.linalg import Matrix
from tuckergp.priors.regression import Regression, dense
from tuckergp.priors.regressions import weights_given_factors as regress
from tuckergp.random import log_slice
from tuckergp.residuals.markov import LineProcess, independent_ranks

__all__ = [
    "LengthscalePrior",
    "NumbersPrior",
    "process_given_data",
    "process_given_noise",
    "process_given_values",
    "weights_given_factors",
]

Floats = npt.NDArray[np.float64]

SLICE_WIDTH = 0.5

AnyProcess = TypeVar("AnyProcess", bound=LineProcess)


def weights_given_factors(
    process: LineProcess,
    features: Matrix,
    blocks: Sequence[slice],
    psi: Floats,
    tau: Floats,
    start: Floats,
    precision: Floats | None = None,
    rng: np.random.Generator | None = None,
) -> Floats:
    """Mean of p(B | psi), (n, r), where E of psi = Phi B + E is the process; with ``rng``, a draw.

    Generalised least squares: with K = C C', C^-1 psi = C^-1 Phi B + C^-1 E has independent rows, so it is a regression
    of `tuckergp.priors.regressions`, whose parameters these are. Whitening costs O(M n) and makes the features dense;
    ``blocks`` are the columns of them that share a precision ``tau`` (blocks,).
    """
    return regress(Regression(process.whiten(dense(features)), blocks), process.whiten(psi), tau, start, precision, rng)


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
        """Log density of the logarithm of a lengthscale, up to a constant."""
        return -0.5 * ((log_lengthscale - float(np.log(self.centre))) / self.spread) ** 2


class NumbersPrior(Protocol):
    """The prior of the numbers of a process."""

    @property
    def log_density(self) -> Callable[..., float]:
        """Log density of the numbers, up to a constant, a function of one argument for each."""


def process_given_data(
    process: AnyProcess,
    A: Floats,
    b: Floats,
    mean: Floats,
    precision: Floats,
    prior: NumbersPrior,
    rng: np.random.Generator,
    anywhere: bool = False,
    which: Sequence[int] = (0,),
) -> AnyProcess:
    """Draw some numbers, each given the others and E integrated out; the states must be drawn next, with the result.

    Mixes best by far and costs most, some six forward filters for each number; `process_given_values` and
    `process_given_noise` take O(M r) per step. Parameters are those of `LineProcess.states_given_data`. With
    ``anywhere`` a lengthscale is first drawn from candidates over all that the knots can tell apart: a step of the
    slice does not find a short one, such as that of a season, from a long one, such as that of a trend, across the
    valley between them.
    """
    _, A_scaled, b_scaled = independent_ranks(A, b, mean, precision)

    def log_likelihood(other: AnyProcess) -> float:
        value = other.evidence_of(A_scaled, b_scaled)
        return -np.inf if np.isnan(value) else value

    return _each_drawn(process, log_likelihood, prior, which, rng, anywhere)


def process_given_values(
    process: AnyProcess,
    E: Floats,
    precision: Floats,
    prior: NumbersPrior,
    rng: np.random.Generator,
    which: Sequence[int] = (0,),
) -> AnyProcess:
    """Draw some numbers given E (M, r), its centred form, which needs no data. Returns the new process."""
    scaled = E @ np.asarray(np.linalg.cholesky(precision))

    def log_density(other: AnyProcess) -> float:
        # -(r log |K| + |C^-1 E L|^2) / 2, K = C C', Lambda = L L'
        fit = -0.5 * (E.shape[1] * other.log_determinant + (other.whiten(scaled) ** 2).sum())
        return float(fit)

    return _each_drawn(process, log_density, prior, which, rng)


def process_given_noise(
    process: AnyProcess,
    E: Floats,
    log_likelihood: Callable[[Floats], float],
    prior: NumbersPrior,
    rng: np.random.Generator,
    which: Sequence[int] = (0,),
) -> tuple[AnyProcess, Floats]:
    """Draw some numbers given Z of E = colour(Z), its whitened form: E moves with them, and is compared with the data.

    Returns the new process and the new E (M, r). Alternate with `process_given_values` (interweaving, Yu and Meng
    2011): this one moves freely where the data say little about E, the other where they say much.

    Parameters
    ----------
    log_likelihood : callable
        log p(data | E) up to a constant, E (M, r).
    """
    Z = process.whiten(E)
    moved = _each_drawn(process, lambda other: log_likelihood(other.colour(Z)), prior, which, rng)
    return moved, moved.colour(Z)


def _each_drawn(
    process: AnyProcess,
    log_likelihood: Callable[[AnyProcess], float],
    prior: NumbersPrior,
    which: Sequence[int],
    rng: np.random.Generator,
    anywhere: bool = False,
) -> AnyProcess:
    """The process with some of its numbers drawn one by one, each given the others."""
    for j in which:
        process = _one_drawn(process, j, log_likelihood, prior, rng, anywhere and j < process.n_lengthscales)
    return process


def _one_drawn(
    process: AnyProcess,
    j: int,
    log_likelihood: Callable[[AnyProcess], float],
    prior: NumbersPrior,
    rng: np.random.Generator,
    anywhere: bool,
) -> AnyProcess:
    """The process with a number drawn by a slice step."""
    numbers = process.numbers

    def moved(x: float) -> tuple[float, ...]:
        return (*numbers[:j], x, *numbers[j + 1 :])

    def density_of(numbers: tuple[float, ...]) -> float:
        a_priori = prior.log_density(*numbers)
        return log_likelihood(process.with_numbers(numbers)) + a_priori if a_priori > -np.inf else -np.inf

    if anywhere:
        candidates = [*process.candidates(j, rng), numbers]
        density = np.array([density_of(each) for each in candidates])
        numbers = candidates[np.argmax(density + rng.gumbel(size=len(density)))]
    x = log_slice(lambda x: density_of(moved(x)), numbers[j], SLICE_WIDTH, rng)
    return process.with_numbers(moved(x))
