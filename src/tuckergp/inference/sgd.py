"""MAP by stochastic gradient steps on mini-batches: the paper's update, or Adam.

One step here is one epoch. The prior's shrinkage of a feature that is not in a batch is applied when the feature is
next met, so an epoch costs O(N) whatever the number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.checks import number, one_of, positive, setting, whole
from tuckergp.compute import sgd as compute
from tuckergp.errors import DivergenceError, InputError
from tuckergp.inference.base import Info, Problem
from tuckergp.inference.most_probable import SIGMA_U, MostProbable, SigmaU
from tuckergp.likelihoods import Likelihood
from tuckergp.model.design import Design
from tuckergp.model.tucker import Parameters, refuse_learned, refuse_residuals

__all__ = ["SGD", "SGDState"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# The paper's grids for its own update (appendix, "Hyperparameter tuning for MovieLens 100K"): W = I, and W learned.
PAPER_FIXED = {"sigma_u": [0.3, 0.1, 0.03], "noise": [1.0, 0.1, 0.01, 0.001], "step_u": [1e-5, 1e-6, 1e-7]}
PAPER_LEARNED = {"sigma_u": [0.3, 0.1], "noise": [1.0, 0.75], "step_u": [1e-5, 1e-6], "step_w": [1e-5, 1e-6]}
ADAM_STEPS = (5e-3, 2e-3)
SHARE = number("a share from 0 to below 1", lambda value: 0 <= value < 1)


class FeatureRows(NamedTuple):
    """The feature rows of all modes, laid one after the other as `tuckergp.compute.sgd` wants them."""

    indptr: Ints
    indices: npt.NDArray[np.int32]
    data: Floats
    row_start: Ints
    feature_start: Ints
    u_start: Ints
    widest: int


class SGDState(NamedTuple):
    """Parameters and what Adam and the lazy prior remember; ``paid`` counts the steps each feature has paid for.

    ``free`` are the free unknowns of the likelihood, the most probable ones given f after every epoch.
    """

    epoch: int
    u: Floats
    w: Floats
    paid: Ints
    step: int
    u_moments: Floats
    w_moments: Floats
    u_steps: Ints
    slot: Ints
    rows: FeatureRows
    counts: Ints
    train: Ints
    held_out: Ints
    best: tuple[Floats, Floats, Floats] | None
    best_score: float
    stale: int
    free: Floats = np.zeros(0)


@dataclass(frozen=True)
class SGD(MostProbable):
    """Stochastic gradient MAP.

    Parameters
    ----------
    epochs : int
        The most passes over the data.
    batch_size : int
    method : {"adam", "sgd"}
        ``"sgd"`` is the paper's update, theta += step / 2 (prior gradient + N / m batch gradient).
    step_u, step_w : float
        Step sizes for U and W; ``step_w=None`` takes ``step_u``. The paper's are 1e-5 to 1e-7, Adam's about 1e-2.
    noise : float
        Variance of the Gaussian noise in units of the variance of the targets; not for other likelihoods.
    sigma_u, sigma_w : float or None
        Prior standard deviations of the entries of U and W. None matches moments: whatever the rank, f has the product
        of the modes' k(x, x) as prior variance, 2^D where each mode has a Constant (the default) and one further term.
        ``sigma_u="auto"`` finds it by trials on held-out training data, three to six of them, each a fit to nine
        tenths of at most about 200,000 observations (several such fits below 20,000), before the fit to all data.
        The estimators build their model from these three; `tuckergp.running.loop.run` takes a model as it is.
    schedule : {"constant", "linear"}
        ``"linear"`` lets the steps fall to zero over ``epochs``, so that the parameters come to rest; early stopping is
        not needed then (``validation=0``).
    init_scale : float
        U starts at a draw from its prior times this; small starts overfit later.
    validation : float
        Share of the training data held out for early stopping; 0 for none.
    patience : int
        Stop after this many epochs without a better error, or log probability, of the held-out data, and return the
        parameters of the best epoch.

    Examples
    --------
    >>> SGD(epochs=20, method="sgd", step_u=1e-5, validation=0.0).n_steps
    20
    """

    name: ClassVar[str] = "sgd"
    for_ratings: ClassVar[bool] = True

    epochs: int = setting(100, whole(1))
    batch_size: int = setting(100, whole(1))
    method: Literal["adam", "sgd"] = setting("adam", one_of("adam", "sgd"))
    step_u: float = setting(5e-3, positive())
    step_w: float | None = setting(None, positive() | one_of(None))
    noise: float = setting(0.5, positive())
    sigma_u: SigmaU = setting(None, SIGMA_U)
    sigma_w: float | None = setting(None, positive() | one_of(None))
    schedule: Literal["constant", "linear"] = setting("constant", one_of("constant", "linear"))
    init_scale: float = setting(0.1, positive())
    validation: float = setting(0.1, SHARE)
    patience: int = setting(5, whole(1))

    @property
    def n_steps(self) -> int:
        """The most epochs."""
        return self.epochs

    def grid(self, unit: float, learned: bool, ranges: bool) -> dict[str, Any]:
        """Prior scales, noise and step sizes; for the paper's update the paper's."""
        adam, base = self.method == "adam", super().grid(unit, learned, ranges)
        if ranges:
            return {**base, "step_u": (1e-3, 1e-2, "log") if adam else (1e-7, 1e-4, "log")}
        if adam:
            return {**base, "step_u": list(ADAM_STEPS)}
        return {name: list(values) for name, values in (PAPER_LEARNED if learned else PAPER_FIXED).items()}

    def init(self, problem: Problem, rng: np.random.Generator) -> SGDState:
        """Draw a start from the prior and hold out validation data. Features that no observation has are 0."""
        model, design = problem.model, problem.design
        refuse_residuals(design, "SGD is")
        refuse_learned(model.core, "SGD is")
        if model.likelihood.code < 0:
            raise InputError(f"SGD has no compiled score of likelihood={model.likelihood.name!r}; use Gibbs or NUTS.")
        rows = _lay_out(design, model.core.ranks)
        n = design.n_observations
        shuffled = rng.permutation(n).astype(np.int64)
        cut = round(self.validation * n) if n >= 10 else 0
        train, held_out = np.sort(shuffled[cut:]), np.sort(shuffled[:cut])
        counts = _count_meetings(design, train)
        start = model.start(design, rng, self.init_scale)
        u = np.concatenate([np.ravel(U) for U in start.U])
        seen = np.concatenate(
            [
                np.repeat(counts[a:b] > 0, r)
                for a, b, r in zip(rows.feature_start, rows.feature_start[1:], model.core.ranks, strict=False)
            ]
        )
        u[~seen] = 0.0
        w = start.W if model.core.learned else model.fixed_w.copy()
        adam = self.method == "adam"
        if not adam:
            self._check_steps(problem)
        return SGDState(
            epoch=0, u=u, w=w, paid=np.zeros(len(counts), dtype=np.int64), step=0,
            u_moments=np.zeros(2 * u.size if adam else 0), w_moments=np.zeros(2 * w.size),
            u_steps=np.zeros(len(counts) if adam else 0, dtype=np.int64),
            slot=np.full(len(counts) if adam else 0, -1, dtype=np.int64),
            rows=rows, counts=counts, train=train, held_out=held_out, best=None, best_score=np.inf, stale=0,
            free=start.free,
        )  # fmt: skip

    def _check_steps(self, problem: Problem) -> None:
        model = problem.model
        limit = 2 * float(np.min(model.sigma_u)) ** 2
        if self.step_u >= limit:
            raise InputError(
                f"SGD: step_u={self.step_u:g} overshoots the prior; keep it below 2 sigma_u^2 = {limit:g}."
            )

    def step(self, problem: Problem, state: SGDState, rng: np.random.Generator) -> tuple[SGDState, Info]:
        """One epoch, with the steps that the schedule has for it."""
        if self.schedule == "constant":
            return self._epoch(problem, state, rng)
        left = 1.0 - state.epoch / self.epochs
        now = replace(self, step_u=left * self.step_u, step_w=left * (self.step_w or self.step_u))
        state, info = now._epoch(problem, state, rng)
        now._settle(problem, state)  # shrinkage owed is that of this epoch's steps
        return state, info

    def _epoch(self, problem: Problem, state: SGDState, rng: np.random.Generator) -> tuple[SGDState, Info]:
        """One epoch in a random order; then the free unknowns of the likelihood, given f."""
        model, design, rows = problem.model, problem.design, state.rows
        likelihood = _likelihood(problem, state.free)
        weight = np.ones(len(problem.y)) if problem.weight is None else problem.weight
        offset = np.zeros(0) if problem.offset is None else problem.offset
        step, misfit = compute.epoch(
            rng.permutation(state.train), self.batch_size, design.index, problem.y, weight, offset,
            float(len(state.train)), model.core.kind, state.w, model.core.coords, model.core.ranks,
            likelihood.code, likelihood.parameters,
            rows.indptr, rows.indices, rows.data, rows.row_start,
            state.u, rows.u_start, rows.feature_start, state.paid, state.step,
            compute.ADAM if self.method == "adam" else compute.PLAIN, self.step_u, self.step_w or self.step_u,
            model.sigma_u**-2.0, model.sigma_w**-2.0,
            state.counts, state.u_moments, state.w_moments, state.u_steps, state.slot,
            rows.widest,
        )  # fmt: skip
        gaussian = likelihood.conjugate
        if not np.isfinite(misfit):
            raise DivergenceError(
                f"SGD diverged in epoch {state.epoch + 1}: lower step_u={self.step_u:g}"
                + (f" or step_w={self.step_w or self.step_u:g}" if model.core.learned else "")
                + (f", or raise noise={self.noise:g}." if gaussian else ".")
            )
        figures = {"train_rmse": float(np.sqrt(misfit))} if gaussian else {"log_probability": -float(misfit)}
        state = state._replace(epoch=state.epoch + 1, step=step)
        if state.free.size:
            y, f = problem.y[state.train], self._f(problem, state, state.train)
            state = state._replace(free=likelihood.most_probable(y, f, weight[state.train]))
        done = False
        if len(state.held_out):
            name, score = self._validate(problem, state)
            figures[name] = score if gaussian else -score
            if score < state.best_score:
                self._settle(problem, state)
                state = state._replace(best=(state.u.copy(), state.w.copy(), state.free), best_score=score, stale=0)
            else:
                state = state._replace(stale=state.stale + 1)
                done = state.stale >= self.patience
        return state, Info(state.epoch, figures, done)

    def _validate(self, problem: Problem, state: SGDState) -> tuple[str, float]:
        """Root mean square error of the held-out data, or minus its mean log probability."""
        held_out, likelihood = state.held_out, _likelihood(problem, state.free)
        y, f = problem.y[held_out], self._f(problem, state, held_out)
        weight = None if problem.weight is None else problem.weight[held_out]
        if likelihood.conjugate:
            return "validation_rmse", float(np.sqrt(np.average((y - f) ** 2, weights=weight)))
        return "validation_log_probability", -float(np.average(likelihood.log_density(y, f), weights=weight))

    def _f(self, problem: Problem, state: SGDState, observations: Ints) -> Floats:
        """f plus the offset at some observations, as the likelihood takes it."""
        core, rows = problem.model.core, state.rows
        f: Floats = compute.predict(
            problem.design.index[observations], core.kind, state.w, core.coords, core.ranks,
            rows.indptr, rows.indices, rows.data, rows.row_start,
            state.u, rows.u_start, rows.feature_start, self._decay(problem), state.paid, state.step,
        )  # fmt: skip
        return f if problem.offset is None else f + problem.offset[observations]

    def _decay(self, problem: Problem) -> Floats:
        """The factor by which the prior shrinks the weights of each mode in one step, (D,)."""
        shrinkage = 0.5 * self.step_u * problem.model.sigma_u**-2.0
        return np.ones(len(shrinkage)) if self.method == "adam" else 1.0 - shrinkage

    def _settle(self, problem: Problem, state: SGDState) -> None:
        rows = state.rows
        compute.settle(
            problem.model.core.ranks, state.u, rows.u_start, rows.feature_start,
            self._decay(problem), state.paid, state.step,
        )  # fmt: skip

    def parameters(self, problem: Problem, state: SGDState) -> Parameters:
        """The parameters of the best epoch by the held-out data; of the last epoch without held-out data."""
        self._settle(problem, state)
        u, w, free = state.best if state.best is not None else (state.u, state.w, state.free)
        starts = state.rows.u_start
        ranks = problem.model.core.ranks
        U = tuple(u[a:b].reshape(-1, r).copy() for a, b, r in zip(starts, starts[1:], ranks, strict=False))
        return Parameters(U, w.copy() if problem.model.core.learned else np.zeros(0), free=free)


def _likelihood(problem: Problem, free: Floats) -> Likelihood:
    return problem.model.likelihood_at(Parameters((), np.zeros(0), free=free))


def _lay_out(design: Design, ranks: Ints) -> FeatureRows:
    tables = [sparse.csr_array(mode.table) for mode in design.modes]
    nonzeros = np.cumsum([0, *(table.nnz for table in tables)])
    indptr = np.concatenate(
        [[0], *(table.indptr[1:] + offset for table, offset in zip(tables, nonzeros, strict=False))]
    )
    return FeatureRows(
        indptr=indptr.astype(np.int64),
        indices=np.concatenate([table.indices for table in tables]).astype(np.int32),
        data=np.concatenate([table.data for table in tables]).astype(np.float64),
        row_start=np.cumsum([0, *(table.shape[0] for table in tables)]).astype(np.int64),
        feature_start=np.cumsum([0, *(table.shape[1] for table in tables)]).astype(np.int64),
        u_start=np.cumsum([0, *(table.shape[1] * r for table, r in zip(tables, ranks, strict=True))]).astype(np.int64),
        widest=max(int(np.diff(table.indptr).max(initial=0)) for table in tables),
    )


def _count_meetings(design: Design, observations: Ints) -> Ints:
    """How many observations have each feature of each mode, all modes one after the other."""
    counts = []
    for d, mode in enumerate(design.modes):
        rows = np.bincount(design.index[observations, d], minlength=mode.n_rows)
        met = sparse.csr_array(mode.table)
        met = sparse.csr_array((np.ones(met.nnz), met.indices, met.indptr), shape=met.shape)
        counts.append(met.T @ rows)
    return np.concatenate(counts).astype(np.int64)
