"""The No-U-Turn sampler: its coordinates and density, how it stops, what it refuses. Posteriors: tests/contracts."""

import sys

import numpy as np
import pytest

from tests.helpers import fingerprint, random_problem
from tuckergp import TuckerGPRegressor
from tuckergp.errors import InputError
from tuckergp.inference.base import Info, Problem
from tuckergp.inference.coordinates import Coordinates
from tuckergp.inference.nuts import NUTS, Target, _add_figures
from tuckergp.inference.weights import parameters_of, vector_of
from tuckergp.likelihoods import Poisson
from tuckergp.model.tucker import TuckerModel
from tuckergp.running.control import Control
from tuckergp.running.loop import sample

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")

CASES = [
    ("full", (2, 3), "dense"),
    ("full", (2, 3), "mixed"),
    ("identity", (3, 3), "dense"),
    ("full", (2, 1, 2), "dense"),
]


def f_of(problem, theta):
    return problem.model.predict(parameters_of(problem, theta), problem.design)


def narrow(problem):
    """The same with a direction that no row has in the first mode."""
    mode = problem.design.modes[0]
    mode.features[:, -1] = 2 * mode.features[:, 0]
    return problem


@pytest.mark.parametrize(("core", "ranks", "kind"), CASES)
def test_other_coordinates_have_the_same_f_and_the_same_prior(core, ranks, kind):
    rng = np.random.default_rng(0)
    problem = narrow(random_problem(rng, core, ranks, kind))
    theta = vector_of(problem.model.init(problem.design, rng))
    coordinates = Coordinates.of(problem)
    free = coordinates.project(theta)
    assert coordinates.problem.design.modes[0].n_features == problem.design.modes[0].n_features - 1
    assert len(free) < len(theta)
    expected = f_of(problem, theta)
    np.testing.assert_allclose(f_of(coordinates.problem, coordinates.spread_out(free)), expected, atol=1e-9)
    lifted = coordinates.lift(free, rng)
    np.testing.assert_allclose(f_of(problem, lifted), expected, atol=1e-9)
    assert np.abs(lifted - theta).max() > 0.01
    np.testing.assert_allclose(np.abs(coordinates.project(lifted)), np.abs(free), atol=1e-9)


def test_directions_that_no_row_has_are_drawn_from_the_prior():
    """Of 400 draws of 3 weights the mean square has the standard deviation (2 / 1200)^1/2 = 0.041."""
    rng = np.random.default_rng(0)
    problem = narrow(random_problem(rng, "identity", (3, 3), "dense"))
    coordinates = Coordinates.of(problem)
    free = coordinates.project(vector_of(problem.model.init(problem.design, rng)))
    absent = np.zeros(problem.design.modes[0].n_features)
    absent[[0, -1]] = np.array([2.0, -1.0]) / 5**0.5
    drawn = [absent @ parameters_of(problem, coordinates.lift(free, rng)).U[0] for _ in range(400)]
    assert abs(np.square(drawn).mean() / problem.model.sigma_u[0] ** 2 - 1) < 5 * 0.041


def test_prior_draws_have_the_density_of_a_turn():
    """E log |diagonal|, exact for a chi distribution; within 4.5 standard errors (7e-6 by chance each)."""
    from scipy.special import digamma

    rng = np.random.default_rng(0)
    problem = random_problem(rng, "full", (3, 3), "dense")
    coordinates = Coordinates.of(problem)
    scale = float(problem.model.sigma_u[0])
    points = np.array(
        [coordinates.project(vector_of(problem.model.init(problem.design, rng))) / scale for _ in range(2000)]
    )
    diagonal = np.log(np.abs(points[:, [0, 2, 5]]))  # of three rows of 1, 2 and 3 entries
    np.testing.assert_array_equal(coordinates.power[[0, 2, 5]], [2, 1, 0])
    expected = 0.5 * (digamma(np.array([3, 2, 1]) / 2) + np.log(2))
    assert (np.abs(diagonal.mean(axis=0) - expected) < 4.5 * diagonal.std(axis=0) / 2000**0.5).all()


@pytest.mark.parametrize("noise", [None, 0.3])
@pytest.mark.parametrize(("core", "ranks", "kind"), CASES)
def test_the_gradient_is_that_of_finite_differences(core, ranks, kind, noise):
    rng = np.random.default_rng(0)
    problem = random_problem(rng, core, ranks, kind)
    coordinates = Coordinates.of(problem)
    target = Target(coordinates, noise, 1.0, 0.5)
    x = coordinates.project(vector_of(problem.model.init(problem.design, rng))) / target.scale
    h = 1e-5
    numeric = [(target(x + h * e)[0] - target(x - h * e)[0]) / (2 * h) for e in np.eye(len(x))]
    np.testing.assert_allclose(target(x)[1], numeric, rtol=1e-5, atol=1e-5)


def test_without_data_the_density_is_that_of_a_turned_prior():
    """Normal coordinates, and |diagonal|^power for the turn, up to a constant."""
    rng = np.random.default_rng(0)
    problem = random_problem(rng, "full", (3, 3), "dense")
    coordinates = Coordinates.of(problem)
    prior = Target(coordinates, 1e12, 1.0, 0.5)
    rest = []
    for _ in range(5):
        x = coordinates.project(vector_of(problem.model.init(problem.design, rng))) / prior.scale
        turned = coordinates.power > 0
        rest.append(prior(x)[0] + 0.5 * x @ x - coordinates.power[turned] @ np.log(np.abs(x[turned])))
    np.testing.assert_allclose(rest, rest[0], atol=1e-6)


def test_noise_is_integrated_out():
    """Ratios of the density, against a sum over noise precisions."""
    rng = np.random.default_rng(0)
    problem = random_problem(rng, n=20)
    coordinates = Coordinates.of(problem)
    points = [coordinates.project(vector_of(problem.model.init(problem.design, rng))) for _ in range(2)]
    alpha = np.linspace(1e-4, 30, 200_001)
    exact = []
    for point in points:
        total = coordinates.problem.squares(coordinates.spread_out(point))[0]
        exact.append(np.log(np.sum(alpha**10 * np.exp(-alpha * (0.5 + total / 2)))))  # Gamma(1, 0.5), 20 observations
    target, prior = Target(coordinates, None, 1.0, 0.5), Target(coordinates, 1e12, 1.0, 0.5)
    found = [target(point / target.scale)[0] - prior(point / target.scale)[0] for point in points]
    assert found[1] - found[0] == pytest.approx(exact[1] - exact[0], abs=1e-4)


def test_a_likelihood_with_a_density_is_all_that_is_needed():
    rng = np.random.default_rng(0)
    problem = random_problem(rng, "identity", (2, 2), "dense")
    model = TuckerModel(problem.model.core, Poisson(), problem.model.sigma_u, 1.0)
    counts = Problem(model, problem.design, rng.poisson(2.0, size=len(problem.y)).astype(float))
    draws, history = sample(NUTS(draws=5, warmup=20, chains=1), counts, 1)
    assert len(draws) == 5
    assert "log_probability" in history[-1].figures
    with pytest.raises(InputError, match=r"^NUTS: begin takes sweeps of Gibbs sampling with Gaussian noise"):
        sample(NUTS(draws=5, warmup=20, chains=1, begin=5), counts, 1)


def test_a_chain_that_begins_with_gibbs_sweeps_fits_from_the_start():
    problem = random_problem(np.random.default_rng(0), "full", (2, 2), "dense")

    def squares(begin):
        return problem.squares(NUTS(noise=0.05, begin=begin).start(problem, np.random.default_rng(1))[0])[0]

    assert squares(30) < 0.5 * squares(0)


def test_figures_tell_of_leapfrogs_divergences_and_trajectories_cut_short():
    problem = random_problem(np.random.default_rng(0))
    _, history = sample(NUTS(draws=20, warmup=40, chains=1, max_depth=2), problem, 1)
    figures = history[-1].figures
    assert {"train_rmse", "noise", "leapfrogs", "divergences", "at_max_depth"} <= figures.keys()
    assert max(info.figures["leapfrogs"] for info in history) <= 3
    assert figures["at_max_depth"] > 0.5
    assert history[0].figures["at_max_depth"] == 0


def test_divergences_after_the_warm_up_are_counted():
    told = [Info(t, {}) for t in (1, 2, 3, 4)]
    others = {name: [0.5] * 4 for name in ("energy", "logp", "step_size", "mean_tree_accept")}
    statistics = {"n_steps": [3, 7, 3, 1], "diverging": [True, False, True, True], "depth": [2, 3, 2, 1], **others}
    _add_figures(told, statistics, NUTS(warmup=1, max_depth=3))
    assert [info.figures["divergences"] for info in told] == [0, 0, 1, 2]
    assert [info.figures["at_max_depth"] for info in told] == [0, 1, 1 / 2, 1 / 3]


def test_an_error_of_the_density_is_raised_here(monkeypatch):
    def broken(self, x):
        raise ZeroDivisionError("in the middle")

    monkeypatch.setattr(Target, "__call__", broken)
    with pytest.raises(ZeroDivisionError, match="in the middle"):
        sample(NUTS(draws=5, warmup=5, chains=1), random_problem(np.random.default_rng(0)), 1)


def test_an_error_of_a_callback_and_a_time_limit_stop_it():
    problem = random_problem(np.random.default_rng(0))

    class Stop(Exception):
        pass

    def stop(info):
        if info.step == 7:
            raise Stop

    with pytest.raises(Stop):
        sample(NUTS(draws=10**6, warmup=10, chains=1), problem, 1, Control(callback=stop))
    draws, history = sample(NUTS(draws=10**6, warmup=10, chains=2), problem, 1, Control(max_time=1.0))
    assert {info.chain for info in history} == {0, 1}
    assert len(draws.lengths) == 2


def test_a_checkpoint_keeps_whole_chains(tmp_path):
    problem = random_problem(np.random.default_rng(0))
    whole, _ = sample(NUTS(draws=8, warmup=12, chains=2), problem, 1)
    seen = []
    control = Control(checkpoint=tmp_path / "run", callback=seen.append)
    sample(NUTS(draws=8, warmup=12, chains=1), problem, 1, control)
    longer, _ = sample(NUTS(draws=8, warmup=12, chains=2), problem, 1, control)
    assert fingerprint(longer) == fingerprint(whole)
    assert [info.chain for info in seen] == [0] * 20 + [1] * 20
    again, _ = sample(NUTS(draws=10, warmup=12, chains=2), problem, 1, control)
    assert again.lengths == (10, 10)
    assert len(seen) == 40 + 44


@pytest.mark.slow
def test_chains_in_processes_draw_the_same_and_moments_are_kept():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(60, 2))
    y = np.sin(X[:, 0]) * X[:, 1]
    settings = {"rank": 2, "inference": NUTS(draws=10, warmup=20, chains=2), "random_state": 0}
    alone, together = (
        TuckerGPRegressor(**settings, n_jobs=jobs).fit(X[:50], y[:50], moments_of=X[50:]) for jobs in (1, 2)
    )
    np.testing.assert_array_equal(alone.predict(X[50:]), together.predict(X[50:]))
    np.testing.assert_allclose(alone.moments_.mean, alone.predict(X[50:]), rtol=1e-6)
    assert alone.inference_data()["posterior"]["f"].shape[:2] == (2, 10)


def test_without_nutpie_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "nutpie", None)
    with pytest.raises(ImportError, match=r"^NUTS needs nutpie: pip install 'tuckergp\[nuts\]'\.$"):
        sample(NUTS(draws=2, warmup=2), random_problem(np.random.default_rng(0)), 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_depth": 0}, "NUTS: max_depth must be a whole number from 1 to 20"),
        ({"target": 1.0}, "NUTS: target must be a probability"),
        ({"noise": 0.0}, "NUTS: noise must be positive"),
        ({"begin": -1}, "NUTS: begin must be a whole number from 0 on"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        NUTS(**settings)
