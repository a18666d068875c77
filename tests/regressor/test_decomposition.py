"""f as a sum over kernel terms, against the parts that the data were made of and against `predict`."""

import numpy as np
import pytest

from tuckergp import Mode, TuckerGPRegressor
from tuckergp.errors import InputError
from tuckergp.kernels import SE, Identity, Linear, Periodic


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(0)
    t = np.arange(160.0)
    parts = {"Linear(t)": 0.02 * (t - t.mean()), "Periodic(t)": np.sin(2 * np.pi * t / 12)}
    return {"t": t}, parts, 3 + sum(parts.values()) + 0.1 * rng.standard_normal(160)


@pytest.fixture(scope="module")
def model(series):
    kernel = Linear() + Periodic(12.0) + SE(20.0)
    mode = Mode("t", kernel)
    X, _, y = series
    return TuckerGPRegressor([mode], rank=1, draws=80, warmup=80, random_state=0).fit(X, y)


def test_trend_and_season_are_found(model, series):
    X, parts, _ = series
    found = model.decompose(X)
    assert set(found.terms) == {"Linear(t)", "Periodic(t)", "SE(t)"}
    season = found.terms.index("Periodic(t)")
    np.testing.assert_allclose(found.mean[:, season] - found.mean[:, season].mean(), parts["Periodic(t)"], atol=0.15)
    assert list(found.mean.std(axis=0)) == sorted(found.mean.std(axis=0), reverse=True)


def test_the_terms_add_up_to_the_prediction_at_new_inputs_too(model):
    new = {"t": [-3.0, 70.5, 200.0]}
    found = model.decompose(new)
    np.testing.assert_allclose(found.total(), model.predict(new), rtol=1e-6)
    inside, far = model.decompose({"t": [70.5]}), model.decompose({"t": [400.0]})
    left = [one.terms.index("left out") if "left out" in one.terms else None for one in (inside, far)]
    assert left[1] is not None
    assert far.std[0, left[1]] > 2 * (0.0 if left[0] is None else inside.std[0, left[0]])
    known = {"t": [0.0, 70.0]}
    np.testing.assert_allclose(model.decompose(known).total(), model.predict(known), rtol=1e-6)


@pytest.mark.parametrize("core", ["full", "identity", "pairwise"])
def test_modes_have_main_effects_and_interactions(core):
    rng = np.random.default_rng(1)
    X = {"x": rng.uniform(-2, 2, 150), "place": rng.integers(4, size=150)}
    y = np.sin(X["x"]) * (1 + X["place"]) + X["x"]
    modes = [Mode("x", Linear() + SE(1.0)), Mode("place", Identity())]
    model = TuckerGPRegressor(modes, rank=2, core=core, draws=20, warmup=20, random_state=0).fit(X, y)
    found = model.decompose(X)
    effects = {"Linear(x)", "SE(x)", "Identity(place)"}
    assert set(found.terms) == effects | {"Linear(x) x Identity(place)", "SE(x) x Identity(place)"}
    np.testing.assert_allclose(found.total(), model.predict(X), rtol=1e-5, atol=1e-5)
    alone = found.mean[:, found.terms.index("Identity(place)")]
    for place in range(4):  # a main effect is the same wherever its own columns are
        assert np.ptp(alone[X["place"] == place]) < 1e-9


def test_a_main_effect_is_f_without_the_other_terms():
    """By hand in one draw: f is bilinear, and the constants are features of value 1."""
    rng = np.random.default_rng(2)
    X = {"a": rng.uniform(-1, 1, 40), "b": rng.uniform(-1, 1, 40)}
    model = TuckerGPRegressor([Mode("a", Linear()), Mode("b", Linear())], rank=2, inference="als", random_state=0)
    model.fit(X, X["a"] * X["b"] + X["a"])
    found, fit = model.decompose(X), model.fit_
    assert found.std is found.lower is found.upper is None
    (A, B), W = (mode.B[:, 0] for mode in fit.draws.modes), fit.draws.model.core.dense(fit.draws.W[0])
    expected = fit.scale * X["a"] * (A[1] @ W @ B[0])
    np.testing.assert_allclose(found.mean[:, found.terms.index("Linear(a)")], expected, rtol=1e-6)
    assert found.level == pytest.approx(fit.mean + fit.scale * A[0] @ W @ B[0])


def test_it_is_drawn_and_printed(model, series):
    pytest.importorskip("matplotlib").use("Agg")
    X, _, _ = series
    found = model.decompose(X, interval=0.5)
    axes = found.plot(top=2)
    assert [ax.get_title() for ax in axes] == list(found.terms[:2])
    assert len(axes[0].collections) == 1
    assert "Periodic(t)" in str(found)
    wide = model.decompose(X, interval=0.95)
    assert ((wide.upper - wide.lower) >= (found.upper - found.lower)).all()


def test_bad_settings_are_refused(model, series):
    with pytest.raises(InputError, match="interval must be a probability"):
        model.decompose(series[0], interval=2)
