"""Features of composed kernels: sums, products, scales, and what is chosen for each part."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import khatri_rao

from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.features import Cholesky, Exact, Fourier, Hashing, Nystrom, choose, realise
from tuckergp.features.compose import Concatenated, Kronecker, rowwise_kronecker
from tuckergp.kernels import SE, Constant, Identity, Linear, Matern12, Periodic

DAYS = as_table(
    {
        "station": ["a", "b", "a", "c", "b", "c"],
        "day": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
        "height": [0.1, 0.2, 0.1, 0.5, 0.2, 0.5],
        "kind": ["sea", "land", "sea", "sea", "land", "sea"],
    },
    "days",
)
KERNELS = [
    0.25 * Identity("station") + Linear("height", "kind"),
    2.0 * (SE(1.0, "day") + 0.5 * Constant()) + 3.0 * Matern12(1.0, "day"),
    Identity("station") * SE(2.0, "day"),
    (Linear("kind") + Constant()) * (SE(1.0, "day") + 0.1 * Identity("station")),
    SE(5.0, "day") * Periodic(2.5, columns="day") * Linear("height"),
    0.5 * (0.5 * SE(1.0, ["day", "height"])),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_realised_features_are_the_kernel(kernel):
    features = realise(kernel, DAYS)
    np.testing.assert_allclose(features.gram(DAYS), kernel(DAYS), atol=1e-8)
    assert features.transform(DAYS).shape == (6, features.n_features_)


def test_a_sum_is_a_concatenation_of_scaled_blocks():
    kernel = 0.25 * Identity("station") + 4.0 * (Linear("kind") + Constant())
    features = realise(kernel, DAYS)
    phi = features.transform(DAYS)
    assert isinstance(features, Concatenated)
    assert isinstance(phi, sparse.csr_array)
    assert features.blocks_ == [slice(0, 3), slice(3, 5), slice(5, 6)]
    parts = [(0.5, Identity("station")), (2.0, Linear("kind")), (2.0, Constant())]
    for block, (root, part) in zip(features.blocks_, parts, strict=True):
        expected = root * sparse.csr_array(Exact().fit_transform(DAYS, part)).toarray()
        np.testing.assert_array_equal(phi[:, block].toarray(), expected)


def test_a_single_term_is_one_block():
    assert realise(0.5 * Linear("kind"), DAYS).blocks_ == [slice(0, 2)]


@pytest.mark.parametrize("thin", [(False, False), (True, False), (False, True), (True, True)])
def test_rowwise_kronecker_is_the_khatri_rao_product(thin):
    rng = np.random.default_rng(0)
    A, B = (rng.normal(size=(7, p)) * (rng.uniform(size=(7, p)) < 0.5) for p in (3, 4))
    a, b = (sparse.csr_array(M) if s else M for M, s in zip((A, B), thin, strict=True))
    product = rowwise_kronecker(a, b)
    assert sparse.issparse(product) == any(thin)
    dense = product.toarray() if sparse.issparse(product) else product
    np.testing.assert_allclose(dense, khatri_rao(A.T, B.T).T)


def test_a_product_with_an_unseen_identity_is_zero():
    features = realise(Identity("station") * SE(1.0, "day"), DAYS)
    assert isinstance(features, Kronecker)
    phi = features.transform({"station": ["z"], "day": [1.0]})
    assert phi.shape == (1, 18)
    assert phi.nnz == 0


@pytest.mark.parametrize(
    ("kernel", "n", "expected"),
    [
        (Identity(), 10, Exact()),
        (Linear(), 3000, Exact()),
        (Constant(), 10, Exact()),
        (SE(), 2000, Cholesky()),
        (SE(), 2001, Fourier()),
        (Periodic(), 2001, Cholesky(1e-6)),  # whole periods apart, all inputs are one
        (SE() * Linear(), 2001, Nystrom()),
    ],
)
def test_features_are_chosen_by_kernel_and_number_of_distinct_inputs(kernel, n, expected):
    x = np.tile(np.arange(float(n)), 2)
    assert choose(kernel, x) == expected


@pytest.mark.parametrize("kernel", [SE(1.0), Periodic(5.0, 2.0), SE(1.0) * Linear()])
def test_many_inputs_have_as_few_features_as_a_smooth_kernel_needs(kernel):
    x = np.random.default_rng(0).normal(size=(4000, 1))
    assert choose(kernel, x) == Cholesky(1e-6)
    features = choose(kernel, x).fit(x, kernel)
    assert features.n_features_ < 25
    np.testing.assert_allclose(features.gram(x[:50]), kernel(x[:50]), atol=1e-4)


def test_how_many_features_a_product_has_does_not_depend_on_its_order():
    table = {"station": np.repeat(["a", "b", "c"], 30), "day": np.tile(np.arange(30.0), 3)}
    factors = [Identity("station"), SE(5.0, "day"), 2.0 * Periodic(7.0, 1.0, "day"), Linear("day")]
    counts = set()
    for a, b, c, d in permutations(factors):
        for kernel in (a * b * c * d, a * (b * (c * d)), (a * b) * (c * d)):
            features = realise(0.5 * kernel + Identity("station"), table)
            np.testing.assert_allclose(features.gram(table), (0.5 * kernel + Identity("station"))(table), atol=1e-4)
            counts.add(features.n_features_)
    assert len(counts) == 1


def test_only_the_columns_that_a_kernel_reads_count_as_distinct():
    table = as_table({"day": np.arange(3000) % 7, "id": np.arange(3000)}, "t")
    assert choose(SE(1.0, "day"), table) == Cholesky()
    assert choose(SE(1.0), table) == Fourier()


def test_one_map_goes_to_the_parts_it_suits():
    kernel = SE(1.0, "day") + 0.5 * Identity("station") + Linear("kind") * SE(1.0, "day")
    features = realise(kernel, DAYS, Fourier(10), random_state=0)
    smooth, identity, product = features.maps_
    assert smooth == Fourier(10)
    assert identity.base_ == Exact()
    assert (product.left_, product.right_) == (Exact(), Fourier(10))
    hashed = realise(kernel, DAYS, Hashing(8), random_state=0)
    assert hashed.maps_[0] == Cholesky()
    assert hashed.maps_[1].base_ == Hashing(8)


def test_a_map_that_suits_no_part_takes_the_kernel_as_a_whole_or_refuses():
    kernel = Identity("station") + Linear("height")
    features = realise(kernel, DAYS, Cholesky())
    assert features == Cholesky()
    np.testing.assert_allclose(features.gram(DAYS), kernel(DAYS), atol=1e-10)
    with pytest.raises(InputError, match="not stationary"):
        realise(kernel, DAYS, Fourier(10))


def test_a_list_of_maps_goes_to_the_terms_one_by_one():
    kernel = SE(1.0, "day") + 0.5 * Identity("station")
    features = realise(kernel, DAYS, [Fourier(10), None], random_state=0)
    assert features.maps_[0] == Fourier(10)
    assert features.maps_[1].base_ == Exact()
    with pytest.raises(InputError, match="1 feature maps for the 2 terms"):
        realise(kernel, DAYS, [None])
    assert realise(0.5 * SE(1.0, "day"), DAYS, [Nystrom(3)]).n_features_ == 3


def test_a_product_of_stationary_kernels_is_one_map_with_summed_frequencies():
    kernel = SE(1.0, "day") * Matern12(0.3, "height")
    grams = np.array([realise(kernel, DAYS, Fourier(20), random_state=s).gram(DAYS) for s in range(500)])
    assert grams.shape[1:] == (6, 6)
    gap = np.abs(grams.mean(axis=0) - kernel(DAYS))
    assert np.all(gap < 4.5 * grams.std(axis=0) / np.sqrt(500) + 1e-12)


def test_descriptions_are_not_fitted_by_use_and_terms_are_drawn_independently():
    spec = Fourier(10)
    features = realise(SE(1.0, "day") + SE(1.0, "day"), DAYS, spec, random_state=0)
    assert not hasattr(spec, "n_features_")
    first, second = features.maps_
    assert not np.allclose(first.frequencies_, second.frequencies_)
