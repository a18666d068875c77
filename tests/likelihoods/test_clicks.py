"""Choices among all pairs: against models that list every pair."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tuckergp.errors import InputError
from tuckergp.inference import ALS, Gibbs
from tuckergp.inference.base import Problem
from tuckergp.kernels import Identity
from tuckergp.likelihoods import Clicks, Gaussian
from tuckergp.likelihoods.given import Predicted
from tuckergp.model.design import Design
from tuckergp.model.mode import Mode
from tuckergp.model.tucker import make_core
from tuckergp.random import stream

USERS, ITEMS, RANK = 6, 8, 2
SETTINGS = Clicks(zeros=0.2, popularity=0.4, counting="linear", temper=0.5, activity=0.7)


@pytest.fixture
def chosen() -> tuple[np.ndarray, np.ndarray]:
    """The chosen pairs, in which every user and item occurs, and their counts."""
    rng = np.random.default_rng(0)
    pairs = {(m % USERS, m % ITEMS) for m in range(24)} | {(0, 5), (3, 1)}
    index = np.array(sorted(pairs), dtype=np.int32)
    return index, rng.integers(1, 6, len(index)).astype(np.float64)


def every_pair(index: np.ndarray, count: np.ndarray, likelihood: Clicks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs, whether they were chosen, and their weights."""
    cells = np.array(list(product(range(USERS), range(ITEMS))), dtype=np.int32)
    of_item = likelihood.weights_of_zeros(np.bincount(index[:, 1], minlength=ITEMS).astype(float))
    weight, y = of_item[cells[:, 1]], np.zeros(len(cells))
    place = index[:, 0] * ITEMS + index[:, 1]
    y[place], weight[place] = 1.0, likelihood.weights(count)
    choices = np.bincount(index[:, 0], minlength=USERS)
    assert len(set(choices)) > 1
    of_user = choices ** -float(likelihood.activity)
    return cells, y, weight * (of_user * likelihood.usual ** float(likelihood.activity))[cells[:, 0]]


def problems(core_name: str, chosen: tuple, alpha: float) -> tuple[Problem, Problem]:
    """The same problem with the choices alone, and with every pair listed."""
    index, count = chosen
    choices = np.bincount(index[:, 0], minlength=USERS).astype(np.float64)
    likelihood = replace(SETTINGS.reading(count, choices), noise=1 / alpha)
    assert likelihood.weights_of_users(choices).prod() == pytest.approx(1.0)  # the mean of their logarithms is 0
    cells, y, weight = every_pair(index, count, likelihood)
    rng = stream(0)
    rows = [{name: np.arange(n)} for name, n in (("user", USERS), ("item", ITEMS))]
    modes = [Mode(next(iter(row)), Identity()) for row in rows]
    core = make_core(core_name, [RANK, RANK], rng)
    ours, theirs = (
        Problem(
            ALS(noise=1 / alpha).model(core, kind),
            Design.of_entities(modes, [_table(row) for row in rows], list(pairs.T), stream(1))[0],
            target,
            weights,
        )
        for kind, pairs, target, weights in (
            (likelihood, index, count, None),
            (Gaussian(noise=1 / alpha), cells, y, weight * float(likelihood.temper)),
        )
    )
    return ours, theirs


def _table(columns: dict) -> object:
    from tuckergp.data.tables import as_table

    return as_table(columns, "rows")


@pytest.mark.parametrize("core", ["identity", "full"])
def test_least_squares_are_those_of_every_pair(core: str, chosen: tuple) -> None:
    algorithm = ALS(noise=0.5)
    psi = []
    for problem in problems(core, chosen, 2.0):
        state = algorithm.init(problem, stream(3))
        for _ in range(4):
            state, info = algorithm.step(problem, state, stream(4))
        psi.append([mode.psi for mode in state.modes])
        assert np.isfinite(info.figures["log_joint"])
    for ours, theirs in zip(*psi, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)


@pytest.mark.parametrize("core", ["identity", "full"])
def test_a_sweep_draws_the_same_as_with_every_pair(core: str, chosen: tuple) -> None:
    alpha = 2.0  # where the precision of a Gibbs chain starts
    algorithm = Gibbs(alpha_shape=alpha, alpha_rate=1.0)
    states = []
    for problem in problems(core, chosen, alpha):
        states.append(algorithm.step(problem, algorithm.init(problem, stream(3)), stream(4))[0])
    for ours, theirs in zip(states[0].modes, states[1].modes, strict=True):
        np.testing.assert_allclose(ours.psi, theirs.psi, rtol=1e-8)
    np.testing.assert_allclose(states[0].W, states[1].W, rtol=1e-8)


def test_the_log_joint_never_decreases(chosen: tuple) -> None:
    problem, _ = problems("identity", chosen, 2.0)
    algorithm = ALS(noise=0.5)
    state, last = algorithm.init(problem, stream(0)), -np.inf
    for _ in range(10):
        state, info = algorithm.step(problem, state, stream(0))
        assert info.figures["log_joint"] >= last - 1e-9
        last = info.figures["log_joint"]


def test_squares_are_those_of_every_pair(chosen: tuple) -> None:
    index, count = chosen
    problem, _ = problems("identity", chosen, 2.0)
    algorithm = Gibbs()
    state, info = algorithm.step(problem, algorithm.init(problem, stream(3)), stream(4))
    likelihood = problem.model.likelihood
    cells, y, weight = every_pair(index, count, likelihood)
    f = (state.modes[0].psi[cells[:, 0]] * state.modes[1].psi[cells[:, 1]]).sum(axis=1)
    expected = np.sum(weight * (y - f) ** 2) / len(cells)
    assert info.figures["train_rmse"] == pytest.approx(np.sqrt(expected))


def test_the_noise_is_drawn_from_its_gamma(chosen: tuple) -> None:
    problem, _ = problems("identity", chosen, 2.0)
    likelihood, settings = problem.model.likelihood, Gibbs(alpha_shape=3.0, alpha_rate=2.0).noise_settings
    observed, rng = problem.observed, np.random.default_rng(0)
    state = likelihood.start(observed, settings)
    _, precision = likelihood.augment(state, observed, lambda: np.zeros(0), rng)
    from tuckergp.likelihoods.precision import RowSums

    squares = np.full(USERS, 4.0)
    sums = RowSums(squares, squares, background=5.0)
    given = (state, observed, precision, lambda *_: sums, settings, rng)
    drawn = [likelihood.draw_noise(*given)[0].alpha for _ in range(20_000)]
    pairs = 0.5 * USERS * ITEMS
    total = 0.5 * (24.0 + 5.0 - likelihood.cells(observed).surplus)
    mean = (3.0 + pairs / 2) / (2.0 + total / 2)
    assert np.mean(drawn) == pytest.approx(mean, rel=0.01)
    assert np.std(drawn) == pytest.approx(mean / np.sqrt(3.0 + pairs / 2), rel=0.03)


def test_counts_weigh_as_they_say() -> None:
    count = np.array([1.0, 2.0, 4.0, 8.0])
    for counting, expected in {
        "none": np.ones(4),
        "log": 1 + np.log1p(count / 3),
        "linear": 1 + count / 3,
    }.items():
        likelihood = Clicks(counting=counting).reading(count)
        np.testing.assert_allclose(likelihood.weights(count), expected)


def test_zeros_of_popular_items_weigh_more_and_never_as_much_as_ones() -> None:
    chosen = np.array([1.0, 4.0, 100.0, 1e6])
    flat = Clicks(zeros=0.3, popularity=0.0).weights_of_zeros(chosen)
    np.testing.assert_allclose(flat, 0.3)
    tilted = Clicks(zeros=0.3, popularity=0.5).weights_of_zeros(chosen)
    assert (np.diff(tilted) > 0).all()
    assert tilted.max() <= 0.95
    some = Clicks(zeros=0.3, popularity=0.5).weights_of_zeros(chosen[:3])
    assert some.mean() == pytest.approx(0.3)


def test_probabilities_follow_the_logistic_link() -> None:
    likelihood = Clicks(slope=2.0, intercept=-1.0)
    at = Predicted(np.array([[0.0, 1.0], [0.5, 2.0]]), {})
    expected = 1 / (1 + np.exp(1 - 2 * at.f))
    np.testing.assert_allclose(likelihood.means(at), expected)
    np.testing.assert_allclose(likelihood.variances(at), expected * (1 - expected))
    ones = likelihood.log_densities(at, np.ones(2))
    np.testing.assert_allclose(ones, np.log(expected))
    both = likelihood.log_density(np.array([1.0, 0.0]), np.zeros(2))
    np.testing.assert_allclose(both, np.log([1 / (1 + np.e), np.e / (1 + np.e)]))


def test_the_score_is_the_derivative() -> None:
    likelihood, f, h = Clicks(slope=2.0, intercept=-1.0), np.array([-0.3, 0.7]), 1e-6
    y = np.array([1.0, 0.0])
    slope = (likelihood.log_density(y, f + h) - likelihood.log_density(y, f - h)) / (2 * h)
    np.testing.assert_allclose(likelihood.score(y, f), slope, rtol=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        {"zeros": 0.0},
        {"zeros": -1},
        {"zeros": 1.5},
        {"zeros": "many"},
        {"popularity": 2},
        {"temper": 0},
        {"counting": 3},
    ],
)
def test_impossible_settings_are_refused(settings: dict) -> None:
    with pytest.raises(InputError, match=f"Clicks: {next(iter(settings))} must be"):
        Clicks(**settings)


def test_open_settings_need_a_recommender() -> None:
    with pytest.raises(InputError, match="zeros='auto' is for TuckerRecommender"):
        Clicks(popularity=0.0).weights_of_zeros(np.ones(2))
    assert Clicks().open == ["zeros", "popularity", "counting", "temper", "activity"]
    assert Clicks().settled().open == []
