"""Modes on a line in Gibbs sampling and ALS: invariance, predictions between and beyond, the dense solution."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import linalg

from tests.helpers import core_of, flatten, quick_and_long, z_scores
from tests.inference.test_gibbs import (
    TIGHT,
    draw_data,
    draw_prior,
    kernel_of,
    sum_of,
    summary,
    tiny_design,
    with_targets,
)
from tuckergp import Mode, TuckerGPRegressor
from tuckergp import features as marks
from tuckergp.data.datasets import load_california, load_wind
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.evaluation.metrics import rmse
from tuckergp.features import Cholesky
from tuckergp.inference import ALS, SGD, Gibbs
from tuckergp.inference.base import Problem
from tuckergp.kernels import SE, Identity, Linear, Matern12, Matern32, Matern52, Periodic
from tuckergp.likelihoods import Gaussian
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import Parameters, TuckerModel
from tuckergp.posterior.draws import Draws
from tuckergp.priors.given import ModeGiven
from tuckergp.priors.hyper import PrecisionPrior
from tuckergp.priors.regressions import regression_of
from tuckergp.residuals import Line, LineSum
from tuckergp.residuals.base import ModeDraws, ModeState
from tuckergp.residuals.line import OnLine, Path
from tuckergp.running.loop import run

NEW = np.array([-0.3, 0.9, 4.0])  # before, between and mostly after the knots of `tiny_design`


def test_rows_are_whitened_in_the_order_of_the_line_whatever_their_own():
    t = np.array([3.0, 1.0, 2.5, 0.0])
    line = Line(np.sort(t), t, 2, 2.0, 0.5)
    E = np.random.default_rng(0).standard_normal((4, 2))
    Z = line.whitened(E, Path(np.zeros((4, 2, 2)), 2.0))
    K = Matern32(2.0)(t[:, None]) * 0.5**2
    np.testing.assert_allclose(Z.T @ Z, E.T @ np.linalg.solve(K, E), rtol=1e-8)


def test_weights_given_the_factors_are_generalised_least_squares():
    """Psi = Phi B + E, E ~ N(0, sd^2 K kron Lambda^-1), B ~ N(0, (tau Lambda)^-1): the mean of B, Lambda apart."""
    rng = np.random.default_rng(0)
    t, phi, sd, tau = np.array([3.0, 1.0, 2.5, 0.0]), rng.standard_normal((4, 2)), 0.5, 7.0
    blocks, line = (slice(0, 2),), Line(np.sort(t), t, 1, 2.0, sd)
    given = ModeGiven(phi, blocks, regression_of(phi, blocks, None), PrecisionPrior(3.0, 1.0, True))
    own = Path(np.zeros((4, 1, 2)), 2.0)
    mode = ModeState(np.zeros((4, 2)), np.zeros((2, 2)), np.diag([2.0, 1.0]), np.array([tau]), own)
    evidence = SimpleNamespace(statistics=lambda: (np.stack([np.eye(2)] * 4), rng.standard_normal((4, 2))))
    found, _ = line.update(mode, evidence, given, None)
    weighted = np.linalg.solve(Matern12(2.0)(t[:, None]) * sd**2, phi)
    np.testing.assert_allclose(found.B, np.linalg.solve(weighted.T @ phi + tau * np.eye(2), weighted.T @ found.psi))


def test_a_season_is_found_from_the_lengthscale_of_a_trend():
    """Beside a trend, and with a season among the features, a long lengthscale stayed where it began."""
    t = np.arange(120.0)
    y = 0.02 * t + np.sin(t / 2) + 0.1 * np.random.default_rng(0).standard_normal(120)
    for kernel in (Linear() + Matern32(20.0), Linear() + Periodic(4 * np.pi) + Matern32(20.0)):
        model = TuckerGPRegressor([Mode("t", kernel)], rank=1, draws=40, warmup=40, random_state=0)
        assert model.fit({"t": t}, y).score({"t": t}, y) > 0.97  # 0.6 and 0.3


def at_new_values(design):
    """The chain modes at NEW, with features of zero, the other modes as they are."""
    modes = []
    for table in design.modes:
        if isinstance(table.residual, OnLine):
            features = np.zeros((len(NEW), table.features.shape[1]))
            table = ModeTable(features, replace(table.residual, t=NEW), blocks=table.blocks)
        modes.append(table)
    return Design(tuple(modes), np.zeros((1, len(modes)), dtype=np.int32))


def dense_new_values(table, mode, rng):
    """E at NEW given E at the knots, by the dense Gaussian process."""
    line = table.residual
    is_sum, lengthscale = isinstance(line, LineSum), mode.own.lengthscale
    kernel = sum_of(line, lengthscale, mode.own.share) if is_sum else kernel_of(line.order, lengthscale)
    E = mode.psi - table.features @ mode.B
    K = kernel(line.t) + 1e-10 * np.eye(len(line.t))
    weights = np.linalg.solve(K, kernel(line.t, NEW)).T
    C = line.sd**2 * (kernel(NEW) - weights @ kernel(line.t, NEW))
    root = np.linalg.cholesky(np.linalg.inv(mode.precision))
    values, vectors = np.linalg.eigh(C)
    noise = vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * rng.standard_normal((len(NEW), len(root))))
    return weights @ E + noise @ root.T


def new_summary(table, mode, E):
    """Light-tailed functions of new values, of their products and of what they share with the first knot."""
    first = (mode.psi - table.features @ mode.B)[table.residual.sorter[0]]
    values = np.vstack([E, first])
    products = np.tanh(values @ mode.precision @ values.T)
    return [*np.tanh(values[:, 0]), *products[np.triu_indices(len(values))]]


GEWEKE = [
    ("identity", (2, 2), ("matern12", "rows"), "shared"),
    ("identity", (2, 2), ("matern32", "rows"), "rows"),
    ("full", (2, 2), ("matern32", "matern12"), "shared"),
    ("identity", (2, 2, 2), ("matern12", "weights", "rows"), "rows"),
    ("identity", (2, 2), ("sum", "rows"), "shared"),
]


@quick_and_long("restarts", 50, 400)
@pytest.mark.parametrize(("core", "ranks", "kinds", "noise"), GEWEKE)
def test_sampler_and_data_together_keep_the_prior(core, ranks, kinds, noise, restarts):
    """Geweke's test (2004) with restarts: unknowns from the prior, then four times data given unknowns and one sweep;
    the change of every function, lengthscales and new values of the chain among them, must be 0 on average. Restarts
    are independent, so z-scores need no batches; |z| < 4.5 on at most 60 functions, 5 cases: with a fresh seed, false
    alarms below 300 P(|t| > 4.5) for Student's t, which is 0.003 for 400 restarts and 0.008 for 80.
    """
    rng = np.random.default_rng(11)
    design = tiny_design(rng, kinds)
    new = at_new_values(design)
    shape = core_of(core, list(ranks), rng)
    model = TuckerModel(shape, Gaussian(1.0), shape.default_sigma_u(), shape.default_sigma_w())
    gibbs = Gibbs(noise=noise, **TIGHT)
    lines = [d for d, table in enumerate(design.modes) if isinstance(table.residual, OnLine)]

    def functions(state, y, values):
        more = [new_summary(design.modes[d], state.modes[d], values[d]) for d in lines]
        return np.concatenate([summary(model, design, state, y), *more])

    prepared = Problem(model, design, np.zeros(len(design.index)))
    changes = []
    for restart in range(restarts):
        # from sweep 21 on the lengthscale is drawn with the chain integrated out in some sweeps only
        state = draw_prior(model, design, gibbs, rng)._replace(sweep=21 + restart % 5)
        y = draw_data(model, design, state, rng)
        values = {d: dense_new_values(design.modes[d], state.modes[d], rng) for d in lines}
        before = functions(state, y, values)
        for _ in range(4):
            problem = with_targets(prepared, y)
            state, _ = gibbs.step(problem, state, rng)
            y = draw_data(model, design, state, rng)
        one = Draws.of(model, [gibbs.draw(problem, state)])
        values = {d: one.factors(d, new.modes[d], one.streams(rng))[:, 0] for d in lines}
        changes.append(functions(state, y, values) - before)
    changes = np.array(changes)
    assert changes.shape[1] <= 60
    z = z_scores(changes)
    assert np.abs(z).max() < 4.5, np.round(z, 1)


LINE = np.array([0.0, 0.4, 1.1, 1.3, 2.9, 4.0])
BEYOND = np.array([-1.0, 0.2, 1.2, 2.0, 3.9, 6.0])  # between and beyond
ONE = [Matern12(0.8), 0.5 * Matern32(0.8), 2.0 * Matern52(0.8)]
SUMS = [
    Matern52(3.0) + 0.3 * Matern12(0.5),
    0.2 * Matern12(0.3) + Matern12(2.0),
    Matern12(3.0) + Matern32(1.0) + Matern52(0.5),
]
materns = pytest.mark.parametrize("kernel", ONE)
materns_and_sums = pytest.mark.parametrize("kernel", ONE + SUMS)


@materns_and_sums
def test_als_with_one_mode_is_the_dense_gaussian_process(kernel):
    # f = psi with D = 1 and rank 1, so the most probable f is the posterior mean of the GP, at new values too
    rng = np.random.default_rng(0)
    rows = rng.permutation(np.repeat(np.arange(6), 3))
    y = rng.standard_normal(len(rows))
    y = (y - y.mean()) / y.std()
    mode = Mode("t", kernel, constant=False)
    model = TuckerGPRegressor([mode], rank=1, core="identity", inference=ALS(noise=0.3, iterations=3))
    model.fit({"t": LINE[rows]}, y)
    t = np.concatenate([LINE, BEYOND])
    K = kernel(LINE[rows]) + 0.3 * np.eye(len(rows))
    np.testing.assert_allclose(model.predict({"t": t}), kernel(t, LINE[rows]) @ np.linalg.solve(K, y), atol=1e-9)


@materns
@pytest.mark.parametrize("core", ["identity", "full"])
def test_als_stops_where_the_model_of_cholesky_features_is_stationary(kernel, core):
    rng = np.random.default_rng(1)
    table = as_table({"s": rng.choice([0.0, 1.0, 2.5], 60), "t": rng.choice(LINE, 60)}, "data")
    modes = [Mode("s", SE(1.0)), Mode("t", Periodic(3.0) + kernel)]
    shape = core_of(core, [2, 2], rng)
    model = TuckerModel(shape, Gaussian(0.5), shape.default_sigma_u(), 1.0)
    y = rng.standard_normal(60)
    design, _ = Design.fit(modes, table)
    features, (_, fitted) = Design.fit(modes, table, any_residual=False)
    result = run(ALS(iterations=3000, tolerance=1e-15), Problem(model, design, y), seed=0)
    joint = np.array([info.figures["log_joint"] for info in result.steps])
    assert (np.diff(joint) > -1e-9 * np.abs(joint[1:])).all()
    E = result.parameters.own[1].states[:, 0]
    L = features.modes[1].features[:, fitted.blocks[-1].columns]  # of the Matern: L L' = K
    same = Parameters(
        (result.parameters.U[0], np.vstack([result.parameters.U[1], linalg.solve(L, E)])), result.parameters.W
    )
    value, gradient = model.log_joint_and_gradient(same, features, y)
    assert joint[-1] == pytest.approx(value, rel=1e-9)
    _, at_start = model.log_joint_and_gradient(model.init(features, rng), features, y)
    assert np.abs(flatten(gradient)).max() < 1e-4 * np.abs(flatten(at_start)).max()


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(2)
    order = rng.permutation(6)
    codes = [rng.integers(3, size=50), rng.integers(6, size=50)]
    y = rng.standard_normal(50)
    modes = [Mode("s", Identity()), Mode("t", Matern32(1.0))]
    core = core_of("full", [2, 2], rng)
    model = TuckerModel(core, Gaussian(0.5), core.default_sigma_u(), 1.0)
    found = []
    for t, code in ((LINE, codes[1]), (LINE[order], np.argsort(order)[codes[1]])):
        tables = [as_table({"s": [0, 1, 2]}, "s"), as_table({"t": t}, "t")]
        design, _ = Design.of_entities(modes, tables, [codes[0], code])
        problem = Problem(model, design, y)
        gibbs = Gibbs()
        state = gibbs.init(problem, np.random.default_rng(0))
        for _ in range(3):
            state, _ = gibbs.step(problem, state, np.random.default_rng(1))
        found.append(gibbs.function(problem, state, design.index))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-8)


@pytest.fixture(scope="module")
def wave():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"place": rng.choice(["a", "b", "c"], 300), "day": rng.choice(np.arange(60) * 0.5, 300)})
    slope = table["place"].map({"a": 1.0, "b": -0.5, "c": 2.0}).to_numpy()
    return table, slope * np.sin(table["day"].to_numpy() / 3) + 0.1 * rng.standard_normal(300)


def test_a_draw_at_new_values_is_the_dense_conditional_of_its_knots(wave):
    # Matern-1/2, where the states are the values: the mean of each draw is K* K^-1 E, and draws vary as the dense GP
    table, y = wave
    modes = [Mode("place", Identity()), Mode("day", Matern12(4.0), constant=False)]
    model = TuckerGPRegressor(modes, rank=2, core="identity", draws=2, warmup=5, random_state=0).fit(table, y)
    t = np.array([-2.0, 3.1, 3.2, 40.0])
    new = Design.transform(model.modes_, as_table({"place": ["a"] * 4, "day": t}, "new"))
    draw = model.fit_.draws.only(-1)
    mode, knots = draw.modes[1], new.modes[1].residual.knots
    kernel = Matern12(mode.values["lengthscale"][0])
    weights = np.linalg.solve(kernel(knots), kernel(knots, t)).T
    mean = weights @ mode.rows["states"][:, 0, 0]
    np.testing.assert_allclose(draw.factors(1, new.modes[1])[:, 0], mean, atol=1e-6)
    rng = np.random.default_rng(0)
    psi = np.array([draw.factors(1, new.modes[1], draw.streams(rng))[:, 0] for _ in range(4000)])
    C = np.kron(kernel(t) - weights @ kernel(knots, t), mode.covariance[0])
    found = (psi - mean).reshape(4000, -1)
    # 44 second moments of normal draws: |z| < 4.5, false alarms below 3e-4
    moments, spread = found.T @ found / 4000, np.sqrt((C**2 + np.outer(np.diag(C), np.diag(C))) / 4000)
    assert (np.abs(moments - C) < 4.5 * spread + 1e-9).all()


@pytest.mark.parametrize("kind", ["matern12", "matern32"])
def test_draws_at_new_values_given_the_factors_are_those_of_the_dense_process(kind):
    # given psi and B alone, derivatives are drawn as well; 3,000 draws of 3 x 2 numbers, |z| < 4.5 for 6 means and 21
    # second moments, 2 cases: false alarms below 4e-4
    rng = np.random.default_rng(3)
    design = tiny_design(rng, (kind,), rows=5)
    table, new = design.modes[0], at_new_values(design).modes[0]
    line = table.residual
    B, precision = rng.standard_normal((3, 2)), np.array([[2.0, 0.6], [0.6, 1.0]])
    psi = table.features @ B + 0.5 * rng.standard_normal((5, 2))
    E, covariance = psi - table.features @ B, line.sd**2 * np.linalg.inv(precision)
    paths = [line.finished(E, Path(None, 1.3), precision, rng) for _ in range(3000)]
    draws = ModeDraws(
        np.repeat(B[:, None], 3000, axis=1),
        np.repeat(covariance[None], 3000, axis=0),
        {"states": np.stack([path.states for path in paths], axis=1)},
        {"lengthscale": np.array([path.lengthscale for path in paths])},
    )
    found = new.residual.factors(new.features, draws, lambda s: rng).swapaxes(0, 1).reshape(3000, -1)
    kernel = kernel_of(line.order, 1.3)
    weights = np.linalg.solve(kernel(line.t), kernel(line.t, NEW)).T
    centred = found - (weights @ E).ravel()
    C = np.kron(kernel(NEW) - weights @ kernel(line.t, NEW), covariance)
    assert (np.abs(centred.mean(axis=0)) < 4.5 * np.sqrt(np.diag(C) / 3000)).all()
    spread = np.sqrt((C**2 + np.outer(np.diag(C), np.diag(C))) / 3000)
    assert (np.abs(centred.T @ centred / 3000 - C) < 4.5 * spread).all()


def test_uncertainty_grows_away_from_the_knots_and_returns_to_the_prior_beyond_them(wave):
    table, y = wave
    modes = [Mode("place", Identity()), Mode("day", Matern32(4.0))]
    model = TuckerGPRegressor(modes, rank=2, draws=60, warmup=60, random_state=0).fit(table, y)
    assert model.score(table, y) > 0.95
    days = [10.0, 10.25, 32.0, 60.0]
    _, std = model.predict(pd.DataFrame({"place": ["c"] * 4, "day": days}), return_std=True, include_noise=False)
    assert std[0] < std[2] < std[3]
    assert abs(std[0] - std[1]) < std[3] - std[2]
    assert model.fit_.draws.modes[1].rows["states"].dtype == np.float32


@quick_and_long("datasets", 5, 16)
def test_intervals_cover_new_values_of_data_from_the_model(datasets):
    """90 % intervals of f at 12 cells of each data set whose values of the chain were never seen. Coverage is within
    0.9 +- 4 binomial standard errors, where the 12 dependent checks of a data set count as 3 independent ones: false
    alarms below 1e-3 with a fresh seed. For 5 data sets the bound is 0.59, which shows intervals half as wide as they
    should be, but none that are too wide.
    """
    rng = np.random.default_rng(6)
    inside = []
    for _ in range(datasets):
        line = tiny_design(rng, ("matern12",), rows=12).modes[0].residual
        rows = np.sort(rng.permutation(12)[:8])
        whole = tiny_design(rng, ("rows", "rows"), rows=12, n=80)
        whole = Design((whole.modes[0], ModeTable(np.ones((12, 1)), line)), whole.index)
        core = core_of("identity", [2, 2], rng)
        model = TuckerModel(core, Gaussian(1.0), core.default_sigma_u(), 1.0)
        gibbs = Gibbs(draws=100, warmup=30, **TIGHT)
        truth = draw_prior(model, whole, gibbs, rng)
        y = draw_data(model, whole, truth, rng)
        seen = np.isin(whole.index[:, 1], rows)
        part = replace(line, knots=np.sort(line.t[rows]), t=line.t[rows])
        index = whole.index[seen].copy()
        index[:, 1] = np.searchsorted(rows, index[:, 1])
        problem = Problem(model, Design((whole.modes[0], ModeTable(np.ones((8, 1)), part)), index), y[seen])
        asked = np.stack([np.arange(12), np.resize(np.setdiff1d(np.arange(12), rows), 12)], axis=1).astype(np.int32)
        new = replace(part, t=line.t)
        held_out = Design((whole.modes[0], ModeTable(np.ones((12, 1)), new)), asked)
        state, kept = gibbs.init(problem, rng), []
        for sweep in range(gibbs.n_steps):
            state, _ = gibbs.step(problem, state, rng)
            if sweep >= gibbs.warmup:
                kept.append(gibbs.draw(problem, state))
        values = Draws.of(model, kept).predicted(held_out, rng).f
        low, high = np.quantile(values, [0.05, 0.95], axis=0)
        f = model.contract([mode.psi for mode in truth.modes], truth.W, asked)
        inside.append((low < f) & (f < high))
    assert abs(np.mean(inside) - 0.9) < 4 * np.sqrt(0.09 / (3 * datasets))


def test_ordinal_targets_and_weights_go_with_a_chain(wave):
    table, y = wave
    modes = [Mode("place", Identity()), Mode("day", Matern12(4.0))]
    ordinal = TuckerGPRegressor(modes, rank=2, likelihood="bernoulli", draws=30, warmup=30, random_state=0)
    assert np.mean(ordinal.fit(table, y > 0).predict(table).round() == (y > 0)) > 0.9
    als = TuckerGPRegressor(modes, rank=2, inference="als", random_state=0)
    twice = als.fit(pd.concat([table, table]), np.concatenate([y, y])).predict(table)
    np.testing.assert_allclose(als.fit(table, y, np.full(len(y), 2.0)).predict(table), twice, rtol=1e-6)


def test_a_chain_with_a_fixed_lengthscale_keeps_the_kernels(wave):
    table, y = wave
    modes = [Mode("place", Identity()), Mode("day", Matern12(4.0), features=marks.Line(learn=False))]
    model = TuckerGPRegressor(modes, rank=2, draws=5, warmup=5, random_state=0).fit(table, y)
    assert set(model.fit_.draws.modes[1].values["lengthscale"]) == {4.0}


def test_sgd_takes_features_and_refuses_a_chain_asked_for(wave):
    table, y = wave
    modes = [Mode("place", Identity()), Mode("day", Matern12(4.0))]
    model = TuckerGPRegressor(modes, rank=2, inference=SGD(epochs=2), random_state=0).fit(table, y)
    assert isinstance(model.modes_[1].blocks[1].map, Cholesky)
    modes[1] = Mode("day", Matern12(4.0), features=marks.Line())
    with pytest.raises(InputError, match=r"Line\(\) of mode 'day' needs inference='gibbs' or 'als'"):
        TuckerGPRegressor(modes, rank=2, inference="sgd").fit(table, y)
    design, _ = Design.fit(modes, as_table(table, "data"))
    core = core_of("full", [2, 2], np.random.default_rng(0))
    problem = Problem(TuckerModel(core, Gaussian(0.5), core.default_sigma_u(), 1.0), design, y)
    with pytest.raises(InputError, match="SGD is for weights of features"):
        run(SGD(), problem, seed=0)


def test_california_as_two_chains(data_dir):
    # every eighth training row of the authors' split; predicting the mean gives 0.57
    data = load_california(data_dir)
    table = {name: data.table[name] for name in ("longitude", "latitude")}
    y = np.log(data.table["house_value"])
    modes = [Mode("longitude", Matern12(0.3)), Mode("latitude", Matern12(0.3))]
    model = TuckerGPRegressor(modes, rank=4, core="full", draws=40, warmup=30, random_state=0)
    train, test = data.train[::8], data.test[::4]
    model.fit({name: values[train] for name, values in table.items()}, y[train])
    mean, band = model.predict({name: values[test] for name, values in table.items()}, quantiles=[0.05, 0.95])
    assert rmse(y[test], mean) < 0.38
    assert 0.85 < np.mean((band[:, 0] < y[test]) & (y[test] < band[:, 1])) < 0.95


def test_wind_as_stations_times_seasons_and_a_chain_of_days(data_dir):
    wind = load_wind(data_dir).values
    year = np.flatnonzero(wind["day"] < 365)
    rows = year[np.random.default_rng(0).permutation(len(year))]
    train, test = wind.take(rows[:1500]), wind.take(rows[1500:])
    modes = [Mode("station", Identity()), Mode("day", Periodic(365.25) + Matern12(2.0))]
    model = TuckerGPRegressor(modes, rank=3, draws=60, warmup=60, random_state=0)
    model.fit(train.select(["station", "day"]), train["speed"])
    assert rmse(test["speed"], model.predict(test.select(["station", "day"]))) < 3.5
