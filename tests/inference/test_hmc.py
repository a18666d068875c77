"""Hamiltonian Monte Carlo: its trajectories, what the warm-up finds, what it refuses. Posteriors: tests/contracts."""

import warnings

import numpy as np
import pytest

from tests.helpers import core_of, fingerprint, random_design, random_problem
from tests.inference.test_gibbs import tiny_design
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.inference.adaptation import Variances, averaged, window_ends, with_acceptance, with_point
from tuckergp.inference.base import Problem
from tuckergp.inference.gibbs import Gibbs
from tuckergp.inference.hmc import HMC, leapfrogs
from tuckergp.inference.weights import LogJoint, parameters_of, per_entry, vector_of
from tuckergp.likelihoods import Poisson
from tuckergp.model.tucker import TuckerModel
from tuckergp.posterior.diagnostics import summarise
from tuckergp.random import stream
from tuckergp.running.control import Control
from tuckergp.running.loop import sample
from tuckergp.store.trees import digest

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")


def trajectory_start(core, ranks, seed=0):
    """A log joint, a point, a momentum, and step sizes that differ between U_1, U_2, ... and W."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, core, ranks)
    theta = vector_of(problem.model.init(problem.design, rng))
    blocks = problem.weight_blocks
    steps = per_entry(blocks, rng.uniform(0.5, 2.0, len(blocks)))
    return LogJoint(problem, 2.0), theta, rng.standard_normal(len(theta)), steps


def mean_and_error(trace):
    """The mean of draws and its Monte Carlo standard error."""
    size = float(summarise(trace[None, :, None]).ess_bulk[0])
    assert size > 40
    return trace.mean(), trace.std() / np.sqrt(size)


def energy(value, momentum):
    return -value + 0.5 * momentum @ momentum


@pytest.mark.parametrize(("core", "ranks"), [("identity", (2, 2)), ("full", (2, 3)), ("sparse", (2, 2, 2))])
def test_leapfrogs_lead_back_when_the_momentum_is_turned_round(core, ranks):
    log_joint, theta, momentum, steps = trajectory_start(core, ranks)
    there, late, _ = leapfrogs(log_joint, theta, momentum, 0.01 * steps, 30)
    back, early, _ = leapfrogs(log_joint, there, -late, 0.01 * steps, 30)
    assert np.abs(there - theta).max() > 0.1
    np.testing.assert_allclose(back, theta, atol=1e-9)
    np.testing.assert_allclose(-early, momentum, atol=1e-9)


@pytest.mark.parametrize(("core", "ranks"), [("identity", (2, 2)), ("full", (2, 3)), ("sparse", (2, 2, 2))])
def test_leapfrogs_conserve_energy_to_second_order_of_the_step(core, ranks):
    log_joint, theta, momentum, steps = trajectory_start(core, ranks)
    before = energy(log_joint(theta)[0], momentum)
    errors = []
    for halving in range(3):
        _, late, value = leapfrogs(log_joint, theta, momentum, 2e-3 * 0.5**halving * steps, 20 * 2**halving)
        errors.append(abs(energy(value, late) - before))
    assert errors[0] < 0.05 * abs(before)
    np.testing.assert_allclose([errors[0] / errors[1], errors[1] / errors[2]], 4.0, rtol=0.1)


def test_theta_holds_all_weights_in_order():
    problem = random_problem(np.random.default_rng(0), "full", (2, 3))
    parameters = problem.model.init(problem.design, np.random.default_rng(1))
    found = parameters_of(problem, vector_of(parameters))
    for a, b in zip((*found.U, found.W), (*parameters.U, parameters.W), strict=True):
        np.testing.assert_array_equal(a, b)


def test_dual_averaging_finds_the_step_of_a_given_acceptance():
    state = averaged(0.01)
    for _ in range(3000):
        state = with_acceptance(state, np.exp(-np.exp(state.log_step)), target=0.7)
    assert np.exp(state.log_average) == pytest.approx(-np.log(0.7), rel=0.02)


def test_running_variances_equal_those_of_all_points():
    points = np.random.default_rng(0).standard_normal((40, 5)) * [1, 2, 3, 4, 5]
    state = Variances.empty(5)
    for point in points:
        state = with_point(state, point)
    variance = points.var(axis=0)
    blocks = [slice(0, 2), slice(2, 5)]
    expected = np.repeat([variance[:2].mean(), variance[2:].mean()], [2, 3])
    np.testing.assert_allclose(state.scales(blocks, each=False), np.sqrt(expected))
    shrunk = (40 * variance + 5 * expected) / 45
    np.testing.assert_allclose(state.scales(blocks, each=True), np.sqrt(shrunk))


@pytest.mark.parametrize("warmup", [0, 5, 20, 60, 100, 300, 1000])
def test_windows_grow_and_leave_the_end_of_the_warm_up_to_the_step_size(warmup):
    first, ends = window_ends(warmup)
    assert ends == sorted(set(ends))
    assert all(first < end <= warmup for end in ends)
    assert bool(ends) == (warmup >= 20)
    assert not ends or warmup - ends[-1] == round(0.1 * warmup)


def test_nothing_is_adapted_after_the_warm_up():
    problem = random_problem(np.random.default_rng(0))
    sampler, rng = HMC(draws=10, warmup=30, leapfrogs=5), np.random.default_rng(1)
    state = sampler.init(problem, rng)
    seen = []
    for _ in range(40):
        state, _ = sampler.step(problem, state, rng)
        seen.append(digest(sampler.step_sizes(state)))
    assert len(set(seen[:30])) > 10
    assert len(set(seen[29:])) == 1
    # the average of the steps that were tried (Hoffman and Gelman 2014), not the last of them
    np.testing.assert_allclose(sampler.step_sizes(state), np.exp(state.tuner.log_average) * state.scale)
    assert state.tuner.log_average != state.tuner.log_step


def test_a_higher_target_takes_shorter_steps():
    """The same start and the same random numbers; by 6 seeds the steps are 1.2 to 9.6 times as long."""
    problem = random_problem(np.random.default_rng(2), "full", (2, 2))
    steps = {}
    for target in (0.5, 0.95):
        sampler = HMC(draws=1, warmup=100, leapfrogs=6, target=target)
        state = sampler.init(problem, stream(0))
        for t in range(100):
            state, _ = sampler.step(problem, state, stream(0, t))
        steps[target] = np.exp(np.log(sampler.step_sizes(state)).mean())
    assert steps[0.95] < steps[0.5]


def test_noise_is_learned_as_gibbs_sampling_learns_it():
    """Same prior of the noise, other hyperparameters fixed; means within 4.5 standard errors (7e-6 by chance)."""
    problem = random_problem(np.random.default_rng(4), "identity", (2, 2), n=80)
    sure = {"dof": 1e9, "tau_shape": 1e9, "tau_rate": 1e9}
    found = []
    for sampler in (HMC(draws=600, warmup=200, leapfrogs=8), Gibbs(draws=1000, warmup=100, **sure)):
        draws, _ = sample(sampler, problem, 1)
        found.append(mean_and_error(np.log(draws.watched[0]["noise"])))
    (a, a_error), (b, b_error) = found
    assert abs(a - b) < 4.5 * np.hypot(a_error, b_error)


def test_a_weight_counts_observations():
    problem = random_problem(np.random.default_rng(0), n=10)
    twice = problem.take(np.repeat(np.arange(10), 2))
    weighted = Problem(problem.model, problem.design, problem.y, np.full(10, 2.0))
    theta = vector_of(problem.model.init(problem.design, np.random.default_rng(1)))
    for a, b in zip(LogJoint(twice, 3.0)(theta), LogJoint(weighted, 3.0)(theta), strict=True):
        np.testing.assert_allclose(a, b)
    sampler = HMC()
    a, b = (sampler.draw_noise(p, theta, 1.0, np.random.default_rng(5)) for p in (twice, weighted))
    assert a[0] == pytest.approx(b[0])


def test_a_likelihood_with_a_density_is_all_that_is_needed():
    """Counts of a single rate: the mean of exp(f) under the exact posterior, by quadrature."""
    rng = np.random.default_rng(0)
    design = random_design(rng, [1], [1], 12, "dense")
    core = core_of("identity", [1], rng)
    model = TuckerModel(core, Poisson(), np.ones(1), 1.0)
    y = rng.poisson(3.0, size=12).astype(float)
    draws, history = sample(HMC(draws=800, warmup=150, leapfrogs=5), Problem(model, design, y), 1)
    u = np.linspace(-20, 20, 200_001) / float(design.modes[0].table[0, 0])
    f = u * float(design.modes[0].table[0, 0])
    log_p = Poisson().log_density(y.sum(), f) - 11 * np.exp(f) - 0.5 * u**2
    p = np.exp(log_p - log_p.max())
    exact = np.sum(p * f) / p.sum()
    trace = draws.traces[0][:, 0]
    mean, error = mean_and_error(trace)
    assert abs(mean - exact) < 4.5 * error
    assert "log_probability" in history[-1].figures
    assert "noise" not in draws.watched[0]


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path):
    problem = random_problem(np.random.default_rng(0))
    whole, _ = sample(HMC(draws=20, warmup=30, leapfrogs=3), problem, 1)

    class Stop(Exception):
        pass

    def stop(info):
        if info.step == 17:
            raise Stop

    for callback in (stop, None):
        try:
            control = Control(checkpoint=tmp_path / "run", callback=callback)
            resumed, _ = sample(HMC(draws=20, warmup=30, leapfrogs=3), problem, 1, control)
        except Stop:
            pass
    assert fingerprint(resumed) == fingerprint(whole)


def test_divergences_after_the_warm_up_are_counted_and_told():
    problem = random_problem(np.random.default_rng(0))
    with pytest.warns(NotConvergedWarning, match=r"\d+ trajectories after the warm-up diverged.*raise target"):
        _, history = sample(HMC(draws=10, warmup=0, step_size=50.0, leapfrogs=5), problem, 1)
    counts = [info.figures["divergences"] for info in history]
    assert counts == sorted(counts)
    assert counts[-1] > 0


def test_a_healthy_run_tells_of_no_divergence():
    problem = random_problem(np.random.default_rng(0))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        sample(HMC(draws=20, warmup=60, leapfrogs=4), problem, 1)
    assert not [w for w in told if "diverged" in str(w.message)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"leapfrogs": 0}, "HMC: leapfrogs must be a whole number from 1 on"),
        ({"leapfrogs": 2.5}, "HMC: leapfrogs must be a whole number"),
        ({"step_size": -1.0}, "HMC: step_size must be positive"),
        ({"target": 1.0}, "HMC: target must be a probability"),
        ({"mass": "dense"}, "HMC: mass must be 'diagonal' or 'blocks'"),
        ({"noise": 0.0}, "HMC: noise must be positive"),
        ({"warmup": -1}, "HMC: warmup must be a whole number from 0 on"),
        ({"draws": 1.5}, "HMC: draws must be a whole number"),
        ({"draws": 2, "thin": 3}, "HMC: thin=3 would keep none of 2 draws"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        HMC(**settings)


def test_models_that_it_cannot_sample_are_refused():
    rng = np.random.default_rng(0)
    core = core_of("identity", [2, 2], rng)
    design = random_design(rng, [4, 4], [3, 3], 10)
    counts = Problem(TuckerModel(core, Poisson(), core.default_sigma_u(), 1.0), design, np.zeros(10))
    with pytest.raises(InputError, match="noise is for a Gaussian likelihood"):
        HMC(noise=1.0).init(counts, rng)
    chain = random_problem(rng, "identity", (2, 2))
    chain = Problem(chain.model, tiny_design(rng, ("rows", "matern12")), np.zeros(14))
    with pytest.raises(InputError, match="HMC is for weights of features, and a mode lies on a line"):
        HMC().init(chain, rng)
