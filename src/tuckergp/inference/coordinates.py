"""Other coordinates for the weights, in which the same posterior is easier to sample from.

Priors N(0, sigma^2) of all entries of U_d and of W are invariant under rotations, which is used twice.

- Principal directions: for orthonormal V, V'U_d has the prior of U_d. In the singular vectors of the rows' features,
  weights depend less on one another through the data, which suits diagonal step sizes. The data say nothing about
  directions that no row has, so these are drawn from the prior.
- A fixed rotation: f stays the same if U_d is rotated to U_d Q' and W to W x_d Q, so the posterior lies along spheres,
  long and thin. Every U_d can be rotated so that its first r rows are lower triangular, with density proportional to
  prod_i |U_d[i, i]|^(r - 1 - i) times that of its entries (Bartlett); every draw then gets a random rotation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tuckergp.compute.contract import FULL, IDENTITY
from tuckergp.inference.base import Problem
from tuckergp.inference.weights import parameters_of, vector_of
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import Core, Parameters

__all__ = ["Coordinates"]

Floats = npt.NDArray[np.float64]

# A direction is left to the prior if its singular value is below this share of the largest: far below the resolution of
# float32, in which draws are kept.
ABSENT = 1e-8
# More features or rows than this are not decomposed.
LARGEST = 3_000


@dataclass(frozen=True)
class Coordinates:
    """A problem in other coordinates.

    Attributes
    ----------
    whole : Problem
        In the weights of the features, U_d.
    problem : Problem
        The same observations and prior with V'U_d in place of U_d.
    bases : tuple of ndarray, shapes (n_d, k_d), or None
        V of every mode; None where U_d stays as it is: sparse features, or very many.
    turned : tuple of int
        The modes whose U_d is made lower triangular.
    free : ndarray of int
        Which entries of the problem's theta are unknown; the others are 0.
    power : ndarray, shape (free,)
        Exponents of the absolute values of the unknowns in the density of a rotated U_d.

    Examples
    --------
    >>> from tuckergp.model.design import Design
    >>> from tuckergp.likelihoods import Gaussian
    >>> from tuckergp.model.tucker import TuckerModel, make_core
    >>> core = make_core("identity", [1])
    >>> features = np.array([[1.0, 1.0], [2.0, 2.0]])  # one direction, twice
    >>> design = Design((ModeTable(features),), np.array([[0], [1]], dtype=np.int32))
    >>> model = TuckerModel(core, Gaussian(), np.ones(1), 1.0)
    >>> Coordinates.of(Problem(model, design, np.zeros(2))).problem.design.modes[0].n_features
    1
    """

    whole: Problem
    problem: Problem
    bases: tuple[Floats | None, ...]
    turned: tuple[int, ...]
    free: npt.NDArray[np.intp]
    power: Floats

    @classmethod
    def of(cls, problem: Problem) -> Coordinates:
        """Find the principal directions of every mode, and which entries of theta are unknown."""
        design = problem.design
        bases = tuple(_basis(mode, _counts(problem, d)) for d, mode in enumerate(design.modes))
        modes = tuple(
            mode if V is None else ModeTable(np.asarray(mode.features @ V))
            for mode, V in zip(design.modes, bases, strict=True)
        )
        other = replace(problem, design=replace(design, modes=modes))
        turned = _turned(problem.model.core, bases)
        power = np.zeros(other.weight_blocks[-1].stop)
        for d in turned:
            r = int(problem.model.core.ranks[d])
            block = power[other.weight_blocks[d]].reshape(-1, r)[:r]
            block[np.triu_indices(r, 1)] = -1.0  # entries that are 0
            block[np.diag_indices(r)] = np.arange(r)[::-1]  # |U[i, i]|^(r - 1 - i)
        free = np.flatnonzero(power >= 0)
        return cls(problem, other, bases, turned, free, power[free])

    def project(self, theta: Floats) -> Floats:
        """The unknowns of a theta of the whole problem."""
        given = parameters_of(self.whole, theta)
        U = [U if V is None else V.T @ U for U, V in zip(given.U, self.bases, strict=True)]
        W = given.W
        for d in self.turned:
            # U[:r]' = Q R, so U[:r] Q = R' is lower triangular
            r = U[d].shape[1]
            W = self._turn(d, np.linalg.qr(U[d][:r].T)[0].T, U, W)
        return vector_of(Parameters(tuple(U), W, free=given.free))[self.free]

    def spread_out(self, free: Floats) -> Floats:
        """The problem's theta from the unknowns."""
        theta = np.zeros(self.problem.weight_blocks[-1].stop)
        theta[self.free] = free
        return theta

    def lift(self, free: Floats, rng: np.random.Generator) -> Floats:
        """A theta of the whole problem from the unknowns; the rotations and the directions left out are drawn."""
        given = parameters_of(self.problem, self.spread_out(free))
        U, W = list(given.U), given.W
        for d in self.turned:
            # a uniformly random rotation (Mezzadri 2007): Q of a Gaussian matrix, with signs that make diag(R) > 0
            r = U[d].shape[1]
            Q, R = np.linalg.qr(rng.standard_normal((r, r)))
            W = self._turn(d, Q * np.sign(np.diag(R)), U, W)
        modes = zip(U, self.bases, self.whole.model.sigma_u, strict=True)
        lifted = tuple(_lifted(C, V, float(sigma), rng) for C, V, sigma in modes)
        return vector_of(Parameters(lifted, W, free=given.free))

    def _turn(self, d: int, Q: Floats, U: list[Floats], W: Floats) -> Floats:
        """Rotate U_d by Q in place and return the core that keeps f the same; an identity core rotates all modes."""
        core = self.whole.model.core
        if core.kind == IDENTITY:
            U[:] = [table @ Q.T for table in U]
            return W
        U[d] = U[d] @ Q.T
        return np.moveaxis(np.tensordot(Q, W.reshape(tuple(core.ranks)), axes=(1, d)), 0, d).ravel()


def _turned(core: Core, bases: Sequence[Floats | None]) -> tuple[int, ...]:
    """Which modes are rotated: under a full core all with at least r directions, under the identity one of two."""
    able = [d for d, V in enumerate(bases) if V is not None and V.shape[1] >= core.ranks[d]]
    if core.kind == FULL:
        return tuple(able)
    return tuple(able[:1]) if core.kind == IDENTITY and core.modes == 2 else ()


def _counts(problem: Problem, d: int) -> Floats:
    """The sum of the weights of the observations of every row of a mode, (M,)."""
    rows = problem.design.modes[d].n_rows
    return np.bincount(problem.design.index[:, d], weights=problem.weight, minlength=rows).astype(np.float64)


def _basis(mode: ModeTable, counts: Floats) -> Floats | None:
    """V (n, k): right singular vectors of the features, rows weighted by their counts; None to leave U as it is."""
    table = mode.features
    if not isinstance(table, np.ndarray) or mode.residual.n_columns or not 1 < max(table.shape) <= LARGEST:
        return None
    _, size, axes = np.linalg.svd(np.sqrt(counts)[:, None] * table, full_matrices=False)
    return np.ascontiguousarray(axes[: max(1, int(np.sum(size > ABSENT * size[0])))].T)


def _lifted(C: Floats, V: Floats | None, sigma: float, rng: np.random.Generator) -> Floats:
    """Draw U with V'U = C: V C + sigma (I - V V') Z for standard normal Z."""
    if V is None:
        return C
    Z = rng.standard_normal((len(V), C.shape[1]))
    U: Floats = V @ (C - sigma * (V.T @ Z)) + sigma * Z
    return U
