"""Unusual and bad inputs of all regressors: a finite answer, or one sentence that says what to do."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tuckergp import Mode, TuckerGPRegressor
from tuckergp.errors import DataWarning, InputError, NotPositiveDefinite
from tuckergp.features import Cholesky, Fourier, Nystrom
from tuckergp.gp import ExactGP, FullRank, GridGP
from tuckergp.kernels import SE, Identity, Kernel, Matern12, Periodic

MAKERS = {
    "gibbs": lambda modes=None: TuckerGPRegressor(modes, rank=2, draws=20, warmup=20, random_state=0),
    "als, ml": lambda modes=None: TuckerGPRegressor(
        modes, rank=2, inference="als", hyperparameters="ml", random_state=0
    ),
    "ExactGP": lambda modes=None: ExactGP(modes, max_iter=20),
    "FullRank": lambda modes=None: FullRank(modes),
    "GridGP": lambda modes=None: GridGP(modes, max_iter=20),
}
every = pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))


def assert_finite(model, X):
    mean = model.predict(X)
    assert np.isfinite(mean).all()
    if getattr(model, "inference", "") != "als":
        assert np.isfinite(model.predict(X, return_std=True)[1]).all()


@every
def test_constant_columns_change_nothing(make):
    t = np.linspace(0, 1, 20)
    X = np.column_stack([np.full(20, 3.0), np.full(20, 1e9), t])
    model = make().fit(X, np.sin(5 * t))
    assert_finite(model, X)
    assert_finite(model, X + np.array([1.0, 0.0, 0.0]))
    assert model.score(X, np.sin(5 * t)) > 0.9


@pytest.mark.filterwarnings("ignore:The draws have not mixed")
@pytest.mark.parametrize(
    "modes", [None, *([Mode("x0", SE(1.0), features, whiten=True)] for features in (None, Fourier(100)))]
)
def test_huge_weights_and_repeated_features_do_not_end_a_fit(modes):
    x = np.random.default_rng(0).uniform(0, 10, size=(2600, 1))
    y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(2600)
    model = TuckerGPRegressor(modes, rank=2, draws=10, warmup=20, random_state=0)
    for weight in (None, 1e12):
        assert model.fit(x, y, sample_weight=weight).score(x, y) > 0.9  # 0.98 is what can be had


@every
@pytest.mark.parametrize("size", [1e-100, 1e-12, 1e100])
def test_units_of_targets_and_inputs_do_not_matter(make, size):
    t = np.random.default_rng(0).uniform(0, 1, (20, 1))
    y = np.sin(5 * t[:, 0])
    model = make().fit(t * size, size * y)
    assert_finite(model, t * size)
    assert np.corrcoef(model.predict(t * size) / size, y)[0, 1] ** 2 > 0.95
    np.testing.assert_allclose(model.predict(t * size) / size, make().fit(t, y).predict(t), atol=0.1)


@pytest.mark.parametrize(("size", "words"), [(1e308, "too large; divide"), (1e-250, "too small; multiply")])
def test_targets_whose_squares_are_no_numbers_are_refused(size, words):
    with pytest.raises(InputError, match=f"The targets reach .*, which is {words} them by a number"):
        MAKERS["gibbs"]().fit([[0.0], [1.0], [2.0]], [size, -size, size])


@every
def test_one_point_is_enough(make):
    model = make().fit([[1.0, 2.0]], [3.0])
    assert model.predict([[1.0, 2.0]]) == pytest.approx([3.0], abs=0.5)
    assert_finite(model, [[1.0, 2.0], [50.0, -50.0]])


@every
def test_there_may_be_more_columns_than_rows(make):
    X = np.random.default_rng(0).normal(size=(4, 7))
    assert_finite(make().fit(X, np.arange(4.0)), X)


@every
def test_repeated_inputs_with_different_targets_are_averaged(make):
    X, y = np.repeat(np.linspace(0, 1, 6), 10)[:, None], np.tile([-1.0, 1.0], 30)
    if make is MAKERS["GridGP"]:
        with pytest.raises(InputError, match=r"rows 0 and 1 have the same inputs; average them, or use ExactGP"):
            make().fit(X, y)
        return
    model = make().fit(X, y + X[:, 0])
    np.testing.assert_allclose(model.predict(X), X[:, 0], atol=0.4)


@every
@pytest.mark.parametrize("targets", [np.full(12, 5.0), np.r_[np.full(11, 5.0), 5.0 + 1e-9]], ids=["same", "nearly"])
def test_targets_that_are_all_the_same_are_predicted(make, targets):
    X = np.linspace(0, 1, 12)[:, None]
    np.testing.assert_allclose(make().fit(X, targets).predict(X), 5.0, atol=0.1)


@every
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (SE(0.0), r"lengthscale of SE\(lengthscale=0.0\) must be positive"),
        (Matern12(-1.0), r"lengthscale of Matern12\(lengthscale=-1.0\) must be positive"),
        (Periodic(0.0), r"period of Periodic\(period=0.0"),
        (SE(1.0) + -0.5 * SE(2.0), r"scale of a kernel must be positive and finite; -0.5 \* SE"),
    ],
)
def test_impossible_numbers_are_named_with_their_kernel(make, kernel, message):
    X = np.random.default_rng(0).uniform(size=(10, 2))
    with pytest.raises(InputError, match=message):
        make([Mode("x0", SE(1.0)), Mode("x1", kernel)]).fit(X, X[:, 0])


class Wedge(Kernel):
    """1 - |x - x'|, which is no kernel on a long interval."""

    def _gram(self, X, Y):
        return 1.0 - np.abs(self._numbers(X) - self._numbers(Y).T)


class Minus(Kernel):
    """Negative everywhere."""

    def _gram(self, X, Y):
        return -np.ones((len(X), len(Y)))

    def _diag(self, X):
        return -np.ones(len(X))


@every
@pytest.mark.parametrize("kernel", [Wedge(), Minus()], ids=["wedge", "minus"])
def test_what_is_no_kernel_is_named_with_its_mode(make, kernel):
    X = np.random.default_rng(0).uniform(0, 9, size=(30, 2))
    modes = [Mode("x0", SE(1.0)), Mode("x1", kernel, constant=False)]
    with pytest.raises(NotPositiveDefinite, match=r"Mode 'x1': (Wedge|Minus)\(\) is no kernel .* multiple of Identity"):
        make(modes).fit(X, X[:, 0])


@pytest.mark.parametrize("features", [Nystrom(10), Nystrom(10, points="greedy"), Cholesky()], ids=repr)
def test_features_of_what_is_no_kernel_are_refused(features, monkeypatch):
    X = np.random.default_rng(0).uniform(0, 9, size=(30, 2))
    modes = [Mode("x0", SE(1.0)), Mode("x1", Wedge(), features)]
    for rows in (2000, 5):  # beyond, column by column
        monkeypatch.setattr("tuckergp.features.pivoted.GRAM_ROWS", rows)
        with pytest.raises(NotPositiveDefinite, match=r"Mode 'x1': .*Wedge\(\)"):
            MAKERS["gibbs"](modes).fit(X, X[:, 0])


def test_a_large_axis_of_what_is_no_kernel_is_refused(monkeypatch):
    monkeypatch.setattr("tuckergp.gp.kronecker.SMALL", 5)
    X = np.stack([axis.ravel() for axis in np.meshgrid(np.arange(3.0), np.arange(30.0), indexing="ij")], axis=1)
    with pytest.raises(NotPositiveDefinite, match="Mode 'x1'"):
        GridGP([Mode("x0", SE(1.0)), Mode("x1", Minus(), constant=False)]).fit(X, X[:, 0])


def test_the_remedy_is_one():
    X = np.random.default_rng(0).uniform(0, 9, size=(30, 1))
    assert_finite(MAKERS["ExactGP"]([Mode("x0", Wedge() + 200.0 * Identity())]).fit(X, X[:, 0]), X)


def test_nearly_singular_kernels_are_fine():
    X = np.linspace(0, 1, 60)[:, None]
    for make in MAKERS.values():
        assert_finite(make([Mode("x0", SE(50.0))]).fit(X, X[:, 0]), X)


class TestScikitLearn:
    """Pipelines, searches and copies."""

    @pytest.fixture
    def data(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-2, 2, size=(90, 2)) * [1.0, 100.0]
        return X, np.sin(2 * X[:, 0]) * np.cos(X[:, 1] / 100) + 0.1 * rng.standard_normal(90)

    def test_a_pipeline_is_cross_validated(self, data):
        modes = [Mode("x0", SE(1.0)), Mode("x1", SE(1.0))]
        model = make_pipeline(StandardScaler(), TuckerGPRegressor(modes, rank=2, inference="als", random_state=0))
        assert cross_val_score(model, *data, cv=3).min() > 0.7
        model.fit(*data)
        sampler = make_pipeline(StandardScaler(), MAKERS["gibbs"]()).fit(*data)
        mean, std = sampler.predict(data[0], return_std=True)
        assert mean.shape == std.shape == (90,)

    def test_a_search_over_the_rank_finds_that_one_is_too_few(self):
        rng = np.random.default_rng(1)
        X = rng.uniform(-2, 2, size=(150, 2))
        y = np.sin(2 * X[:, 0]) * np.cos(2 * X[:, 1]) + np.cos(2 * X[:, 0]) * np.sin(2 * X[:, 1])
        modes = [Mode("x0", SE(1.0), constant=False), Mode("x1", SE(1.0), constant=False)]
        search = GridSearchCV(TuckerGPRegressor(modes, inference="als", random_state=0), {"rank": [1, (2, 2)]}, cv=3)
        assert search.fit(X, y).best_params_ == {"rank": (2, 2)}
        assert search.best_score_ > 0.95

    def test_a_clone_repeats_the_fit(self, data):
        model = TuckerGPRegressor([Mode("x0", SE(1.0)), Mode("x1", SE(50.0))], hyperparameters="ml", fixed=("scale",))
        model.set_params(inference="als", learn_rows=40, random_state=3)
        copy = clone(model)
        assert {k: v for k, v in copy.get_params().items() if k != "modes"} == {
            k: v for k, v in model.get_params().items() if k != "modes"
        }
        np.testing.assert_array_equal(copy.fit(*data).predict(data[0]), model.fit(*data).predict(data[0]))


@pytest.fixture(scope="module")
def line():
    x = np.linspace(0, 1, 20)[:, None]
    return MAKERS["gibbs"]().fit(x, x[:, 0]), x


def test_one_quantile_may_be_a_number(line):
    model, x = line
    for one in (0.3, np.float64(0.3), np.array([0.3]), (0.3,)):
        np.testing.assert_array_equal(model.predict(x, quantiles=one)[1], model.predict(x, quantiles=[0.3])[1])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"quantiles": []}, "quantiles must be a list of probabilities between 0 and 1, not"),
        ({"quantiles": "a"}, "quantiles must be"),
        ({"quantiles": ["0.5"]}, "quantiles must be"),
        ({"quantiles": True}, "quantiles must be"),
        ({"quantiles": [0.5, 1.5]}, "quantiles must be"),
        ({"return_std": "yes"}, "return_std must be True or False, not 'yes'"),
        ({"return_cov": "no"}, "return_cov must be True or False, not 'no'"),
        ({"include_noise": "yes"}, "include_noise must be True or False, not 'yes'"),
        ({"interval": "a"}, "interval must be a probability between 0 and 1, not 'a'"),
    ],
)
def test_answers_that_make_no_sense_are_refused(asked, message, line):
    model, x = line
    with pytest.raises(InputError, match=message):
        model.predict(x, **asked)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_targets_that_are_all_the_same_do_not_make_a_binary_model_certain(value):
    """As many as 50 of them: a probability beyond that of the rule of succession's, short of 1 by the prior."""
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = TuckerGPRegressor(rank=2, likelihood="bernoulli", draws=100, warmup=100, random_state=0)
    probability = model.fit(X, np.full(50, value)).predict_proba(X)[:, int(value)]
    assert (probability > 0.9).all()
    assert (probability < 1 - 1e-9).all()
    assert probability.mean() < 0.9999


def test_weights_that_are_rather_shares_are_announced():
    X, y = np.linspace(-1, 1, 60)[:, None], np.linspace(0, 1, 60)
    model = MAKERS["gibbs"]()
    with pytest.warns(DataWarning, match=r"sample_weight sums to 1, so that 59 rows count as that many.*Divide it"):
        model.fit(X, y, sample_weight=np.r_[0.0, np.full(59, 1 / 59)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        model.fit(X, y, sample_weight=np.full(60, 0.06))


@pytest.mark.parametrize(
    ("y", "what"), [(np.ones(3) + 1j, "Complex data not supported"), (np.ones((3, 2, 2)), "Found array with dim 3")]
)
def test_targets_of_other_shapes_and_kinds_are_refused_in_a_sentence(y, what):
    with pytest.raises(InputError, match=rf"^The target y cannot be used: {what}.*\.$"):
        TuckerGPRegressor(draws=1).fit({"a": [1.0, 2.0, 3.0]}, y)


@pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")
def test_weights_out_of_all_proportion_leave_finite_predictions():
    rng = np.random.default_rng(0)
    X = {"a": rng.normal(size=60), "b": rng.uniform(size=60), "c": list("xyz" * 20)}
    y = np.sin(X["a"]) + X["b"] + 0.1 * rng.normal(size=60)
    model = TuckerGPRegressor(rank=2, draws=60, warmup=60, random_state=0)
    model.fit(X, y, sample_weight=np.where(np.arange(60) % 2, 1e12, 1.0))
    assert all(np.isfinite(np.asarray(mode.B)).all() for mode in model.fit_.draws.modes)
    assert np.isfinite(model.predict(X, return_std=True)).all()


@pytest.mark.parametrize(
    ("y", "weight", "message"),
    [
        ([1.0, np.nan, 2.0], None, "the target column 'y' is missing .NaN. at row 1"),
        (None, None, "requires y to be passed"),
        ([1.0, 2.0], None, "X has 3 rows but y has 2"),
        (["a", "b", "c"], None, "must be numeric, but row 0 holds 'a'"),
        ([1.0, 2.0, 3.0], [1.0], "sample_weight must have one entry for each of the 3 rows"),
        ([1.0, 2.0, 3.0], [1.0, np.nan, 1.0], "sample_weight' is missing .NaN. at row 1"),
    ],
)
def test_targets_that_cannot_be_scored_are_refused_in_a_sentence(y, weight, message):
    model = TuckerGPRegressor(rank=1, inference="als", random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    with pytest.raises(InputError, match=message):
        model.score([[0.0], [1.0], [2.0]], y, sample_weight=weight)


@pytest.mark.filterwarnings("error::tuckergp.errors.DataWarning")
@pytest.mark.parametrize("outputs", [1, 2])
def test_weights_to_score_by_may_be_shares(outputs):
    x = np.linspace(0, 1, 40)[:, None]
    y = np.squeeze(np.tile(np.sin(5 * x), (1, outputs)))
    model = TuckerGPRegressor(rank=1, inference="als", random_state=0).fit(x, y)
    assert model.score(x, y, sample_weight=np.full(40, 1 / 40)) == pytest.approx(model.score(x, y))
