"""What every sampler must satisfy: the exact posterior where there is one, and the answers of the others elsewhere.

Seeds are fixed, so nothing here fails by chance from run to run. Bounds are in Monte Carlo standard errors from
effective sample sizes, which mean nothing where those are small, so a least size is asserted too. At 4.5 errors one
comparison of a right sampler fails with probability 7e-6 if errors are normal; a test makes 100 or 120, so a fresh seed
fails it in fewer than 1 of 1,000 cases: by calculation, not measured, and too low where chains mix badly. Samplers
without rejection have a bias beside, for which `BIAS` makes room.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers import core_of, model_of, random_design, random_problem
from tuckergp.errors import NotConvergedWarning
from tuckergp.inference import HMC, NUTS, SGLD, Gibbs
from tuckergp.inference.base import Problem
from tuckergp.inference.diagnostics import summarise
from tuckergp.inference.loop import sample
from tuckergp.inference.trees import digest

ERRORS = 4.5
LEAST_SIZE = 40
# Hyperparameters so sure that they are fixed: Lambda = I / sigma_u^2, tau = 1, the noise given.
SURE = 1e9


def fixed_gibbs(noise, **settings):
    return Gibbs(dof=SURE, tau_shape=SURE, tau_rate=SURE, alpha_shape=SURE, alpha_rate=SURE * noise, **settings)


SAMPLERS = {
    "gibbs": lambda noise: fixed_gibbs(noise, draws=1500, warmup=50),
    "hmc": lambda noise: HMC(noise=noise, draws=1500, warmup=250, leapfrogs=20),
    "hmc, blocks": lambda noise: HMC(noise=noise, draws=1500, warmup=250, leapfrogs=20, mass="blocks"),
    "nuts": lambda noise: NUTS(noise=noise, draws=1000, warmup=250, chains=1),
}
SGLD_SETTINGS = {"draws": 2500, "warmup": 200, "batch_size": 20, "step_size": 0.5, "delay": 3000.0}
SAMPLERS |= {
    "sgld": lambda noise: SGLD(noise=noise, **SGLD_SETTINGS),
    "sgld, preconditioned": lambda noise: SGLD(noise=noise, precondition=True, **SGLD_SETTINGS),
}
# Steps that are not exact have a bias of their own, in posterior standard deviations.
BIAS = {"sgld": 0.1, "sgld, preconditioned": 0.1}


def traces(sampler, problem, seed=1):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        draws, _ = sample(sampler, problem, seed)
    order = np.argsort(draws.observations)
    return np.stack([trace[:, order] for trace in draws.traces])


def errors_of(f):
    """Means, standard deviations, and the Monte Carlo standard errors of both, of values (chains, draws, n)."""
    flat = f.reshape(-1, f.shape[-1])
    mean, sd = flat.mean(axis=0), flat.std(axis=0)
    size = summarise(f).ess_bulk
    spread = summarise(np.abs(f - mean)).ess_bulk  # of squares, by what ranks the same
    assert min(size.min(), spread.min()) > LEAST_SIZE
    kurtosis = np.mean((flat - mean) ** 4, axis=0) / sd**4
    return mean, sd, sd / np.sqrt(size), sd * np.sqrt((kurtosis - 1) / (4 * spread))


def linear_problem(noise=0.5):
    """One mode of rank 1, W fixed to 1: Bayesian linear regression, whose posterior is Gaussian."""
    rng = np.random.default_rng(0)
    design = random_design(rng, [30], [4], 60, "dense")
    model = model_of(core_of("identity", [1], rng), noise)
    y = model.predict(model.init(design, rng), design) + noise**0.5 * rng.standard_normal(60)
    return Problem(model, design, y)


@pytest.mark.parametrize("name", SAMPLERS)
def test_agrees_with_the_exact_posterior_of_a_linear_model(name):
    noise, problem = 0.5, linear_problem()
    Phi = problem.design.modes[0].table[problem.design.index[:, 0]]
    covariance = np.linalg.inv(Phi.T @ Phi / noise + np.eye(4) / problem.model.sigma_u[0] ** 2)
    exact_mean = Phi @ covariance @ Phi.T @ problem.y / noise
    exact_sd = np.sqrt(np.sum(Phi @ covariance * Phi, axis=1))
    mean, sd, mean_error, sd_error = errors_of(traces(SAMPLERS[name](noise), problem))
    slack = BIAS.get(name, 0.0) * exact_sd
    assert (np.abs(mean - exact_mean) < ERRORS * mean_error + slack).all()
    assert (np.abs(sd - exact_sd) < ERRORS * sd_error + slack).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "core"),
    [("hmc", "identity"), ("hmc", "full"), ("hmc, blocks", "full"), ("nuts", "identity"), ("nuts", "full")],
)
def test_agrees_with_gibbs_sampling_of_a_tucker_model(name, core):
    """Several chains: a single one crosses between modes so seldom that its own effective size says too much."""
    problem = random_problem(np.random.default_rng(5), core, (2, 2), "mixed", n=50)
    noise = problem.model.likelihood.noise
    expected = errors_of(traces(fixed_gibbs(noise, draws=2000, warmup=100), problem))
    sampler = replace(SAMPLERS[name](noise), chains=6, draws=400, **({} if name == "nuts" else {"leapfrogs": 30}))
    mean, sd, mean_error, sd_error = errors_of(traces(sampler, problem))
    assert (np.abs(mean - expected[0]) < ERRORS * np.hypot(mean_error, expected[2])).all()
    assert (np.abs(sd - expected[1]) < ERRORS * np.hypot(sd_error, expected[3])).all()


SHORT = {"gibbs": Gibbs, "hmc": HMC, "nuts": NUTS, "sgld": SGLD}


@pytest.mark.parametrize("name", SHORT)
def test_a_seed_repeats_its_draws_and_another_does_not(name):
    problem = random_problem(np.random.default_rng(0))
    sampler = SHORT[name](draws=8, warmup=12, chains=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        a, b, c = (digest(sample(sampler, problem, seed)[0].chains) for seed in (1, 1, 2))
    assert a == b != c


@pytest.mark.parametrize("name", SHORT)
def test_keeps_every_thinned_draw_of_every_chain(name):
    problem = random_problem(np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        draws, history = sample(SHORT[name](draws=9, warmup=4, thin=3, chains=2), problem, 1)
    assert [len(chain) for chain in draws.chains] == [3, 3]
    assert [(info.chain, info.step) for info in history] == [(c, t) for c in (0, 1) for t in range(1, 14)]
    assert {"f", "log_likelihood"} <= draws.watched[0].keys()
