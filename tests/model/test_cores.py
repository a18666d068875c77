"""Patterns of the core: where entries are, that modes which are left out drop out, that estimators take them."""

import numpy as np
import pytest

from tests.helpers import flatten, model_of, random_design, unflatten
from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender, load
from tuckergp.compute.contract import FULL
from tuckergp.errors import InputError
from tuckergp.inference import Gibbs
from tuckergp.inference.base import Problem
from tuckergp.inference.squares import squares_of
from tuckergp.kernels import SE
from tuckergp.likelihoods.precision import Precision
from tuckergp.model.cores import Entries, Learned, Random, inclusion, places
from tuckergp.model.tucker import make_core
from tuckergp.statistics.evidence import Evidence, sort_by_row

LEAVING_OUT = {
    "pairwise": ("pairwise", [3, 2, 3]),
    "two modes": ("pairwise", [2, 3]),
    "given": (Entries([(0, 1, 0, 1), (1, None, 1, None), (None, None, None, 0), (None,) * 4]), [2, 3, 2, 2]),
    "superdiagonal": ("cp", [3, 3, 3]),
}


def with_ones(psi):
    """Factors with a last one that is 1, as `Core.dense` has them where entries leave modes out."""
    return [np.column_stack([table, np.ones(len(table))]) for table in psi]


def einsum_f(core, W, psi, index):
    """F by einsum with the dense core."""
    tables = with_ones(psi) if core.leaves_out else psi
    letters = "abcd"[: len(tables)]
    terms = ",".join([letters, *(f"n{letter}" for letter in letters)])
    return np.einsum(f"{terms}->n", core.dense(W), *(t[index[:, d]] for d, t in enumerate(tables)))


def problem_of(name, n=30, kind="mixed"):
    pattern, ranks = LEAVING_OUT[name]
    rng = np.random.default_rng(7)
    design = random_design(rng, [5] * len(ranks), [4] * len(ranks), n, kind)
    model = model_of(make_core(pattern, ranks, rng))
    return Problem(model, design, rng.standard_normal(n), rng.uniform(0.5, 2.0, n)), model.init(design, rng)


@pytest.mark.parametrize("name", LEAVING_OUT)
def test_f_is_that_of_the_dense_core(name):
    problem, at = problem_of(name)
    model, design = problem.model, problem.design
    psi = model.factors(at, design)
    expected = einsum_f(model.core, at.W, psi, design.index)
    np.testing.assert_allclose(model.predict(at, design), expected, rtol=1e-12)
    for d in range(model.core.modes):
        rows = [None if e == d else table[design.index[:, e]] for e, table in enumerate(psi)]
        z, alone = model.core.others(at.W, rows, d)
        mine = psi[d][design.index[:, d]]
        np.testing.assert_allclose(np.sum(z * mine, axis=1) + alone, expected, rtol=1e-11)


@pytest.mark.parametrize("name", LEAVING_OUT)
def test_gradients_are_those_of_finite_differences(name):
    problem, at = problem_of(name)
    model, design, y, weight = problem.model, problem.design, problem.y, problem.weight
    _, gradient = model.log_joint_and_gradient(at, design, y, weight)
    point, h = flatten(at), 1e-5

    def log_joint(vector):
        return model.log_joint(unflatten(vector, at), design, y, weight)

    numeric = [(log_joint(point + h * e) - log_joint(point - h * e)) / (2 * h) for e in np.eye(point.size)]
    np.testing.assert_allclose(flatten(gradient), numeric, rtol=1e-6, atol=1e-6)
    total, slope = squares_of(model.core, design, y, weight)(point)
    f = model.predict(at, design)
    assert total == pytest.approx(weight @ (y - f) ** 2, rel=1e-12)
    prior = np.concatenate([np.repeat(model.sigma_u, [U.size for U in at.U]), np.full(len(at.W), model.sigma_w)])
    np.testing.assert_allclose(slope, model.likelihood.noise * (flatten(gradient) + point / prior**2), atol=1e-9)


@pytest.mark.parametrize("name", LEAVING_OUT)
def test_statistics_of_rows_are_those_of_the_residual_of_what_leaves_the_mode_out(name):
    problem, at = problem_of(name)
    core, design, y = problem.model.core, problem.design, problem.y
    psi = problem.model.factors(at, design)
    for d in range(core.modes):
        precision = Precision(1.3, problem.weight)
        evidence = Evidence(sort_by_row(design, d), y, precision, core, d, psi, at.W)
        A, b = evidence.statistics()
        rows = [None if e == d else table[design.index[:, e]] for e, table in enumerate(psi)]
        z, alone = core.others(at.W, rows, d)
        w = 1.3 * problem.weight
        expected_A, expected_b = np.zeros_like(A), np.zeros_like(b)
        np.add.at(expected_A, design.index[:, d], w[:, None, None] * z[:, :, None] * z[:, None, :])
        np.add.at(expected_b, design.index[:, d], (w * (y - alone))[:, None] * z)
        np.testing.assert_allclose(A, expected_A, atol=1e-10)
        np.testing.assert_allclose(b, expected_b, atol=1e-10)
        squares = np.bincount(design.index[:, d], problem.weight * (y - problem.model.predict(at, design)) ** 2, len(A))
        np.testing.assert_allclose(evidence.residuals().squares, squares, rtol=1e-10)


def test_a_pairwise_core_is_a_factorisation_machine():
    # w0 + sum_d w_d psi_d0 + sum_{d < e} sum_k w_dek psi_dk psi_ek, written out
    core = make_core("pairwise", [3, 3, 3])
    rng = np.random.default_rng(0)
    W, psi = rng.standard_normal(core.n_weights), [rng.standard_normal((1, 3)) for _ in range(3)]
    a, b, c = (table[0] for table in psi)
    expected = W[0] + W[1] * a[0] + W[2] * b[0] + W[3] * c[0]
    expected += W[4:6] @ (a[1:] * b[1:]) + W[6:8] @ (a[1:] * c[1:]) + W[8:10] @ (b[1:] * c[1:])
    f = model_of(core).contract(psi, W, np.zeros((1, 3), dtype=np.int32))
    assert core.n_weights == 10
    np.testing.assert_allclose(f, expected, rtol=1e-12)


def test_main_effects_alone_do_not_interact():
    # with entries for main effects alone, f(x) + f(x') = f with the second mode exchanged
    core = make_core(Entries([(0, None), (None, 0), (None, None)]), [1, 1])
    rng = np.random.default_rng(0)
    psi, W = [rng.standard_normal((2, 1)), rng.standard_normal((2, 1))], rng.standard_normal(3)
    f = model_of(core).contract(psi, W, np.array([[0, 0], [1, 1], [0, 1], [1, 0]], dtype=np.int32))
    assert f[0] + f[1] == pytest.approx(f[2] + f[3], rel=1e-12)


@pytest.mark.parametrize(
    "spec", ["cp", "pairwise", Random(5), Entries([(0, 0, 0), (1, None, 2)]), Learned("pairwise", 0.3)]
)
def test_f_has_prior_variance_one(spec):
    # sum over entries of share sigma_w^2 times sigma_u^2 of each mode they have, where k(x, x) = 1
    core = make_core(spec, [3, 3, 3], np.random.default_rng(0))
    variance = np.where(core.coords < 0, 1.0, core.default_sigma_u() ** 2).prod(axis=1)
    assert core.share * core.default_sigma_w() ** 2 * variance.sum() == pytest.approx(1.0)


def test_a_sparse_core_scales_as_in_the_paper():
    assert make_core(Random(7), [4, 4, 4]).default_sigma_w() ** 2 == pytest.approx(4**3 / 7)
    assert make_core("cp", [4, 4, 4]).default_sigma_w() ** 2 == pytest.approx(4**2)


@pytest.mark.parametrize(
    ("spec", "ranks", "message"),
    [
        ("superdiagonal", [2, 3], "same rank in every mode"),
        ("pairwise", [2, 1], "rank 2 or more"),
        ("pairwise", [3], "two modes or more"),
        (Random(9), [2, 2], "between 1 and 4 nonzeros"),
        (Random(1.5), [2, 2], "between 1 and 4 nonzeros"),
        (Entries([(0, 0)]), [2, 2, 2], "2 coordinates for 3 modes"),
        (Entries([(0, 2)]), [2, 2], "not within ranks"),
        (Entries([(0, -1)]), [2, 2], "not within ranks"),
        (Entries([(0, 1), (0, 1)]), [2, 2], "there twice"),
        (Entries([]), [2, 2], "has no places"),
        (Learned("full"), [20] * 5, "3,200,000 entries"),
        ("diagonal", [2, 2], "core must be"),
    ],
)
def test_patterns_that_cannot_be_are_refused_in_one_sentence(spec, ranks, message):
    with pytest.raises(InputError, match=message):
        make_core(spec, ranks)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Entries([(0, 1.5)]), "whole numbers"),
        (lambda: Entries([0, 1]), "a sequence of places"),
        (lambda: Learned(share=1.0), "between 0 and 1"),
        (lambda: Learned("diagonal"), "not 'diagonal'"),
        (lambda: Learned(Learned("full")), "candidates must be one of"),
        (lambda: inclusion(TuckerGPRegressor()), "for a fitted model"),
        (lambda: Learned(share=True), "between 0 and 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_patterns_do_not_change_and_are_equal_by_value():
    mine = Entries([[0, np.int64(1)], [None, 0]])
    assert mine == Entries(((0, 1), (None, 0)))
    assert hash(mine) == hash(Entries(((0, 1), (None, 0))))
    with pytest.raises(AttributeError):
        mine.places = ()


def test_random_places_are_distinct_and_follow_the_seed_even_where_a_full_core_has_no_number():
    one, same, other = (places(Random(40), [100] * 12, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert one.shape == (40, 12)
    assert len(np.unique(one, axis=0)) == 40
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


# Estimators

SHORT = {"draws": 60, "warmup": 60, "random_state": 0}


def additive_data(rng, n=200):
    X = rng.uniform(-2, 2, size=(n, 3))
    f = np.sin(X[:, 0]) * X[:, 1] + X[:, 2]
    return X, f, f + 0.1 * rng.standard_normal(n)


@pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")
@pytest.mark.parametrize("inference", ["gibbs", "als", "hmc"])
@pytest.mark.parametrize("core", ["superdiagonal", "pairwise"])
def test_the_regressor_learns_with_patterns(core, inference, tmp_path):
    rng = np.random.default_rng(1)
    X, _, y = additive_data(rng)
    new, f, _ = additive_data(rng)
    lengths = {"random_state": 0} if inference == "als" else SHORT
    model = TuckerGPRegressor(rank=3, core=core, inference=inference, **lengths).fit(X, y)
    assert 1 - np.mean((model.predict(new) - f) ** 2) / np.var(f) > 0.95
    parts = model.components(new[:20])
    design_f = parts.tensor().reshape(20, -1).sum(axis=1) + parts.mean
    np.testing.assert_allclose(parts.total(), design_f, rtol=1e-10)
    assert model.fit_.draws.W[-1].shape == (len(parts),)
    model.save(tmp_path / "model.tgp")
    np.testing.assert_array_equal(load(tmp_path / "model.tgp").predict(new), model.predict(new))


def test_the_seed_decides_random_entries_of_an_estimator():
    X, _, y = additive_data(np.random.default_rng(1), 40)

    def coords(seed):
        model = TuckerGPRegressor(rank=3, core=Random(5), inference="als", random_state=seed).fit(X, y)
        return model.fit_.draws.model.core.coords.tolist()

    assert coords(0) == coords(0) != coords(1)


@pytest.mark.parametrize("inference", ["als", "sgd", "hmc", "nuts", "sgld"])
def test_a_learned_pattern_needs_gibbs(inference):
    X, _, y = additive_data(np.random.default_rng(1), 40)
    with pytest.raises(InputError, match=r"cores\.Learned needs inference='gibbs'"):
        TuckerGPRegressor(rank=2, core=Learned("cp"), inference=inference).fit(X, y)


def ratings_of(rng):
    user, item, place = (rng.integers(m, size=250) for m in (12, 9, 3))
    rating = 3 + 0.5 * (user % 3) + 0.3 * (item % 4) + (place == 1) * (item % 2) + 0.2 * rng.standard_normal(250)
    return {"user_id": user, "item_id": item, "place": place, "rating": rating}


@pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")
@pytest.mark.parametrize("context", [(), "place"], ids=["two modes", "context"])
@pytest.mark.parametrize("core", ["cp", "pairwise", Learned("pairwise")], ids=str)
def test_the_recommender_serves_and_explains_with_patterns(core, context, tmp_path):
    ratings = ratings_of(np.random.default_rng(0))
    model = TuckerRecommender(rank=3, core=core, context=context, draws=20, warmup=20, implicit=False, random_state=0)
    model.fit(ratings)
    moment = {"place": 1} if context else {}
    asked = {"user_id": [3], **{name: [value] for name, value in moment.items()}}
    best = model.recommend(asked, n=5, exclude_seen=False)
    asked = {"user_id": np.full(5, 3), "item_id": best["item_id"], **{k: np.full(5, v) for k, v in moment.items()}}
    np.testing.assert_allclose(best["score"], model.predict(asked), rtol=1e-4)
    told = model.explain(3, int(best["item_id"].to_numpy()[0]), **moment)
    assert told.total == pytest.approx(model.predict(asked, clip=False)[0], abs=1e-4)
    model.save(tmp_path / "model.tgp")
    again = load(tmp_path / "model.tgp")
    assert again.core == core
    np.testing.assert_array_equal(again.predict(asked), model.predict(asked))


def test_context_with_other_cores_is_refused():
    with pytest.raises(InputError, match="Context needs"):
        TuckerRecommender(rank=2, core=Random(3), context="place").fit(ratings_of(np.random.default_rng(0)))


# Learned patterns, by estimators


@pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")
def test_a_learned_superdiagonal_has_as_many_components_as_the_data():
    # two components, smooth and of the same size, under noise of a tenth; six are offered
    rng = np.random.default_rng(2)
    X = rng.uniform(-2, 2, size=(500, 3))
    y = np.sin(X[:, 0]) * X[:, 1] * np.cos(X[:, 2]) + X[:, 0] * np.cos(X[:, 1]) * np.sin(2 * X[:, 2])
    y = y / y.std() + 0.1 * rng.standard_normal(500)
    modes = [Mode(f"x{d}", SE(1.0), constant=False) for d in range(3)]
    model = TuckerGPRegressor(modes, rank=6, core=Learned("cp", share=0.3), draws=150, warmup=250, random_state=0)
    found = inclusion(model.fit(X, y))
    assert found.places == tuple((k,) * 3 for k in range(6))
    assert np.sum(found.probability > 0.5) == 2


@pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")
def test_inclusion_is_of_learned_patterns_alone():
    X, _, y = additive_data(np.random.default_rng(1), 40)
    model = TuckerGPRegressor(rank=2, core="cp", inference=Gibbs(draws=3, warmup=1), random_state=0).fit(X, y)
    with pytest.raises(InputError, match="All entries of this core are there"):
        inclusion(model)


def test_weights_count_observations_of_a_pairwise_core():
    rng = np.random.default_rng(0)
    X, y, weight = rng.standard_normal((15, 10)), rng.standard_normal(15), rng.integers(0, 5, 15)
    # few draws, because rounding errors grow along a chain
    model = TuckerGPRegressor(core="pairwise", draws=5, warmup=0, random_state=0)
    weighted = model.fit(X, y, sample_weight=weight.astype(float)).predict(X)
    repeated = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).predict(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)


@pytest.mark.parametrize(
    ("ranks", "n", "full"),
    [
        ([5] * 3, 10**6, True),  # no more than the rest of a sweep
        ([5] * 4, 1_000, True),
        ([5] * 4, 10_000, False),
        ([5] * 5, 1_000, False),  # 3,125 entries, of which the Cholesky factor takes most
        ([5] * 5, 10, False),
        ([16] * 3, 1_000, False),
        ([50, 50], 10**6, True),  # two modes are drawn by the statistics of rows
        ([1] * 9, 10**6, True),
    ],
)
def test_the_automatic_core_of_gibbs_sampling_is_chosen_by_its_cost(ranks, n, full):
    core = Gibbs().core("auto", ranks, np.random.default_rng(0), n)
    assert core.leaves_out is not full
    assert Gibbs().core("full", ranks, np.random.default_rng(0), n).kind == FULL


def test_many_columns_have_a_pairwise_core_by_gibbs_sampling():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 8))
    y = X[:, 0] + np.sin(X[:, 1]) + 0.1 * rng.standard_normal(120)
    model = TuckerGPRegressor(draws=30, warmup=30, random_state=0).fit(X, y)
    assert model.fit_.draws.model.core.leaves_out
    assert model.score(X, y) > 0.8
    assert not TuckerGPRegressor(inference="als").fit(X, y).fit_.draws.model.core.learned
