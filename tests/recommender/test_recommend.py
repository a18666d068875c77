"""Recommendations, neighbours and embeddings against what `predict` says of every pair."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tuckergp import TuckerRecommender, load
from tuckergp.data.datasets import make_ratings
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.recommender import neighbours
from tuckergp.recommender.factors import Factors
from tuckergp.recommender.reading import pairs_table

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")

FAST = {"rank": 3, "draws": 25, "warmup": 15, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=60, n_items=50, n_ratings=1_200, random_state=2)


def with_times(table):
    times = 893_030_400 + 86_400 * np.random.default_rng(0).integers(60, size=len(table))
    return {**table.columns, "timestamp": times, "device": np.array(["tv", "phone"], dtype=object)[times // 86_400 % 2]}


MODELS = {
    "gibbs": {},
    "als": {"inference": "als", "draws": 250, "warmup": 50},
    "full core": {"core": "full"},
    "ordinal": {"likelihood": "ordinal"},
    "week": {"time": "week"},
    "context": {"time": "week", "context": "device"},
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request, data):
    settings = {**FAST, **MODELS[request.param]}
    return TuckerRecommender(**settings).fit(with_times(data.train), data.users, data.items)


@pytest.fixture(scope="module")
def plain(data):
    return TuckerRecommender(**FAST).fit(data.train, data.users, data.items)


def pairs_of(model, user, **more):
    items = model.layout_.sides[1].ids
    return {
        "user_id": [user] * len(items),
        "item_id": items,
        **{key: [value] * len(items) for key, value in more.items()},
    }


def candidates(model, data, user):
    seen = set(data.train["item_id"][data.train["user_id"] == user].tolist())
    return np.array([item not in seen for item in model.layout_.sides[1].ids])


def test_lists_are_the_best_predictions_of_what_was_not_seen(fitted, data):
    users = list(dict.fromkeys(data.train["user_id"].tolist()))[:8]
    found = fitted.recommend(users, n=7)
    assert list(found.columns) == ["user_id", "item_id", "score", "std", "rank"]
    for user in users:
        own = found[found["user_id"] == user]
        predicted = fitted.predict(pairs_of(fitted, user), clip=False)
        predicted[~candidates(fitted, data, user)] = -np.inf
        best = np.argsort(-predicted, kind="stable")[:7]
        assert own["item_id"].tolist() == [fitted.layout_.sides[1].ids[k] for k in best]
        np.testing.assert_allclose(own["score"], predicted[best], rtol=1e-10)
        assert own["rank"].tolist() == list(range(1, 8))


def test_scores_are_predictions(fitted):
    users, items = fitted.layout_.sides[0].ids[:3], [*fitted.layout_.sides[1].ids[:4], "unknown"]
    pairs = {
        "user_id": np.repeat(np.array(users, dtype=object), 5),
        "item_id": np.tile(np.array(items, dtype=object), 3),
    }
    expected = fitted.predict(pairs, clip=False).reshape(3, 5)
    np.testing.assert_allclose(fitted.scores(users, items), expected, atol=1e-5)


def test_times_and_contexts_of_the_questions_count(data):
    model = TuckerRecommender(**FAST, time="week", context="device").fit(with_times(data.train), data.users, data.items)
    user = data.train["user_id"][0]
    asked = {"user_id": [user] * 2, "timestamp": [893_030_400, 893_030_400 + 30 * 86_400], "device": ["tv", "phone"]}
    found = model.recommend(asked, n=5, exclude_seen=False)
    for place in range(2):
        more = {"timestamp": asked["timestamp"][place], "device": asked["device"][place]}
        predicted = np.sort(model.predict(pairs_of(model, user, **more), clip=False))[::-1]
        np.testing.assert_allclose(found["score"][5 * place : 5 * place + 5], predicted[:5], rtol=1e-10)


@pytest.mark.parametrize("likelihood", ["gaussian", "ordinal"])
def test_ucb_sorts_by_the_mean_and_how_unsure_it_is(data, likelihood):
    model = TuckerRecommender(**FAST, likelihood=likelihood).fit(data.train, data.users, data.items)
    user = data.train["user_id"][3]
    mean, std = model.predict(pairs_of(model, user), return_std=True, include_noise=False, clip=False)
    bound = np.where(candidates(model, data, user), mean + 2 * std, -np.inf)
    found = model.recommend(user, n=6, strategy="ucb", kappa=2.0)
    best = np.argsort(-bound, kind="stable")[:6]
    assert found["item_id"].tolist() == [model.layout_.sides[1].ids[k] for k in best]
    np.testing.assert_allclose(found["score"], bound[best], rtol=1e-10)
    np.testing.assert_allclose(found["std"], std[best], rtol=1e-10)


def test_thompson_puts_an_item_first_as_often_as_it_is_best_in_the_posterior(plain, data):
    rated = plain.layout_.sides[1].ids[: plain.layout_.sides[1].n_rated][:5]  # no unseen rows, whose draws differ
    user = data.train["user_id"][0]
    factors = Factors(plain.layout_, plain.fit_)
    number = plain.layout_.sides[0].numbers([user])
    items = plain.fit_.draws.factors(1, plain.layout_.sides[1].table.take(np.arange(5)))
    f = np.einsum("sr,isr->si", factors.users(number, Table({}, "q", 1)).vectors[0], items)
    share = np.bincount(np.argmax(f, axis=1), minlength=5) / len(f)
    requests = 2_000
    found = plain.recommend(
        [user] * requests, n=1, exclude_seen=False, items=rated, strategy="thompson", random_state=1
    )
    first = found["item_id"].to_numpy()
    counts = np.array([(first == item).mean() for item in rated])
    # five binomial standard errors: a false alarm in fewer than one of 100,000 seeds
    assert (np.abs(counts - share) <= 5 * np.sqrt(share * (1 - share) / requests)).all()
    again = plain.recommend([user] * 50, n=1, strategy="thompson", random_state=1)
    pd.testing.assert_frame_equal(again, plain.recommend([user] * 50, n=1, strategy="thompson", random_state=1))


def test_restricted_lists_and_lists_that_run_out(plain, data):
    items = plain.layout_.sides[1].ids
    user = data.train["user_id"][0]
    found = plain.recommend(user, n=3, items=items[:10], exclude=items[:5], exclude_seen=False)
    assert set(found["item_id"]) <= set(items[5:10])
    seen = data.train["item_id"][data.train["user_id"] == user].tolist()
    few = plain.recommend(user, n=len(items))
    assert len(few) == len(items) - len(set(seen))
    assert not set(few["item_id"]) & set(seen)
    everyone = plain.recommend(n=2)
    assert everyone["user_id"].nunique() == plain.layout_.sides[0].n_rated


def test_a_few_ratings_count_for_one_answer_and_are_not_kept(plain, data):
    user = data.train["user_id"][0]
    best = plain.recommend(user, n=5)
    hated = {"user_id": [user] * 3, "item_id": best["item_id"].tolist()[:3], "rating": [1.0] * 3}
    found = plain.recommend(user, n=5, ratings=hated)
    assert not set(found["item_id"]) & set(hated["item_id"])
    assert found["score"].max() < best["score"].max()
    pd.testing.assert_frame_equal(plain.recommend(user, n=5), best)
    asked = {"user_id": ["somebody new"], "age": [30]}
    new = plain.recommend(asked, n=5, ratings={**hated, "user_id": ["somebody new"] * 3})
    assert not set(new["item_id"]) & set(hated["item_id"])


def test_a_new_user_is_served_by_attributes(plain, data):
    row = {name: [values[0]] for name, values in data.users.columns.items()}
    row["user_id"] = ["somebody new"]
    found = plain.recommend(row, n=5)
    assert found["user_id"].tolist() == ["somebody new"] * 5
    nobody = plain.recommend("nobody at all", n=5)
    assert not np.allclose(found["score"], nobody["score"])
    assert plain.predict({"user_id": ["somebody new"], "item_id": [found["item_id"][0]]}, on_unknown="nan") != 1


@pytest.mark.parametrize(
    ("make", "kind"), [(pd.DataFrame, pd.DataFrame), (pl.DataFrame, pl.DataFrame), (pa.table, pa.Table)]
)
def test_the_answer_is_a_table_of_the_kind_and_with_the_names_that_came(data, make, kind):
    columns = {"userId": data.train["user_id"].tolist(), "movieId": data.train["item_id"].tolist()}
    columns |= {"stars": data.train["rating"].tolist()}
    names = {"user_id": "userId", "item_id": "movieId", "rating": "stars"}
    model = TuckerRecommender(**FAST, columns=names).fit(make(columns))
    found = model.recommend(make({"userId": columns["userId"][:1]}), n=2)
    assert isinstance(found, kind)
    assert "movieId" in (found.column_names if kind is pa.Table else list(found.columns))


def test_items_alike_are_those_with_correlated_predictions(plain):
    layout, fit = plain.layout_, plain.fit_
    users, items = (side.n_rated for side in layout.sides)
    covariance = np.zeros((items, items))
    psi = [fit.draws.factors(d, side.table) for d, side in enumerate(layout.sides)]
    for s in range(len(fit.draws)):
        f = psi[0][:users, s] @ (psi[1][:items, s] - psi[1][:items, s].mean(axis=0)).T
        covariance += np.cov(f, rowvar=False)
    spread = np.sqrt(np.diag(covariance))
    expected = covariance / np.outer(spread, spread)
    ids = layout.sides[1].ids
    found = plain.similar_items(ids[4], n=len(ids) - 1)
    known = found[found["item_id"].isin(ids[:items])]
    by_id = dict(zip(known["item_id"], known["similarity"], strict=True))
    np.testing.assert_allclose([by_id[ids[k]] for k in range(items) if k != 4], np.delete(expected[4], 4), atol=1e-4)
    assert found["similarity"].is_monotonic_decreasing


def test_items_are_compared_by_some_of_very_many_users_whose_vectors_alone_are_read(plain, monkeypatch):
    exact = plain.similar_items(plain.layout_.sides[1].ids[4])
    asked, users = [], Factors.users
    monkeypatch.setattr(Factors, "users", lambda self, rows, table: asked.append(len(rows)) or users(self, rows, table))
    monkeypatch.setattr(neighbours, "MOST_ROWS", 30)
    found = plain.similar_items(plain.layout_.sides[1].ids[4])
    assert max(asked) <= 30
    assert len(set(found["item_id"]) & set(exact["item_id"])) >= 5


def test_without_users_no_items_are_alike(plain):
    model = copy.deepcopy(plain)
    for user in list(model.layout_.sides[0].ids):
        model.forget(user)
    found = model.similar_items(model.layout_.sides[1].ids[4], n=3)
    assert found["similarity"].tolist() == [0, 0, 0]


def test_users_alike_and_new_ones_by_attributes(plain, data):
    user = data.train["user_id"][0]
    assert user not in plain.similar_users(user, n=5)["user_id"].tolist()
    row = {name: [values[0]] for name, values in data.users.columns.items() if name != "user_id"}
    found = plain.similar_users(row, n=len(plain.layout_.sides[0].ids))
    assert len(found) == len(plain.layout_.sides[0].ids)
    assert found["similarity"].between(-1, 1.000001).all()


def test_products_of_embeddings_are_predictions(fitted):
    full = fitted.embeddings()
    users, items = full.user_ids[:6], full.item_ids[:9]
    pairs = {"user_id": np.repeat(users, 9), "item_id": np.tile(items, 6)}
    if not len(fitted.fit_.levels):
        predicted = fitted.predict(pairs, clip=False).reshape(6, 9)
        np.testing.assert_allclose(full.offset + full.users[:6] @ full.items[:9].T, predicted, atol=1e-4)
    exact = full.users @ full.items.T
    errors = []
    for width in (2, 8, full.users.shape[1]):
        small = fitted.embeddings(width)
        assert small.users.shape[1] == small.items.shape[1] == min(width, *full.users.shape, len(full.items))
        errors.append(np.linalg.norm(small.users @ small.items.T - exact) / np.linalg.norm(exact))
    # the best of every width, by Eckart and Young
    sizes = np.linalg.svd(exact, compute_uv=False)
    for error, width in zip(errors[:2], (2, 8), strict=True):
        np.testing.assert_allclose(error, np.linalg.norm(sizes[width:]) / np.linalg.norm(sizes), atol=2e-3)
    assert errors[-1] < 1e-3


def test_star_wars_is_like_its_sequel(movielens):
    model = TuckerRecommender(
        rank=6, draws=20, warmup=20, implicit=False, time=None, objective="rating", random_state=0
    )
    model.fit(movielens.ratings, movielens.users, movielens.items)
    title = dict(zip(movielens.items["item_id"].tolist(), movielens.items["title"], strict=True))
    alike = [title[item] for item in model.similar_items(50, n=5)["item_id"]]
    assert "Empire Strikes Back, The (1980)" in alike


def test_users_are_asked_for_in_many_ways(plain):
    ids = plain.layout_.sides[0].ids[:2]
    expected = plain.recommend(ids, n=2)
    for users in (
        tuple(ids),
        np.array(ids, dtype=object),
        pd.Series(ids),
        pl.Series(ids),
        pa.array(ids),
        {"user_id": ids},
    ):
        pd.testing.assert_frame_equal(plain.recommend(users, n=2), expected)
    one = plain.recommend(np.array(ids)[0], n=2)
    pd.testing.assert_frame_equal(one, expected[:2])
    assert len(plain.recommend([], n=2)) == 0
    assert plain.scores([], [1]).shape == (0, 1)


def test_few_items_to_choose_from_make_short_lists(plain):
    items = plain.layout_.sides[1].ids[:2]
    assert len(plain.recommend(plain.layout_.sides[0].ids[0], items=items, exclude_seen=False)) == 2


def test_thompson_scores_of_an_ordinal_model_are_means_of_one_draw(data):
    model = TuckerRecommender(**{**FAST, "draws": 6}, likelihood="ordinal").fit(data.train)
    found = model.recommend(n=3, strategy="thompson", random_state=0)
    design = model.layout_.pairs(pairs_table(found, model.columns, model.layout_))
    of_draws = [model.fit_.only(s).predict(design) for s in range(len(model.fit_.draws))]
    assert (np.abs(np.array(of_draws) - found["score"].to_numpy()).min(axis=0) < 1e-9).all()


def test_a_context_column_may_have_any_name(data):
    ratings = {**data.train.columns, "context": np.array(["a", "b"], dtype=object)[np.arange(len(data.train)) % 2]}
    model = TuckerRecommender(**FAST, time=None, context="context").fit(ratings)
    assert [a.column for a in model.layout_.circumstances[0].reader.attributes.used] == ["context"]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (lambda model: model.recommend(items=[]), "There is nothing to recommend: items and exclude leave no item"),
        (lambda model: model.recommend(strategy="ucb", kappa=float("nan")), "kappa must be a finite number, not nan"),
        (lambda model: model.recommend(kappa=2.0), "kappa is for strategy='ucb'; with strategy='mean' leave it out"),
        (lambda model: model.recommend(strategy="thompson", kappa=2), "with strategy='thompson' leave it out"),
        (lambda model: model.recommend(n=0), "n must be a whole number from 1 on, not 0"),
        (lambda model: model.recommend(items=["nothing"]), "items holds 'nothing', which has neither ratings nor"),
        (lambda model: model.recommend(strategy="best"), "strategy must be 'mean', 'ucb' or 'thompson', not 'best'"),
        (lambda model: model.recommend({"whom": [1]}), "users has no column 'user_id'"),
        (lambda model: model.similar_items("nothing"), "item_id 'nothing' has neither ratings nor attributes"),
        (lambda model: model.similar_items({"genre": ["a", "b"]}), "give one id, or a table of one row, not of 2"),
        (lambda model: model.similar_users(1, n=10_000), "user_id 1 has neither"),
        (lambda model: model.embeddings(0), "width must be a whole number from 1 on or None, not 0"),
    ],
)
def test_questions_that_make_no_sense_get_one_clear_sentence(plain, question, message):
    with pytest.raises(InputError, match=message):
        question(plain)


def test_a_most_probable_point_cannot_explore(data):
    model = TuckerRecommender(rank=2, inference="als", random_state=0).fit(data.train)
    for strategy in ("ucb", "thompson"):
        with pytest.raises(InputError, match="use inference='gibbs'"):
            model.recommend(strategy=strategy)


@pytest.mark.parametrize("duplicates", ["keep", "mean"])
def test_items_whose_rows_have_moved_are_left_out_like_others(duplicates, tmp_path):
    """Item 5 had attributes alone and item 6 nothing at the fit: their first ratings give them other rows.

    Where duplicates are averaged, ratings folded in are among those of the fit at once, numbered in another order.
    """
    pairs = [(user, item) for user in "abc" for item in (1, 2, 3, 4) if (user, item) != ("a", 3)]
    ratings = {
        "user_id": [user for user, _ in pairs],
        "item_id": [item for _, item in pairs],
        "rating": [1.0 + k % 5 for k in range(len(pairs))],
    }
    items = {"item_id": [5, 1, 2, 3, 4], "kind": list("pqpqp")}
    rec = TuckerRecommender(rank=2, draws=4, warmup=3, time=None, duplicates=duplicates, random_state=0)
    rec.fit(ratings, items=items)
    rec.fold_in({"user_id": ["a", "new", "new"], "item_id": [5, 5, 6], "rating": [5.0, 4.0, 5.0]})
    left = {"a": [3, 6], "b": [5, 6], "new": [1, 2, 3, 4]}
    assert {user: sorted(rec.recommend([user], n=6)["item_id"]) for user in left} == left
    rec.save(tmp_path / "model.tgp")  # which joins the ratings folded in with the others
    for model in (rec, load(tmp_path / "model.tgp")):
        assert {user: sorted(model.recommend([user], n=6)["item_id"]) for user in left} == left


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict])
def test_items_and_exclude_may_be_tables(plain, data, make):
    ids = data.items["item_id"][:6].tolist()
    table = make({"item_id": ids, "year": [2000] * 6})
    among = plain.recommend("u0001", items=table, exclude_seen=False)
    assert sorted(among["item_id"]) == sorted(ids)
    others = plain.recommend("u0001", n=50, exclude=table, exclude_seen=False)
    assert sorted(others["item_id"]) == sorted(set(data.items["item_id"]) - set(ids))
    with pytest.raises(InputError, match=r"exclude has no column 'item_id'; its columns are year\."):
        plain.recommend("u0001", exclude=make({"year": [2000]}))


def test_a_newcomer_with_two_descriptions_is_refused(plain):
    twice = {"user_id": ["new", "other", "new"], "age": [20, 30, 70]}
    with pytest.raises(InputError, match=r"users has user_id 'new' twice, at row 0 and row 2; keep one row for each\."):
        plain.recommend(twice, n=1)
    ratings = {"user_id": ["new"], "item_id": ["i0001"], "rating": [4.0]}
    with pytest.raises(InputError, match="users has user_id 'new' twice"):
        plain.recommend(twice, n=1, ratings=ratings)
    same = plain.recommend({"user_id": ["new", "new"], "age": [20, 20]}, n=1)
    assert same["score"].nunique() == 1
