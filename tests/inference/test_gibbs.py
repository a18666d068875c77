"""The Gibbs sampler as a whole: does it leave the joint distribution of unknowns and data invariant?"""

import dataclasses
import os
import signal
import warnings

import numpy as np
import pytest
from scipy import sparse, stats

from tests.helpers import core_of, quick_and_long, random_design, z_scores
from tuckergp.errors import InputError, NotConvergedWarning
from tuckergp.inference.base import Problem
from tuckergp.inference.gibbs import Gibbs, GibbsState, _scatter
from tuckergp.kernels import Matern12, Matern32
from tuckergp.likelihoods import Gaussian, NegativeBinomial, Ordinal, Student
from tuckergp.likelihoods import student as student_module
from tuckergp.likelihoods.gaussian import GaussianState
from tuckergp.likelihoods.negative_binomial import NegativeBinomialState
from tuckergp.likelihoods.ordinal import OrdinalState
from tuckergp.likelihoods.row_noise import RowNoise
from tuckergp.likelihoods.student import StudentState
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import TuckerModel
from tuckergp.priors import nested as nested_module
from tuckergp.priors import regression as regression_module
from tuckergp.priors import scales as scales_module
from tuckergp.priors import shrinkage as shrinkage_module
from tuckergp.residuals import Field, Line, LineSum, NoResidual, Rows
from tuckergp.residuals.base import ModeState
from tuckergp.residuals.field import Surface
from tuckergp.residuals.line import Path
from tuckergp.residuals.line_sum import Paths
from tuckergp.residuals.places import Places
from tuckergp.running.control import Control
from tuckergp.running.loop import sample
from tuckergp.store.trees import digest

TIGHT = {"dof": 8.0, "tau_shape": 4.0, "tau_rate": 2.0, "alpha_shape": 5.0, "alpha_rate": 2.0}

MATERNS = {"matern12": Matern12, "matern32": Matern32}
FIELDS = {"field12": np.array([0.7]), "field32": np.array([0.7, 1.2])}  # lengthscales: of all columns, of each


def tiny_design(rng, kinds, rows=4, n=14):
    """Modes of kind rows (a residual and two blocks), nested (rows in groups too), weights (blocks alone), maternXX,
    sum (of lines), fieldXX."""
    modes = []
    for kind in kinds:
        features = np.column_stack([np.ones(rows), rng.standard_normal((rows, 2))])
        blocks = (slice(0, 1), slice(1, 3))
        nested, residual = None, Rows.of(rows, 0.8) if kind in ("rows", "nested") else NoResidual()
        if kind == "nested":
            features = np.column_stack([features, 1.2 * np.eye(rows // 2)[np.arange(rows) % (rows // 2)]])
            blocks, nested = (*blocks, slice(3, 3 + rows // 2)), 2
        if kind in MATERNS:
            t = rng.permutation(np.cumsum(0.2 + rng.exponential(0.5, size=rows)))
            residual = Line(np.sort(t), t, 1 + list(MATERNS).index(kind), 0.7, 0.5)
        if kind == "sum":
            t = rng.permutation(np.cumsum(0.2 + rng.exponential(0.5, size=rows)))
            residual = LineSum(np.sort(t), t, (2, 1), np.array([1.5, 0.4]), np.array([0.6, 0.4]), 0.5, (True, True))
        if kind in FIELDS:
            X = rng.random((rows, 2))
            order = 1 + list(FIELDS).index(kind)
            residual = Field(Places(X[rng.permutation(rows)], order, rows - 1, rows), X, FIELDS[kind], 0.5)
        modes.append(ModeTable(sparse.csr_array(features), residual, None, blocks, nested))
    index = np.stack([rng.integers(rows, size=n) for _ in kinds], axis=1).astype(np.int32)
    return Design(tuple(modes), index)


def draw_prior(model, design, gibbs, rng):
    """All unknowns from their priors, written independently of the sampler."""
    modes, factors, shapes = [], [], []
    shape = shrinkage_module.SHAPE  # lambda_k ~ Gamma(shape, shape sigma_u^2), the same in all modes
    shared = (
        stats.gamma.rvs(shape, size=int(model.core.ranks[0]), random_state=rng) / shape if gibbs.shrinkage else None
    )
    for d, table in enumerate(design.modes):
        r = int(model.core.ranks[d])
        variance = model.sigma_u[d] ** 2
        if shared is not None:
            covariance = np.diag(variance / shared)
        elif model.core.learned:
            # 1 / lambda of mean sigma_u^2
            covariance = np.eye(r) * stats.invgamma.rvs(
                gibbs.dof * r / 2 + 1, scale=gibbs.dof * variance * r / 2, random_state=rng
            )
        else:
            # Lambda^-1 of mean sigma_u^2 I
            dof = gibbs.dof + r + 1
            covariance = np.atleast_2d(stats.invwishart.rvs(dof, gibbs.dof * variance * np.eye(r), random_state=rng))
        precision = np.linalg.inv(covariance)
        tau = stats.gamma.rvs(gibbs.tau_shape, scale=1 / gibbs.tau_rate, size=len(table.blocks), random_state=rng)
        B = np.vstack(
            [
                rng.multivariate_normal(np.zeros(r), covariance / t, size=block.stop - block.start)
                for t, block in zip(tau, table.blocks, strict=True)
            ]
        )
        psi = table.features @ B
        residual, noise, nu, own = table.residual, np.ones(table.n_groups), 10.0, ()
        if isinstance(residual, LineSum):
            lengthscale, share = draw_sum(residual, rng)
            K = sum_of(residual, lengthscale, share)(residual.t)
            Z = rng.multivariate_normal(np.zeros(r), covariance, size=table.n_rows)
            psi = psi + residual.sd * np.linalg.cholesky(K) @ Z
            own = Paths(np.full((table.n_rows, 3, r), np.nan), lengthscale, share)
        if isinstance(residual, Line | Field):
            is_line = isinstance(residual, Line)
            order = residual.order if is_line else residual.train.order
            lengthscale = residual.lengthscale * np.exp(1.5 * rng.standard_normal(np.shape(residual.lengthscale)))
            K = kernel_of(order, lengthscale)(residual.t if is_line else residual.points)
            Z = rng.multivariate_normal(np.zeros(r), covariance, size=table.n_rows)
            psi = psi + residual.sd * np.linalg.cholesky(K + 1e-10 * np.eye(len(K))) @ Z
            unread = np.full((table.n_rows, order, r), np.nan)  # a sweep reads no states
            own = Path(unread, float(lengthscale)) if is_line else Surface(unread[:, 0], lengthscale, lengthscale)
        if isinstance(residual, Rows):
            psi = psi + residual.sd * rng.multivariate_normal(np.zeros(r), covariance, size=table.n_rows)
            if gibbs.noise == "rows":
                while (nu := stats.expon.rvs(scale=20, random_state=rng)) < 4:
                    pass
                noise = stats.gamma.rvs(nu / 2, scale=2 / nu, size=table.n_groups, random_state=rng)
        modes.append(ModeState(np.asarray(psi), B, precision, tau, own))
        factors.append(noise)
        shapes.append(nu)
    rows = RowNoise(tuple(factors), tuple(shapes)) if gibbs.noise == "rows" else RowNoise()
    W = model.sigma_w * rng.standard_normal(model.core.n_weights)
    return GibbsState(0, tuple(modes), W, draw_own(model.likelihood, gibbs, rows, rng))


def draw_own(likelihood, gibbs, rows, rng):
    """The unknowns of a likelihood from their priors."""
    if isinstance(likelihood, Ordinal):
        spacings = stats.gamma.rvs(2.0, size=likelihood.n_levels - 2, random_state=rng)
        return OrdinalState(likelihood.cuts[0] + np.concatenate([[0.0], np.cumsum(spacings)]), rows)
    if isinstance(likelihood, NegativeBinomial):
        return NegativeBinomialState(stats.lognorm.rvs(1.5, scale=10.0, random_state=rng))
    alpha = stats.gamma.rvs(gibbs.alpha_shape, scale=1 / gibbs.alpha_rate, random_state=rng)
    if isinstance(likelihood, Student):
        nu = 2 + stats.gamma.rvs(2.0, scale=1 / student_module.RATE, random_state=rng)
        return StudentState(float(alpha), nu, rows)
    return GaussianState(float(alpha), rows)


def draw_sum(line, rng):
    """Lengthscales and shares of a sum from their prior: those in the order of the kernel's, and a logistic normal."""
    slow, fast = 0.0, 1.0
    while slow < fast:
        slow, fast = line.lengthscale * np.exp(1.5 * rng.standard_normal(2))
    weights = line.share * np.exp(1.5 * rng.standard_normal(2))
    return np.array([slow, fast]), weights / weights.sum()


def kernel_of(order, lengthscale):
    return list(MATERNS.values())[order - 1](lengthscale)


def sum_of(line, lengthscale, share):
    """The kernel of a sum of two lines, of unit variance."""
    one, other = (w * kernel_of(p, x) for w, p, x in zip(share, line.orders, lengthscale, strict=True))
    return one + other


def with_targets(prepared, y):
    """A problem with other targets; what depends on the design alone is not prepared again."""
    problem = Problem(prepared.model, prepared.design, y, None, prepared.offset)
    vars(problem).update(sorted=prepared.sorted, regressions=prepared.regressions)
    return problem


def draw_data(model, design, state, rng, offset=0.0):
    own = state.likelihood
    f = model.contract([mode.psi for mode in state.modes], state.W, design.index)
    if isinstance(model.likelihood, NegativeBinomial):
        h = own.dispersion
        return stats.nbinom.rvs(h, h / (h + np.exp(f + offset)), random_state=rng).astype(float)
    precision = np.full(len(design.index), alpha_of(state))
    for d, (factors, table) in enumerate(zip(own.rows.factors, design.modes, strict=False)):
        if table.n_groups:
            precision *= factors[table.groups[design.index[:, d]]]
    noise = rng.standard_t(own.nu, len(f)) if isinstance(model.likelihood, Student) else rng.standard_normal(len(f))
    y = f + noise / np.sqrt(precision)
    return np.searchsorted(own.cuts, y).astype(float) if isinstance(model.likelihood, Ordinal) else y


def alpha_of(state):
    """The shared noise precision; 1 where there is none."""
    return getattr(state.likelihood, "alpha", 1.0)


def summary(model, design, state, y):
    """Functions of unknowns and data with light tails."""
    f = model.contract([mode.psi for mode in state.modes], state.W, design.index)
    values = [
        np.log(alpha_of(state)),
        np.log(alpha_of(state)) ** 2,
        np.tanh(f[0]),
        np.tanh(f[1]) ** 2,
        np.log1p(np.mean(f**2)),
        np.log1p(np.mean(y**2)),
    ]
    for mode in state.modes:
        values += [
            *np.log(mode.tau),
            np.linalg.slogdet(mode.precision)[1],
            np.tanh(mode.B[0, 0]),
            np.log(np.abs(mode.B[1, 0])),
            np.log(np.mean(mode.psi**2)),
            np.tanh(mode.psi[0, 0] * mode.psi[1, 0]),
        ]
        if mode.own:
            values += [*np.log(np.ravel(mode.own.lengthscale)), *np.log(np.ravel(mode.own.lengthscale)) ** 2]
            ratio = np.log(getattr(mode.own, "share", np.ones(1)))
            values += [part for x in ratio[:-1] - ratio[-1] for part in (x, x**2, x * values[-1], x * values[-2])]
    own = state.likelihood
    rows = getattr(own, "rows", RowNoise())
    for factors, nu in zip(rows.factors, rows.nu, strict=True):
        if len(factors):
            values += [np.log(nu), np.log(factors).mean(), np.mean(np.log(factors) ** 2)]
    unknown = {Student: "nu", NegativeBinomial: "dispersion"}.get(type(model.likelihood))
    if unknown is not None:
        value = np.log(getattr(own, unknown) - (unknown == "nu") * 2)
        values += [value, value**2, value * np.tanh(y[0] - f[0]) ** 2, np.tanh(y[0] - f[0]) * np.tanh(f[0])]
    if isinstance(model.likelihood, Ordinal) and model.likelihood.n_levels > 2:
        values += [*np.log(np.diff(state.likelihood.cuts)), *(y[:2] == 1)]
    if len(state.W):
        values += [np.log(np.mean(state.W**2)), np.tanh(state.W[0])]
    return np.array(values)


QUICK = 80  # restarts that show a wrong conditional of `GEWEKE`
GEWEKE = [
    ("identity", (2, 2), ("rows", "rows"), "shared"),
    ("identity", (2, 2), ("rows", "weights"), "rows"),
    ("full", (2, 2), ("rows", "weights"), "shared"),
    ("full", (2, 3), ("weights", "weights"), "shared"),
    ("full", (2, 1, 2), ("rows", "weights", "rows"), "rows"),
    ("sparse", (2, 2, 2), ("weights", "rows", "weights"), "shared"),
    ("identity", (2, 2, 2), ("rows", "rows", "weights"), "rows"),
    ("identity", (2, 2), ("rows", "weights"), "ordinal"),
    ("full", (2, 2, 2), ("rows", "weights", "rows"), "bernoulli"),
    ("identity", (2, 2), ("nested", "rows"), "rows"),
    ("full", (2, 2), ("nested", "rows"), "shared"),
    ("identity", (2, 2), ("nested", "rows"), "ordinal rows"),
    ("full", (2, 2), ("rows", "weights"), "student"),
    ("identity", (2, 2), ("nested", "rows"), "student rows"),
    ("identity", (2, 2), ("rows", "weights"), "negative_binomial"),
    ("full", (2, 2), ("nested", "rows"), "negative_binomial"),
]
LIKELIHOODS = {
    "ordinal": Ordinal((-0.5, 0.5, 1.0)),
    "bernoulli": Ordinal((0.0,)),
    "student": Student(),
    "negative_binomial": NegativeBinomial(),
}


def changes_from_the_prior(core, ranks, kinds, noise, restarts, shrinkage=False, **wrong):
    """What three sweeps change in each function, shape (restarts, functions). wrong: settings of the sampler alone."""
    rng = np.random.default_rng(11)
    design = tiny_design(rng, kinds)
    shape = core_of(core, list(ranks), rng)
    kind = noise.split()[0]
    counts = kind == "negative_binomial"
    sigma_u = (0.7 if counts else 1.0) * shape.default_sigma_u()  # so that no count is astronomical
    sigma_w = 0.6 * shape.default_sigma_w()  # 1 is its own square
    model = TuckerModel(shape, LIKELIHOODS.get(kind, Gaussian(1.0)), sigma_u, sigma_w)
    offset = rng.normal(size=len(design.index)) if counts else None
    prior = Gibbs(noise="rows" if "rows" in noise else "shared", shrinkage=shrinkage, **TIGHT)
    sampler = dataclasses.replace(prior, **wrong)
    prepared = Problem(model, design, np.zeros(len(design.index)), None, offset)
    changes = []
    for restart in range(restarts):
        state = draw_prior(model, design, prior, rng)._replace(sweep=restart)
        y = draw_data(model, design, state, rng, offset)
        before, after = summary(model, design, state, y), []
        for _ in range(3):
            state, _ = sampler.step(with_targets(prepared, y), state, rng)
            y = draw_data(model, design, state, rng, offset)
            after.append(summary(model, design, state, y))
        changes.append(np.mean(after, axis=0) - before)
    return np.array(changes)


@quick_and_long("restarts", QUICK, 400)
@pytest.mark.parametrize(("core", "ranks", "kinds", "noise"), GEWEKE)
def test_sampler_and_data_together_keep_the_prior(core, ranks, kinds, noise, restarts, monkeypatch):
    """Geweke's test (2004) with restarts: unknowns from the prior, then three times data given unknowns and one sweep;
    every function must on average be what it was at the start. Its mean over the three sweeps shows a wrong sampler as
    clearly as the last of five. Restarts are independent, so z-scores need no batches; |z| < 4.5 on at most 40
    functions, 16 cases: with a fresh seed, false alarms below 640 P(|t| > 4.5) for Student's t, which is 0.006 for 400
    restarts and 0.015 for 80. Blocks of two weights count as wide, so that their precisions are drawn with and without
    them. Degrees of freedom are few a priori, some 4, so that the precisions of observations differ much.
    """
    monkeypatch.setattr(scales_module, "WIDE", 2)
    monkeypatch.setattr(student_module, "RATE", 1.0)
    if kinds == ("nested", "rows") and core == "full":  # as where factoring is costly: one precision in some sweeps
        monkeypatch.setattr(nested_module, "CHEAP", 0)
        monkeypatch.setattr(regression_module, "CHEAP", 0)
    changes = changes_from_the_prior(core, ranks, kinds, noise, restarts)
    assert changes.shape[1] <= 40
    z = z_scores(changes)
    assert np.abs(z).max() < 4.5, np.round(z, 1)


@pytest.mark.parametrize("wrong", [{"alpha_rate": 4.0}, {"tau_shape": 6.0}], ids=str)
def test_few_restarts_show_a_wrong_conditional(wrong):
    """The test above means something at its quick size: a sampler with one other hyperprior fails it."""
    changes = changes_from_the_prior("identity", (2, 2), ("rows", "rows"), "shared", QUICK, **wrong)
    assert np.abs(z_scores(changes)).max() > 4.5


@quick_and_long("restarts", QUICK, 400)
def test_shrinkage_of_components_keeps_the_prior(restarts, monkeypatch):
    """Geweke's test as above, where all modes share one precision per component; false alarms below 0.001. A sampler
    that forgets what the other modes say of it has |z| = 3.8 at the quick size, which the long one shows."""
    monkeypatch.setattr(scales_module, "WIDE", 2)
    monkeypatch.setattr(shrinkage_module, "SHAPE", 4.0)
    changes = changes_from_the_prior("identity", (2, 2), ("nested", "matern32"), "shared", restarts, shrinkage=True)
    z = z_scores(changes)
    assert np.abs(z).max() < 4.5, np.round(z, 1)


def test_components_that_are_not_needed_become_small():
    """Rank 6 for data of rank 1: all modes have one size of each component, and the sum of the others is small."""
    rng = np.random.default_rng(0)
    index = np.stack([np.repeat(np.arange(20), 15), np.tile(np.arange(15), 20)], axis=1).astype(np.int32)
    u, v = rng.standard_normal(20), rng.standard_normal(15)
    y = u[index[:, 0]] * v[index[:, 1]]
    y = y / y.std() + 0.1 * rng.standard_normal(300)
    tables = tuple(ModeTable(sparse.csr_array((M, 0)), Rows.of(M), None, ()) for M in (20, 15))
    shape = core_of("identity", [6, 6], rng)
    problem = Problem(TuckerModel(shape, Gaussian(1.0), shape.default_sigma_u(), 1.0), Design(tables, index), y)
    gibbs, sizes = Gibbs(shrinkage=True), []
    state = gibbs.init(problem, rng)
    for sweep in range(130):
        state, _ = gibbs.step(problem, state, rng)
        if sweep >= 100:
            first, second = state.modes
            np.testing.assert_array_equal(first.precision, second.precision)
            each = (first.psi[index[:, 0]] * second.psi[index[:, 1]]).std(axis=0)
            sizes.append(np.sort(each))
    sizes = np.mean(sizes, axis=0)
    assert sizes[-1] > 0.8
    assert (sizes[:-1] < 0.1).all()


def test_sizes_of_components_are_told_by_all_modes():
    """Lambda drawn with a mode of 3 rows is that of the one of 4,000 rows, within 5 sd of a gamma, 2.2 % each."""
    rng = np.random.default_rng(0)
    index = np.stack([np.arange(4000), np.arange(4000) % 3], axis=1).astype(np.int32)
    tables = tuple(ModeTable(sparse.csr_array((M, 0)), Rows.of(M), None, ()) for M in (4000, 3))
    shape = core_of("identity", [2, 2], rng)
    problem = Problem(
        TuckerModel(shape, Gaussian(1.0), shape.default_sigma_u(), 1.0), Design(tables, index), np.zeros(4000)
    )
    gibbs = Gibbs(shrinkage=True)
    state, _ = gibbs.step(problem, gibbs.init(problem, rng), rng)
    first, second = state.modes
    np.testing.assert_allclose(np.diag(second.precision) * np.square(first.psi).mean(axis=0), 1, atol=5 * 0.0224)


def test_shrinkage_is_for_identity_cores_of_several_modes():
    rng = np.random.default_rng(0)
    assert not Gibbs(shrinkage=True).core("auto", [3, 3], rng).learned
    for spec, ranks in (("full", [2, 2]), ("identity", [2])):
        with pytest.raises(InputError, match="is for core='identity' of two or more modes"):
            Gibbs(shrinkage=True).core(spec, ranks, rng)


def test_the_core_and_shared_weights_are_overrelaxed_and_rows_are_not():
    rng = np.random.default_rng(0)
    for kind in ("rows", "weights"):
        design = tiny_design(rng, (kind, kind))
        model = TuckerModel(core_of("full", [2, 2], rng), Gaussian(), np.ones(2), 1.0)
        problem = Problem(model, design, rng.standard_normal(len(design.index)))
        start = draw_prior(model, design, Gibbs(), rng)
        plain, moved = (
            Gibbs(overrelaxation=share).step(problem, start, np.random.default_rng(1))[0] for share in (0.0, 0.6)
        )
        assert (plain.modes[0].psi == moved.modes[0].psi).all() == (kind == "rows")
        assert (plain.W != moved.W).all()


def test_draws_along_the_orbit_keep_f():
    rng = np.random.default_rng(0)
    design = tiny_design(rng, ("weights", "rows", "weights"))
    model = TuckerModel(core_of("full", [2, 3, 2], rng), Gaussian(), np.ones(3), 0.7)
    problem = Problem(model, design, rng.standard_normal(len(design.index)))
    start = draw_prior(model, design, Gibbs(), rng)
    modes, W = Gibbs()._draw_along_orbit(problem, list(start.modes), start.W, rng)
    before = model.contract([mode.psi for mode in start.modes], start.W, design.index)
    np.testing.assert_allclose(model.contract([mode.psi for mode in modes], W, design.index), before, rtol=1e-10)
    for d, moves in enumerate((True, False, True)):
        assert np.allclose(modes[d].psi, start.modes[d].psi) is not moves
        if moves:
            np.testing.assert_allclose(modes[d].psi, design.modes[d].features @ modes[d].B)
    assert not np.allclose(W, start.W)


def test_noise_and_coefficients_of_a_conjugate_model_match_the_exact_posterior():
    # D = 1 with a fixed core is Bayesian linear regression y = Phi B + noise; with the precisions held tight by their
    # priors the posterior of B is normal in closed form
    rng = np.random.default_rng(3)
    features = rng.standard_normal((30, 3))
    design = Design((ModeTable(features, blocks=(slice(0, 3),)),), np.arange(30, dtype=np.int32)[:, None])
    core = core_of("identity", [1], rng)
    model = TuckerModel(core, Gaussian(1.0), np.ones(1), 1.0)
    y = features @ [1.0, -2.0, 0.5] + 0.5 * rng.standard_normal(30)
    sure = 1e8
    gibbs = Gibbs(
        dof=sure,
        tau_shape=2 * sure,
        tau_rate=sure,
        alpha_shape=4 * sure,
        alpha_rate=sure,
        overrelaxation=0,
        draws=4000,
        warmup=10,
    )
    problem = Problem(model, design, y)
    state = gibbs.init(problem, rng)
    draws = []
    for _ in range(gibbs.n_steps):
        state, _ = gibbs.step(problem, state, rng)
        draws.append(state.modes[0].B[:, 0])
    draws = np.array(draws[10:])
    covariance = np.linalg.inv(4 * features.T @ features + 2 * np.eye(3))
    mean = covariance @ (4 * features.T @ y)
    # draws are independent here; |z| < 4.5
    assert (np.abs(draws.mean(axis=0) - mean) < 4.5 * np.sqrt(np.diag(covariance) / len(draws))).all()
    np.testing.assert_allclose(np.cov(draws.T), covariance, rtol=0.15, atol=0.05 * np.abs(covariance).max())


@quick_and_long("datasets", 8, 40)
def test_intervals_cover_what_they_should_on_data_from_the_model(datasets):
    """Simulation-based calibration: 90 % intervals of f at 8 held-out cells of each data set. Coverage is within 0.9
    +- 4 binomial standard errors, where the 8 dependent checks of a data set count as 2 independent ones: false alarms
    below 1e-3 with a fresh seed. For 8 data sets the bound is 0.6, which shows intervals half as wide as they should
    be, but none that are too wide.
    """
    rng = np.random.default_rng(5)
    inside = []
    for _ in range(datasets):
        design = tiny_design(rng, ("rows", "rows"), rows=8, n=60)
        core = core_of("identity", [2, 2], rng)
        model = TuckerModel(core, Gaussian(1.0), core.default_sigma_u(), 1.0)
        gibbs = Gibbs(draws=110, warmup=40, **TIGHT)
        truth = draw_prior(model, design, gibbs, rng)
        problem = Problem(model, design, draw_data(model, design, truth, rng))
        held_out = np.stack([np.arange(8), rng.permutation(8)], axis=1).astype(np.int32)
        state, draws = gibbs.init(problem, rng), []
        for t in range(gibbs.n_steps):
            state, _ = gibbs.step(problem, state, rng)
            if t >= gibbs.warmup:
                draws.append(model.contract([mode.psi for mode in state.modes], state.W, held_out))
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        f = model.contract([mode.psi for mode in truth.modes], truth.W, held_out)
        inside.append((low < f) & (f < high))
    assert abs(np.mean(inside) - 0.9) < 4 * np.sqrt(0.09 / (2 * datasets))


def test_a_sweep_depends_on_its_stream_alone():
    rng = np.random.default_rng(0)
    design = tiny_design(rng, ("rows", "weights"))
    core = core_of("full", [2, 2], rng)
    model = TuckerModel(core, Gaussian(1.0), core.default_sigma_u(), 1.0)
    problem = Problem(model, design, rng.standard_normal(14))
    gibbs = Gibbs(noise="rows")
    start = gibbs.init(problem, np.random.default_rng(1))
    a, _ = gibbs.step(problem, start, np.random.default_rng(2))
    b, _ = gibbs.step(problem, start, np.random.default_rng(2))
    for x, y in zip(a.modes, b.modes, strict=True):
        for p, q in zip(x, y, strict=True):
            np.testing.assert_array_equal(p, q)
    np.testing.assert_array_equal(a.W, b.W)
    assert digest(a.likelihood) == digest(b.likelihood)


@pytest.mark.parametrize("noise", ["shared", "rows"])
@pytest.mark.parametrize("kinds", [("rows", "rows"), ("rows", "weights")])
@pytest.mark.parametrize("core", ["identity", "full"])
def test_the_noise_is_drawn_from_the_residuals_of_the_new_state(core, kinds, noise):
    rng = np.random.default_rng(0)
    design, of_core = tiny_design(rng, kinds), core_of(core, [2, 2], rng)
    model = TuckerModel(of_core, Gaussian(1.0), of_core.default_sigma_u(), 1.0)
    problem, gibbs = Problem(model, design, rng.standard_normal(14)), Gibbs(noise=noise)
    state, info = gibbs.step(problem, gibbs.init(problem, np.random.default_rng(1)), np.random.default_rng(2))
    f = gibbs.function(problem, state, design.index)
    assert info.figures["train_rmse"] == pytest.approx(np.sqrt(np.mean((problem.y - f) ** 2)), rel=1e-10)


@pytest.mark.parametrize("core", ["identity", "full"])
def test_single_precision_changes_a_sweep_by_rounding_alone(core):
    rng = np.random.default_rng(0)
    design, of_core = tiny_design(rng, ("rows", "rows")), core_of(core, [2, 2], rng)
    model = TuckerModel(of_core, Gaussian(1.0), of_core.default_sigma_u(), 1.0)
    problem = Problem(model, design, rng.standard_normal(14))
    start = Gibbs(noise="rows").init(problem, np.random.default_rng(1))
    double, single = (
        Gibbs(noise="rows", precision=precision).step(problem, start, np.random.default_rng(2))[0]
        for precision in ("float64", "float32")
    )
    for x, y in zip(double.modes, single.modes, strict=True):
        np.testing.assert_allclose(y.psi, x.psi, rtol=1e-3, atol=1e-4)
    assert (double.modes[1].psi != single.modes[1].psi).any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "float16"}, "precision must be 'float64' or 'float32'"),
        ({"noise": "columns"}, "noise must be 'shared' or 'rows'"),
        ({"draws": 0}, "draws must be a whole number from 1 on"),
        ({"warmup": -1}, "warmup must be a whole number from 0 on"),
        ({"dof": 0.0}, "dof must be positive"),
        ({"draws": 2.5}, "draws must be a whole number"),
        ({"draws": 10, "thin": 11}, "would keep none of 10 draws"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        dataclasses.replace(Gibbs(), **settings)


def test_noise_by_rows_needs_rows():
    rng = np.random.default_rng(0)
    shape = core_of("identity", [2, 2], rng)
    model = TuckerModel(shape, Gaussian(1.0), shape.default_sigma_u(), 1.0)
    problem = Problem(model, tiny_design(rng, ("weights", "matern12")), np.zeros(14))
    with pytest.raises(InputError, match="noise='rows' needs a mode with rows"):
        Gibbs(noise="rows").init(problem, rng)


def small_problem(seed=0, n=60):
    rng = np.random.default_rng(seed)
    design = tiny_design(rng, ("rows", "rows"), rows=6, n=n)
    core = core_of("identity", [2, 2], rng)
    model = TuckerModel(core, Gaussian(1.0), core.default_sigma_u(), 1.0)
    return Problem(model, design, rng.standard_normal(n))


def test_chains_draws_and_thinning_are_as_asked_and_repeatable():
    problem = small_problem()
    sampler = Gibbs(draws=20, warmup=5, thin=4, chains=3)
    with pytest.warns(NotConvergedWarning):
        draws, history = sample(sampler, problem, seed=1)
    assert draws.lengths == (5, 5, 5)
    assert len(history) == 75
    with pytest.warns(NotConvergedWarning):
        again, _ = sample(sampler, problem, seed=1)
    for a, b in zip(draws.modes, again.modes, strict=True):
        for x, y in ((a.rows["psi"], b.rows["psi"]), (a.B, b.B)):
            np.testing.assert_array_equal(x, y)
            assert x.dtype == np.float32
    psi = draws.modes[0].rows["psi"]
    assert psi.shape == (6, 15, 2)
    assert not np.allclose(psi[:, 0], psi[:, 5])  # the first draws of two chains
    assert draws.traces[0].shape == (5, 60)


def test_a_long_run_of_an_easy_problem_raises_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotConvergedWarning)
        draws, _ = sample(Gibbs(draws=1500, warmup=100), small_problem(), seed=0)
    assert draws.diagnostics().warning(share=0.25) is None


def test_ctrl_c_and_a_time_limit_leave_the_draws_there_are():
    def interrupt(info):
        if info.step == 11:
            os.kill(os.getpid(), signal.SIGINT)

    draws, _ = sample(Gibbs(draws=50, warmup=5, chains=2), small_problem(), 0, Control(callback=interrupt))
    assert draws.lengths == (6,)
    draws, _ = sample(Gibbs(draws=10_000, warmup=10_000, chains=2), small_problem(), 0, Control(max_time=0.2))
    assert draws.lengths == (1, 1)


def test_lambda_counts_weights_in_units_of_their_block_and_whitened_rows():
    rng = np.random.default_rng(6)
    design = random_design(rng, [6, 6], [4, 4], 20, "rows")
    table, r = design.modes[0], 2
    B, E = rng.standard_normal((4, r)), rng.standard_normal((6, r))
    tau = np.arange(2.0, 2.0 + len(table.blocks))
    mode = ModeState(E, B, np.eye(r), tau, table.residual.init(r, 1.0, rng))
    found, count = _scatter(table, mode, E)
    by_feature = np.concatenate([np.full(b.stop - b.start, t) for b, t in zip(table.blocks, tau, strict=True)])
    Z = E / 0.7  # the sd of rows in these designs
    np.testing.assert_allclose(found, B.T @ np.diag(by_feature) @ B + Z.T @ Z)
    assert count == 4 + 6
