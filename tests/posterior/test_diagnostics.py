"""R-hat and effective sample sizes against ArviZ and against chains whose answer is known."""

import numpy as np
import pytest

from tuckergp.errors import InputError
from tuckergp.posterior import diagnostics
from tuckergp.posterior.diagnostics import ess_bulk, ess_tail, rhat, summarise


def autoregressive(rng, chains, draws, quantities, phi):
    """Stationary AR(1) chains of unit variance: the ESS of their mean is (1 - phi) / (1 + phi) of the draws."""
    x = rng.standard_normal((chains, draws, quantities))
    for t in range(1, draws):
        x[:, t] = phi * x[:, t - 1] + np.sqrt(1 - phi**2) * x[:, t]
    return x


def deterministic_chains(chains, draws, phi, shift):
    """AR(1) chains from a quadratic Weyl sequence, the same on every platform, each chain higher by ``shift``."""
    i = np.arange(1.0, chains * draws + 1).reshape(chains, draws)
    shocks = np.sqrt(12) * ((i**2 * (np.sqrt(5) - 1) / 2) % 1 - 0.5)
    x = shocks.copy()
    for t in range(1, draws):
        x[:, t] = phi * x[:, t - 1] + np.sqrt(1 - phi**2) * shocks[:, t]
    return x + shift * np.arange(chains)[:, None]


# From ArviZ 0.23.4: az.rhat(x), az.ess(x, method="bulk"), az.ess(x, method="tail") with x = deterministic_chains(*case)
ARVIZ = [
    ((4, 250, 0.0, 0.0), (0.9980294735030966, 1051.417987455856, 913.420405699972)),
    ((4, 250, 0.9, 0.0), (1.0152753957541814, 93.32478218354065, 168.38519020105903)),
    ((3, 101, 0.5, 0.3), (1.057458647377925, 49.12600277077181, 128.07572385913684)),
    ((2, 1000, -0.5, 0.0), (1.0003686159760716, 5833.435911093963, 1643.396203348103)),
    ((2, 40, 0.8, 2.0), (1.605561120201726, 4.0873871791104905, 40.226318671290365)),
]


@pytest.mark.parametrize(("case", "expected"), ARVIZ)
def test_numbers_are_those_of_arviz(case, expected):
    x = deterministic_chains(*case)
    np.testing.assert_allclose([rhat(x), ess_bulk(x), ess_tail(x)], expected, rtol=1e-9)


def test_numbers_are_those_of_the_installed_arviz():
    arviz = pytest.importorskip("arviz", exc_type=ImportError)
    rng = np.random.default_rng(0)
    for phi in (-0.5, 0.0, 0.6, 0.95):
        x = autoregressive(rng, 3, 151, 4, phi)
        for q in range(4):
            expected = [float(arviz.rhat(x[..., q]))]
            expected += [float(arviz.ess(x[..., q], method=method)) for method in ("bulk", "tail")]
            mine = [f(x[..., q]) for f in (rhat, ess_bulk, ess_tail)]
            np.testing.assert_allclose(mine, expected, rtol=1e-9)


def test_quantities_do_not_influence_each_other(monkeypatch):
    x = autoregressive(np.random.default_rng(1), 2, 60, 12, 0.5).reshape(2, 60, 3, 4)
    together = summarise(x)
    monkeypatch.setattr(diagnostics, "ENTRIES_AT_ONCE", 5 * 2 * 60)
    in_blocks = summarise(x)
    for name in ("rhat", "ess_bulk", "ess_tail"):
        alone = [getattr(summarise(x[:, :, i, j]), name) for i in range(3) for j in range(4)]
        assert getattr(together, name).shape == (3, 4)
        np.testing.assert_allclose(getattr(together, name).ravel(), alone, rtol=1e-9)
        np.testing.assert_allclose(getattr(in_blocks, name), getattr(together, name), rtol=1e-9)


def test_independent_draws_count_fully_and_raise_no_warning():
    found = summarise(np.random.default_rng(2).standard_normal((4, 1000, 50)))
    assert found.worst_rhat < 1.02
    assert found.lowest_ess > 2500
    # over 50 quantities the average estimate is within a few percent of the 4,000 draws
    assert abs(found.ess_bulk.mean() / 4000 - 1) < 0.05
    assert found.warning() is None


@pytest.mark.parametrize("phi", [-0.4, 0.5, 0.9])
def test_ess_of_autoregression_is_known(phi):
    x = autoregressive(np.random.default_rng(3), 4, 4000, 40, phi)
    expected = 16000 * (1 - phi) / (1 + phi)
    assert abs(ess_bulk(x).mean() / expected - 1) < 0.06


def test_heavy_tails_and_monotone_changes_of_scale_do_not_matter():
    x = autoregressive(np.random.default_rng(4), 2, 300, 5, 0.3)
    np.testing.assert_allclose(ess_bulk(np.exp(20 * x)), ess_bulk(x), rtol=1e-9)
    cauchy = np.random.default_rng(5).standard_cauchy((4, 500, 5))
    assert rhat(cauchy).max() < 1.03


def test_chains_apart_are_seen():
    rng = np.random.default_rng(6)
    x = rng.standard_normal((4, 200, 3))
    x[0, :, 1] += 3.0
    found = summarise(x)
    assert found.rhat[1] > 1.3
    assert found.rhat[[0, 2]].max() < 1.03
    assert found.ess_bulk[1] < 20
    assert found.mean_error[1] > 0.2
    assert found.warning().startswith(f"Predictions may still move by {found.mean_error[1]:.0%} of their posterior")
    assert found.warning(share=0.4) is None


def test_chains_of_different_spread_are_seen_although_their_means_agree():
    x = np.random.default_rng(7).standard_normal((4, 500))
    x[0] *= 10
    assert rhat(x) > 1.1


def test_a_drift_within_a_single_chain_is_seen():
    x = np.random.default_rng(8).standard_normal((1, 400)) + np.linspace(0, 4, 400)
    found = summarise(x)
    assert found.worst_rhat > 1.3
    assert "R-hat reaches 1." in found.warning()


def test_chains_stuck_at_different_values_are_the_worst_case():
    x = np.broadcast_to(np.array([0.1, 0.2, 0.3])[:, None, None], (3, 100, 2))
    found = summarise(x)
    assert np.isinf(found.rhat).all()
    assert found.lowest_ess < 5
    assert found.warning() is not None


def test_constants_say_nothing_and_do_not_hide_the_rest():
    x = np.random.default_rng(9).standard_normal((2, 500, 3))
    x[:, :, 0] = 0.1
    x[:, :, 2] = 1e6 + 1e-9 * x[:, :, 2]
    found = summarise(x)
    assert np.isnan(found.rhat[[0, 2]]).all()
    assert np.isnan(found.ess_tail[[0, 2]]).all()
    assert found.worst_rhat == found.rhat[1]
    assert found.lowest_ess == min(found.ess_bulk[1], found.ess_tail[1])
    assert found.warning() is None
    assert "stuck" in summarise(x[:, :, [0, 2]]).warning()


def test_values_of_few_levels_are_handled():
    x = (np.random.default_rng(10).random((4, 250, 2)) < [0.5, 0.01]).astype(float)
    found = summarise(x)
    assert found.worst_rhat < 1.05
    assert np.isfinite(found.ess_bulk).all()
    assert found.lowest_ess > 300


def test_the_error_of_the_mean_is_its_spread_over_repeated_runs():
    x = autoregressive(np.random.default_rng(11), 1, 400, 3000, 0.8)
    assert abs(np.median(summarise(x).mean_error) / x.mean(axis=1).std() - 1) < 0.1


def test_a_large_error_of_the_mean_is_said_with_a_remedy():
    low = diagnostics.Diagnostics(np.array([1.01]), np.array([16.0]), np.array([50.0]), chains=4, draws=250)
    assert low.warning() == (
        "Predictions may still move by 25% of their posterior standard deviation, for the draws are worth 16 "
        "independent ones (R-hat reaches 1.01); raise draws to about 400, and warmup with them."
    )
    enough = diagnostics.Diagnostics(np.array([1.07]), np.array([26.0]), np.array([9.0]), chains=4, draws=250)
    assert enough.warning() is None


def test_too_few_draws_and_draws_that_are_not_finite_are_said():
    x = np.random.default_rng(12).standard_normal((2, 3, 5))
    assert np.isnan(summarise(x).rhat).all()
    assert "too few" in summarise(x).warning()
    x = np.random.default_rng(13).standard_normal((2, 100, 5))
    x[0, 3, 1], x[1, 7, 4] = np.nan, np.inf
    found = summarise(x)
    assert found.not_finite == 2
    assert np.isfinite(found.rhat).sum() == 3
    assert "2 of 5 quantities" in found.warning()


def test_shapes_are_checked_and_nothing_to_diagnose_is_no_trouble():
    with pytest.raises(InputError, match="axes"):
        rhat(np.zeros(10))
    found = summarise(np.zeros((2, 10, 0)))
    assert found.rhat.shape == (0,)
    assert np.isnan(found.worst_rhat)
    assert found.warning() is None
