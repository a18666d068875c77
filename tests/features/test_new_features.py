"""With the features that training did not have, inner products are the kernel: no variance is lost at new inputs."""

import numpy as np
import pytest

from tuckergp.data.columns import as_inputs
from tuckergp.features import Cholesky, Fourier, Hashing, Nystrom, points, realise
from tuckergp.features.new import NewFeatures, stacked
from tuckergp.kernels import SE, Constant, Cosine, Identity, Linear, Periodic
from tuckergp.random import DrawStreams

TRAIN = {
    "x": np.linspace(0, 1, 12),
    "who": np.array(["ann", "bob"] * 6, dtype=object),
    "genre": np.array(["drama|war", "war", "comedy"] * 4, dtype=object),
}
NEW = {
    "x": np.array([0.5, 2.0, 2.1, -3.0, 2.0, 0.25]),
    "who": np.array(["ann", "cleo", "dan", "cleo", "bob", "cleo"], dtype=object),
    "genre": np.array(["drama|noir", "noir|musical", "war", "", "musical", "noir"], dtype=object),
}
KERNELS = [
    (SE(0.3, "x"), None),
    (SE(0.3, "x"), Nystrom(4)),
    (SE(0.3, "x"), Cholesky(max_features=3)),
    (Identity("who"), None),
    (Linear("genre"), None),
    (0.25 * SE(0.3, "x") + 2.0 * Identity("who") + Constant(), None),
    (Identity("who") * SE(0.3, "x"), None),
    (0.5 * Linear("genre") * (Periodic(1.0, 0.5, "x") + Identity("who")), None),
]


def with_new(fitted, table, joint=True):
    new = fitted.new_features(table, joint)
    return fitted.gram(table) + (0 if new is None else (new.values @ new.values.T).toarray())


@pytest.mark.parametrize(("kernel", "features"), KERNELS, ids=repr)
def test_nothing_of_the_kernel_is_left_out(kernel, features):
    fitted = realise(kernel, TRAIN, features, random_state=0)
    np.testing.assert_allclose(with_new(fitted, NEW), kernel(NEW), atol=1e-5)


@pytest.mark.parametrize(("kernel", "features"), KERNELS, ids=repr)
def test_variances_are_whole_without_correlations(kernel, features):
    fitted = realise(kernel, TRAIN, features, random_state=0)
    np.testing.assert_allclose(np.diag(with_new(fitted, NEW, joint=False)), kernel.diag(NEW), atol=1e-5)


@pytest.mark.parametrize(
    ("kernel", "features"),
    [(SE(0.3, "x"), None), (Identity("who"), None), (Linear("genre"), None), (SE(0.3, "x"), Fourier(50)),
     (Identity("who"), Hashing(8))],
    ids=repr,
)  # fmt: skip
def test_training_inputs_and_maps_that_know_all_inputs_have_none(kernel, features):
    fitted = realise(kernel, TRAIN, features, random_state=0)
    assert fitted.new_features(TRAIN) is None
    if features is not None:
        assert fitted.new_features(NEW) is None


def test_an_input_alone_has_the_weights_that_it_has_among_others():
    """Keys name levels and inputs, so random numbers do not depend on the order of a call."""
    fitted = realise(0.5 * SE(0.3, "x") + Identity("who"), TRAIN)
    streams = DrawStreams(3, np.array([(0, s) for s in range(5)]))
    spread, tau = np.tile(np.eye(2), (5, 1, 1)), np.ones((5, 2))
    among = fitted.new_features(NEW, joint=False).factors(spread, tau, streams.keys)
    for row in range(6):
        one = {name: values[[row]] for name, values in NEW.items()}
        alone = fitted.new_features(one, joint=False)
        expected = np.zeros((1, 5, 2)) if alone is None else alone.factors(spread, tau, streams.keys)
        np.testing.assert_allclose(among[[row]], expected)
    assert np.ptp(among[[1, 2, 3]], axis=0).min() > 0


def test_terms_of_a_sum_have_random_numbers_of_their_own():
    new = realise(SE(0.3, "x") + SE(0.2, "x"), TRAIN).new_features(NEW)
    assert len(np.unique(new.keys)) == len(new.keys)


def test_weights_have_the_prior_of_their_block():
    """The covariance of what is added is new(x)'new(x') Lambda^-1 / tau of the block; 4 standard errors of 20,000."""
    S, streams = 20_000, DrawStreams(0, np.array([(0, s) for s in range(20_000)]))
    fitted = realise(Identity("who") + Linear("genre"), TRAIN)
    new = fitted.new_features(NEW)
    root = np.array([[1.0, 0.0], [0.7, 0.4]])
    tau = np.array([4.0, 0.25])
    psi = new.factors(np.tile(root @ root.T, (S, 1, 1)), np.tile(tau, (S, 1)), streams.keys)
    gram = [(new.values[:, new.block == g] @ new.values[:, new.block == g].T).toarray() / tau[g] for g in range(2)]
    expected = np.einsum("mn,jk->mjnk", sum(gram), root @ root.T)
    observed = np.einsum("msj,nsk->mjnk", psi, psi) / S
    variance = np.einsum("mjmj->mj", expected)
    error = np.sqrt((np.multiply.outer(variance, variance) + expected**2) / S)
    assert (np.abs(observed - expected) <= 4.5 * error + 1e-12).all()
    np.testing.assert_allclose(new.variance.T @ (1 / tau), np.diag(sum(gram)))


def test_many_inputs_are_correlated_within_groups(monkeypatch):
    x = np.linspace(2, 6, 40)
    fitted = realise(SE(0.3), TRAIN["x"])
    exact = SE(0.3)(x)
    monkeypatch.setattr(points, "LARGEST_JOINT", 400)  # groups of ten
    near = with_new(fitted, x)
    np.testing.assert_allclose(np.diag(near), 1.0, atol=1e-5)
    assert (np.abs(near - exact) < 1e-4).mean() > 0.25
    assert 0.5 < near[3, 4] / exact[3, 4] < 1.001


def test_a_cosine_of_unknown_words_has_length_one():
    text = {"words": np.array([("a", "b"), ("b",), ("c", "a")], dtype=object)}
    asked = {"words": np.array([("a", "z"), ("z", "y"), ("y",)], dtype=object)}
    fitted = realise(Cosine("words"), text)
    whole = with_new(fitted, asked)
    np.testing.assert_allclose(np.diag(whole), 1.0)
    np.testing.assert_allclose(whole[1, 2], 2**-0.5)  # of y and z against y


def test_features_that_cannot_carry_the_kernel_say_so():
    x = as_inputs(np.random.default_rng(0).uniform(0, 9, 1000))
    assert "leaves out" in Nystrom(5).fit(x, SE(0.3), 0).doubt(x)
    assert "raise max_features" in Cholesky(max_features=5).fit(x, SE(0.3)).doubt(x)
    assert "too few random features" in Fourier(50).fit(x, SE(0.3), 0).doubt(x)
    for enough in (Nystrom(60), Cholesky(), Fourier(1000)):
        assert enough.fit(x, SE(0.3), 0).doubt(x) is None
    table = {"x": x["x0"], "who": x["x0"].round()}
    assert "too few" in realise(2.0 * SE(0.1, "x") * Identity("who"), table, Fourier(50), 0).doubt(table)


def test_what_they_add_is_their_squares_and_parts_stand_one_after_the_other():
    first = NewFeatures.of(np.array([[2.0, 0.0], [1.0, 3.0]]), np.array([1, 2], dtype=np.uint64))
    np.testing.assert_array_equal(first.variance, [[4.0, 10.0]])
    both = stacked([(None, 1), (first, 2), (first, 2)])
    expected = np.zeros((5, 4))
    expected[1:3, :2] = expected[3:, 2:] = first.values.toarray()
    np.testing.assert_array_equal(both.values.toarray(), expected)
