"""MAP by alternating exact solves: each mode's factors, their regression on the features, then the core.

The same conditionals as Gibbs sampling with means instead of draws and the hyperparameters held fixed, so the log
joint never decreases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, cg

from tuckergp.compute.contract import evaluate, gradient
from tuckergp.compute.rows import core_rows
from tuckergp.inference.base import Info, Problem, check_positive
from tuckergp.likelihoods import Gaussian
from tuckergp.model import Parameters, make_core, pack
from tuckergp.priors.evidence import Evidence, Sorted, sort_by_row
from tuckergp.priors.rows import factors_given_weights, weights_given_factors
from tuckergp.priors.weights import weights_given_data

__all__ = ["ALS", "ALSState"]

Floats = npt.NDArray[np.float64]

# Up to this many entries W is solved by Cholesky, beyond it by conjugate gradients.
LARGEST_DENSE_CORE = 3_000


class ALSState(NamedTuple):
    """Factors psi_d and weights B_d of every mode, the core, and the log joint that must not decrease."""

    iteration: int
    psi: tuple[Floats, ...]
    B: tuple[Floats, ...]
    W: Floats
    data: tuple[Sorted, ...]
    log_joint: float


@dataclass(frozen=True)
class ALS:
    """Alternating least squares.

    Parameters
    ----------
    iterations : int
        Rounds over all modes and the core, at the most.
    noise : float
        Variance of the Gaussian noise, in units of the variance of the targets when used in an estimator.
    sigma_u, sigma_w : float or None
        Prior standard deviations of the entries of U and W; None matches moments so that f has prior variance 1.
    tolerance : float
        Stop when a round improves the log joint by less than this share of an observation's.

    Examples
    --------
    >>> ALS(iterations=10).noise
    0.5
    """

    iterations: int = 30
    noise: float = 0.5
    sigma_u: float | None = None
    sigma_w: float | None = None
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        check_positive("ALS", **vars(self))

    @property
    def n_steps(self) -> int:
        """Rounds, at the most."""
        return self.iterations

    def init(self, problem: Problem, rng: np.random.Generator) -> ALSState:
        """Draw from the prior; observations sorted by row for every mode."""
        model, design = problem.model, problem.design
        start = model.start(design, rng)
        psi = tuple(model.factors(start, design))
        B = tuple(U[-mode.features.shape[1] :] if mode.features.shape[1] else U[:0]
                  for U, mode in zip(start.U, design.modes, strict=True))  # fmt: skip
        data = tuple(sort_by_row(design, d, problem.y, problem.weight) for d in range(len(design.modes)))
        return ALSState(0, psi, B, start.W, data, -np.inf)

    def step(self, problem: Problem, state: ALSState, rng: np.random.Generator) -> tuple[ALSState, Info]:
        """One round: every mode, then the core."""
        for d in range(len(problem.design.modes)):
            state = self._update_mode(problem, state, d)
        if problem.model.core.learned:
            state = state._replace(W=_core_given_factors(problem, state))
        model = problem.model
        parameters = self.parameters(problem, state)
        f = model.contract(state.psi, state.W, problem.design.index)
        density = model.likelihood.log_density(problem.y, f)
        fit = float(np.sum(density if problem.weight is None else problem.weight * density))
        log_joint = fit + model.log_prior(parameters)
        gain = log_joint - state.log_joint
        state = state._replace(iteration=state.iteration + 1, log_joint=log_joint)
        rmse = float(np.sqrt(np.average((problem.y - f) ** 2, weights=problem.weight)))
        done = gain < self.tolerance * len(problem.y)
        return state, Info(state.iteration, {"log_joint": log_joint, "train_rmse": rmse}, done)

    def _update_mode(self, problem: Problem, state: ALSState, d: int) -> ALSState:
        model, mode = problem.model, problem.design.modes[d]
        prior = float(model.sigma_u[d]) ** -2
        evidence = Evidence(state.data[d], model.core, d, state.psi, state.W, 1 / _noise(problem))
        B = state.B[d]
        n, r = B.shape
        if mode.residual is None:
            A, b = evidence.statistics()
            B = weights_given_data(mode.features, A, b, evidence.alpha, np.full((n, r), prior), B)
            psi = np.asarray(mode.features @ B)
        else:
            scale = mode.residual.data[0]
            mean = np.asarray(mode.features @ B)
            psi = factors_given_weights(evidence, mean, np.eye(r) * prior / scale**2)
            B = weights_given_factors(mode.features, psi, np.full(n, scale**2), B)
        return state._replace(psi=_replaced(state.psi, d, psi), B=_replaced(state.B, d, B))

    def parameters(self, problem: Problem, state: ALSState) -> Parameters:
        """U_d: the rows of E (divided by their scale) above B_d."""
        U = []
        for mode, psi, B in zip(problem.design.modes, state.psi, state.B, strict=True):
            if mode.residual is None:
                U.append(B)
            else:
                E = (psi - mode.features @ B) / mode.residual.data[0]
                rows = np.empty_like(E)
                rows[mode.residual.indices] = E
                U.append(np.vstack([rows, B]))
        return Parameters(tuple(U), state.W)


def _noise(problem: Problem) -> float:
    likelihood = problem.model.likelihood
    if not isinstance(likelihood, Gaussian):
        raise TypeError("alternating least squares is for the Gaussian likelihood")
    return likelihood.noise


def _replaced(values: tuple[Floats, ...], d: int, value: Floats) -> tuple[Floats, ...]:
    return (*values[:d], value, *values[d + 1 :])


def _core_given_factors(problem: Problem, state: ALSState) -> Floats:
    """Mean of p(W | data, psi): a regression of y on the products of factors."""
    model, core, design = problem.model, problem.model.core, problem.design
    alpha, prior = 1 / _noise(problem), model.sigma_w**-2
    weight = np.ones(len(problem.y)) if problem.weight is None else problem.weight
    flat, start = pack(state.psi)
    n = core.n_weights
    if n > LARGEST_DENSE_CORE:

        def product(w: Floats) -> Floats:
            f = evaluate(core.kind, w, core.coords, core.ranks, flat, start, design.index)
            _, d_w = gradient(core.kind, w, core.coords, core.ranks, flat, start, design.index, alpha * weight * f)
            return np.asarray(d_w + prior * w)

        target = alpha * weight * problem.y
        _, rhs = gradient(core.kind, state.W, core.coords, core.ranks, flat, start, design.index, target)
        operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
        return np.asarray(cg(operator, rhs, x0=state.W, rtol=1e-8, maxiter=200)[0])
    if core.modes == 2 and len(core.coords) == 0:
        # rows' statistics first: O(N r^2 + M r^4) instead of O(N r^4)
        one = Evidence(state.data[0], make_core("identity", [int(core.ranks[1])] * 2), 0, state.psi, np.ones(1), alpha)
        A, b = one.statistics()
        P = state.psi[0]
        pairs = np.einsum("ma,mc->mac", P, P).reshape(len(P), -1)
        r1, r2 = map(int, core.ranks)
        gram = (pairs.T @ A.reshape(len(P), -1)).reshape(r1, r1, r2, r2).transpose(0, 2, 1, 3).reshape(n, n)
        rhs = (P.T @ b).ravel()
    else:
        gram, rhs = np.zeros((n, n)), np.zeros(n)
        block = max(1, 4_000_000 // n)
        for first in range(0, len(problem.y), block):
            last = min(first + block, len(problem.y))
            rows = core_rows(first, last, core.kind, n, core.coords, core.ranks, flat, start, design.index)
            weighted = rows * weight[first:last, None]
            gram += weighted.T @ rows
            rhs += weighted.T @ problem.y[first:last]
    gram *= alpha
    gram[np.diag_indices(n)] += prior
    return np.asarray(linalg.cho_solve(linalg.cho_factor(gram, lower=True, overwrite_a=True), alpha * rhs))
