"""Explanations: parts add up to predictions, are what a hand computation gives, and find what matters."""

import importlib
import json

import matplotlib as mpl
import numpy as np
import pytest

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.errors import InputError
from tuckergp.inference import Gibbs
from tuckergp.recommender.reading import pairs_table

mpl.use("Agg")

SETTINGS = {
    "gibbs": {"inference": Gibbs(draws=8, warmup=5, noise="rows"), "implicit": True},
    "drift and context": {"inference": Gibbs(draws=5, warmup=5), "time": "week", "context": "device"},
    "full core": {"inference": Gibbs(draws=5, warmup=5), "core": "full"},
    "als": {"inference": "als"},
    "no attributes": {"inference": "als", "side_information": False},
}


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)


def table(data):
    columns = {name: values.tolist() for name, values in data.train.columns.items()}
    return columns | {"device": ["tv", "phone"] * (len(data.train) // 2) + ["tv"] * (len(data.train) % 2)}


def fitted(data, **settings):
    settings = {"rank": 3, "time": None, "random_state": 0} | settings
    return TuckerRecommender(**settings).fit(table(data), data.users, data.items)


@pytest.mark.parametrize("name", SETTINGS)
def test_parts_add_up_to_the_prediction(name, data):
    rec = fitted(data, **SETTINGS[name])
    cold = data.test["user_id"][data.new_user][0]
    occasion = {"timestamp": data.train["timestamp"][3], "device": "tv"} if "context" in SETTINGS[name] else {}
    for user in (data.train["user_id"][3], cold, "nobody"):
        for item in (data.train["item_id"][3], "nothing"):
            for known in (occasion, {}):
                found = rec.explain(user, item, **known)
                pair = {"user_id": [user], "item_id": [item], **{key: [value] for key, value in known.items()}}
                np.testing.assert_allclose(found.total, rec.predict(pair, clip=False)[0], rtol=0, atol=1e-10)
                assert found.predicted == rec.predict(pair, clip=False)[0]
    shares = [row.contribution for row in rec.feature_importance().rows]
    np.testing.assert_allclose(sum(shares), 1.0, atol=1e-10)


@pytest.mark.parametrize("likelihood", ["ordinal", "bernoulli"])
def test_latent_models_explain_the_latent_utility(likelihood, data):
    ratings = table(data)
    if likelihood == "bernoulli":
        ratings["rating"] = (np.array(ratings["rating"]) > 3.5).astype(int)
    rec = TuckerRecommender(rank=2, likelihood=likelihood, time=None, draws=6, warmup=5, random_state=0).fit(ratings)
    user, item = ratings["user_id"][0], ratings["item_id"][0]
    found = rec.explain(user, item)
    design = rec.layout_.pairs(pairs_table({"user_id": [user], "item_id": [item]}, rec.columns, rec.layout_))
    f = rec.fit_.draws.predicted(design).f.mean()
    np.testing.assert_allclose(found.total, f, atol=1e-10)
    assert found.latent
    assert found.predicted == rec.predict({"user_id": [user], "item_id": [item]}, clip=False)[0]
    assert {"ordinal": "predicted rating", "bernoulli": "predicted probability"}[likelihood] in str(found)


def test_a_small_case_by_hand():
    ratings = {"user_id": ["a", "a", "b", "b"], "item_id": [1, 2, 1, 2], "rating": [1.0, 2.0, 3.0, 5.0]}
    users = {"user_id": ["a", "b"], "job": ["x", "y"]}
    rec = TuckerRecommender(rank=2, inference="als", time=None, random_state=0).fit(ratings, users)
    B, C = (mode.B[:, 0] for mode in rec.fit_.draws.modes)
    left, right = (side.table for side in rec.layout_.sides)
    user, item = (rec.fit_.draws.factors(d, table)[0, 0] for d, table in enumerate((left, right)))
    (job,) = [block.columns for block in rec.layout_.sides[0].mode.blocks if "job" in repr(block.kernel)]
    features = left.features.toarray() if hasattr(left.features, "toarray") else left.features
    average = features[:2].mean(axis=0) @ B
    of_job = (features[0, job] - features[:2, job].mean(axis=0)) @ B[job]
    own = user - features[0] @ B
    item_average, item_own = C[0], item - C[0]
    unit = rec.fit_.scale
    expected = {
        ("", "base"): rec.fit_.mean + unit * average @ item_average,
        ("user", "job"): unit * of_job @ (item_average + item) / 2,
        ("user", "own"): unit * own @ (item_average + item) / 2,
        ("item", "own"): unit * item_own @ (average + (average + of_job + own)) / 2,
    }
    found = rec.explain("a", 1)
    assert {(row.side, row.what): pytest.approx(row.contribution, abs=1e-12) for row in found.rows} == expected
    assert [(row.what, row.value) for row in found.rows if row.side == "user"] == [
        ("job", "x"),
        ("own", ""),
    ]


def test_three_modes_share_products_by_thirds(data):
    rec = fitted(data, **SETTINGS["drift and context"])
    from tuckergp.recommender.explain import _shares, parts_of

    design = rec.layout_.pairs(pairs_table({**table(data)}, rec.columns, rec.layout_))
    small = type(design)(design.modes, design.index[:5])
    parts, draws = parts_of(rec.layout_), rec.fit_.draws.only(0)
    _, shares = _shares(parts, draws, small)
    stacks = [
        [part.base(own)[None].repeat(mode.n_rows, axis=0)[:, 0], *(each[:, 0] for each in part.of(mode, d, draws))]
        for d, (part, mode, own) in enumerate(zip(parts, small.modes, draws.modes, strict=True))
    ]
    for row, index in enumerate(small.index):
        tables = [np.stack([part[m] for part in stack]) for stack, m in zip(stacks, index, strict=True)]
        terms = np.einsum("ak,bk,ck,dk->abcd", *tables)  # users, items, weeks, contexts
        count = sum(np.meshgrid(*[np.arange(n) > 0 for n in terms.shape], indexing="ij"), np.zeros(terms.shape))
        split = terms / np.maximum(count, 1)
        for d in range(4):
            by_hand = split.sum(axis=tuple(e for e in range(4) if e != d))[1:]
            np.testing.assert_allclose([values[row, 0] for values in shares[d]], by_hand, atol=1e-12)


def test_importance_finds_the_attribute_that_matters():
    rng = np.random.default_rng(0)
    users, items = np.arange(120), np.arange(40)
    job, colour = rng.choice(["cook", "judge"], 120), rng.choice(["red", "blue"], 120)
    user, item = rng.integers(120, size=2500), rng.integers(40, size=2500)
    rating = 3 + np.where(job[user] == "cook", 1.0, -1.0) + 0.3 * rng.standard_normal(2500)
    tables = {"user_id": users, "job": job.astype(object), "colour": colour.astype(object)}, {"item_id": items}
    rec = TuckerRecommender(rank=2, draws=20, warmup=20, time=None, random_state=0)
    rec.fit({"user_id": user, "item_id": item, "rating": rating}, *tables)
    share = {(row.side, row.what): row.contribution for row in rec.feature_importance().rows}
    assert share["user", "job"] > 0.8
    assert abs(share["user", "colour"]) < 0.05
    cook = int(users[job == "cook"][0])
    assert max(rec.explain(cook, 0).rows[1:], key=lambda row: row.contribution).what == "job"


def test_it_reads_well(data):
    rec = fitted(data, **SETTINGS["gibbs"])
    user, item = data.train["user_id"][0], data.train["item_id"][0]
    found = rec.explain(user, item)
    values = {row.what: row.value for row in found.rows if row.side == "user"}
    row = data.users["user_id"].tolist().index(user)
    assert values["occupation"] == data.users["occupation"][row]
    assert float(values["age"]) == data.users["age"][row]
    assert values["co-rating"] == f"{(data.train['user_id'] == user).sum()} items"
    title = data.items["title"][data.items["item_id"].tolist().index(item)]
    assert {row.what: row.value for row in found.rows if row.side == "item"}["title"] == title
    text = str(found)
    assert "people who rated the same items" in text
    assert text.splitlines()[1].startswith("base")
    assert f"user occupation={values['occupation']}" in text
    assert "<pre>" in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict()))["total"] == pytest.approx(found.total)
    unknown = {row.what: row.value for row in rec.explain("nobody", item).rows if row.side == "user"}
    assert unknown == {
        "age": "missing", "sex": "missing", "occupation": "missing",
        "co-rating": "not known", "own": "no ratings",
    }  # fmt: skip
    # who will rate an item is not known, and stands for all that attributes do not say
    own = [row for row in rec.explain("nobody", item).rows if (row.side, row.what) == ("user", "own")]
    assert own[0].contribution == 0
    shares = rec.feature_importance()
    assert "share" in str(shares)
    assert "<pre>" in shares._repr_html_()
    assert set(json.loads(json.dumps(shares.to_dict()))["rows"][0]) == {"side", "what", "share", "std"}


def test_times_are_named_and_parts_that_add_nothing_are_left_out(data):
    rec = fitted(data, **SETTINGS["drift and context"])
    user, item = data.train["user_id"][0], data.train["item_id"][0]
    assert "everyone at that time (week of 2026-11-16)" in str(rec.explain(user, item, timestamp="2026-11-17"))
    assert "(time not given)" in str(rec.explain(user, item))
    found = rec.explain("nobody", item)
    assert [row.std for row in found.rows if (row.side, row.what) == ("user", "own")] == [0.0]
    assert "user's own taste" not in str(found)


def test_dates_are_shown_as_dates(data):
    days = np.datetime64("1994-02-28") + np.arange(len(data.users)) * 97
    users = {"user_id": data.users["user_id"], "joined": days.astype(str)}
    rec = TuckerRecommender(rank=2, time=None, inference="als", random_state=0).fit(table(data), users)
    for row in range(0, len(data.users), 7):
        found = rec.explain(users["user_id"][row], data.train["item_id"][0]).rows
        value = next(line.value for line in found if line.what == "joined")
        assert value == str(days[row])


def test_lists_pairs_and_explanations_agree_on_the_standard_deviation_without_a_time(data):
    rec = fitted(data, **SETTINGS["drift and context"])
    user = data.train["user_id"][0]
    best = rec.recommend(user, n=3)
    pairs = {"user_id": [user] * 3, "item_id": list(best["item_id"])}
    _, std = rec.predict(pairs, return_std=True, include_noise=False)
    np.testing.assert_allclose(std, best["std"], rtol=1e-5)
    np.testing.assert_allclose([rec.explain(user, item).std for item in pairs["item_id"]], std, rtol=1e-5)


@pytest.mark.parametrize("missing", [3, 0])
def test_texts_that_are_missing_are_called_so(data, missing):
    """Where training texts lack some cells, and where only those of an unknown item are not there."""
    items = {name: values.tolist() for name, values in data.items.columns.items()}
    words = ["quiet house", "loud old street", "night train home", "long winter evening"]
    items["plot"] = [None if k < missing else f"{words[k % 4]} and {words[k // 4 % 4]}" for k in range(len(data.items))]
    rec = TuckerRecommender(rank=2, time=None, inference="als", attributes={"items": {"plot": "text"}}, random_state=0)
    rec.fit(table(data), None, items)
    user, ids = data.train["user_id"][0], items["item_id"]

    def shown(item):
        return next(row.value for row in rec.explain(user, item).rows if row.what == "plot")

    assert shown(ids[9]) == items["plot"][9]
    assert [shown(item) for item in (*ids[:missing], "nobody has seen it")] == ["missing"] * (missing + 1)


def test_after_fold_in_new_users_are_explained_too(data):
    rec = fitted(data, **SETTINGS["gibbs"])
    rec.fold_in({"user_id": ["new"] * 2, "item_id": data.items["item_id"][:2].tolist(), "rating": [1.0, 1.0]})
    item = data.items["item_id"][0]
    found = rec.explain("new", item)
    assert {row.what: row.value for row in found.rows if row.side == "user"}["own"] == ""
    np.testing.assert_allclose(
        found.total, rec.predict({"user_id": ["new"], "item_id": [item]}, clip=False)[0], atol=1e-10
    )


def test_pictures_are_drawn(data):
    from matplotlib import pyplot

    rec = fitted(data, inference="als")
    found = rec.explain(data.train["user_id"][0], data.train["item_id"][0])
    ax = found.plot()
    ends = [bar.get_x() + bar.get_width() for bar in ax.patches]
    assert len(ax.patches) == len(found.rows) - 1
    np.testing.assert_allclose(ends[-1], found.total)
    _, own = pyplot.subplots()
    assert rec.feature_importance().plot(own) is own
    np.testing.assert_allclose(sum(bar.get_width() for bar in own.patches), 1.0)
    pyplot.close("all")


def test_without_matplotlib_one_sentence_says_so(data, monkeypatch):
    rec = fitted(data, inference="als")
    real = importlib.import_module

    def without(name, *args):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr("tuckergp.recommender.plots.import_module", without)
    with pytest.raises(ImportError, match=r"pip install 'tuckergp\[plot\]'"):
        rec.feature_importance().plot()


def test_circumstances_that_the_model_does_not_know_are_refused(data):
    rec = fitted(data, inference="als")
    with pytest.raises(InputError, match="does not know 'device'; the circumstances of this model are none"):
        rec.explain("a", "b", device="tv")


@pytest.mark.parametrize("implicit", [True, False])
def test_newcomers_are_as_uncertain_as_in_predictions(implicit):
    data = make_ratings(n_users=40, n_items=30, n_ratings=500, random_state=0)
    model = TuckerRecommender(rank=2, draws=40, warmup=20, implicit=implicit, time=None, random_state=0)
    model.fit(data.train, data.users, data.items)
    known = data.train["user_id"][0]
    for user, item in [("nobody", data.train["item_id"][0]), (known, "nothing"), ("nobody", "nothing")]:
        pair = {"user_id": [user], "item_id": [item]}
        mean, std = model.predict(pair, return_std=True, include_noise=False, clip=False)
        explained = model.explain(user, item)
        np.testing.assert_allclose(explained.std, std[0], rtol=1e-5)
        np.testing.assert_allclose(explained.total, mean[0], rtol=1e-5)
