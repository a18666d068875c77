"""Counts and levels by every inference that can: posteriors by quadrature, Gibbs sampling against gradients.

Seeds are fixed, so nothing fails by chance from run to run. Bounds are 4.5 Monte Carlo standard errors from effective
sample sizes: one comparison of a right sampler fails with probability 7e-6 if errors are normal, and no test makes more
than 100, so a fresh seed fails in fewer than 1 of 1,000 cases, by calculation. SGLD has a bias beside: 0.15 posterior
standard deviations are allowed for it.
"""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr

from tests.contracts.test_samplers import ERRORS, errors_of, fixed_gibbs
from tests.helpers import core_of, fingerprint, quick_and_long, random_design, with_share_of_draws
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.inference import ALS, HMC, NUTS, SGD, SGLD, Gibbs
from tuckergp.inference.base import Problem
from tuckergp.inference.coordinates import Coordinates
from tuckergp.inference.nuts import Target
from tuckergp.inference.weights import LogJoint, parameters_of, vector_of
from tuckergp.likelihoods import Ordinal, Poisson
from tuckergp.likelihoods.counts import LARGEST_RATE, poisson_counts
from tuckergp.likelihoods.levels import level_probabilities
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import Parameters, TuckerModel
from tuckergp.running.loop import run, sample

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")

BIAS = 0.15
SAMPLERS = {
    "hmc": HMC(draws=1200, warmup=200, leapfrogs=6),
    "nuts": NUTS(draws=600, warmup=150, chains=1),
    "sgld": SGLD(draws=2500, warmup=200, batch_size=10, step_size=0.3, delay=3000.0),
    "gibbs": fixed_gibbs(1.0, draws=2500, warmup=50),
}


def one_number(name):
    """F is one number u ~ N(0, 1) at all observations: one mode with a feature that is 1 for its one row."""
    rng = np.random.default_rng(3)
    n = 40
    design = Design((ModeTable(np.ones((1, 1))),), np.zeros((n, 1), dtype=np.int32))
    exposure = None
    if name == "poisson":
        exposure = rng.uniform(0.2, 5.0, n)
        likelihood, y = Poisson(), rng.poisson(exposure * np.exp(0.7))
    else:
        cuts = (0.0,) if name == "bernoulli" else (-0.6, 0.5, 1.1)
        likelihood, y = Ordinal(cuts), ((0.4 + rng.standard_normal(n))[:, None] > np.array(cuts)).sum(axis=1)
    model = TuckerModel(core_of("identity", [1], rng), likelihood, np.ones(1), 1.0)
    return Problem(model, design, y.astype(float), None, None if exposure is None else np.log(exposure))


@cache
def by_quadrature(name):
    """Mean and standard deviation of u, and of every cut point but the first, on a grid."""
    problem = one_number(name)
    likelihood, y = problem.model.likelihood, problem.y
    u = np.linspace(-1.5, 2.5, 161)
    if name != "ordinal":
        offset = 0.0 if problem.offset is None else problem.offset
        logs = [likelihood.log_density(y, np.full(len(y), at) + offset).sum() for at in u]
        return moments_of(np.array(logs) - 0.5 * u**2, [u])
    counts = np.bincount(y.astype(int), minlength=4)
    spacing = np.linspace(0.02, 4.0, 160)
    first, second = np.meshgrid(spacing, spacing, indexing="ij")
    cuts = likelihood.cuts[0] + np.stack([np.zeros_like(first), first, first + second], axis=-1)
    prior = np.log(first * second) - first - second  # Gamma(2, 1) each
    logs = np.empty((len(u), *first.shape))
    for i, at in enumerate(u):
        probability = level_probabilities_of(at, cuts)
        logs[i] = np.log(np.maximum(probability, 1e-300)) @ counts + prior - 0.5 * at**2
    grid = [np.broadcast_to(u[:, None, None], logs.shape)]
    return moments_of(logs, grid + [np.broadcast_to(cuts[None, :, :, k], logs.shape) for k in (1, 2)])


def level_probabilities_of(f, cuts):
    below = ndtr(cuts - f)
    return np.diff(below, axis=-1, prepend=0.0, append=1.0)


def moments_of(logs, values):
    share = np.exp(logs - logs.max())
    share /= share.sum()
    means = np.array([np.sum(share * v) for v in values])
    return means, np.sqrt([np.sum(share * (v - m) ** 2) for v, m in zip(values, means, strict=True)])


def watch(sampler, problem, seed=1):
    """F at the observations and the cut points, shapes (chains, draws, n) and (chains, draws, K - 1)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        draws, history = sample(sampler, problem, seed)
    assert "log_probability" in history[-1].figures
    order = np.argsort(draws.observations)
    f = np.stack([trace[:, order] for trace in draws.traces])
    return f, np.stack([watched.get("cuts", np.zeros((len(f[0]), 0))) for watched in draws.watched])


CASES = [(name, likelihood) for name in SAMPLERS for likelihood in ("poisson", "bernoulli", "ordinal")]


@quick_and_long("of_draws", 0.25, 1)
@pytest.mark.parametrize(("name", "likelihood"), [case for case in CASES if case != ("gibbs", "poisson")])
def test_agrees_with_quadrature(name, likelihood, of_draws):
    f, cuts = watch(with_share_of_draws(SAMPLERS[name], of_draws), one_number(likelihood))
    exact_mean, exact_sd = by_quadrature(likelihood)
    values = np.concatenate([f[:, :, :1], cuts[:, :, 1:]], axis=2)
    mean, sd, mean_error, sd_error = errors_of(values)
    slack = (BIAS if name == "sgld" else 0.0) * exact_sd
    assert (np.abs(mean - exact_mean) < ERRORS * mean_error + slack).all()
    assert (np.abs(sd - exact_sd) < ERRORS * sd_error + slack).all()


def tucker(likelihood, n=80):
    """Two modes of rank 2; the least that does not reduce to regression. Of a seed for which chains mix fast."""
    rng = np.random.default_rng(7)
    core = core_of("identity", [2, 2], rng)
    design = random_design(rng, [6, 6], [2, 2], n, "dense")
    cuts = (0.0,) if likelihood == "bernoulli" else (-0.7, 0.6)
    model = TuckerModel(core, Ordinal(cuts), core.default_sigma_u(), 1.0)
    # not by `model.init`, so that the problem stays the same whatever streams that takes
    U = tuple(sigma * rng.standard_normal((2, 2)) for sigma in model.sigma_u)
    f = model.predict(Parameters(U, np.zeros(0)), design)
    y = ((f + rng.standard_normal(n))[:, None] > np.array(cuts)).sum(axis=1)
    return Problem(model, design, y.astype(float))


@cache
def probabilities_by_gibbs(likelihood, of_draws):
    sampler = with_share_of_draws(fixed_gibbs(1.0, draws=1000, warmup=50), of_draws)
    mean, _, error, _ = errors_of(probabilities(sampler, likelihood))
    return mean, error


def probabilities(sampler, likelihood, observations=25):
    """Of the lowest and the highest level at some observations, of every draw, shape (chains, draws, n)."""
    f, cuts = watch(sampler, tucker(likelihood))
    return np.array(
        [[level_probabilities(at[:observations], c)[:, [0, -1]].ravel() for at, c in zip(*chain, strict=True)]
         for chain in zip(f, cuts, strict=True)]
    )  # fmt: skip


@quick_and_long("of_draws", 0.5, 1)
@pytest.mark.parametrize("likelihood", ["bernoulli", "ordinal"])
@pytest.mark.parametrize("name", ["hmc", "nuts"])
def test_gradients_and_gibbs_sampling_agree_on_probabilities(name, likelihood, of_draws):
    sampler = {
        "hmc": HMC(draws=300, warmup=150, chains=2, leapfrogs=24),
        "nuts": NUTS(draws=250, warmup=100, chains=2),
    }[name]
    mean, _, error, _ = errors_of(probabilities(with_share_of_draws(sampler, of_draws), likelihood))
    expected, expected_error = probabilities_by_gibbs(likelihood, of_draws)
    assert (np.abs(mean - expected) < ERRORS * np.hypot(error, expected_error)).all()


@quick_and_long("of_draws", 0.3, 1)
def test_sgld_is_near_gibbs_sampling(of_draws):
    """Probabilities of levels within 0.06 by the root mean square; no rate of failure is known."""
    sampler = with_share_of_draws(SGLD(draws=800, warmup=200, chains=2, batch_size=40, step_size=0.3), of_draws)
    mean = probabilities(sampler, "ordinal").mean(axis=(0, 1))
    assert np.sqrt(np.mean((mean - probabilities_by_gibbs("ordinal", of_draws)[0]) ** 2)) < 0.06


def count_problem(n=60, core="full"):
    rng = np.random.default_rng(2)
    shape = core_of(core, [2, 2], rng)
    model = TuckerModel(shape, Poisson(), shape.default_sigma_u(), shape.default_sigma_w())
    design = random_design(rng, [6, 6], [3, 3], n, "dense")
    offset = np.log(rng.uniform(0.5, 4.0, n))
    f = model.predict(model.init(design, rng), design)
    y = rng.poisson(np.exp(offset + f / f.std()))
    return Problem(model, design, y.astype(float), None, offset)


@pytest.mark.parametrize("kind", ["poisson", "ordinal"])
def test_nuts_has_the_gradient_of_finite_differences(kind):
    problem = count_problem() if kind == "poisson" else tucker("ordinal")
    coordinates = Coordinates.of(problem)
    target = Target(coordinates, None, 1.0, 0.5)
    theta = vector_of(problem.model.init(problem.design, np.random.default_rng(0)))
    x = coordinates.project(theta) / target.scale
    h = 1e-5
    numeric = [(target(x + h * e)[0] - target(x - h * e)[0]) / (2 * h) for e in np.eye(len(x))]
    np.testing.assert_allclose(target(x)[1], numeric, rtol=1e-4, atol=1e-4)
    lifted = coordinates.lift(coordinates.project(theta), np.random.default_rng(1))
    np.testing.assert_array_equal(parameters_of(problem, lifted).free, parameters_of(problem, theta).free)


def test_batches_add_up_to_the_whole():
    for problem in (count_problem(), tucker("ordinal", 60)):
        log_joint = LogJoint(problem, 1.0)
        theta = vector_of(problem.model.init(problem.design, np.random.default_rng(0)))
        whole = log_joint(theta)[1]
        parts = [log_joint.of_batch(theta, batch)[1] for batch in np.array_split(np.arange(60), 4)]
        np.testing.assert_allclose(np.mean(parts, axis=0), whole, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "method", "step"),
    [
        ("poisson", "adam", 1e-2),
        ("bernoulli", "adam", 1e-2),
        ("bernoulli", "sgd", 2e-3),
        ("ordinal", "adam", 1e-2),
        ("ordinal", "sgd", 2e-3),
    ],
)
def test_stochastic_gradients_climb_to_the_most_probable_point(kind, method, step):
    """A quasi-Newton search from where they end gains less than 0.5 in the log joint of 60 observations."""
    problem = count_problem(core="identity") if kind == "poisson" else tucker(kind, 60)
    climber = SGD(epochs=1000, batch_size=60, method=method, step_u=step, validation=0.0, init_scale=0.3)
    found = run(climber, problem, 1).parameters
    log_joint, theta = LogJoint(problem, 1.0), vector_of(found)
    best = minimize(lambda x: tuple(-part for part in log_joint(x)), theta, jac=True, method="L-BFGS-B")
    start = vector_of(problem.model.start(problem.design, np.random.default_rng(0)))
    assert -best.fun - 0.5 < log_joint(theta)[0] > log_joint(start)[0] + 1
    unknowns = problem.model.likelihood_at(found).unknowns()
    assert len(unknowns.get("cuts", ())) == {"poisson": 0, "bernoulli": 1, "ordinal": 2}[kind]


def test_early_stopping_looks_at_the_log_probability():
    problem = count_problem(200)
    result = run(SGD(epochs=30, validation=0.2, patience=3), problem, 1)
    assert {"log_probability", "validation_log_probability"} <= result.steps[-1].figures.keys()


@pytest.mark.parametrize("kind", ["poisson", "ordinal"])
@pytest.mark.parametrize("sampler", [HMC(draws=6, warmup=12), NUTS(draws=6, warmup=12, chains=1), SGLD(draws=6)])
def test_a_seed_repeats_its_draws(kind, sampler):
    problem = count_problem() if kind == "poisson" else tucker("ordinal")
    a, b, c = (fingerprint(sample(sampler, problem, seed)[0]) for seed in (1, 1, 2))
    assert a == b != c


def test_weights_count_as_repeated_rows():
    problem = tucker("ordinal", 50)
    weight = np.where(np.arange(50) < 20, 3.0, 1.0)
    repeated = problem.take(np.repeat(np.arange(50), weight.astype(int)))
    theta = vector_of(problem.model.init(problem.design, np.random.default_rng(0)))
    value, gradient = LogJoint(replace(problem, weight=weight), 1.0)(theta)
    expected = LogJoint(repeated, 1.0)(theta)
    assert value == pytest.approx(expected[0])
    np.testing.assert_allclose(gradient, expected[1], atol=1e-9)


def test_what_has_no_conditionals_is_refused():
    problem = count_problem()
    with pytest.raises(InputError, match="Gibbs sampling does not support likelihood='poisson'; use inference='hmc'"):
        sample(Gibbs(draws=2, warmup=1), problem, 1)
    with pytest.raises(InputError, match="not ALS"):
        run(ALS(), problem, 1)
    with pytest.raises(InputError, match="noise is for a Gaussian likelihood"):
        sample(HMC(noise=0.5), tucker("ordinal"), 1)


def test_counts_of_huge_rates_are_drawn_with_their_variance():
    """NumPy draws no such counts. The mean square of 4,000 has the standard deviation (2 / 4000)^1/2 = 0.022."""
    rate = np.full(4000, 4 * LARGEST_RATE)
    z = (poisson_counts(rate, np.random.default_rng(0)) - rate) / np.sqrt(rate)
    assert abs((z**2).mean() - 1) < 5 * 0.022
