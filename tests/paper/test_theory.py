"""The theory experiment: closed forms against enumeration and sampling; the stored run agrees with them."""

from itertools import product

import numpy as np
import pytest

from tuckergp.data.tables import as_table
from tuckergp.kernels import SE, Linear, Matern32
from tuckergp.paper import report, theory_entries, theory_features

from .test_experiments import RESULTS


@pytest.mark.parametrize(("core", "D", "r"), [("full", 2, 3), ("full", 3, 2), ("sparse", 2, 5), ("sparse", 3, 3)])
def test_fourth_moments_are_those_of_all_pairs_of_places(core, D, r):
    # given U an entry is normal with variance sigma_w^2 sum_q prod_d u^2, E u^4 / (E u^2)^2 = 3
    places = list(product(range(r), repeat=D))
    Q = theory_entries.nonzeros(D, r) if core == "sparse" else r**D
    powers = [3.0 ** sum(a == b for a, b in zip(p, q, strict=True)) for p in places for q in places if p != q]
    expected = 3 * (Q * 3.0**D + Q * (Q - 1) * np.mean(powers)) / Q**2
    assert theory_entries.fourth_moment(core, D, r) == pytest.approx(expected, rel=1e-12)


def test_the_fourth_moment_of_a_sum_of_products():
    # r terms of variance 1 / r and fourth moment 3^D / r^2: r 3^D / r^2 + 3 r (r - 1) / r^2
    for D, r in product((2, 3), (1, 4)):
        expected = (r * 3.0**D + 3 * r * (r - 1)) / r**2
        assert theory_entries.fourth_moment("identity", D, r) == pytest.approx(expected, rel=1e-12)


def test_the_leading_distance_is_the_largest_of_edgeworths_term():
    x = np.linspace(-6, 6, 100_001)
    term = np.abs(x**3 - 3 * x) * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) / 24
    assert theory_entries.leading_distance(3.7) == pytest.approx(0.7 * term.max(), rel=1e-6)


@pytest.mark.parametrize("core", theory_entries.CORES)
def test_entries_have_the_moments_of_theory(core):
    # four moments, |z| < 5 each: a right prior fails in 1 of 400,000 cases
    found = theory_entries.summary(core, modes=2, rank=5, count=20_000)
    for k, expected in ((1, 0.0), (2, 1.0), (3, 0.0), (4, found["fourth"])):
        mean, error = found[f"moment {k}"]
        assert abs(mean - expected) < 5 * error
    assert len(found["quantiles"]) == 99
    assert found["quantiles"] == sorted(found["quantiles"])
    assert 0 < found["kolmogorov"] < 0.15


def test_the_appendix_has_the_fourth_moment_of_its_martingale_differences():
    # X_p = S_p - S_{p-1} with S_p the sum over i, j <= p of u_i W_ij v_j; |z| < 5 over 100,000 draws, two values of p
    rng = np.random.default_rng(0)
    r, draws = 4, 100_000
    u, v = rng.standard_normal((2, draws, r)) / np.sqrt(r)
    terms = u[:, :, None] * rng.standard_normal((draws, r, r)) * v[:, None, :]
    for p in (2, 4):
        fourth = (terms[:, :p, :p].sum(axis=(1, 2)) - terms[:, : p - 1, : p - 1].sum(axis=(1, 2))) ** 4
        expected = 3 / r**4 * (8 * p**2 + 8 * p - 7)
        assert abs(fourth.mean() - expected) < 5 * fourth.std() / np.sqrt(draws)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [("Fourier, phases", SE(0.7)), ("Fourier, pairs", Matern32(0.7)), ("hashing", Linear("job", "films"))],
)
def test_variances_in_closed_form_are_those_of_many_maps(name, kernel):
    # 10 pairs and 1,500 maps: a variance is off by about 4 % (one standard error), the mean over pairs by less
    if name == "hashing":
        table = as_table({"job": ["a", "b", "a", "c"], "films": [["x", "y"], ["y"], ["z", "x"], ["w"]]}, "users")
    else:
        table = as_table({"x": [0.0, 0.3, 1.0, 2.0]}, "inputs")
    found = theory_features.bias(theory_features.Case(table, kernel, (name,)), name, n=16, maps=1500, count=4)
    assert found["variance"] == pytest.approx(1, abs=0.15)
    assert found["max z"] < 4.5  # of at most 10 pairs: a right map fails in 1 of 15,000 cases


def test_features_that_never_exceed_the_kernel_have_no_variance_in_closed_form():
    table = as_table({"x": [0.0, 0.3, 1.0]}, "inputs")
    assert theory_features.spread("Cholesky", SE(1.0), table) is None
    with pytest.raises(ValueError, match="not unbiased"):
        theory_features.bias(theory_features.Case(table, SE(1.0), ("Cholesky",)), "Cholesky", 2, 2, 3)


def test_slopes_are_fitted_where_there_is_an_error():
    sizes = (16, 64, 256, 1024)
    assert theory_features._slope(sizes, np.array(sizes, dtype=float) ** -0.5) == pytest.approx(-0.5)
    assert theory_features._slope(sizes, np.array([1.0, 0.25, 1e-9, 1e-9])) == pytest.approx(-1.0)
    assert theory_features._slope(sizes, np.array([1.0, 0.0, 0.0, 0.0])) is None


def test_the_stored_run_agrees_with_theory():
    """Second moments of 36 priors within 5 standard errors of 1, and slopes of random features about -1/2."""
    for name, cell in report.stored(RESULTS)["theory"]["cells"].items():
        if name.startswith("entries/"):
            assert abs(cell["moment 2"][0] - 1) < 5 * cell["moment 2"][1], name
        if name.startswith("errors/") and "theory" in cell:
            assert abs(cell["slope"] + 0.5) < 0.1, name
        if name.startswith("bias/"):
            assert abs(cell["variance"] - 1) < 0.15, name
