"""Stochastic gradient Langevin dynamics: its gradients and steps, what it refuses. Posteriors: tests/contracts."""

import numpy as np
import pytest

from tests.helpers import fingerprint, random_problem
from tuckergp.errors import DivergenceError, InputError
from tuckergp.inference.base import Problem
from tuckergp.inference.sgld import SGLD
from tuckergp.inference.weights import LogJoint, vector_of
from tuckergp.running.control import Control
from tuckergp.running.loop import sample
from tuckergp.store.trees import digest

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")


@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_batches_are_those_of_all_the_data_on_average(weighted):
    rng = np.random.default_rng(0)
    problem = random_problem(rng, "full", (2, 3), n=24)
    if weighted:
        problem = Problem(problem.model, problem.design, problem.y, rng.uniform(0.5, 2.0, 24))
    log_joint = LogJoint(problem, 2.0)
    theta = vector_of(problem.model.init(problem.design, rng))
    batches = [log_joint.of_batch(theta, batch) for batch in np.array_split(rng.permutation(24), 4)]
    value, gradient = log_joint(theta)
    np.testing.assert_allclose(np.mean([g for _, g in batches], axis=0), gradient, rtol=1e-9, atol=1e-9)
    assert np.mean([v for v, _ in batches]) == pytest.approx(value)


def test_steps_shrink_so_that_their_sum_diverges_and_that_of_their_squares_does_not():
    sampler = SGLD(step_size=0.3, decay=0.6, delay=10.0)
    steps = np.array([sampler.step_at(t) for t in (0, 10, 10**6, 10**7)])
    assert steps[0] == 0.3
    assert steps[1] == pytest.approx(0.3 * 2**-0.6)
    assert np.log10(steps[2] / steps[3]) == pytest.approx(0.6, rel=1e-3)
    assert SGLD(decay=0.0).step_at(10**6) == SGLD().step_size


def test_one_pass_is_the_update_of_the_paper():
    """Welling and Teh's equation 4, by hand, with one batch."""
    problem = random_problem(np.random.default_rng(0), "identity", (2, 2), n=30)
    sampler = SGLD(noise=0.5, batch_size=30, step_size=0.2)
    state = sampler.init(problem, np.random.default_rng(1))
    after, _ = sampler.step(problem, state, np.random.default_rng(2))
    rng = np.random.default_rng(2)
    rng.permutation(30)
    variance = problem.model.sigma_u[0] ** 2
    step = 0.2 / (1 + 30 * 2.0) * variance
    _, gradient = LogJoint(problem, 2.0)(state.theta)
    expected = state.theta + step / 2 * gradient + np.sqrt(step) * rng.standard_normal(len(gradient))
    np.testing.assert_allclose(after.theta, expected, rtol=1e-9)
    assert after.updates == 1


def test_the_preconditioner_is_learned_in_the_warm_up_alone():
    problem = random_problem(np.random.default_rng(0))
    sampler, rng = SGLD(draws=5, warmup=5, batch_size=10, precondition=True), np.random.default_rng(1)
    state = sampler.init(problem, rng)
    seen = []
    for _ in range(10):
        state, _ = sampler.step(problem, state, rng)
        seen.append(digest(state.squares))
    assert len(set(seen[:5])) == 5
    assert len(set(seen[4:])) == 1


def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path):
    problem = random_problem(np.random.default_rng(0))
    whole, _ = sample(SGLD(draws=12, warmup=6, batch_size=15), problem, 1)
    sample(SGLD(draws=5, warmup=6, batch_size=15), problem, 1, Control(checkpoint=tmp_path / "run"))
    longer, _ = sample(SGLD(draws=12, warmup=6, batch_size=15), problem, 1, Control(checkpoint=tmp_path / "run"))
    assert fingerprint(longer) == fingerprint(whole)


def test_divergence_says_what_to_change():
    problem = random_problem(np.random.default_rng(0), "full", (2, 2), "dense", n=200, noise=0.01)
    with pytest.raises(DivergenceError, match=r"SGLD diverged in pass \d+: lower step_size=100"):
        sample(SGLD(step_size=100.0, batch_size=20), problem, 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "SGLD: batch_size must be a whole number from 1 on"),
        ({"batch_size": 1.5}, "SGLD: batch_size must be a whole number"),
        ({"step_size": 0.0}, "SGLD: step_size must be positive"),
        ({"decay": 0.3}, "SGLD: decay must be 0, or above 0.5 and at most 1"),
        ({"precondition": "rms"}, "SGLD: precondition must be True or False"),
        ({"precondition": True, "warmup": 0}, "SGLD: precondition=True needs a warm-up"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        SGLD(**settings)
