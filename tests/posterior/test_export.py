"""What ArviZ is given."""

import sys
import warnings

import numpy as np
import pytest

from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender, load
from tuckergp.data.datasets import make_ratings
from tuckergp.errors import InputError
from tuckergp.inference.gibbs import Gibbs
from tuckergp.inference.hmc import HMC
from tuckergp.inference.nuts import NUTS
from tuckergp.kernels import Identity, Linear
from tuckergp.posterior.diagnostics import summarise


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=60, n_items=50, n_ratings=1200, random_state=0)


@pytest.fixture(scope="module")
def ratings_model(data):
    return TuckerRecommender(rank=2, draws=30, warmup=10, chains=3, random_state=0).fit(
        data.train, data.users, data.items
    )


def group_of(found, name):
    """A group, of `arviz.InferenceData` or of `xarray.DataTree`."""
    return found[name] if hasattr(found, "groups") else getattr(found, name)


def test_diagnostics_agree_with_those_of_arviz(ratings_model):
    arviz = pytest.importorskip("arviz", exc_type=ImportError)
    found = ratings_model.inference_data()
    # on the same numbers: in other units rounding may order the two draws beside the median the other way
    ours = summarise(group_of(found, "posterior")["f"].values)
    np.testing.assert_allclose(arviz.rhat(found, var_names=["f"])["f"].values, ours.rhat, rtol=1e-9)
    np.testing.assert_allclose(ours.ess_bulk, ratings_model.fit_.draws.diagnostics().ess_bulk, rtol=1e-6)
    for method, values in (("bulk", ours.ess_bulk), ("tail", ours.ess_tail)):
        expected = arviz.ess(found, var_names=["f"], method=method)["f"].values
        np.testing.assert_allclose(expected, values, rtol=1e-9)


def test_quantities_have_their_names_and_the_units_of_the_targets(ratings_model, data):
    pytest.importorskip("arviz", exc_type=ImportError)
    posterior = group_of(ratings_model.inference_data(), "posterior")
    assert set(posterior.data_vars) == {"f", "noise", "tau"}
    blocks = sum(len(mode.blocks) for mode in ratings_model.layout_.modes)
    assert dict(posterior.sizes) == {"chain": 3, "draw": 30, "observation": 100, "block": blocks}
    names = posterior["block"].values.tolist()
    assert "user_id: Linear('occupation')" in names
    assert "item_id: Cosine('co-rating')" in names
    assert len(set(names)) == blocks
    rows = posterior["observation"].values
    watched = data.train.take(rows)
    predicted = ratings_model.predict(watched, clip=False)
    np.testing.assert_allclose(posterior["f"].mean(("chain", "draw")).values, predicted, rtol=1e-5)
    assert 0.3 < float(posterior["noise"].mean()) < 1.5


def test_log_likelihoods_are_those_of_the_targets():
    pytest.importorskip("arviz", exc_type=ImportError)
    from scipy.stats import norm

    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(80, 2))
    y = 50 + 10 * np.sin(X[:, 0]) + rng.standard_normal(80)
    weight = rng.integers(1, 3, size=80)
    model = TuckerGPRegressor(rank=2, draws=10, warmup=5, random_state=0).fit(X, y, sample_weight=weight)
    found = model.inference_data()
    posterior = group_of(found, "posterior")
    rows = posterior["observation"].values
    expected = norm.logpdf(y[rows], posterior["f"].values, posterior["noise"].values[..., None])
    values = group_of(found, "log_likelihood")["y"].values
    np.testing.assert_allclose(values, expected, rtol=1e-9)


def test_ordinal_models_hand_over_cut_points(data):
    pytest.importorskip("arviz", exc_type=ImportError)
    model = TuckerRecommender(rank=2, likelihood="ordinal", draws=6, warmup=2, random_state=0).fit(
        data.train, moments_of=data.test, keep_draws=False
    )
    found = model.inference_data()
    posterior = group_of(found, "posterior")
    assert posterior["cuts"].dims == ("chain", "draw", "cut")
    assert "noise" not in posterior
    assert (group_of(found, "log_likelihood")["y"].values <= 0).all()
    levels = np.unique(data.train["rating"])
    for group in ("observed_data", "posterior_predictive"):
        assert np.isin(group_of(found, group)["y"].values, levels).all()


def test_without_arviz_one_sentence_says_what_to_install(ratings_model, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"needs ArviZ: pip install 'tuckergp\[arviz\]'"):
        ratings_model.inference_data()


def test_a_most_probable_point_has_nothing_to_hand_over():
    model = TuckerGPRegressor(rank=1, inference="als").fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(InputError, match="has no draws to hand over"):
        model.inference_data()


def test_every_block_is_named():
    model = TuckerGPRegressor(rank=2, inference=Gibbs(draws=4, warmup=1), random_state=0)
    X = np.random.default_rng(0).uniform(size=(30, 2))
    pytest.importorskip("arviz", exc_type=ImportError)
    posterior = group_of(model.fit(X, X[:, 0]).inference_data(), "posterior")
    assert posterior["block"].values.tolist() == [
        "x0: Constant()", "x0: Linear()", "x1: Constant()", "x1: Linear()",
    ]  # fmt: skip


def test_replicated_targets_have_the_distribution_of_new_ones_at_the_watched_observations():
    pytest.importorskip("arviz", exc_type=ImportError)
    rng = np.random.default_rng(0)
    place = np.repeat(np.arange(4), 25)
    y = 100 + 5 * rng.standard_normal(100) * np.where(place == 3, 10.0, 1.0)
    settings = {"rank": 1, "noise": "rows", "draws": 400, "warmup": 100, "random_state": 0}
    model = TuckerGPRegressor([Mode("place", Identity())], **settings).fit({"place": place}, y)
    found = model.inference_data()
    replicated = group_of(found, "posterior_predictive")["y"].values[0]
    np.testing.assert_allclose(group_of(found, "observed_data")["y"].values, y)
    sd = model.predict({"place": place}, return_std=True)[1]
    # 400 draws for each of 25 observations of a place, whose variance has a relative error of about 3 %
    np.testing.assert_allclose(replicated.std(axis=0).reshape(4, 25).mean(axis=1), sd[::25], rtol=0.15)
    mean = model.predict({"place": place})
    np.testing.assert_allclose(replicated.mean(axis=0), mean, atol=0.25 * sd.max())


def test_replicated_counts_have_their_exposures():
    pytest.importorskip("arviz", exc_type=ImportError)
    X, exposure = np.zeros((60, 1)), np.repeat([1.0, 20.0], 30)
    counts = np.random.default_rng(0).poisson(5 * exposure)
    X[:, 0] = np.tile(np.arange(30), 2)
    model = TuckerGPRegressor(["x0"], 1, HMC(draws=60, warmup=60), likelihood="poisson", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.fit(X, counts, exposure=exposure).inference_data()
    replicated = group_of(found, "posterior_predictive")["y"].values[0]
    assert 50 < replicated[:, exposure == 20].mean() < 200
    assert 1 < replicated[:, exposure == 1].mean() < 20


@pytest.mark.parametrize("name", ["hmc", "nuts"])
def test_samplers_with_trajectories_hand_over_energies_and_divergences(name):
    arviz = pytest.importorskip("arviz", exc_type=ImportError)
    if name == "nuts":
        pytest.importorskip("nutpie")
    X = np.linspace(-1, 1, 30)[:, None]
    kind = {"hmc": HMC, "nuts": NUTS}[name]
    model = TuckerGPRegressor([Mode(0, Linear())], 1, kind(draws=40, warmup=20, chains=2, thin=2), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.fit(X, X[:, 0]).inference_data()
    statistics = group_of(found, "sample_stats")
    assert dict(statistics.sizes) == {"chain": 2, "draw": 20}
    assert {"energy", "lp", "diverging", "acceptance_rate", "step_size", "n_steps"} <= set(statistics.data_vars)
    assert statistics["diverging"].dtype == bool
    # the energy of a draw is that of its place plus that of a momentum, a sum of squares
    assert (statistics["energy"].values > -statistics["lp"].values).all()
    by_step = {(info.chain, info.step): info.figures for info in model.fit_.steps}
    assert statistics["energy"].values[1, 0] == by_step[1, 22]["energy"]
    assert np.isfinite(arviz.bfmi(found)).all()


def test_arviz_plots_energies_and_predictive_checks():
    arviz = pytest.importorskip("arviz", exc_type=ImportError)
    plots = pytest.importorskip("matplotlib.pyplot")
    plots.switch_backend("agg")
    X = np.linspace(-1, 1, 30)[:, None]
    model = TuckerGPRegressor([Mode(0, Linear())], 1, HMC(draws=20, warmup=10), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.fit(X, X[:, 0]).inference_data()
        arviz.plot_ppc(found, num_pp_samples=5)
        arviz.plot_energy(found)
    plots.close("all")


def test_a_model_whose_ratings_are_withheld_hands_over_none(ratings_model, data, tmp_path):
    pytest.importorskip("arviz", exc_type=ImportError)
    found = ratings_model.inference_data()
    rows = group_of(found, "posterior")["observation"].values
    np.testing.assert_allclose(group_of(found, "observed_data")["y"].values, data.train.take(rows)["rating"])
    ratings_model.save(tmp_path / "model.tgp", ratings=False)
    assert not load(tmp_path / "model.tgp").fit_.draws.targets
