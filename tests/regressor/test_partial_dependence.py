"""Partial dependence: predictions as a function of one column."""

import numpy as np
import pytest

from tuckergp import Mode, TuckerGPRegressor
from tuckergp.errors import InputError
from tuckergp.inference import ALS
from tuckergp.kernels import SE, Identity, Linear


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    n = 240
    X = {
        "x": rng.uniform(-2, 2, n),
        "kind": np.array(["a", "b", "c"], dtype=object)[rng.integers(3, size=n)],
        "day": np.datetime64("2020-01-01") + rng.integers(0, 100, n),
    }
    y = np.sin(X["x"]) + 2.0 * (X["kind"] == "b") + 0.05 * rng.standard_normal(n)
    modes = [Mode("x", SE(1.0)), Mode("kind", Identity()), Mode("day", Linear(), whiten=True)]
    return X, y, TuckerGPRegressor(modes, 2, draws=40, warmup=60, random_state=0).fit(X, y)


def test_it_is_the_average_of_predictions_over_the_inputs(fitted):
    X, _, model = fitted
    few = {name: values[:7] for name, values in X.items()}
    found = model.partial_dependence(few, "x", values=[-1.0, 0.5])
    expected = [model.predict({**few, "x": np.full(7, value)}).mean() for value in (-1.0, 0.5)]
    np.testing.assert_allclose(found.mean, expected, atol=1e-5)
    samples = model.sample_y({**few, "x": np.full(7, 0.5)}, 40, include_noise=False).mean(axis=0)
    np.testing.assert_allclose(found.std[1], samples.std(ddof=1), rtol=1e-5)
    np.testing.assert_allclose([found.lower[1], found.upper[1]], np.quantile(samples, [0.05, 0.95]), rtol=1e-5)


def test_many_inputs_and_many_draws_are_averaged_by_blocks(fitted, monkeypatch):
    X, _, model = fitted
    whole = model.partial_dependence(X, "x")
    monkeypatch.setattr("tuckergp.posterior.fitted.BLOCK", 40 * 70)
    np.testing.assert_allclose(model.partial_dependence(X, "x").mean, whole.mean, rtol=1e-5)
    assert len(whole.values) == 40


def test_bands_hold_the_function(fitted):
    X, _, model = fitted
    found = model.partial_dependence(X, "x")
    truth = np.sin(found.values) + 2 * (X["kind"] == "b").mean()
    assert ((found.lower - 0.05 < truth) & (truth < found.upper + 0.05)).mean() > 0.9


def test_levels_and_dates_have_values_of_their_own(fitted):
    X, _, model = fitted
    kinds = model.partial_dependence(X, "kind")
    assert kinds.values.tolist() == ["a", "b", "c"]
    assert kinds.mean[1] - kinds.mean[0] == pytest.approx(2, abs=0.2)
    days = model.partial_dependence(X, "day")
    assert days.values.dtype.kind == "M"
    assert X["day"].min() <= days.values[0] < days.values[-1] <= X["day"].max()
    assert "2020" in str(days)


def test_values_are_read_as_those_of_the_column(fitted):
    X, _, model = fitted
    days = model.partial_dependence(X, "day", values=["2020-01-05", "2020-02-05"])
    np.testing.assert_array_equal(days.values, np.array(["2020-01-05", "2020-02-05"], dtype="M8[us]"))
    assert model.partial_dependence(X, "x", values=0.5).values.tolist() == [0.5]
    for column, values, sentence in (
        ("x", ["a"], "values column 'x' must be numeric, but row 0 holds 'a'"),
        ("x", [np.nan], "values column 'x' .* row 0"),
        ("x", [], "values has no entry; give at least one"),
        ("day", ["soon"], "values column 'day' must hold dates, but row 0 holds 'soon'"),
        ("day", [3.0], "held dates in training, and now holds numbers"),
    ):
        with pytest.raises(InputError, match=sentence):
            model.partial_dependence(X, column, values=values)


def test_levels_of_several_types_come_type_by_type():
    level = np.array([1, "b", "a"] * 20, dtype=object)
    model = TuckerGPRegressor(rank=1, inference=ALS(iterations=3), random_state=0).fit({"level": level}, np.arange(60))
    assert model.partial_dependence({"level": level}, "level").values.tolist() == [1, "a", "b"]


def test_values_may_lie_between_whole_numbers():
    level = np.tile(np.arange(5), 12)
    mode = Mode("level", Linear(), whiten=True)
    model = TuckerGPRegressor([mode], 1, draws=20, warmup=20, random_state=0).fit({"level": level}, 2.0 * level)
    found = model.partial_dependence({"level": level}, "level", values=[1.0, 1.5, 2])
    np.testing.assert_allclose(found.mean, [2.0, 3.0, 4.0], atol=0.1)
    assert model.partial_dependence({"level": level}, "level", values=[1.0]).values.dtype.kind == "i"


def test_one_call_plots_all_columns(fitted):
    plots = pytest.importorskip("matplotlib.pyplot")
    plots.switch_backend("agg")
    X, _, model = fitted
    panels = model.plot_partial_dependence(X)
    assert [ax.get_xlabel() for ax in panels] == ["x", "kind", "day"]
    assert [len(ax.collections) for ax in panels] == [1, 1, 1]  # the bands
    assert [label.get_text() for label in panels[1].get_xticklabels()] == ["a", "b", "c"]
    (alone,) = model.plot_partial_dependence(X, "x", axes=panels[0])
    assert alone is panels[0]
    plots.close("all")


def test_a_point_has_no_band_and_a_column_that_is_not_used_is_refused():
    X = np.random.default_rng(0).uniform(size=(30, 2))
    model = TuckerGPRegressor([0], 1, ALS(iterations=3), random_state=0).fit(X, X[:, 0])
    found = model.partial_dependence(X, 0)
    assert found.lower is None
    assert str(found).splitlines()[0].split() == ["x0", "mean"]
    with pytest.raises(InputError, match="uses no column 1; it uses x0"):
        model.partial_dependence(X, 1)
