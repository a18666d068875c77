"""What every likelihood must satisfy, those of the registry and the one to copy: no other code knows which it is."""

import ast
from dataclasses import fields
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.project.test_docs import blocks_of, run
from tuckergp import TuckerGPRegressor, TuckerRecommender
from tuckergp.data.tables import as_table
from tuckergp.inference import HMC, INFERENCES, NUTS, Gibbs
from tuckergp.kernels import SE, Identity
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.likelihoods.given import Predicted
from tuckergp.model.design import Design
from tuckergp.model.mode import Mode
from tuckergp.random import BLOCK
from tuckergp.running.fit import fit_model

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tuckergp"
# Of files that may name likelihoods: the package itself, made-up data, the paper's own settings, stored models.
FREE = ("likelihoods", "data", "paper", "store")


def skeleton():
    """The one to copy, from the page that has it."""
    page = ROOT / "docs" / "extending.md"
    first, *_ = blocks_of(page.read_text())
    namespace = {"__name__": __name__}
    run(page, [first], namespace)
    return namespace["Exponential"]


ALL = {**LIKELIHOODS, "exponential": skeleton()}


def outside():
    return [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in FREE]


def test_nothing_else_names_a_likelihood():
    """No string that is the name of one, but for the default, and no import of a class of one.

    Clicks are also what tables without ratings are called, in files for example.
    """
    names, classes = set(LIKELIHOODS) - {"gaussian", "clicks"}, {kind.__name__ for kind in LIKELIHOODS.values()}
    found = []
    for path in outside():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and node.value in names:
                found.append((path.name, node.lineno, node.value))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tuckergp.likelihoods"):
                found += [(path.name, node.lineno, alias.name) for alias in node.names if alias.name in classes]
    assert not found


@pytest.mark.parametrize("name", ALL)
def test_it_says_what_it_is(name):
    kind = ALL[name]
    assert kind.name == name
    assert kind.sampler in kind.inferences
    assert set(kind.inferences) <= set(INFERENCES)
    assert (kind.code >= 0) == ("sgd" in kind.inferences)
    assert kind.default_noise == "shared" or kind.row_noise
    assert not (kind.counts and kind.has_levels)
    assert all(each.default is not None for each in fields(kind))
    assert kind.__doc__


def targets(name, f, rng):
    """Targets that a likelihood can have, larger where f is."""
    kind, noisy = ALL[name], f + 0.5 * rng.standard_normal(len(f))
    if kind.all_pairs:
        return np.ones(len(f))
    if kind.clicks:
        return (noisy > 0).astype(float)
    if kind.has_levels:
        return np.digitize(noisy, [-1.0, 0.0, 1.0]) + 2.0
    if kind.counts:
        return rng.poisson(np.exp(1 + f)).astype(float)
    return np.exp(noisy) if name == "exponential" else 10 + 3 * noisy


@pytest.mark.parametrize("name", ALL)
def test_targets_are_found_again(name):
    rng = np.random.default_rng(0)
    y = targets(name, rng.standard_normal(50), rng)
    likelihood = ALL[name].read(y)
    np.testing.assert_allclose(likelihood.original(likelihood.targets(y)), y, rtol=1e-12)


@cache
def learned(name):
    """A model with draws of each, from 80 observations at random places; its design; the targets."""
    rng = np.random.default_rng(0)
    table = as_table({"a": rng.uniform(-2, 2, 80), "b": rng.choice(list("xyz"), 80)}, "data")
    y = targets(name, 1.5 * np.sin(table["a"]), rng)
    gibbs = "gibbs" in ALL[name].inferences
    design, _ = Design.fit([Mode("a", SE(1.0)), Mode("b", Identity())], table, None, np.random.default_rng(0), gibbs)
    sampler = Gibbs(draws=40, warmup=30) if gibbs else HMC(draws=40, warmup=60)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(LIKELIHOODS, name, ALL[name])
        fit = fit_model(design, y, None, ranks=[2, 2], core="identity", inference=sampler, seed=0, likelihood=name)
    return fit, design, y


@pytest.mark.parametrize("name", ALL)
def test_it_learns_and_its_answers_agree_with_each_other(name):
    """Quantiles increase and hold their share of samples, whose means and variances are those predicted."""
    fit, design, y = learned(name)
    mean, std = fit.mean_and_std(design, include_noise=True)
    assert ALL[name].all_pairs or np.corrcoef(mean, y)[0, 1] > 0.5  # all that is listed was chosen
    levels = [0.1, 0.5, 0.9]
    quantiles = fit.quantiles(design, levels, include_noise=True)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    at, likelihood = fit.draws.predicted(design), fit.likelihood
    rng = np.random.default_rng(0)
    drawn = np.concatenate([likelihood.sample(at, rng) for _ in range(100)])  # of 40 draws each
    error = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert (np.abs(drawn.mean(axis=0) - likelihood.means(at).mean(axis=0)) < 5 * error).all()
    for column, level in enumerate(levels):
        reached = (drawn <= quantiles[:, column] + 1e-9).mean(axis=0)
        before = (drawn < quantiles[:, column] - 1e-9).mean(axis=0)
        slack = 5 * np.sqrt(level * (1 - level) / len(drawn))
        assert (reached > level - slack).all()
        assert (before < level + slack).all()
    if name != "student":  # whose squares have no variance
        spread = np.abs(drawn.std(axis=0) / std - 1)
        assert spread.max() < 0.25
    shown = likelihood.in_units(likelihood.watched({key: values[0] for key, values in at.unknowns.items()}))
    assert set(likelihood.dims) <= set(shown)


@pytest.mark.parametrize("name", ALL)
def test_a_block_of_observations_is_sampled_the_same_whatever_follows_it(name):
    """f repeats itself from block to block; samples do not."""
    fit, design, _ = learned(name)
    at, again = fit.draws.predicted(design), np.arange(2 * BLOCK + 7) % 64
    whole = Predicted(at.f[:, again], at.unknowns, None, np.linspace(1, 2, 64)[again])
    drawn = fit.likelihood.sample(whole, np.random.default_rng(1))
    part = fit.likelihood.sample(whole.take(slice(0, BLOCK)), np.random.default_rng(1))
    assert drawn.shape == whole.f.shape
    np.testing.assert_array_equal(drawn[:, :BLOCK], part)
    assert not np.array_equal(drawn[:, BLOCK : 2 * BLOCK], part)


@pytest.mark.parametrize("name", ALL)
def test_each_draw_answers_for_itself(name):
    """Answers of some draws are those of all, row by row."""
    fit, design, _ = learned(name)
    at = fit.draws.predicted(design)
    one = Predicted(at.f[3:4], {key: values[3:4] for key, values in at.unknowns.items()})
    for answer in (fit.likelihood.means, fit.likelihood.variances):
        np.testing.assert_allclose(answer(one)[0], answer(at)[3], rtol=1e-12)
        assert answer(at).shape == at.f.shape


@pytest.mark.parametrize("name", [name for name, kind in LIKELIHOODS.items() if "gibbs" in kind.inferences])
def test_a_recommender_learns_serves_and_takes_in_more(name):
    rng = np.random.default_rng(1)
    user, item = rng.integers(20, size=400), rng.integers(15, size=400)
    f = (rng.standard_normal((20, 2)) @ rng.standard_normal((2, 15)))[user, item]
    ratings = {"user_id": user, "item_id": item, "rating": targets(name, f, rng)}
    model = TuckerRecommender(rank=2, likelihood=name, draws=20, warmup=20, time=None, random_state=0).fit(ratings)
    pairs = {"user_id": [1, 2, 99], "item_id": [3, 4, 99]}
    for asked in ({"return_std": True}, {"quantiles": [0.2, 0.8]}, {"interval": 0.8}):
        mean, more = model.predict(pairs, **asked)
        assert np.isfinite(mean).all()
        assert np.isfinite(more).all()
    assert len(model.recommend([1], n=3)) == 3
    explained = model.explain(1, 3)
    assert (explained.latent is None) == LIKELIHOODS[name].linear
    new = {"user_id": [50] * 5, "item_id": [0, 1, 2, 3, 4], "rating": ratings["rating"][:5]}
    model.fold_in(new)
    assert np.isfinite(model.predict({"user_id": [50], "item_id": [7]})).all()
    model.partial_fit({**new, "user_id": [51] * 5})
    assert np.isfinite(model.predict({"user_id": [51], "item_id": [7]})).all()


@pytest.mark.parametrize("name", [name for name, kind in LIKELIHOODS.items() if not kind.all_pairs])
def test_a_regressor_learns_and_answers(name):
    rng = np.random.default_rng(2)
    X = rng.uniform(-2, 2, (60, 2))
    y = targets(name, 1.5 * np.sin(X[:, 0]), rng)
    kind = LIKELIHOODS[name]
    inference = "gibbs" if "gibbs" in kind.inferences else NUTS(draws=20, warmup=30, chains=1)
    lengths = {"draws": 30, "warmup": 20} if inference == "gibbs" else {}
    model = TuckerGPRegressor(rank=2, likelihood=name, inference=inference, random_state=0, **lengths).fit(X, y)
    mean, covariance = model.predict(X[:5], return_cov=True)
    assert mean.shape == (5,)
    assert covariance.shape == (5, 5)
    assert model.sample_y(X[:5], 3).shape == (5, 3)
    assert hasattr(model, "predict_proba") == kind.has_levels
