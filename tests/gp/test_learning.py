"""Numbers of kernels by maximum likelihood, for other models."""

from __future__ import annotations

import numpy as np
import pytest

from tuckergp import Mode
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.features import Fourier
from tuckergp.gp import ExactGP, GridGP
from tuckergp.gp.additive import AdditiveKernel
from tuckergp.gp.exact import evidence
from tuckergp.gp.learning import learn_modes
from tuckergp.gp.modes import ModesKernel, with_values
from tuckergp.kernels import SE, Constant, Identity, Kernel, Matern32, Periodic
from tuckergp.model.tucker import make_core

RNG = np.random.default_rng(0)
TABLE = as_table({"a": RNG.uniform(-2, 2, 60), "b": RNG.uniform(5, 9, 60), "c": RNG.choice(["x", "y"], 60)}, "X")
Y = 3 + 2 * np.sin(3 * TABLE["a"]) * np.cos(TABLE["b"]) + (TABLE["c"] == "x") + 0.2 * RNG.standard_normal(60)
MODES = [Mode("a", SE(1.0)), Mode("b", 0.5 * Matern32(1.0), whiten=True), Mode("c", Identity())]


def grid_of(share, shape=(6, 30)):
    a, b = (axis.ravel() for axis in np.meshgrid(*map(np.arange, shape), indexing="ij"))
    y = np.sin(a) + np.cos(b / 3) + 0.1 * RNG.standard_normal(len(a))
    there = np.sort(RNG.permutation(len(a))[: int(share * len(a))])
    return as_table({"a": a[there].astype(float), "b": b[there].astype(float)}, "X"), y[there]


def test_weights_count_as_repeated_rows():
    weight = np.tile([1.0, 2.0, 3.0], 20)
    again = np.repeat(np.arange(60), weight.astype(int))
    kernel = ModesKernel.of(MODES, TABLE, 0.8, weight)
    values = kernel.hyperparameters() | {"noise": np.array([0.3])}
    value, slopes = evidence(kernel, values, TABLE, Y, weight)
    expected, expected_slopes = evidence(kernel, values, TABLE.take(again), Y[again])
    assert value == pytest.approx(expected, rel=1e-9)
    for name, slope in slopes.items():
        np.testing.assert_allclose(slope, expected_slopes[name], rtol=1e-6, atol=1e-7, err_msg=name)


def test_the_product_of_the_modes_is_the_kernel_that_the_exact_gp_learns():
    found, gp = learn_modes(MODES, TABLE, Y), ExactGP(MODES).fit(TABLE, Y)
    assert found.log_marginal_likelihood == pytest.approx(gp.log_marginal_likelihood_, abs=1e-3)
    np.testing.assert_allclose(
        ModesKernel.of(found.modes, TABLE, 1.0)(TABLE), gp.kernel_(TABLE), rtol=0.01, atol=0.01 * gp.kernel_.scale
    )
    diagonals = [ModesKernel.of([mode], TABLE, 1.0).diag(TABLE).mean() for mode in found.modes]
    np.testing.assert_allclose(diagonals, diagonals[0], rtol=1e-4)


@pytest.mark.parametrize(("share", "rows", "on_grid"), [(1.0, 150, True), (0.8, 80, True), (0.8, 150, False)])
def test_grids_are_learned_from_as_grids_where_that_is_cheaper(share, rows, on_grid, monkeypatch):
    used = []
    fit = GridGP.fit
    monkeypatch.setattr(GridGP, "fit", lambda self, X, y: used.append(1) or fit(self, X, y))
    table, y = grid_of(share)
    modes = [Mode("a", SE(1.0), whiten=True), Mode("b", SE(5.0))]
    found = learn_modes(modes, table, y, rows=rows)
    assert bool(used) is on_grid
    exact = ExactGP(modes).fit(table, y).hyperparameters_
    assert found.hyperparameters["b__k1__kernel__lengthscale"] == pytest.approx(
        exact["b__k1__kernel__lengthscale"], rel=0.2
    )


def test_cells_that_are_there_twice_are_no_grid():
    table, y = grid_of(1.0)
    rows = np.r_[0, np.arange(len(y) - 1)]
    modes = [Mode("a", SE(1.0)), Mode("b", SE(5.0))]
    assert np.isfinite(learn_modes(modes, table.take(rows), y[rows]).log_marginal_likelihood)


def test_some_rows_are_chosen_by_the_seed():
    first, again, other = (learn_modes(MODES, TABLE, Y, rows=30, seed=seed).hyperparameters for seed in (1, 1, 2))
    assert all((first[name] == again[name]).all() for name in first)
    assert first["noise"] != other["noise"]


def test_fixed_numbers_stay_and_unknown_names_are_refused():
    modes = [Mode("a", Periodic(1.5)), Mode("b", SE(1.0))]
    found = learn_modes(modes, TABLE, Y, fixed=["period"])
    assert found.hyperparameters["a__k1__kernel__period"] == 1.5
    with pytest.raises(InputError, match="fixed names 'width'"):
        learn_modes(modes, TABLE, Y, fixed=["width"])


def test_a_list_of_feature_maps_gets_an_entry_for_the_constant():
    mode = Mode("a", SE(1.0) + Periodic(2.0), features=[Fourier(10), None])
    (found,) = learn_modes([mode], TABLE, Y).modes
    assert found.features == [Fourier(10), None, None]
    assert [type(term.kernel) for term in found.kernel.terms()] == [SE, Periodic, Constant]


class Ramp(Kernel):
    """A kernel of the user's own, without numbers."""

    def _gram(self, X, Y):
        return np.minimum(self._numbers(X), self._numbers(Y).T)

    def _diag(self, X):
        return self._numbers(X)[:, 0]


def test_kernels_without_numbers_are_taken_as_they_are():
    found = learn_modes([Mode("b", Ramp()), Mode("c", Identity())], TABLE, Y)
    assert sorted(found.hyperparameters) == ["b__k1__scale", "c__k1__scale", "noise", "scale"]


@pytest.mark.parametrize("rows", [1, 60])
def test_targets_that_are_all_the_same_teach_nothing(rows):
    found = learn_modes(MODES, TABLE.take(np.arange(rows)), np.full(rows, 7.0))
    assert found.modes == MODES


def test_numbers_are_learned_for_a_sum_where_the_function_is_one():
    """Eight columns of which four matter, two of them together."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (120, 8))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + X[:, 2] * X[:, 3] + 0.1 * rng.standard_normal(120)
    table = as_table({f"x{j}": X[:, j] for j in range(8)}, "X")
    modes = [Mode(f"x{j}", SE(1.0), whiten=True) for j in range(8)]
    core = make_core("pairwise", [3] * 8)
    found, product = (learn_modes(modes, table, y, summands=summands) for summands in (core.summands(), ()))
    assert found.log_marginal_likelihood > product.log_marginal_likelihood
    assert found.hyperparameters["x0__k1__kernel__lengthscale"] == pytest.approx([0.5], abs=0.25)
    assert found.hyperparameters["noise"] * y.var() == pytest.approx([0.01], abs=0.008)
    # the modes have the variance of f that was learned
    again = AdditiveKernel.summed(found.modes, table, core.summands())
    fitted = with_values(AdditiveKernel.summed(modes, table, core.summands()), found.hyperparameters)
    expected = fitted.scale * fitted.variances(table)[1:].sum()
    assert again.variances(table)[1:].sum() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("length", [0.3, 6.0])
def test_what_changes_fast_is_found_from_lengthscales_that_are_far_too_long(length, grid):
    """From the long one, the first search ends where all is noise."""
    rng = np.random.default_rng(1)
    a, b = np.meshgrid(np.linspace(0, 8, 40), np.arange(6.0)) if grid else rng.uniform(0, 8, (2, 240))
    y = np.sin(4 * a.ravel()) + 0.1 * rng.standard_normal(240)
    modes = [Mode(name, SE(length), constant=False) for name in "ab"]
    learned = learn_modes(modes, as_table({"a": a.ravel(), "b": b.ravel()}, "X"), y).hyperparameters
    assert learned["noise"][0] < 0.1
    assert 0.2 < learned["a__lengthscale"][0] < 0.8


def test_noise_stays_noise_and_fixed_lengthscales_stay():
    rng = np.random.default_rng(0)
    table, modes = as_table({"a": rng.uniform(0, 8, 150)}, "X"), [Mode("a", SE(6.0), constant=False)]
    assert learn_modes(modes, table, rng.standard_normal(150)).hyperparameters["noise"][0] > 0.6
    wave = np.sin(4 * table["a"]) + 0.1 * rng.standard_normal(150)
    for name in ("lengthscale", "a__lengthscale"):
        modes = [Mode("a", SE(6.0), constant=False), Mode("b", SE(1.0), constant=False)]
        both = as_table({"a": table["a"], "b": np.zeros(150)}, "X")
        learned = learn_modes(modes, both, wave, fixed=[name]).hyperparameters
        assert learned["a__lengthscale"] == [6.0]
        assert learned["noise"][0] > 0.9
