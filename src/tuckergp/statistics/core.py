"""Prior of the core: entries of W ~ N(0, sigma_w^2). Given the factors, W is a regression of y on their products.

For two modes the rows' statistics come first, O(N r^2 + M r^4) instead of O(N r^4); large full cores are solved without
forming their system, sparse ones block by block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, cg

from tuckergp.compute.contract import FULL, SPARSE, evaluate, gradient
from tuckergp.compute.rows import core_rows
from tuckergp.errors import InputError
from tuckergp.likelihoods.precision import Precision
from tuckergp.linalg import normal_given_precision
from tuckergp.model.tucker import Core, make_core, pack
from tuckergp.random import normals, overrelaxed
from tuckergp.statistics.evidence import Evidence, Sorted

__all__ = ["core_given_factors"]

Floats = npt.NDArray[np.float64]

# Up to this many entries W is solved by Cholesky, beyond it by conjugate gradients.
LARGEST_DENSE = 3_000
# Entries of a sparse core that are solved for together: O(Q (D + BLOCK)) per observation for all Q.
BLOCK = 128
ITERATIONS = 2_000


def core_given_factors(
    core: Core,
    psi: Sequence[Floats],
    index: npt.NDArray[np.int32],
    data: Sorted,
    y: Floats,
    precision: Precision,
    prior: float,
    start: Floats,
    rng: np.random.Generator | None = None,
    overrelaxation: float = 0.0,
) -> Floats:
    """Mean of p(W | data, psi), flat; with ``rng``, a draw.

    More than `BLOCK` entries of a sparse core take turns in blocks, each given the other entries: a draw is then a
    Gibbs sweep over random blocks, and the mean one round of block-wise ascent.

    Parameters
    ----------
    core : Core
        Full or sparse.
    psi : sequence of ndarray, shapes (M_d, r_d)
    index : ndarray of int32, shape (N, D)
    data : Sorted
        The observations by their row of mode 0.
    y : ndarray, shape (N,)
        Targets.
    precision : Precision
        Of the noise.
    prior : float
        Prior precision of each entry of W.
    start : ndarray
        The present W, from which conjugate gradients, blocks of a sparse core and overrelaxed draws start.
    overrelaxation : float
        Of draws, see `tuckergp.random.overrelaxed`.
    """
    if core.kind == SPARSE and core.n_weights > BLOCK:
        return _in_blocks(core, psi, index, y, precision, prior, start, rng, overrelaxation)
    if core.n_weights > LARGEST_DENSE:
        weight = precision.at(index)
        return overrelaxed(partial(_iterate, core, psi, index, y, weight, prior, start, rng), start, overrelaxation)
    if core.modes == 2 and core.kind == FULL:
        gram, right = _by_rows(core, psi, data, y, precision)
    else:
        gram, right = _by_observations(core, psi, index, y, precision)
    return overrelaxed(partial(_solve, gram, right, prior, rng), start, overrelaxation)


def _solve(gram: Floats, right: Floats, prior: float, rng: np.random.Generator | None, noise: float) -> Floats:
    """Mean or draw of N(H^-1 right, noise^2 H^-1), H = gram + prior I; ``gram`` is overwritten."""
    gram[np.diag_indices(len(gram))] += prior
    normal = 0.0 if rng is None else noise * rng.standard_normal(len(gram))
    return normal_given_precision(gram, right, normal, "the precision of the core")


def _by_rows(core: Core, psi: Sequence[Floats], data: Sorted, y: Floats, precision: Precision) -> tuple[Floats, Floats]:
    """Normal equations from the statistics of mode 0's rows: f = psi_0' W psi_1."""
    r0, r1 = map(int, core.ranks)
    # A_m = sum_i w_i psi_1 psi_1' and b_m = sum_i w_i psi_1 y_i over the observations i of row m
    A, b = Evidence(data, y, precision, make_core("identity", [r1, r1]), 0, psi, np.ones(1)).statistics()
    # gram[(a, k), (c, l)] = sum_m psi_0[m, a] psi_0[m, c] A_m[k, l], right[(a, k)] = sum_m psi_0[m, a] b_m[k]
    P = psi[0]
    pairs = np.einsum("ma,mc->mac", P, P).reshape(len(P), -1)
    gram = (pairs.T @ A.reshape(len(P), -1)).reshape(r0, r0, r1, r1).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(gram).reshape(r0 * r1, r0 * r1), (P.T @ b).ravel()


def _by_observations(
    core: Core, psi: Sequence[Floats], index: npt.NDArray[np.int32], y: Floats, precision: Precision
) -> tuple[Floats, Floats]:
    """Normal equations from blocks of observations."""
    flat, start = pack(psi)
    n = core.n_weights
    gram, right = np.zeros((n, n)), np.zeros(n)
    block = max(1, 4_000_000 // n)
    for first in range(0, len(y), block):
        last = min(first + block, len(y))
        rows = core_rows(first, last, n, core.coords, core.ranks, flat, start, index)
        # X'diag(w) X and X'diag(w) y, x_i = the products of factors that f_i is linear in
        weighted = rows * precision.at(index, slice(first, last))[:, None]
        gram += weighted.T @ rows
        right += weighted.T @ y[first:last]
    return gram, right


def _in_blocks(
    core: Core,
    psi: Sequence[Floats],
    index: npt.NDArray[np.int32],
    y: Floats,
    precision: Precision,
    prior: float,
    start: Floats,
    rng: np.random.Generator | None,
    overrelaxation: float,
) -> Floats:
    """Blocks of entries in turn, each from its conditional given the others."""
    flat, begin = pack(psi)
    n = core.n_weights
    order = np.arange(n) if rng is None else rng.permutation(n)
    w = start.copy()
    residual = y - evaluate(core.kind, w, core.coords, core.ranks, flat, begin, index)
    for entries in np.array_split(order, -(-n // BLOCK)):
        some = replace(core, coords=np.ascontiguousarray(core.coords[entries]))
        gram, right = _by_observations(some, psi, index, residual, precision)
        # y - f of the other entries = residual + X_b W_b, so add X_b'diag(w) X_b W_b = gram W_b
        right += gram @ w[entries]
        new = overrelaxed(partial(_solve, gram, right, prior, rng), w[entries], overrelaxation)
        residual -= evaluate(core.kind, new - w[entries], some.coords, core.ranks, flat, begin, index)
        w[entries] = new
    return w


def _iterate(
    core: Core,
    psi: Sequence[Floats],
    index: npt.NDArray[np.int32],
    y: Floats,
    weight: Floats,
    prior: float,
    start: Floats,
    rng: np.random.Generator | None,
    noise: float,
) -> Floats:
    """Mean or draw by conjugate gradients; a draw perturbs the right-hand side with the covariance of the system."""
    flat, begin = pack(psi)
    n = core.n_weights

    def transpose(g: Floats) -> Floats:
        return np.asarray(gradient(core.kind, start, core.coords, core.ranks, flat, begin, index, g)[1])

    def product(w: Floats) -> Floats:
        f = evaluate(core.kind, w, core.coords, core.ranks, flat, begin, index)
        return transpose(weight * f) + prior * w

    # (X'diag(w) X + prior I) W = X'(w y + w^1/2 n_1) + prior^1/2 n_2
    noisy = weight * y
    extra = np.zeros(n)
    if rng is not None:
        noisy = noisy + noise * np.sqrt(weight) * normals(y.shape, rng)
        extra = noise * np.sqrt(prior) * rng.standard_normal(n)
    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    solution, failed = cg(operator, transpose(noisy) + extra, x0=start, rtol=1e-8, maxiter=ITERATIONS)
    if failed:
        raise InputError(
            f"Conjugate gradients did not solve for a core of {n} entries in {ITERATIONS} steps; lower the rank."
        )
    return np.asarray(solution)
