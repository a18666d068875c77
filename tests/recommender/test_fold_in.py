"""Folding new ratings in: exact conditionals of the rows concerned, and nothing else moves."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.helpers import quick_and_long
from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.data.tables import Table, as_table
from tuckergp.errors import InputError
from tuckergp.evaluation.metrics import rmse
from tuckergp.inference.base import Problem
from tuckergp.inference.gibbs import Gibbs
from tuckergp.likelihoods.row_noise import NU
from tuckergp.model.whitening import whiten
from tuckergp.posterior.draws import map_draws
from tuckergp.recommender.attributes import WHO_RATED_WHAT, join
from tuckergp.recommender.fold_in import _problem, fold_in
from tuckergp.recommender.folding import LocalRows
from tuckergp.statistics.evidence import Evidence, Precision

USERS = {"user_id": ["a", "b", "c", "d"], "age": [20, 30, 40, 50], "job": ["x", "y", "x", "y"]}
ITEMS = {"item_id": [1, 2, 3, 4, 5], "kind": ["p", "q", "p", "q", "p"]}


def small_ratings():
    rng = np.random.default_rng(3)
    pairs = [(u, i) for u in ("a", "b", "c") for i in (1, 2, 3, 4)]
    return {
        "user_id": [u for u, _ in pairs],
        "item_id": [i for _, i in pairs],
        "rating": rng.integers(1, 6, len(pairs)).astype(float),
        "timestamp": [f"1998-0{1 + k % 3}-01" for k in range(len(pairs))],
        "device": ["tv", "phone"] * 6,
    }


NEW = {
    "user_id": ["d", "b", "new", "d", "new"],
    "item_id": [1, 2, 3, 4, 1],
    "rating": [5.0, 1.0, 2.0, 3.0, 3.0],
    "timestamp": ["1998-01-05", "1998-01-01", "1998-02-01", None, "1998-05-01"],
    "device": ["tv", "tv", "watch", None, "phone"],
}
SETTINGS = {
    "rows": {"inference": Gibbs(draws=4, warmup=3, noise="rows")},
    "shared": {"inference": Gibbs(draws=4, warmup=3), "implicit": False, "side_information": False},
    "drift and context": {"inference": Gibbs(draws=3, warmup=3, noise="rows"), "time": "week", "context": "device"},
    "full core": {"inference": Gibbs(draws=3, warmup=3), "core": "full"},
    "pairwise core": {"inference": Gibbs(draws=3, warmup=3), "core": "pairwise"},
    "ordinal": {"inference": Gibbs(draws=3, warmup=3, noise="rows"), "likelihood": "ordinal", "implicit": False},
    "als": {"inference": "als"},
}


def fitted(**settings):
    settings = {"rank": 2, "time": None, "random_state": 0, "implicit": True} | settings
    return TuckerRecommender(**settings).fit(small_ratings(), USERS, ITEMS)


def pieces(rec):
    return rec.layout_, rec.fit_, rec.history_


def rows_found(rec, table, seed):
    """Factors of the users concerned in all draws, (users, S, r)."""
    return parted_of(rec, table, seed).find(seed)[0].psi


def parted_of(rec, table, seed=0):
    return _problem(*pieces(rec), table, (None, None), None, "keep", 4, seed)


def dense_conditional(rec, s, ratings, user, features, users=USERS):
    """A user's row in draw s given all ratings of theirs, in plain NumPy.

    Mean, covariance, and the squared residuals at the mean in units of their variance under a noise factor of 1.
    """
    design, draws = rec.layout_.pairs(as_table(ratings, "all")), rec.fit_.draws
    core, alpha = draws.model.core.dense(draws.W[s]), float(draws.unknowns.get("alpha", np.ones(s + 1))[s])
    psi = [draws.factors(d, mode)[:, s] for d, mode in enumerate(design.modes)]
    if draws.model.core.leaves_out:  # the last place of an axis stands for a factor 1
        psi = [np.column_stack([table, np.ones(len(table))]) for table in psi]
    r = draws.modes[0].covariance.shape[1]
    P = np.linalg.inv(draws.modes[0].covariance[s] + variance_of_new_levels(rec, s, user, features, users))
    A, b, each = P.copy(), P @ (features @ draws.modes[0].B[:, s]), []
    for row in np.flatnonzero(np.array([u == user for u in ratings["user_id"]])):
        z = core
        for d in range(len(psi) - 1, 0, -1):
            z = np.tensordot(z, psi[d][design.index[row, d]], axes=(z.ndim - 1, 0))
        factors = []
        for d, mode in enumerate(draws.modes):
            group = design.modes[d].groups[design.index[row, d]]
            factors.append(1.0 if mode.row_noise is None or group < 0 else float(mode.row_noise[group, s]))
        w = alpha * np.prod(factors)
        f = z @ psi[0][design.index[row, 0]]
        y = target_of(rec, s, ratings["rating"][row], f, w) - z[r:].sum()
        z = z[:r]
        A += w * np.outer(z, z)
        b += w * z * y
        each.append((w / factors[0], z, y))
    mean = np.linalg.solve(A, b)
    return mean, np.linalg.inv(A), sum(w * (y - z @ mean) ** 2 for w, z, y in each)


def target_of(rec, s, rating, f, precision):
    """A rating as the model takes it: standardised, or the median of N(f, 1 / precision) between two cut points."""
    likelihood, unknowns = rec.fit_.likelihood, rec.fit_.draws.unknowns
    if "cuts" not in unknowns:
        return (rating - rec.fit_.mean) / rec.fit_.scale
    level, latent = likelihood.values.index(rating), stats.norm(f, precision**-0.5)
    ends = np.array([-np.inf, *unknowns["cuts"][s], np.inf])[level : level + 2]
    return latent.ppf(latent.cdf(ends).mean())


def variance_of_new_levels(rec, s, user, features, users=USERS):
    """What levels of a user that training did not have add to the prior covariance: what features lack of k(x, x)."""
    side, mode = rec.layout_.sides[0], rec.fit_.draws.modes[0]
    row = join(as_table(users, "users"), "user_id", [user], "users")
    row = replace(row, columns={**row.columns, WHO_RATED_WHAT: np.full(1, None, dtype=object)})
    inputs = whiten(side.attributes.encode(row).select(side.mode.mode.columns), side.mode.whitening)
    total = 0.0
    for g, block in enumerate(side.mode.blocks):
        if WHO_RATED_WHAT not in repr(block.kernel):
            own = features[block.columns]
            total += float(block.kernel(inputs)[0, 0] - own @ own) / mode.values["tau"][s, g]
    return total * mode.values["spread"][s]


def both(old, new):
    return {name: np.array([*old[name], *new[name]], dtype=object) for name in old}


def features_by_hand(rec, user, items):
    """A user's features: those of the table, who rated what as the unit vector of the set."""
    side = rec.layout_.sides[0]
    row = side.table.features[side.numbers([user])]
    row = row.toarray()[0] if hasattr(row, "toarray") else np.array(row)[0]
    for block in side.mode.blocks:
        if WHO_RATED_WHAT in repr(block.kernel):
            scale = np.sqrt(block.kernel.variance())
            number = [rec.layout_.sides[1].number[item] for item in sorted(set(items))]
            values = np.zeros(block.columns.stop - block.columns.start)
            values[number] = scale / np.sqrt(len(number))
            row[block.columns] = values
    return row


@pytest.fixture
def users_with(monkeypatch):
    """Rows and noise factors of users after one turn, with one unit vector, or zeros, for all normal numbers.

    Gamma numbers are at their mean, so that newcomers start with the noise factor 1. Latent utilities are at their
    medians given the rows before.
    """

    class Plain:
        def __init__(self, k):
            self.k = k

        def standard_normal(self, shape):
            noise = np.zeros(shape)
            noise[..., [] if self.k is None else self.k] = 1.0
            return noise

        def standard_gamma(self, shape, size):
            return np.array(np.broadcast_to(shape, size))

    def found(part, k=None):
        monkeypatch.setattr("tuckergp.recommender.folding.TURNS", 1)
        monkeypatch.setattr("tuckergp.recommender.folding.SCANS", 1)
        monkeypatch.setattr("tuckergp.likelihoods.ordinal.uniforms", lambda shape, rng: np.full(shape, 0.5))
        monkeypatch.setattr(LocalRows, "streams", lambda self, seed, d: [Plain(k)] * self.free)
        monkeypatch.setattr(
            "tuckergp.posterior.draws.keyed_gammas",
            lambda rows, draws, shapes: np.broadcast_to(shapes[:, None], (len(rows), len(draws), 1)),
        )
        return part.find(0)[0]

    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_the_conditional_is_the_closed_form(name, users_with):
    rec = fitted(**SETTINGS[name])
    part = parted_of(rec, as_table(NEW, "new"))
    everything = both(small_ratings(), NEW)
    mean, noise = users_with(part)
    root = np.stack([users_with(part, k).psi - mean for k in range(2)])
    for row, user in enumerate(["d", "b", "new"]):
        items = [i for u, i in zip(everything["user_id"], everything["item_id"], strict=True) if u == user]
        features = features_by_hand(rec, user, items)
        for s in range(len(rec.fit_.draws)):
            m, C, squares = dense_conditional(rec, s, everything, user, features)
            np.testing.assert_allclose(mean[row, s], m, atol=1e-8)
            np.testing.assert_allclose(root[:, row, s].T @ root[:, row, s], C, atol=1e-8)
            if noise is not None:
                nu = rec.fit_.draws.unknowns[NU][s, 0]
                np.testing.assert_allclose(noise[row, s], (nu + len(items)) / (nu + squares), rtol=1e-6)
    assert (noise is None) == (rec.fit_.draws.modes[0].row_noise is None)


@pytest.mark.parametrize("name", SETTINGS)
def test_predictions_use_the_rows_found_and_nothing_else_moves(name):
    rec = fitted(**SETTINGS[name])
    table = as_table(NEW, "new")
    sampled = rec.fit_.draws.sampled
    rows, noise = parted_of(rec, table, 5).find(5 if sampled else None)[0]
    layout, fit, history = fold_in(*pieces(rec), table, seed=5)
    assert rows.shape == (3, len(rec.fit_.draws), 2)
    side = layout.sides[0]
    assert history.ids[0] == side.rated_ids == ["a", "b", "c", "d", "new"]
    found = fit.draws.factors(0, side.table.take(side.numbers(["d", "b", "new"])))
    np.testing.assert_allclose(found, rows, atol=1e-5)
    if noise is not None:
        stored = fit.draws.row_factors(0, side.table.take(side.numbers(["d", "b", "new"])))
        np.testing.assert_allclose(stored, noise, rtol=1e-6)
    others = {
        "user_id": ["a", "c", "nobody"],
        "item_id": [1, 5, 2],
        "timestamp": ["1998-01-01"] * 3,
        "device": ["tv"] * 3,
    }
    before, after = (f.predict(g.pairs(as_table(others, "pairs"))) for f, g in [(rec.fit_, rec.layout_), (fit, layout)])
    np.testing.assert_array_equal(before, after)


def test_it_equals_the_conditional_of_a_sweep_in_which_the_user_was_there(users_with):
    # The same draw, once with the user's ratings in the training data, once folded in.
    rng = np.random.default_rng(0)
    all_ratings = both(small_ratings(), {**NEW, "user_id": ["d"] * 5, "item_id": [1, 2, 3, 4, 1]})
    rec = fitted(inference=Gibbs(draws=3, warmup=2), implicit=False)
    whole = TuckerRecommender(
        rank=2, time=None, random_state=0, implicit=False, inference=Gibbs(draws=2, warmup=1)
    ).fit(all_ratings, USERS, ITEMS)
    new = {name: values[12:] for name, values in all_ratings.items()}
    draws = rec.fit_.draws
    mean = users_with(parted_of(rec, as_table(new, "new"))).psi[0, 0]
    # a sweep's own solve, with the draw's values put into the larger problem
    design = whole.layout_.design(*whole.history_.codes, whole.history_.occasion)
    y = (whole.history_.rating - rec.fit_.mean) / rec.fit_.scale
    problem = Problem(draws.model, design, y)
    tables = [
        side.table.take(side.numbers([*other.ids, None]))
        for side, other in zip(rec.layout_.sides, whole.layout_.sides, strict=True)
    ]
    prior = draws.modes[0].mean(tables[0].features)[:, 0]
    psi = [rng.standard_normal(prior.shape), draws.factors(1, tables[1])[:, 0]]
    features = np.asarray(tables[0].features.todense())[whole.layout_.sides[0].number["d"]]
    precision = np.linalg.inv(draws.modes[0].covariance[0] + variance_of_new_levels(rec, 0, "d", features))
    alpha = float(draws.unknowns["alpha"][0])
    evidence = Evidence(problem.sorted[0], y, Precision(alpha), problem.model.core, 0, psi, draws.W[0])
    rows = evidence.solve(prior @ precision, precision, np.zeros_like(prior))
    np.testing.assert_allclose(rows[whole.layout_.sides[0].number["d"]], mean, atol=1e-10)


def test_folding_in_twice_is_folding_in_once_with_both(users_with):
    rec = fitted(**SETTINGS["drift and context"])
    first, second = ({name: values[part] for name, values in NEW.items()} for part in (slice(0, 3), slice(3, 5)))
    before = users_with(parted_of(rec, as_table(first, "new"))).noise
    layout, fit, history = fold_in(*pieces(rec), as_table(first, "new"), seed=1)
    # the noise factors that rows start from differ after the first time, those of newcomers from 1
    fit = replace(fit, draws=with_noise(fit.draws, np.where([[True], [False], [True]], 1.0, before)))
    twice = _problem(layout, fit, history, as_table(second, "new"), (None, None), None, "keep", 4, 0)
    once = parted_of(rec, as_table(NEW, "new"))
    for k in (None, 0, 1):
        a, b = users_with(once, k).psi, users_with(twice, k).psi
        np.testing.assert_allclose(a[[0, 2]], b, atol=1e-10)  # d and new; b has no rating in the second


def test_a_level_never_seen_widens_the_prior_of_a_newcomer_at_once_and_in_two_steps(users_with):
    rec = fitted(inference=Gibbs(draws=4, warmup=3))
    users = {"user_id": ["new"], "age": [30], "job": ["never seen"]}
    ratings = {
        "user_id": ["new"] * 3,
        "item_id": [1, 2, 4],
        "rating": [5.0, 4.0, 1.0],
        "timestamp": ["1998-01-05"] * 3,
        "device": ["tv"] * 3,
    }
    tables = (as_table(users, "users"), None)
    once = _problem(*pieces(rec), as_table(ratings, "new"), tables, None, "keep", 4, 0)
    features = np.asarray(once.locals[0].changed_rows.features.todense())[0]
    mean = users_with(once).psi
    root = np.stack([users_with(once, k).psi - mean for k in range(2)])
    for s in range(len(rec.fit_.draws)):
        m, C, _ = dense_conditional(rec, s, ratings, "new", features, users)
        np.testing.assert_allclose(mean[0, s], m, atol=1e-8)
        np.testing.assert_allclose(root[:, 0, s].T @ root[:, 0, s], C, atol=1e-8)
        assert np.trace(variance_of_new_levels(rec, s, "new", features, users)) > 1e-6
    first, second = ({name: values[part] for name, values in ratings.items()} for part in (slice(0, 1), slice(1, 3)))
    layout, fit, history = fold_in(*pieces(rec), as_table(first, "new"), tables, seed=1)
    assert not layout.sides[0].table.take(layout.sides[0].numbers(["new"])).undetermined.any()
    twice = _problem(layout, fit, history, as_table(second, "new"), (None, None), None, "keep", 4, 0)
    for k in (None, 0, 1):
        np.testing.assert_allclose(users_with(twice, k).psi, users_with(once, k).psi, atol=1e-10)


def with_noise(draws, noise):
    """The draws with these noise factors of the users that were folded in last."""
    rows = np.asarray(draws.modes[0].row_noise).copy()
    rows[-len(noise) :] = noise
    return map_draws(draws, lambda d, mode: replace(mode, row_noise=rows) if d == 0 else mode)


def test_importance_is_known_after_folding_in():
    rec = fitted(**SETTINGS["rows"]).fold_in(NEW)
    assert sum(row.contribution for row in rec.feature_importance().rows) == pytest.approx(1.0)


def test_many_pairs_are_answered_as_each_alone():
    rec = fitted(**SETTINGS["rows"]).fold_in(NEW)
    ids = [rec.layout_.sides[d].ids for d in range(2)]
    pairs = {"user_id": np.repeat(ids[0], len(ids[1])), "item_id": np.tile(ids[1], len(ids[0]))}
    alone = [rec.predict({name: values[k : k + 1] for name, values in pairs.items()})[0] for k in range(25)]
    np.testing.assert_array_equal(rec.predict(pairs), alone)


def test_items_never_rated_before_are_found_too():
    rec = fitted(inference=Gibbs(draws=60, warmup=10, noise="rows"))
    new = {"user_id": ["new", "new", "a"], "item_id": [1, 5, 10_001], "rating": [5.0, 1.0, 5.0]}
    pairs = {"user_id": ["new", "a", "b"], "item_id": [5, 10_001, 10_001]}
    before = rec.predict(pairs)
    rec.fold_in(new, {"user_id": ["new"], "age": [33]}, {"item_id": [10_001, 10_002], "kind": ["q", "p"]})
    assert rec.layout_.sides[1].ids == [1, 2, 3, 4, 5, 10_001, 10_002]
    assert sorted(rec.layout_.sides[1].rated_ids) == [1, 2, 3, 4, 5, 10_001]
    assert rec.tables_[1]["item_id"].tolist() == [1, 2, 3, 4, 5, 10_001, 10_002]
    after = rec.predict(pairs)
    assert after[0] < before[0]
    assert after[1] > before[1]
    mean, std = rec.predict({"user_id": ["b", "zzz"], "item_id": [10_002, 10_001]}, return_std=True)
    assert np.isfinite(mean).all() and (std > 0).all()  # noqa: PT018


def test_attributes_of_new_users_count_and_missing_ones_are_allowed():
    rec = fitted(inference="als", implicit=False)
    one = {"user_id": ["n1", "n2", "n3"], "item_id": [1, 1, 1], "rating": [3.0, 3.0, 3.0]}
    users = {"user_id": ["n1", "n2"], "age": [20, None], "job": ["y", "x"], "height": [1, 2]}
    rec.fold_in(one, users)
    side = rec.layout_.sides[0]
    rows = side.table.take(side.numbers(["n1", "n2", "n3"]))
    twins = side.realise(
        as_table({"user_id": ["n1", "n2", "n3"], "age": [20, None, None], "job": ["y", "x", None]}, "u")
    )
    np.testing.assert_allclose(rows.features.toarray(), twins.features.toarray())
    assert rows.seen.all()
    assert not twins.seen.any()


@quick_and_long(("people", "scans"), (200, 30), (600, 80))
@pytest.mark.parametrize("likelihood", ["ordinal", "bernoulli"])
def test_latent_utilities_are_near_their_limit(likelihood, people, scans, monkeypatch):
    rng = np.random.default_rng(1)
    n = 400
    levels = {"ordinal": [1, 2, 3, 4], "bernoulli": [0, 1]}[likelihood]
    old = {"user_id": rng.integers(20, size=n), "item_id": rng.integers(15, size=n), "rating": rng.choice(levels, n)}
    rec = TuckerRecommender(rank=2, likelihood=likelihood, draws=1, warmup=20, random_state=0).fit(old)
    # as many people with the same ratings are as many independent draws
    new = as_table(
        {
            "user_id": np.repeat([f"n{k}" for k in range(people)], 12).astype(object),
            "item_id": np.tile(np.arange(12), people),
            "rating": np.full(12 * people, levels[-1]),
        },
        "new",
    )
    few = rows_found(rec, new, 1)[:, 0]
    monkeypatch.setattr("tuckergp.recommender.folding.SCANS", scans)
    long = rows_found(rec, new, 2)[:, 0]
    # five standard errors: false alarm below 1e-5
    error = np.sqrt((few.var(axis=0) + long.var(axis=0)) / people)
    assert (np.abs(few.mean(axis=0) - long.mean(axis=0)) < 5 * error).all()
    np.testing.assert_allclose(few.std(axis=0), long.std(axis=0), rtol=5 / np.sqrt(people))


def test_clicks_are_folded_in_with_pairs_that_were_not_clicked():
    rng = np.random.default_rng(2)
    user = rng.integers(40, size=600)
    item = np.where(user % 2 == 0, rng.integers(0, 15, size=600), rng.integers(15, 30, size=600))
    rec = TuckerRecommender(rank=2, likelihood="bernoulli", draws=40, warmup=30, random_state=0)
    rec.fit({"user_id": user, "item_id": item})
    rec.fold_in({"user_id": [901] * 7 + [902] * 7, "item_id": [*range(7), *range(15, 22)]})
    pairs = {"user_id": [901, 901, 902, 902], "item_id": [10, 25, 10, 25]}
    p = rec.predict(pairs)
    assert p[0] > p[1] + 0.1
    assert p[3] > p[2] + 0.1
    with pytest.raises(InputError, match="learned from clicks"):
        rec.fold_in({"user_id": [901], "item_id": [1], "rating": [1.0]})


def parted(table, users, each, seed=0):
    """The ratings of other users; ``each`` ratings of these; the rest of theirs."""
    rng = np.random.default_rng(seed)
    held = np.isin(table["user_id"], users)
    rows = rng.permutation(np.flatnonzero(held))
    first = np.zeros(len(table), dtype=bool)
    for user in users:
        first[rows[table["user_id"][rows] == user][:each]] = True
    return (table.take(np.flatnonzero(mask)) for mask in (~held, first, held & ~first))


@quick_and_long(("seeds", "bound"), ((1,), 0.025), ((1, 2, 3), 0.015))
def test_folded_in_users_are_predicted_about_as_well_as_by_a_new_fit(seeds, bound):
    gains, losses = [], []
    for seed in seeds:
        data = make_ratings(n_users=150, n_items=80, n_ratings=6000, random_state=seed)
        kept, new, rest = parted(data.train, np.unique(data.train["user_id"])[:25], 15)
        settings = {"rank": 3, "draws": 60, "warmup": 30, "time": None, "random_state": 0}
        rec = TuckerRecommender(**settings).fit(kept, data.users, data.items)
        y, cold, before = rest["rating"], rec.predict(rest), rec.predict(kept)
        warm = rec.fold_in(new).predict(rest)
        np.testing.assert_array_equal(rec.predict(kept), before)
        everything = {name: np.concatenate([kept[name], new[name]]) for name in kept.columns}
        refit = TuckerRecommender(**settings).fit(everything, data.users, data.items).predict(rest)
        gains.append(rmse(y, cold) - rmse(y, warm))
        losses.append(rmse(y, warm) - rmse(y, refit))
        # two new fits that differ in their seed alone are 0.07 to 0.2 apart
        assert rmse(warm, refit) < 0.25
    assert np.mean(gains) > 0.02
    # over five such data sets and both kinds of noise the loss was 0.003 on average with a deviation of 0.006 each
    assert np.mean(losses) < bound


def test_movielens_newcomers_are_better_known_from_ten_ratings_than_from_attributes(movielens):
    ratings = movielens.ratings
    ids, counts = np.unique(ratings["user_id"], return_counts=True)
    users = np.random.default_rng(0).choice(ids[counts >= 40], 20, replace=False)
    kept, new, rest = parted(ratings, users, 10)
    rec = TuckerRecommender(rank=8, draws=60, warmup=30, time=None, implicit=False, objective="rating", random_state=0)
    rec.fit(kept, movielens.users, movielens.items)
    cold = rmse(rest["rating"], rec.predict(rest))
    warm = rmse(rest["rating"], rec.fold_in(new).predict(rest))
    assert warm < cold - 0.02


@pytest.mark.parametrize(
    ("settings", "new", "message"),
    [
        ({}, {"user_id": [], "item_id": [], "rating": []}, "ratings is empty"),
        ({}, {"user_id": ["a"], "item_id": [1]}, "no column 'rating'"),
        ({}, {"user_id": ["a"], "item_id": [1], "rating": [None]}, "'rating'"),
        ({"rating_scale": (1, 5)}, {"user_id": ["a"], "item_id": [1], "rating": [7]}, "outside the scale from 1 to 5"),
        ({"likelihood": "ordinal"}, {"user_id": ["a"], "item_id": [1], "rating": [2.5]}, "none of the levels"),
        (
            {"duplicates": "refuse"},
            {"user_id": ["n", "a"], "item_id": [1, 1], "rating": [2, 3]},
            "user 'a' and item 1 again, rated before, at row 1",
        ),
        (
            {"duplicates": "refuse"},
            {"user_id": ["n", "n"], "item_id": [1, 1], "rating": [2, 3]},
            "user 'n' and item 1 twice, at row 0 and row 1",
        ),
    ],
)
def test_what_cannot_be_folded_in_is_refused_and_leaves_all_as_it_was(settings, new, message):
    rec = fitted(inference=Gibbs(draws=2, warmup=1), **settings)
    before = rec.layout_, rec.fit_, rec.history_, rec.tables_, rec.rating_range_
    with pytest.raises(InputError, match=message):
        rec.fold_in(new)
    after = rec.layout_, rec.fit_, rec.history_, rec.tables_, rec.rating_range_
    assert all(a is b for a, b in zip(before, after, strict=True))


def test_attribute_tables_with_an_id_twice_are_refused():
    rec = fitted(inference="als")
    users = {"user_id": ["n", "n"], "age": [1, 2]}
    with pytest.raises(InputError, match="user_id 'n' twice"):
        rec.fold_in({"user_id": ["n"], "item_id": [1], "rating": [2]}, users)


@pytest.mark.parametrize("method", ["fold_in", "partial_fit"])
def test_columns_that_a_table_lacks_stay_as_they_were(method):
    about = {"user_id": ["a", "b"], "age": [20, 40], "city": ["x", "y"], "name": ["Ann", "Bob"]}
    rec = TuckerRecommender(rank=2, draws=2, warmup=1, time=None, random_state=0).fit(small_ratings(), about)
    new = {"user_id": ["a", "n"], "item_id": [1, 1], "rating": [2, 2]}
    getattr(rec, method)(new, {"user_id": ["a", "n"], "age": [30, 50], "city": [None, "z"]})
    table = rec.tables_[0]
    rows = {row[0]: row[1:] for row in zip(*(table[name].tolist() for name in about), strict=True)}
    assert rows == {"a": (30, None, "Ann"), "b": (40, "y", "Bob"), "n": (50, "z", None)}


def test_text_where_an_attribute_held_numbers_is_refused_by_the_name_of_its_column():
    rec = fitted(inference="als")
    with pytest.raises(InputError, match="users column 'age'"):
        rec.fold_in({"user_id": ["n"], "item_id": [1], "rating": [2]}, {"user_id": ["n"], "age": ["old"]})


def test_draws_that_were_not_kept_cannot_be_folded_into():
    rec = TuckerRecommender(rank=2, draws=3, warmup=1, time=None, random_state=0)
    rec.fit(small_ratings(), moments_of={"user_id": ["a"], "item_id": [1]}, keep_draws=False)
    with pytest.raises(InputError, match="not kept"):
        rec.fold_in(NEW)


def test_duplicates_are_averaged_where_asked_for():
    rec = fitted(inference="als", duplicates="mean")
    old = rec.history_.rating[0]
    rec.fold_in({"user_id": ["a"], "item_id": [1], "rating": [old + 1]})
    assert len(rec.history_) == 12
    assert rec.history_.rating[0] == old + 0.5


def test_a_table_of_one_kind_of_moment_may_follow_another():
    rec = fitted(**SETTINGS["drift and context"])
    assert isinstance(rec.history_.occasion, Table)
    rec.fold_in({"user_id": ["n"], "item_id": [1], "rating": [2.0]})
    assert rec.history_.occasion["device"][-1] is None
    assert np.isfinite(rec.predict({"user_id": ["n"], "item_id": [2]})).all()


def test_what_was_folded_in_is_not_recommended_again_whoever_else_is_asked_for():
    rec = fitted(**SETTINGS["rows"]).fold_in({"user_id": ["a", "new"], "item_id": [5, 5], "rating": [3.0, 4.0]})
    lists = rec.recommend(["a", "nobody", "new"], n=5)
    for user in ("a", "new"):
        assert 5 not in lists["item_id"][lists["user_id"] == user].tolist()
    assert 5 in lists["item_id"][lists["user_id"] == "nobody"].tolist()


def unseen_keys(rec):
    return [side.table.group_keys[~side.table.seen & side.current] for side in rec.layout_.sides]


def test_newcomers_keep_random_numbers_of_their_own(tmp_path):
    rec = fitted(inference=Gibbs(draws=30, warmup=5, noise="rows"))
    people, things = {"user_id": ["p", "q", "new"], "age": [20, 30, 40]}, {"item_id": [11, 12], "kind": ["p", "q"]}
    rec.fold_in({"user_id": ["new"], "item_id": [1], "rating": [3.0]}, people, things)
    keys = np.concatenate(unseen_keys(rec))
    assert len(np.unique(keys)) == len(keys) == 6  # d, p, q; 5, 11, 12
    pairs = {"user_id": ["p", "q", "nobody"], "item_id": [11, 12, -1]}
    before = rec.predict(pairs, return_std=True)
    rec.save(tmp_path / "model.tgp")
    np.testing.assert_allclose(rec.predict(pairs, return_std=True)[0], before[0], rtol=1e-6)
    assert sorted(np.concatenate(unseen_keys(rec))) == sorted(keys)


@pytest.mark.parametrize("duplicates", ["keep", "mean", "refuse"])
def test_later_ratings_of_new_users_are_learned_with_their_earlier_ones(duplicates):
    rec = fitted(inference=Gibbs(draws=30, warmup=5), duplicates=duplicates)
    once = fitted(inference=Gibbs(draws=30, warmup=5), duplicates=duplicates)
    new = {"user_id": ["n"] * 4, "item_id": [1, 2, 3, 77], "rating": [9.0] * 4}
    first, second = ({name: values[cut] for name, values in new.items()} for cut in (slice(0, 3), slice(3, 4)))
    rec.fold_in(first).fold_in(second)
    once.fold_in(new)
    pair = {"user_id": ["n"], "item_id": [4]}
    np.testing.assert_allclose(rec.predict(pair, clip=False), once.predict(pair, clip=False), atol=0.8)
    rec.fold_in({"user_id": ["a"], "item_id": [77], "rating": [3.0]})
    lists = rec.recommend(["n", "nobody", "a"], n=5)
    for user, rated in (("n", {1, 2, 3, 77}), ("a", {1, 2, 3, 4, 77})):
        assert not rated & set(lists["item_id"][lists["user_id"] == user])
    assert sum(row.contribution for row in rec.feature_importance().rows) == pytest.approx(1.0)


def test_every_id_is_listed_once_after_it_was_folded_in():
    rec = fitted(**SETTINGS["rows"]).fold_in({"user_id": ["a", "n"], "item_id": [5, 5], "rating": [3.0, 4.0]})
    rec.fold_in({"user_id": ["a"], "item_id": [3], "rating": [3.0]})
    listed = rec.recommend("nobody", n=5)["item_id"].tolist()
    assert sorted(listed) == [1, 2, 3, 4, 5]
    others = rec.similar_users("b", n=4)["user_id"].tolist()
    assert sorted(others) == ["a", "c", "d", "n"]


def test_strangers_have_the_same_noise_whoever_was_folded_in():
    rec = fitted(inference=Gibbs(draws=20, warmup=5, noise="rows"))
    pair = {"user_id": ["stranger"], "item_id": [1]}
    std = rec.predict(pair, return_std=True)[1]
    for k in range(5):
        rec.fold_in({"user_id": ["a", f"n{k}"], "item_id": [5, 5], "rating": [3.0, 3.0]})
    np.testing.assert_allclose(rec.predict(pair, return_std=True)[1], std, rtol=1e-9)


def test_folding_in_one_person_many_times_takes_no_longer_each_time():
    """Features that training did not have once doubled with every call."""
    data = make_ratings(n_users=20, n_items=20, n_ratings=150, random_state=0)
    rec = TuckerRecommender(rank=2, draws=4, warmup=2, time=None, random_state=0).fit(data.train, data.users)
    for k in range(12):
        rec.fold_in({"user_id": ["new"], "item_id": [data.items["item_id"][k]], "rating": [3.0]})
    table = rec.layout_.sides[0].table.more
    assert table.new is not None
    assert table.new.values.shape[1] <= 12 * 2 * len(table.blocks)
