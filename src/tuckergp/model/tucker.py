"""The Tucker model: cores, the contraction f = W x_d psi_d, the log joint and its gradient in closed form.

Pure functions of parameters and data; how parameters are learned is in `tuckergp.inference`. Factors psi_d are computed
once per row of a mode, never once per observation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.compute.contract import FULL, IDENTITY, SPARSE, evaluate, evaluate_draws, gradient
from tuckergp.errors import InputError
from tuckergp.likelihoods import Likelihood
from tuckergp.model.cores import CoreSpec, Entries, Learned, Random, check_full, inclusion_prior, places
from tuckergp.model.design import Design

__all__ = [
    "LARGEST_AUTOMATIC",
    "Core",
    "Parameters",
    "SparseCore",
    "Summand",
    "TuckerModel",
    "costly_full_core",
    "make_core",
    "pack",
    "refuse_learned",
    "refuse_residuals",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Up to this many entries a core is full unless the user says otherwise.
LARGEST_AUTOMATIC = 4_096

# Up to here a full core costs no more than the rest of a sweep; beyond, it may take this many multiplications per
# sweep, about a quarter of a second.
SMALL_FULL_CORE = 128
AFFORDABLE = 1e9

SparseCore = Random  # its earlier name


class Summand(NamedTuple):
    """A summand of the prior covariance of f: a weight times the product of the kernels of these modes."""

    weight: float
    modes: tuple[int, ...]


@dataclass(frozen=True)
class Core:
    """The shape of W: which entries exist, and whether they are learned.

    Attributes
    ----------
    kind : int
        IDENTITY (superdiagonal of ones, fixed), FULL or SPARSE.
    ranks : ndarray, shape (D,)
    coords : ndarray, shape (Q, D)
        Places of the entries of a sparse core, -1 for a mode that an entry leaves out; no rows otherwise.
    share : float
        Below 1 it is learned which of these entries are included, and this share is expected to be.
    """

    kind: int
    ranks: Ints
    coords: Ints
    share: float = 1.0

    @property
    def modes(self) -> int:
        """The number of modes, D."""
        return len(self.ranks)

    @property
    def learned(self) -> bool:
        """Whether W has entries to learn."""
        return self.kind != IDENTITY

    @property
    def n_weights(self) -> int:
        """How many entries are learned: none, r_1 ... r_D, or Q."""
        return {IDENTITY: 0, FULL: prod(map(int, self.ranks)), SPARSE: len(self.coords)}[self.kind]

    @cached_property
    def leaves_out(self) -> bool:
        """Whether some entry leaves a mode out."""
        return bool((self.coords < 0).any())

    def default_sigma_u(self) -> Floats:
        """Prior standard deviations of entries of U_d, (D,), with which entries of W x_d U_d' have variance 1.

        Full and sparse core: r^(-1/2), as in section 2.1 of the paper. Identity: r^(-1/(2 D)), because then the
        variance is r sigma_u^(2 D).
        """
        if self.kind == IDENTITY:
            return np.full(self.modes, float(self.ranks[0]) ** (-0.5 / self.modes))
        return self.ranks.astype(np.float64) ** -0.5

    def default_sigma_w(self) -> float:
        """Prior standard deviation of entries of W: 1, or sqrt(r^D / Q) for a sparse core with Q expected entries.

        Modes that an entry leaves out do not count: in general 1 / sum_q prod_d 1/r_d over the modes of entry q.
        """
        if self.kind == SPARSE:
            variance = np.where(self.coords < 0, 1.0, 1.0 / self.ranks).prod(axis=1)
            return float((self.share * variance.sum()) ** -0.5)
        return 1.0

    def summands(self) -> list[Summand]:
        """The prior covariance of f in terms of the modes' kernels; the weights have the sum 1.

        The product of all modes, but where entries leave modes out: E W_q^2 prod_d k_d / r_d over the modes of entry q,
        with entries of the same modes added up.
        """
        if not self.leaves_out:
            return [Summand(1.0, tuple(range(self.modes)))]
        there = self.coords >= 0
        weight = self.share * self.default_sigma_w() ** 2 * np.where(there, 1.0 / self.ranks, 1.0).prod(axis=1)
        groups, group = np.unique(there, axis=0, return_inverse=True)
        weights = np.bincount(group.ravel(), weight)
        return [Summand(float(w), tuple(np.flatnonzero(g).tolist())) for w, g in zip(weights, groups, strict=True)]

    def dense(self, w: Floats) -> Floats:
        """W as a dense tensor, shape (r_1, ..., r_D).

        Where entries leave modes out, every axis is longer by one: its last place stands for a factor 1.
        """
        if self.kind == FULL:
            return w.reshape(tuple(self.ranks))
        dense = np.zeros(tuple(self.ranks + self.leaves_out))
        if self.kind == IDENTITY:
            dense[(np.arange(self.ranks[0]),) * self.modes] = 1.0
        else:
            dense[tuple(self.coords.T)] = w
        return dense

    def others(self, w: Floats, psi: Sequence[Floats | None], d: int) -> tuple[Floats, Floats | float]:
        """z = W x_{e != d} psi_e for N rows of factors, (N, r_d), and what entries that leave mode d out add to f.

        ``psi`` has an (N, r_e) table for each mode, None for mode d. For many rows `tuckergp.compute` is faster.
        """
        rest = [(e, table) for e, table in enumerate(psi) if e != d and table is not None]
        if self.kind == IDENTITY:
            return reduce(lambda product, table: product * table, (table for _, table in rest)), 0.0
        if self.kind == FULL:
            filled = np.moveaxis(self.dense(w), d, -1)
            for place, (_, table) in enumerate(rest):
                filled = np.einsum("nb,nb...->n...", table, filled) if place else np.tensordot(table, filled, axes=1)
            return np.atleast_2d(filled), 0.0
        n = len(rest[0][1]) if rest else 1
        z, alone = np.zeros((n, int(self.ranks[d]))), np.zeros(n)
        for q in np.flatnonzero(w):
            product = np.full(n, w[q])
            for e, table in rest:
                if self.coords[q, e] >= 0:
                    product *= table[:, self.coords[q, e]]
            if self.coords[q, d] >= 0:
                z[:, self.coords[q, d]] += product
            else:
                alone += product
        return z, alone

    def others_in_draws(self, W: Floats, psi: Sequence[Floats | None], d: int) -> tuple[Floats, Floats]:
        """What `others` gives in S draws, (N, S, r_d) and (N, S), from W (S, Q) and tables (N, S, r_e)."""
        if not self.learned:
            z = reduce(np.multiply, (table for e, table in enumerate(psi) if e != d and table is not None))
            return z, np.zeros(z.shape[:2])
        draws = [self.others(W[s], [None if table is None else table[:, s] for table in psi], d) for s in range(len(W))]
        z = np.stack([of_draw for of_draw, _ in draws], axis=1)
        return z, np.stack([np.broadcast_to(alone, len(z)) for _, alone in draws], axis=1)


def costly_full_core(entries: int, n: int) -> bool:
    """Whether drawing a full core of three modes or more given n observations takes most of the time of a sweep."""
    # the Gram matrix of the entries, and its Cholesky factor
    operations = entries**2 * (n + entries / 3)
    return entries > LARGEST_AUTOMATIC or (entries > SMALL_FULL_CORE and operations > AFFORDABLE)


def make_core(spec: CoreSpec | Core, ranks: Sequence[int], rng: np.random.Generator | None = None) -> Core:
    """Turn what the user asked for into a core of given ranks.

    ``"auto"`` is full while it has at most 4,096 entries or the ranks differ, and the identity otherwise.
    """
    if isinstance(spec, Core):
        return spec
    sizes = np.asarray(ranks, dtype=np.int64)
    none = np.zeros((0, len(sizes)), dtype=np.int64)
    entries = prod(map(int, sizes))
    if spec == "auto":
        spec = "full" if entries <= LARGEST_AUTOMATIC or len(set(ranks)) > 1 else "identity"
    if spec == "identity":
        if len(set(ranks)) > 1:
            raise InputError(f"An identity core needs the same rank in every mode, not {tuple(ranks)}.")
        return Core(IDENTITY, sizes, none)
    if spec == "full":
        check_full(ranks)
        return Core(FULL, sizes, none)
    if isinstance(spec, Random | Entries | Learned) or spec in ("superdiagonal", "cp", "pairwise"):
        share = spec.share if isinstance(spec, Learned) else 1.0
        return Core(SPARSE, sizes, places(spec, ranks, rng), share)
    raise InputError(
        f"core must be 'auto', 'identity', 'full', 'superdiagonal', 'pairwise' or one of tuckergp.cores, not {spec!r}."
    )


@dataclass(frozen=True)
class Parameters:
    """The unknowns in weight space: U_d (n_d, r_d) for each mode, and the learned entries of W, flat.

    ``own`` has the own unknowns of each mode's residual, such as a path along a line; it may be left out where no
    residual has any. ``free`` are the unknowns of the likelihood that gradients move; left out, they are those of the
    model.
    """

    U: tuple[Floats, ...]
    W: Floats
    own: tuple[tuple[Any, ...], ...] = ()
    free: Floats = field(default_factory=lambda: np.zeros(0))


def refuse_residuals(design: Design, what: str) -> None:
    """Refuse a design with a residual that no features stand for, where only weights of features are learned."""
    for mode in design.modes:
        mode.residual.refuse_weights(what)


def refuse_learned(core: Core, what: str) -> None:
    """Refuse a core with a learned pattern where its entries must have a density."""
    if core.share < 1:
        raise InputError(f"{what} for cores with given entries; cores.Learned needs inference='gibbs'.")


def pack(tables: Sequence[Floats]) -> tuple[Floats, Ints]:
    """Lay tables (M_d, r_d) one after the other: the flat array and where each starts, for `tuckergp.compute`."""
    start = np.array(list(accumulate((table.size for table in tables), initial=0)), dtype=np.int64)
    filled = [np.ravel(table) for table in tables if table.size]
    return filled[0] if len(filled) == 1 else np.concatenate(filled or [np.zeros(0)]), start


@dataclass(frozen=True)
class TuckerModel:
    """Core, likelihood and prior scales: everything but the unknowns and the data.

    Attributes
    ----------
    core : Core
    likelihood : Likelihood
    sigma_u : ndarray, shape (D,)
        Prior standard deviation of the entries of each U_d.
    sigma_w : float
        Prior standard deviation of the learned entries of W.
    """

    core: Core
    likelihood: Likelihood
    sigma_u: Floats
    sigma_w: float

    def likelihood_at(self, parameters: Parameters) -> Likelihood:
        """The likelihood with the unknowns of these parameters."""
        return self.likelihood.with_free(parameters.free) if parameters.free.size else self.likelihood

    @cached_property
    def fixed_w(self) -> Floats:
        """What stands for W in compiled code when nothing of it is learned."""
        return np.ones(1)

    def init(self, design: Design, rng: np.random.Generator) -> Parameters:
        """Draw parameters from their prior; lengthscales are the kernels', unknowns of the likelihood its own."""
        U = tuple(
            sigma * mode.residual.any_weights(int(mode.features.shape[1]), int(r), rng)
            for mode, r, sigma in zip(design.modes, self.core.ranks, self.sigma_u, strict=True)
        )
        W = self.sigma_w * rng.standard_normal(self.core.n_weights)
        if self.core.share < 1:
            W[rng.random(len(W)) >= rng.beta(*inclusion_prior(self.core.share))] = 0.0
        modes = zip(design.modes, self.core.ranks, self.sigma_u, strict=True)
        own = tuple(mode.residual.init(int(r), float(sigma), rng) for mode, r, sigma in modes)
        return Parameters(U, W, own, self.likelihood.free)

    def start(self, design: Design, rng: np.random.Generator, scale: float = 1.0) -> Parameters:
        """Parameters to start from: a prior draw, U times ``scale``, but constant features with weight sigma_u.

        With many modes a product of prior draws is about 0, and so is its gradient; constants keep it away from 0.
        Signs in the first mode are random, so that f starts around 0. All entries of a core are included.
        """
        drawn = self.init(design, rng)
        U = tuple(scale * table for table in drawn.U)
        for d, mode in enumerate(design.modes):
            if mode.constant is not None:
                signs = rng.choice([-1.0, 1.0], size=U[d].shape[1]) if d == 0 else 1.0
                U[d][mode.constant] = self.sigma_u[d] * signs
        absent = drawn.W == 0
        W = np.where(absent, self.sigma_w * rng.standard_normal(len(absent)), drawn.W) if absent.any() else drawn.W
        return replace(drawn, U=U, W=W)

    def factors(self, parameters: Parameters, design: Design) -> list[Floats]:
        """psi_d = Phi_d U_d for the rows of each mode, (M_d, r_d), plus the residual where it has own unknowns."""
        psi = [np.asarray(mode.table @ U, dtype=np.float64) for mode, U in zip(design.modes, parameters.U, strict=True)]
        for d, own in enumerate(parameters.own):
            psi[d] += design.modes[d].residual.values(own)
        return psi

    def contract(self, psi: Sequence[Floats], W: Floats, index: npt.NDArray[np.int32]) -> Floats:
        """f of observations given the factors of all rows, shape (N,)."""
        flat, start = pack(psi)
        core = self.core
        return evaluate(core.kind, W if core.learned else self.fixed_w, core.coords, core.ranks, flat, start, index)

    def contract_draws(self, psi: Sequence[Floats], W: Floats, index: npt.NDArray[np.int32]) -> Floats:
        """f of observations in S draws, (S, N), given the factors of rows in each draw (M_d, S, r_d) and W (S, Q)."""
        flat, start = pack(psi)
        core = self.core
        W = W if core.learned else np.ones((len(W), 1))
        return evaluate_draws(core.kind, W, core.coords, core.ranks, flat, start, index).T

    def predict(self, parameters: Parameters, design: Design) -> Floats:
        """f at every observation of a design, shape (N,)."""
        return self.contract(self.factors(parameters, design), parameters.W, design.index)

    def log_prior(self, parameters: Parameters, design: Design) -> float:
        """log p(U) + log p(W) + log p(own unknowns of residuals, of the likelihood), up to a constant."""
        refuse_learned(self.core, "A density is")
        total = sum(float(np.vdot(U, U) / s**2) for U, s in zip(parameters.U, self.sigma_u, strict=True))
        weights = -0.5 * (total + float(parameters.W @ parameters.W) / self.sigma_w**2)
        for own, mode, s in zip(parameters.own, design.modes, self.sigma_u, strict=False):
            weights += mode.residual.log_prior(own, float(s))
        return weights + (self.likelihood.log_prior(parameters.free)[0] if parameters.free.size else 0.0)

    def log_joint(
        self,
        parameters: Parameters,
        design: Design,
        y: Floats,
        weight: Floats | None = None,
        offset: Floats | None = None,
    ) -> float:
        """log p(y, U, W) of the paper's appendix A, up to a constant; weights multiply the log densities.

        Offsets are added to f, such as the logarithms of exposures.
        """
        f = self.predict(parameters, design)
        log_density = self.likelihood_at(parameters).log_density(y, f if offset is None else f + offset)
        total = float(np.sum(log_density if weight is None else weight * log_density))
        return total + self.log_prior(parameters, design)

    def log_joint_and_gradient(
        self,
        parameters: Parameters,
        design: Design,
        y: Floats,
        weight: Floats | None = None,
        offset: Floats | None = None,
    ) -> tuple[float, Parameters]:
        """The log joint and its derivatives in all unknowns, in the shapes of the unknowns.

        With psi_d and z_d = W x_{e != d} psi_e once per row, the appendix's derivative in U_d is Phi_d' (sum of
        score times z_d over the observations of each row).
        """
        refuse_residuals(design, "Gradients are")
        core = self.core
        flat, start = pack(self.factors(parameters, design))
        w = parameters.W if core.learned else self.fixed_w
        f = evaluate(core.kind, w, core.coords, core.ranks, flat, start, design.index)
        if offset is not None:
            f = f + offset
        likelihood = self.likelihood_at(parameters)
        log_density, score, d_free = likelihood.slopes(y, f, weight)
        d_free = d_free + likelihood.log_prior(parameters.free)[1] if parameters.free.size else parameters.free
        if weight is not None:
            log_density, score = weight * log_density, weight * score
        d_flat, d_w = gradient(core.kind, w, core.coords, core.ranks, flat, start, design.index, score)
        d_U = []
        for d, (mode, U) in enumerate(zip(design.modes, parameters.U, strict=True)):
            d_psi = d_flat[start[d] : start[d + 1]].reshape(-1, U.shape[1])
            d_U.append(np.asarray(mode.table.T @ d_psi) - U / self.sigma_u[d] ** 2)
        value = float(np.sum(log_density)) + self.log_prior(parameters, design)
        return value, Parameters(tuple(d_U), d_w - parameters.W / self.sigma_w**2, free=d_free)
