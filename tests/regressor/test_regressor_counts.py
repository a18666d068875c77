"""Counts and levels through `TuckerGPRegressor`: answers of every kind, files, bad input."""

import warnings

import numpy as np
import pytest
from scipy import stats

from tuckergp import Mode, TuckerGPRegressor, load
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.inference import HMC, SGD
from tuckergp.kernels import SE, Constant, Identity
from tuckergp.likelihoods.mixture import poisson_quantiles

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")

MODES = [Mode("day", SE(1.0)), Mode("place", Identity())]
LENGTHS = {"draws": 40, "warmup": 60}
INFERENCES = ["hmc", "nuts", "sgld", "sgd"]


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = {"day": rng.uniform(-2, 2, n), "place": rng.choice(list("abcd"), n)}
    f = np.sin(X["day"]) + 0.5 * (X["place"] == "b")
    return X, f, rng.uniform(0.5, 6.0, n), rng


def fitted(likelihood, inference):
    X, f, exposure, rng = data()
    if likelihood == "poisson":
        y, more = rng.poisson(exposure * np.exp(1 + f)), {"exposure": exposure}
    else:
        z, more = 2 * f + rng.standard_normal(len(f)), {}
        y = (z > 0).astype(int) if likelihood == "bernoulli" else np.digitize(z, [-1.0, 1.0]) + 3
    lengths = {"sgd": {}, "nuts": {"draws": 25, "warmup": 35}}.get(inference, LENGTHS)
    model = TuckerGPRegressor(MODES, rank=2, likelihood=likelihood, inference=inference, random_state=0, **lengths)
    return model.fit(X, y, **more), X, y, more


SLOW = {("poisson", "nuts"), ("ordinal", "nuts")}  # NUTS has the same code for all likelihoods
PAIRS = [(likelihood, inference) for likelihood in ("poisson", "bernoulli", "ordinal") for inference in INFERENCES]


@pytest.mark.parametrize(
    ("likelihood", "inference"),
    [pytest.param(*pair, marks=[pytest.mark.slow] if pair in SLOW else []) for pair in PAIRS],
)
def test_it_learns_by_every_inference(likelihood, inference):
    model, X, y, more = fitted(likelihood, inference)
    assert model.score(X, y, **more) > {"poisson": 0.5, "bernoulli": 0.2, "ordinal": 0.35}[likelihood]
    assert "log_probability" in model.fit_.steps[-1].figures
    assert model.predict({"day": [0.0], "place": ["new"]}).shape == (1,)
    if likelihood != "poisson":
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
        assert not hasattr(fitted("poisson", "sgd")[0], "predict_proba")


def test_counts_are_proportional_to_exposure():
    model, X, _, _ = fitted("poisson", "hmc")
    few = {name: values[:5] for name, values in X.items()}
    once = model.predict(few)
    np.testing.assert_allclose(model.predict(few, exposure=3.0), 3 * once)
    np.testing.assert_allclose(model.predict(few, exposure=[1, 2, 3, 4, 5]), once * np.arange(1, 6))
    mean, std = model.predict(few, return_std=True, exposure=3.0)
    _, narrow = model.predict(few, return_std=True, include_noise=False, exposure=3.0)
    np.testing.assert_allclose(std**2, narrow**2 + mean, rtol=1e-9)
    _, covariance = model.predict(few, return_cov=True, exposure=3.0)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-9)


def test_answers_are_those_of_the_mixture_of_poissons():
    """Means, quantiles and samples against the rates of the draws; samples within 4.5 standard errors."""
    model, X, _, _ = fitted("poisson", "hmc")
    few = {name: values[:4] for name, values in X.items()}
    exposure = np.array([0.1, 1.0, 10.0, 1000.0])
    f = model.fit_.draws.predicted(model._inputs(few)).f
    rates = exposure * np.exp(model.fit_.mean + f)
    mean, quantiles = model.predict(few, quantiles=[0.05, 0.5, 0.95], exposure=exposure)
    np.testing.assert_allclose(mean, rates.mean(axis=0))
    for column, level in enumerate([0.05, 0.5, 0.95]):
        k = quantiles[:, column]
        assert (stats.poisson.cdf(k, rates).mean(axis=0) >= level - 1e-9).all()
        assert (stats.poisson.cdf(k - 1, rates).mean(axis=0) < level).all()
    _, interval = model.predict(few, interval=0.9, exposure=exposure)
    np.testing.assert_array_equal(interval, quantiles[:, [0, 2]])
    _, plain = model.predict(few, quantiles=[0.5], include_noise=False, exposure=exposure)
    np.testing.assert_allclose(plain[:, 0], np.median(rates, axis=0))
    samples = model.sample_y(few, 2000, exposure=exposure)
    assert (samples == np.floor(samples)).all()
    error = np.sqrt((rates.var(axis=0) + rates.mean(axis=0)) / 2000)
    assert (np.abs(samples.mean(axis=1) - mean) < 4.5 * error + 1e-9).all()
    np.testing.assert_allclose(
        np.sort(model.sample_y(few, 40, include_noise=False, exposure=exposure)), np.sort(rates.T)
    )


@pytest.mark.parametrize("level", [0.01, 0.5, 0.99])
def test_quantiles_of_single_poissons_are_scipys(level):
    rate = np.array([[1e-12, 0.3, 1.0, 7.7, 1e4, 1e8]])
    np.testing.assert_array_equal(poisson_quantiles(rate, level), stats.poisson.ppf(level, rate[0]))
    huge = poisson_quantiles(np.array([[1e20], [1e40]]), level)
    assert np.isfinite(huge).all()


def test_running_moments_are_those_of_predictions_at_exposure_one():
    X, f, exposure, rng = data()
    y = rng.poisson(exposure * np.exp(1 + f))
    model = TuckerGPRegressor(MODES, rank=2, likelihood="poisson", inference="hmc", random_state=0, **LENGTHS)
    few = {"day": X["day"][:3], "place": np.array(["a", "new", "b"])}
    model.fit(X, y, exposure=exposure, moments_of=few)
    mean, std = model.predict(few, return_std=True)
    np.testing.assert_allclose(model.moments_.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(model.moments_.std, std, rtol=1e-6)


def test_constant_counts_have_the_posterior_of_a_rate():
    """One Constant feature of rank 1 and N(0, 1): mean and standard deviation of the rate, by quadrature.

    Within 5 and 15 %, some four Monte Carlo standard errors of 400 draws or more.
    """
    y, exposure = np.array([3, 0, 8, 5]), np.array([1.0, 0.5, 2.0, 1.5])
    inference = HMC(draws=1500, warmup=200, leapfrogs=5)
    model = TuckerGPRegressor(
        [Mode("x0", Constant())], rank=1, core="identity", likelihood="poisson", inference=inference, random_state=0
    ).fit(np.ones((4, 1)), y, exposure=exposure)
    mean, std = model.predict([[1.0]], return_std=True, include_noise=False)
    u = np.linspace(-6, 6, 20_001)
    logs = y.sum() * u - exposure.sum() * np.exp(model.fit_.mean + u) - 0.5 * u**2
    share = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    rate = np.exp(model.fit_.mean + u)
    assert mean[0] == pytest.approx(share @ rate, rel=0.05)
    assert std[0] == pytest.approx(np.sqrt(share @ rate**2 - (share @ rate) ** 2), rel=0.15)


@pytest.mark.parametrize("inference", ["hmc", "sgd"])
@pytest.mark.parametrize("likelihood", ["poisson", "bernoulli", "ordinal"])
def test_files_bring_back_the_same_answers(likelihood, inference, tmp_path):
    model, X, _, more = fitted(likelihood, inference)
    model.save(tmp_path / "model.tgp")
    again = load(tmp_path / "model.tgp")
    np.testing.assert_array_equal(again.predict(X, **more), model.predict(X, **more))
    if inference != "sgd":
        np.testing.assert_array_equal(
            again.predict(X, interval=0.8, **more)[1], model.predict(X, interval=0.8, **more)[1]
        )
    if likelihood != "poisson":
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_run_that_was_stopped_goes_on(tmp_path):
    X, f, exposure, rng = data()
    y = rng.poisson(exposure * np.exp(1 + f))
    settings = {"rank": 2, "likelihood": "poisson", "inference": "hmc", "warmup": 10, "random_state": 0}
    for draws in (4, 8):
        model = TuckerGPRegressor(MODES, **settings, draws=draws).fit(
            X, y, exposure=exposure, checkpoint=tmp_path / "run"
        )
    whole = TuckerGPRegressor(MODES, **settings, draws=8).fit(X, y, exposure=exposure)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_weight_zero_is_as_good_as_not_there():
    X, f, exposure, rng = data()
    y = rng.poisson(exposure * np.exp(1 + f))
    weight = (np.arange(len(y)) >= 5).astype(float)
    model = TuckerGPRegressor(MODES, rank=2, likelihood="poisson", inference="sgd", random_state=0)
    left_out = {name: values[5:] for name, values in X.items()}
    expected = model.fit(left_out, y[5:], exposure=exposure[5:], sample_weight=np.ones(115)).predict(X)
    np.testing.assert_allclose(model.fit(X, y, sample_weight=weight, exposure=exposure).predict(X), expected)


def test_all_zeros_and_huge_counts_are_fine():
    X = np.linspace(0, 1, 20)[:, None]
    for y in (np.zeros(20), np.full(20, 10**9), np.arange(20) ** 6):
        model = TuckerGPRegressor(rank=1, likelihood="poisson", inference="hmc", draws=30, warmup=60, random_state=0)
        model.fit(X, y)
        mean, std = model.predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()
        assert np.isfinite(model.predict(X, quantiles=[0.1, 0.9])[1]).all()


def test_kernels_are_learned_from_log_rates():
    X, f, exposure, rng = data()
    y = rng.poisson(50 * exposure * np.exp(f))
    model = TuckerGPRegressor(
        [Mode("day", SE(0.2))], rank=1, likelihood="poisson", inference="sgd", hyperparameters="ml", random_state=0
    ).fit({"day": X["day"]}, y, exposure=exposure)
    (found,) = (value for name, value in model.hyperparameters_.items() if name.endswith("lengthscale"))
    assert 0.5 < float(np.squeeze(found)) < 10  # of sin, from 0.2


def test_grids_of_counts_have_exposures_of_their_shape():
    xarray = pytest.importorskip("xarray")
    rng = np.random.default_rng(0)
    exposure = rng.uniform(1.0, 3.0, (5, 6))
    counts = rng.poisson(4 * exposure).astype(float)
    counts[1, 2] = np.nan
    grid = xarray.DataArray(counts, dims=("a", "b"), coords={"a": np.arange(5.0), "b": np.arange(6.0)})
    model = TuckerGPRegressor(rank=1, likelihood="poisson", inference="sgd", random_state=0)
    model.fit(grid, exposure=exposure)
    np.testing.assert_allclose(model.predict_grid(exposure=exposure), exposure * model.predict_grid())
    with pytest.raises(InputError, match=r"exposure must have the shape \(5, 6\) of the grid"):
        model.fit(grid, exposure=exposure[:4])


BAD = [
    ({}, {"y": [1, -1, 2]}, "needs counts, whole numbers from 0 on, but row 1 of the target holds -1"),
    ({}, {"y": [1, 2, 2.5]}, "needs counts, whole numbers from 0 on, but row 2 of the target holds 2.5"),
    ({}, {"exposure": [1.0, 1.0, 0.0]}, "exposure must be positive, but row 2 holds 0; leave such rows out"),
    ({}, {"exposure": [1.0, -2.0, 1.0]}, "exposure must be positive, but row 1 holds -2"),
    ({}, {"exposure": [1.0, np.nan, 1.0]}, r"'exposure' is missing \(NaN\) at row 1"),
    ({}, {"exposure": [1.0, np.inf, 1.0]}, "'exposure' is infinite at row 1"),
    ({}, {"exposure": [1.0, 1.0]}, r"exposure must be one number, or one for each of the 3 rows, not shape \(2,\)"),
    ({}, {"exposure": ["a", "b", "c"]}, "'exposure' must be numeric"),
    ({"likelihood": "gaussian"}, {"exposure": 2.0}, "exposure is for counts; with likelihood='gaussian' leave it out"),
    ({"inference": "gibbs"}, {}, "'poisson' needs inference='hmc', 'nuts', 'sgld' or 'sgd', not Gibbs"),
    ({"inference": "als"}, {}, "'poisson' needs inference='hmc', 'nuts', 'sgld' or 'sgd', not ALS"),
    ({"likelihood": "student", "inference": "hmc"}, {}, "'student' needs inference='gibbs', not HMC"),
    ({"likelihood": "student", "inference": "gibbs"}, {"sample_weight": [1, 2, 1]}, "takes no weights but 1; repeat"),
    ({"likelihood": "negative_binomial"}, {}, "needs inference='gibbs', 'hmc', 'nuts' or 'sgld', not SGD"),
    ({"likelihood": "negative_binomial", "inference": "gibbs"}, {"y": [1, 2, 2.5]}, "row 2 of the target holds 2.5"),
    ({"likelihood": "negative_binomial", "inference": "gibbs", "noise": "rows"}, {}, "noise='rows' has no meaning"),
    ({"inference": HMC(noise=0.1)}, {}, "HMC: noise is for a Gaussian likelihood; leave it out"),
    ({"inference": HMC(alpha_shape=7.0)}, {}, "alpha_shape and alpha_rate are for a Gaussian likelihood"),
    ({"inference": SGD(noise=0.1)}, {}, "SGD: noise is for a Gaussian likelihood; with likelihood='poisson' leave it"),
    ({"noise": "rows"}, {}, "noise is a setting of inference='gibbs'"),
    ({"likelihood": "bernoulli"}, {"y": [0, 1, 2]}, "needs targets 0 and 1, but row 2 of the target holds 2"),
]


@pytest.mark.parametrize(("settings", "data", "message"), BAD)
def test_bad_input_gets_one_clear_sentence(settings, data, message):
    arguments = {"X": [[1.0, 2.0], [2.0, 3.0], [3.0, 5.0]], "y": [1, 2, 3], **data}
    with pytest.raises(InputError, match=message) as caught:
        TuckerGPRegressor(**{"likelihood": "poisson", "inference": "sgd", **settings}).fit(**arguments)
    assert "\n" not in str(caught.value)


def test_questions_are_checked_too():
    model, X, _, _ = fitted("poisson", "sgd")
    with pytest.raises(InputError, match="exposure must be positive, but row 0 holds -1"):
        model.predict(X, exposure=-1)
    with pytest.raises(InputError, match="exposure must be one number, or one for each of the 120 rows"):
        model.sample_y(X, exposure=[1, 2])
    for ask in ({"return_std": True}, {"quantiles": [0.5]}, {"interval": 0.9}, {"return_cov": True}):
        with pytest.raises(InputError, match=r"A MAP estimate has no uncertainty; for .* use inference='nuts'"):
            model.predict(X, **ask)
    with pytest.raises(InputError, match="for samples use inference='nuts'"):
        model.sample_y(X)
    levels, X, _, _ = fitted("ordinal", "sgd")
    for ask in ({"return_std": True}, {"quantiles": [0.5]}, {"interval": 0.9}):
        with pytest.raises(InputError, match=r"A MAP estimate has no uncertainty; for .* use inference='gibbs'"):
            levels.predict(X, **ask)
    with pytest.raises(InputError, match="exposure is for counts; with likelihood='ordinal' leave it out"):
        levels.predict(X, exposure=2.0)


def test_draws_of_cut_points_are_handed_over():
    pytest.importorskip("arviz")
    model, _, _, _ = fitted("ordinal", "hmc")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        found = model.inference_data()
    assert found["posterior"]["cuts"].shape[-1] == 2
    counts = fitted("poisson", "hmc")[0].inference_data()
    assert "noise" not in counts["posterior"]
