"""The trial behind the open settings of clicks: short runs on nine tenths of the choices, judged on the rest.

What decides is where held-out choices come in the lists of their users. One chain serves all candidates: each goes on
from where the best one before ended. The last one also tells how probable a choice is given f.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from tuckergp.inference.base import Problem
from tuckergp.inference.scale_search import best_scale
from tuckergp.likelihoods.all_pairs import AllPairs
from tuckergp.model.design import Design
from tuckergp.model.tucker import Core
from tuckergp.posterior.fitted import Fit
from tuckergp.random import stream
from tuckergp.running.checkpoint import store_choice, stored_choice
from tuckergp.running.control import Control
from tuckergp.running.fit import Inference
from tuckergp.running.loop import ctrl_c_interrupts
from tuckergp.running.threads import few_threads, one_blas_thread
from tuckergp.running.trials import PARTS, parts
from tuckergp.store.trees import digest

__all__ = ["recentred", "settled_choices"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

# With fewer choices there is no trial.
LEAST = 100
# Steps of each candidate where the fit arrives at a point; of a sampler a share of its sweeps within these bounds, and
# over which share of them f is averaged.
POINT_STEPS, SWEEPS, LEAST_STEPS, MOST_STEPS, AVERAGED = 14, 1 / 12, 10, 25, 0.6
# How far down the lists held-out choices count.
PLACES = 100
# Draws, and pairs that nobody chose, that decide the link; steps at the settings that were chosen before these draws.
LINK_DRAWS, NEGATIVES, LINK_WARMUP = 12, 20_000, 4
# Draws, and halvings of the interval that holds it, that decide the intercept after the fit.
CENTRE_DRAWS, HALVINGS = 10, 40
# How many predictions are looked at: all items for some of the users.
PREDICTIONS = 1_500_000
# Where the search for a number begins, by which ratio it walks, and how many values it tries.
WALKS = {"temper": (0.5, 0.5, 5), "sigma_u": (2.0, 0.5, 5), "zeros": (0.2, 0.5, 4)}
# Other values to try against the one that is taken at first.
OTHERS: dict[str, tuple[Any, ...]] = {
    "counting": ("log", "linear", "none"),
    "popularity": (0.0, 0.5),
    "activity": (0.0, 0.25, 0.5),
}
# The share of a time limit that the trial may take.
TIME_SHARE = 0.4


@dataclass
class Trial:
    """Candidates for the settings of clicks, tried one after the other.

    Attributes
    ----------
    pose : callable
        The problem of a fit to all choices, with the model of an algorithm and a likelihood.
    inference : Inference
        Gibbs sampling or alternating least squares.
    likelihood : AllPairs
        The first candidate.
    """

    pose: Callable[[Any, AllPairs], Problem]
    inference: Any
    likelihood: AllPairs
    seed: int
    until: float
    state: Any = None
    best: tuple[float, Any] = (-np.inf, None)
    f: Singles = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))

    def __post_init__(self) -> None:
        whole = self.pose(self.inference, self.likelihood)
        (learn, held), *_ = parts(whole, self.seed)
        self.problem = whole.take(learn)
        index, items = whole.design.index, whole.design.modes[1].n_rows
        # whoever has choices, held out or not: those with some alone would be too eager
        users = np.unique(index[np.concatenate([learn, held]), 0])
        users = np.sort(stream(self.seed, 7).permutation(users)[: max(1, PREDICTIONS // items)])
        place = np.full(whole.design.modes[0].n_rows, -1)
        place[users] = np.arange(len(users))
        self.users = users
        self.known, self.held = (
            (place[index[rows, 0]][mine], index[rows, 1][mine])
            for rows in (learn, held)
            for mine in [place[index[rows, 0]] >= 0]
        )
        self.rng = stream(self.seed, 6)
        self.steps = steps_of(self.inference)

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self.until

    def misfit(self, inference: Any, likelihood: AllPairs) -> float:
        """Minus the NDCG of held-out choices in the first places of lists, mean over users; keeps the predictions."""
        if self.late:
            return float("inf")
        problem = self.problem.with_model(self.pose(inference, likelihood).model)
        state = self.best[1]
        if state is None or inference.point:
            state = inference.init(problem, self.rng)
        total = np.zeros((len(self.users), problem.design.modes[1].n_rows), dtype=np.float32)
        averaged = round(AVERAGED * self.steps)
        with few_threads(problem), ctrl_c_interrupts():
            for step in range(self.steps):
                state, _ = inference.step(problem, state, self.rng)
                if step >= self.steps - averaged and not inference.point:
                    total += self._predicted(problem, state)
        self.f = self._predicted(problem, state) if inference.point else total / np.float32(averaged)
        self.f[self.known] = -np.inf
        self.state, score = state, self._score()
        self.best = max(self.best, (score, state), key=lambda each: each[0])
        return -score

    def _predicted(self, problem: Problem, state: Any) -> Singles:
        """f of the users that are looked at and all items; circumstances are at the average of their rows."""
        core, psi = problem.model.core, [mode.psi for mode in state.modes]
        users, items = psi[0][self.users], psi[1]
        for others in psi[2:]:
            users = users * others.mean(axis=0)
        if core.learned:
            users = users @ core.dense(state.W)
        return np.asarray(users.astype(np.float32) @ items.astype(np.float32).T)

    def _score(self) -> float:
        user, item = self.held
        rank = np.empty(len(user))
        for some in np.array_split(np.arange(len(user)), 1 + self.f.shape[1] * len(user) // PREDICTIONS):
            rows = self.f[user[some]]
            rank[some] = 1 + (rows > self.f[user[some], item[some], None]).sum(axis=1)
        gain, count = np.where(rank <= PLACES, 1 / np.log2(1 + rank), 0.0), np.bincount(user, minlength=len(self.users))
        best = np.cumsum(1 / np.log2(2 + np.arange(PLACES)))
        of_user = np.bincount(user, gain, len(self.users))[count > 0]
        return float((of_user / best[np.minimum(count[count > 0], PLACES) - 1]).mean())

    def walk(self, name: str, at: Callable[[float], tuple[Any, AllPairs]], most_value: float) -> None:
        """Take the best value of a number, from trials in equal ratios."""
        first, factor, most = WALKS[name]
        value = best_scale(lambda v: self.misfit(*at(min(v, most_value))), first, factor, most)
        self.inference, self.likelihood = at(min(value, most_value))

    def compare(self, name: str, values: tuple[Any, ...]) -> None:
        """Take another value of a setting where it is better than the best before."""
        if self.best[1] is None:
            self.misfit(self.inference, self.likelihood)
        for value in values:
            if value != getattr(self.likelihood, name):
                before, candidate = self.best[0], replace(self.likelihood, **{name: value})
                if -self.misfit(self.inference, candidate) > before:
                    self.likelihood = candidate

    def link(self) -> AllPairs:
        """The likelihood with the link that held-out choices decide.

        It maps f of single draws, so that the mean probability over draws is that of held-out choices: all of them, and
        a sample of the pairs that nobody chose.
        """
        if self.inference.point or self.best[1] is None:
            self.misfit(self.inference, self.likelihood)
        if self.late:
            return self.likelihood
        held, known = np.zeros(self.f.shape, dtype=bool), np.zeros(self.f.shape, dtype=bool)
        held[self.held], known[self.known] = True, True
        nobody = np.flatnonzero(~known & ~held)
        some = self.rng.choice(nobody, min(NEGATIVES, len(nobody)), replace=False)
        cells = np.concatenate([np.flatnonzero(held), some])
        weight = np.repeat([1.0, len(nobody) / max(len(some), 1)], [held.sum(), len(some)])
        f = np.stack([each.ravel()[cells] for each in self._draws()]).astype(np.float64)
        intercept, slope = logistic(f, held.ravel()[cells], weight)
        return replace(self.likelihood, slope=slope, intercept=intercept)

    def _draws(self) -> Iterator[Singles]:
        """f of the users that are looked at in further draws, or where least squares arrived."""
        problem = self.problem.with_model(self.pose(self.inference, self.likelihood).model)
        if self.inference.point:
            yield self._predicted(problem, self.state)
            return
        state = self.best[1]
        with few_threads(problem), ctrl_c_interrupts():
            for step in range(LINK_WARMUP + LINK_DRAWS):
                state, _ = self.inference.step(problem, state, self.rng)
                if step >= LINK_WARMUP:
                    yield self._predicted(problem, state)


def steps_of(inference: Any) -> int:
    """Steps of a candidate: in a short fit few, where the trial would else take longer than the fit."""
    if inference.point:
        return POINT_STEPS
    return int(min(max(round(SWEEPS * (inference.draws + inference.warmup)), LEAST_STEPS), MOST_STEPS))


def logistic(f: Floats, y: npt.NDArray[np.bool_], weight: Floats) -> tuple[float, float]:
    """Intercept a and slope b > 0 with the largest likelihood of y (n,), P(y) = mean over draws of logistic(a + b f).

    ``f`` has shape (S, n), ``weight`` (n,).
    """
    from scipy.optimize import minimize  # a quarter of a second to load

    centre, spread = float(f.mean()), float(f.std()) or 1.0
    x, total = (f - centre) / spread, float(weight.sum())

    def misfit(beta: Floats) -> tuple[float, Floats]:
        b = np.exp(beta[1])
        each = expit(beta[0] + b * x)
        p = np.clip(each.mean(axis=0), 1e-12, 1 - 1e-12)
        slope = weight * np.where(y, 1 / p, -1 / (1 - p))
        steep = each * (1 - each)
        gradient = np.array([slope @ steep.mean(axis=0), b * (slope @ (steep * x).mean(axis=0))])
        loss = -float(weight @ np.log(np.where(y, p, 1 - p)))
        return (loss + 0.05 * beta[1] ** 2) / total, (np.array([0.0, 0.1 * beta[1]]) - gradient) / total

    rate = float(weight @ y) / total
    start = np.array([np.log((rate + 1e-6) / (1 - rate + 1e-6)), 0.0])
    found = minimize(misfit, start, jac=True, method="L-BFGS-B", bounds=[(-30, 30), (-5, 5)])
    slope = float(np.exp(found.x[1])) / spread
    return float(found.x[0]) - slope * centre, slope


@one_blas_thread()
def recentred(fit: Fit, design: Design, seed: int) -> Fit:
    """The fit with the intercept of its link such that as many further choices are expected as were held out.

    That is one for every ``PARTS - 1`` choices of the ``design`` (N, D), among the pairs that were not chosen. The
    trial learned from fewer choices, in fewer steps, so that its f is not quite that of the fit.
    """
    rng, index = stream(seed, 8), design.index
    users, items = (design.modes[d].n_rows for d in range(2))
    pairs = index[:, 0].astype(np.int64) * items + index[:, 1]
    left = users * items - len(np.unique(pairs))
    # users uniformly, each in one of the user's circumstances
    order = np.argsort(index[:, 0], kind="stable")
    starts = np.searchsorted(index[order, 0], np.arange(users + 1))
    user = rng.integers(users, size=NEGATIVES)
    some = index[order[starts[user] + (rng.random(NEGATIVES) * np.diff(starts)[user]).astype(np.intp)]].copy()
    some[:, 1] = rng.integers(items, size=NEGATIVES)
    some = some[~np.isin(some[:, 0].astype(np.int64) * items + some[:, 1], pairs)]
    likelihood = fit.likelihood
    if not len(some) or not isinstance(likelihood, AllPairs):
        return fit
    logit = likelihood.slope * fit.draws.thinned(CENTRE_DRAWS).predicted(replace(design, index=some), None).f
    wanted = min(len(index) / (PARTS - 1) / left, 0.5)
    low, high = -40.0 - float(logit.max()), 40.0 - float(logit.min())
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if expit(middle + logit).mean() < wanted else (low, middle)
    model = replace(fit.draws.model, likelihood=replace(likelihood, intercept=(low + high) / 2))
    return replace(fit, draws=replace(fit.draws, model=model))


def settled_choices(
    likelihood: AllPairs,
    inference: Inference,
    core: Core,
    design: Design,
    count: Floats,
    seed: int,
    control: Control,
) -> tuple[AllPairs, Inference, Control]:
    """Decide the settings of clicks and of the algorithm that are left open, and the link, on held-out choices.

    ``count`` (N,) are the counts of the choices, ones for plain choices. Also returns the control with the time that is
    left.
    """
    began = time.monotonic()
    open_scale = getattr(inference, "sigma_u", None) == "auto"
    whose = "" if control.checkpoint is None else digest((design.index, count, seed, likelihood))
    known = stored_choice(control.checkpoint, whose)
    if known is None:
        likelihood, inference = _settled(likelihood, inference, core, design, count, seed, control)
        chosen = {each.name: getattr(likelihood, each.name) for each in fields(likelihood)}
        store_choice(control.checkpoint, whose, [chosen, float(inference.sigma_u) if open_scale else None])  # type: ignore[attr-defined]
    else:
        chosen, sigma_u = known["choice"]
        likelihood = replace(likelihood, **chosen)
        inference = replace(inference, sigma_u=sigma_u) if open_scale else inference  # type: ignore[call-arg]
    if control.max_time is not None:
        control = replace(control, max_time=max(0.0, control.max_time - (time.monotonic() - began)))
    return likelihood, inference, control


@one_blas_thread()
def _settled(
    likelihood: AllPairs, inference: Inference, core: Core, design: Design, count: Floats, seed: int, control: Control
) -> tuple[AllPairs, Inference]:
    choices = np.bincount(design.index[:, 0], minlength=design.modes[0].n_rows)
    asked, likelihood = likelihood, likelihood.reading(count, choices.astype(np.float64))
    if count.max() == count.min():
        likelihood = replace(likelihood, counting="none") if likelihood.counting == "auto" else likelihood
    started = likelihood.settled()

    def pose(algorithm: Any, candidate: AllPairs) -> Problem:
        return Problem(algorithm.model(core, candidate), design, count)

    open_scale = getattr(inference, "sigma_u", None) == "auto"
    unit = float(core.default_sigma_u()[0])
    if len(count) < LEAST:
        return started, replace(inference, sigma_u=2 * unit) if open_scale else inference  # type: ignore[call-arg]
    until = float("inf") if control.max_time is None else time.monotonic() + TIME_SHARE * control.max_time
    first: Any = replace(inference, sigma_u=2 * unit) if open_scale else inference  # type: ignore[call-arg]
    trial = Trial(pose, first, started, seed, until)
    if open_scale:
        trial.likelihood = replace(trial.likelihood, temper=1.0) if asked.temper == "auto" else trial.likelihood
        trial.walk("sigma_u", lambda v: (replace(trial.inference, sigma_u=unit * v), trial.likelihood), np.inf)
    elif likelihood.temper == "auto":
        trial.walk("temper", lambda v: (trial.inference, replace(trial.likelihood, temper=v)), 1.0)
    if likelihood.zeros == "auto":
        trial.walk("zeros", lambda v: (trial.inference, replace(trial.likelihood, zeros=v)), 0.9)
    for name, values in OTHERS.items():
        if getattr(likelihood, name) == "auto":
            trial.compare(name, values)
    return trial.link(), trial.inference
