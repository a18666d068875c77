"""Exact features equal the kernel; hashed ones equal it on average, with variance O(1/n)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.features import Exact, Fourier, Hashing, hash_columns
from tuckergp.kernels import SE, Constant, Identity, Linear

USERS = as_table(
    {
        "user_id": ["ann", "bob", "cat", "dan"],
        "age": [1.0, 2.0, 3.0, 1.0],
        "height": [0.5, 0.1, 0.2, 0.3],
        "job": ["doctor", None, "cook", "cook"],
        "genres": ["Action|Comedy", "Comedy", None, "Drama|Action"],
    },
    "users",
)
KERNELS = [
    Identity("user_id"),
    Identity("job", "age"),
    Constant(),
    Linear("age", "height"),
    Linear("job"),
    Linear("age", "job", "genres"),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_exact_features_are_the_kernel(kernel):
    features = Exact().fit(USERS, kernel)
    np.testing.assert_allclose(features.gram(USERS), kernel(USERS), atol=1e-12)
    assert features.transform(USERS).shape == (4, features.n_features_)
    assert len(features.feature_names_) == features.n_features_


def test_exact_features_are_sparse_where_there_are_levels_and_dense_for_numbers():
    assert isinstance(Exact().fit_transform(USERS, Linear("age", "height")), np.ndarray)
    for kernel in (Identity("user_id"), Linear("job"), Linear("age", "job")):
        assert isinstance(Exact().fit_transform(USERS, kernel), sparse.csr_array)


def test_feature_names_say_column_and_level():
    assert Exact().fit(USERS, KERNELS[-1]).feature_names_ == [
        *("age", "job=cook", "job=doctor", "job=<missing>"),
        *("genres=Action", "genres=Comedy", "genres=Drama"),
    ]
    names = Exact().fit(USERS, Identity("user_id", "age")).feature_names_
    assert names == ["user_id=ann,age=1", "user_id=bob,age=2", "user_id=cat,age=3", "user_id=dan,age=1"]


def test_an_unseen_identity_has_a_zero_row_and_a_seen_one_its_unit_vector():
    features = Exact().fit(USERS, Identity("user_id"))
    phi = features.transform({"user_id": ["eve", "cat", None]}).toarray()
    np.testing.assert_array_equal(phi, [[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])


def test_unseen_levels_are_zeros_in_their_column_only():
    features = Exact().fit(USERS, Linear("age", "job", "genres"))
    phi = features.transform({"age": [5.0], "job": ["pilot"], "genres": ["Western|Drama"]}).toarray()
    np.testing.assert_array_equal(phi, [[5, 0, 0, 0, 0, 0, 1]])


def test_the_kind_of_a_column_is_that_of_the_fit():
    later = {"genres": ["Drama", "Action"]}  # no bar anywhere, still bags
    for features in (Exact(), Hashing(512)):
        fitted = features.fit(USERS, Linear("genres"), random_state=0)
        np.testing.assert_array_equal(fitted.gram(USERS, later)[3], [1, 1])


def test_a_bag_counts_each_value_once_also_where_one_is_a_list():
    features = Exact().fit({"tags": [["a", "b"], [["x", "y"], "a"]]}, Linear("tags"))
    phi = features.transform({"tags": [["b", "a", "b"], [["x", "y"], ["x", "y"]], {"a"}]}).toarray()
    np.testing.assert_array_equal(phi.sum(axis=1), [2, 1, 1])
    np.testing.assert_array_equal(phi @ phi.T, [[2, 0, 1], [0, 1, 0], [1, 0, 1]])


def test_integer_and_float_ids_are_the_same_id():
    features = Exact().fit(np.array([1, 2, 3]), Identity())
    np.testing.assert_array_equal(features.transform(np.array([2.0])).toarray(), [[0, 1, 0]])
    hashed = Hashing(64).fit(np.array([1, 2, 3]), Identity(), random_state=0)
    np.testing.assert_array_equal(hashed.gram(np.array([2]), np.array([2.0])), [[1]])


def test_hashed_features_are_sparse_of_the_asked_width_and_reach_unseen_inputs():
    features = Hashing(32).fit(USERS, Identity("user_id"), random_state=0)
    phi = features.transform({"user_id": [f"new{i}" for i in range(50)]})
    assert isinstance(phi, sparse.csr_array)
    assert phi.shape == (50, 32)
    np.testing.assert_array_equal(np.abs(phi.toarray()).sum(axis=1), 1)


def test_hashed_features_do_not_depend_on_the_other_rows():
    features = Hashing(16).fit(USERS, Linear("age", "job", "genres"), random_state=0)
    whole = features.transform(USERS).toarray()
    alone = np.vstack([features.transform(USERS.take(np.array([i]))).toarray() for i in range(4)])
    np.testing.assert_array_equal(whole, alone)


@pytest.mark.parametrize("kernel", [Identity("user_id"), Linear("age", "job", "genres")], ids=repr)
def test_hashing_is_unbiased(kernel):
    # 1,000 independent hash functions; |z| < 4.5 fails a correct one once in 150,000 entries
    grams = np.array([Hashing(8).fit(USERS, kernel, random_state=s).gram(USERS) for s in range(1000)])
    error = grams.std(axis=0) / np.sqrt(len(grams))
    z = (grams.mean(axis=0) - kernel(USERS)) / np.where(error > 0, error, 1e-12)
    assert np.abs(z).max() < 4.5


def test_the_variance_of_hashing_falls_as_one_over_n():
    # for dense vectors the variance is (|x|^2 |y|^2 + (x'y)^2 - 2 sum x^2 y^2) / n; a variance estimated from 4,000
    # seeds is off by some 4 per cent (one standard error), so 20 per cent allows five
    x, y = np.random.default_rng(0).normal(size=(2, 30))
    theory = (x @ x) * (y @ y) + (x @ y) ** 2 - 2 * (x**2 @ y**2)
    for n in (8, 32):
        hashed = [hash_columns(np.array([x, y]), n, seed) for seed in range(4000)]
        products = np.array([h[0] @ h[1] for h in hashed])
        assert products.var() == pytest.approx(theory / n, rel=0.2)
        assert abs(products.mean() - x @ y) < 4.5 * products.std() / np.sqrt(len(products))


def test_hashing_columns_keeps_sparse_sparse_and_agrees_with_dense():
    X = np.random.default_rng(1).normal(size=(5, 40)) * (np.random.default_rng(2).uniform(size=(5, 40)) < 0.2)
    dense, thin = hash_columns(X, 7, 3), hash_columns(sparse.csr_array(X), 7, 3)
    assert isinstance(dense, np.ndarray)
    assert isinstance(thin, sparse.csr_array)
    np.testing.assert_allclose(dense, thin.toarray())
    assert not np.allclose(dense, hash_columns(X, 7, 4))


def test_hashing_a_base_map_estimates_its_kernel():
    x = np.array([0.0, 0.5, 2.0])
    spec = Hashing(64, base=Fourier(200))
    grams = np.array([spec.unfitted().fit(x, SE(), random_state=s).gram(x) for s in range(300)])
    z = (grams.mean(axis=0) - SE()(x)) / (grams.std(axis=0) / np.sqrt(300))
    assert np.abs(z).max() < 4.5
    assert not hasattr(spec.base, "n_features_")


def test_descriptions_compare_print_and_clone():
    spec = Hashing(64, base=Fourier(20, pairs=False))
    assert repr(spec) == "Hashing(n=64, base=Fourier(n=20, pairs=False))"
    assert eval(repr(spec)) == spec == clone(spec)
    assert spec != Hashing(64)
    assert Hashing(8) == Hashing(8).fit(USERS, Identity("user_id"))


@pytest.mark.parametrize(
    ("spec", "kernel", "message"),
    [
        (Exact(), SE(), "no exact finite features"),
        (Hashing(8), SE(), "no exact features to hash; give a base"),
        (Hashing(0), Identity(), "at least one feature"),
    ],
)
def test_what_makes_no_sense_is_refused(spec, kernel, message):
    with pytest.raises(InputError, match=message):
        spec.fit([1.0, 2.0], kernel)


def test_missing_numbers_are_refused_when_fitting():
    with pytest.raises(InputError, match="t column 'age' is missing"):
        Exact().fit(as_table({"age": [1.0, np.nan]}, "t"), Linear("age"))


def test_an_unfitted_map_and_an_empty_table_are_refused():
    with pytest.raises(InputError, match="not fitted"):
        Exact().transform([1.0])
    with pytest.raises(InputError, match="at least one row"):
        Exact().fit(np.empty((0, 1)), Identity())


@pytest.mark.parametrize("spec", [Exact(), Hashing(8)], ids=repr)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_no_rows_give_no_features_of_the_right_width(spec, kernel):
    fitted = spec.unfitted().fit(USERS, kernel, random_state=0)
    assert fitted.transform(USERS.take(np.array([], dtype=int))).shape == (0, fitted.n_features_)
