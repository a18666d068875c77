"""Rows never seen whose set is not known have the distribution of training rows given their other features."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from tuckergp import Mode, TuckerGPRegressor, load
from tuckergp.features.new import NewFeatures
from tuckergp.kernels import Cosine, Identity
from tuckergp.model.design import Design
from tuckergp.model.draw import draw_of
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.newcomers import INTERCEPT, RIDGE, SHRINKAGE, NewcomerRegression, Newcomers
from tuckergp.model.tucker import TuckerModel, make_core
from tuckergp.posterior.draws import Draws
from tuckergp.posterior.newcomers import TrainingRows, prior_of_rows
from tuckergp.random import DrawStreams
from tuckergp.residuals import Rows


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_it_is_weighted_ridge_regression_with_the_intercept_of_the_observations(rng):
    features, psi = rng.standard_normal((40, 3)), rng.standard_normal((40, 2))
    observed = np.concatenate([np.arange(40), rng.integers(0, 40, 200) ** 2 // 40])
    z = rng.normal([1.0, -2.0], 1.0, (len(observed), 2))
    found = NewcomerRegression(features, observed).given(psi, observed, z)
    count = np.sqrt([(observed == m).sum() for m in range(40)])
    X, D = np.hstack([np.ones((40, 1)), features]), np.diag(count / count.mean())
    weights = np.linalg.solve(X.T @ D @ X + np.diag([INTERCEPT, RIDGE, RIDGE, RIDGE]), X.T @ D @ psi)
    left, share = psi - X @ weights, count / count.sum()
    # least squares by augmented rows: sqrt of the ridge, target zero
    ridge = np.sqrt(SHRINKAGE * np.mean((z**2).sum(axis=0))) * np.eye(2)
    f = np.einsum("ir,ir->i", z, left[observed])
    shift, *_ = np.linalg.lstsq(np.vstack([z, ridge]), np.append(f, [0.0, 0.0]), rcond=None)
    np.testing.assert_allclose(found.weights[1:], weights[1:], atol=1e-10)
    np.testing.assert_allclose(found.weights[0], weights[0] + shift, atol=1e-10)
    covariance = (left.T * share) @ left / (1 - (share**2).sum())
    np.testing.assert_allclose(found.root.T @ found.root, covariance, atol=1e-5)


def test_more_ranks_than_rows_and_factors_of_zero_are_no_fault(rng):
    found = NewcomerRegression(np.zeros((3, 0)), np.arange(3)).given(
        rng.standard_normal((3, 6)), np.arange(3), np.zeros((3, 6))
    )
    assert found.root.shape == (6, 6)
    assert np.isfinite(found.weights).all()
    # a fold-in inverts it
    assert np.isfinite(np.linalg.cholesky(np.linalg.inv(found.root.T @ found.root))).all()


def sets_of(rng, rows, members):
    own = rng.random((rows, members)) < 0.4
    own[np.arange(rows), rng.integers(members, size=rows)] = True
    return own / np.sqrt(own.sum(axis=1, keepdims=True))


@pytest.fixture
def fitted(rng):
    """Two equal draws of users with a set and of items without, and the design that they were learned from."""
    features = sparse.csr_array(np.hstack([rng.standard_normal((50, 2)), sets_of(rng, 50, 8)]))
    users = ModeTable(features, Rows.of(50), blocks=(slice(0, 2), slice(2, 10)), set_block=1)
    items = ModeTable(np.ones((6, 1)), Rows.of(6))
    index = np.stack([rng.permutation(np.arange(300) % 50), rng.integers(6, size=300)], axis=1).astype(np.int32)
    psi = [rng.standard_normal((50, 2)), rng.standard_normal((6, 2))]
    B = [rng.standard_normal((10, 2)), rng.standard_normal((1, 2))]
    spread, tau = [np.diag([0.5, 2.0]), np.eye(2)], [np.array([2.0, 3.0]), np.ones(1)]
    core = make_core("identity", (2, 2))
    draw = draw_of([users, items], psi, B, spread, tau, (), np.zeros(0), {})
    model = TuckerModel(core, None, np.ones(2), 1.0)
    design = Design((users, items), index)
    return Draws.of(model, [draw] * 4000, dtype="f8"), design


def newcomers(users, features, new=None):
    keys = np.arange(1, len(features) + 1, dtype=np.uint64)
    residual = Rows(np.full(len(features), -1, dtype=np.int32), users.n_rows, names=keys)
    return replace(users, features=sparse.csr_array(features), residual=residual, new=new)


KNOWN = np.array([0.5, -1.0])
LACKING, WITH_SET = [*KNOWN, *[0.0] * 8], [*KNOWN, 1.0, *[0.0] * 7]


def test_a_row_without_a_set_has_the_moments_of_the_regression_and_other_rows_are_as_before(fitted):
    plain, design = fitted
    users = design.modes[0]
    few = TrainingRows(design).with_newcomers(plain.thinned(2))
    psi = [plain.modes[d].rows["psi"][:, 0] for d in range(2)]
    expected = NewcomerRegression(users.features[:, :2], design.index[:, 0]).given(
        psi[0],
        design.index[:, 0],
        psi[1][design.index[:, 1]],  # the core is the identity
    )
    for name, values in expected.named().items():
        np.testing.assert_allclose(few.modes[0].values[name], [values] * 2, atol=1e-10)
    assert Newcomers.of(few.modes[1].values) is None
    many = Newcomers(*(np.stack([values] * len(plain)) for values in expected)).named()
    mode = replace(plain.modes[0], values={**plain.modes[0].values, **many})
    draws = replace(plain, modes=(mode, plain.modes[1]))
    new = newcomers(users, [LACKING, WITH_SET])
    mean = draws.factors(0, new)
    np.testing.assert_allclose(mean[0, 0], expected.weights[0] + KNOWN @ expected.weights[1:], atol=1e-10)
    np.testing.assert_array_equal(mean[1], plain.factors(0, new)[1])
    streams = DrawStreams(0, np.array([(0, s) for s in range(len(draws))]))
    drawn = draws.factors(0, new, streams)
    np.testing.assert_allclose(drawn[0].mean(axis=0), mean[0, 0], atol=0.08)
    np.testing.assert_allclose(np.cov(drawn[0].T), expected.root.T @ expected.root, rtol=0.1, atol=0.06)
    np.testing.assert_array_equal(drawn[1], plain.factors(0, new, streams)[1])
    np.testing.assert_array_equal(draws.factors(0, users), plain.factors(0, users))


def test_precisions_count_unknown_sets_and_new_features(fitted):
    plain, design = fitted
    draws = TrainingRows(design).with_newcomers(plain.thinned(2))
    own = Newcomers.of(draws.modes[0].values)
    values = sparse.csr_array(np.array([[0.0], [0.0], [3.0], [3.0]]))
    new = NewFeatures(values, np.ones(1, dtype=np.uint64), np.zeros(1, dtype=np.int64))
    table = newcomers(design.modes[0], [WITH_SET, LACKING, WITH_SET, LACKING], new)
    mean, precision = prior_of_rows(draws, 0, table)
    np.testing.assert_array_equal(mean, draws.factors(0, table))
    level = np.diag([0.5, 2.0]) * 9 / 2  # spread times the square of the feature, divided by tau
    noise, unknown = np.diag([0.5, 2.0]), own.root[0].T @ own.root[0]
    for found, covariance in zip(precision, (noise, unknown, noise + level, unknown + level), strict=True):
        np.testing.assert_allclose(np.linalg.inv(found[0]), covariance, atol=1e-9)
    assert precision[0] is draws.modes[0].precision


def test_new_features_count_until_a_row_is_learned(fitted):
    plain, design = fitted
    new = NewFeatures(sparse.csr_array(np.ones((2, 1))), np.ones(1, dtype=np.uint64), np.zeros(1, dtype=np.int64))
    table = newcomers(design.modes[0], [WITH_SET, WITH_SET], new)
    half = replace(table, residual=replace(table.residual, place=np.array([-1, 7], dtype=np.int32)))
    draws = plain.thinned(2)
    streams = DrawStreams(0, np.array([(0, s) for s in range(2)]))
    np.testing.assert_array_equal(half.undetermined, [True, False])
    np.testing.assert_array_equal(draws.factors(0, half, streams)[0], draws.factors(0, table, streams)[0])
    np.testing.assert_array_equal(draws.factors(0, half, streams)[1], draws.modes[0].rows["psi"][7])


def test_a_single_mode_with_a_set_is_fitted_saved_and_predicts_newcomers(rng, tmp_path):
    sets = [("a", "b"), ("b",), ("c", "a"), ("c",)] * 10
    inputs = {"id": np.arange(40), "set": sets}
    mode = Mode(["id", "set"], Identity("id") + Cosine("set"))
    model = TuckerGPRegressor([mode], rank=1, draws=20, warmup=10, random_state=0).fit(inputs, rng.normal(3.0, 1.0, 40))
    model.save(tmp_path / "model.tgp")
    new = {"id": [100], "set": [()]}
    mean, spread = model.predict(new, return_std=True)
    assert abs(mean[0] - 3.0) < 1.0
    assert 0.5 < spread[0] < 3.0
    np.testing.assert_array_equal(load(tmp_path / "model.tgp").predict(new), mean)
