"""What the page shows of a recommender: each figure against another way to compute it."""

from dataclasses import replace

import numpy as np
import pytest
from tuckergp.metrics import rmse

from tuckergp import load
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.recommender import answering
from tuckergp.recommender.factors import Factors
from tuckergp.recommender.neighbours import positions
from tuckergp.serve.pages import PageState
from tuckergp.serve.recommending import ServedRecommender
from tuckergp.serve.views import accuracy
from tuckergp.serve.views.about import about_recommender
from tuckergp.serve.views.cells import facts, shown
from tuckergp.serve.views.item_map import colourings, item_map
from tuckergp.serve.views.learning import convergence, data_summary, weights
from tuckergp.serve.views.people import about_item, about_person, distribution, levels_of


def test_ratings_of_an_item_are_those_of_the_table_and_those_folded_in(recommender, ratings, tmp_path):
    item = ratings.train["item_id"][0]
    given = np.sort(ratings.train["rating"][ratings.train["item_id"] == item])
    recommender.save(tmp_path / "model.tgp")
    loaded = load(tmp_path / "model.tgp")
    for model in (recommender, loaded):
        np.testing.assert_array_equal(np.sort(model.history_.of_item(item)), given)
        assert len(model.history_.of_item("nobody's")) == 0
    loaded.fold_in({"user_id": ["new"], "item_id": [item], "rating": [1.5]})
    np.testing.assert_array_equal(loaded.history_.of_item(item)[-1:], [1.5])
    assert len(loaded.history_.of_item(item)) == len(given) + 1
    seen = about_item(ServedRecommender(loaded), item, levels_of(loaded._fitted))
    assert seen["count"] == len(given) + 1
    assert sum(bin["count"] for bin in seen["distribution"]) == len(given) + 1
    assert seen["mean"] == pytest.approx((given.sum() + 1.5) / (len(given) + 1))
    assert about_person(ServedRecommender(loaded), "new")["ratings"] == [
        {"id": item, "title": seen["title"], "rating": 1.5},
    ]


def test_a_distribution_counts_levels_or_bins():
    given = np.array([1.0, 1.0, 2.0, 4.0])
    assert [bin["count"] for bin in distribution(given, [1.0, 2.0, 3.0, 4.0])] == [2, 1, 0, 1]
    bins = distribution(np.linspace(0, 1, 1001), [])
    assert len(bins) == 10
    assert sum(bin["count"] for bin in bins) == 1001
    assert distribution(np.zeros(0), []) == []
    assert [bin["count"] for bin in distribution(np.zeros(0), [1.0, 2.0])] == [0, 0]


def test_a_person_has_attributes_and_ratings_the_highest_first(recommender, ratings):
    person = ratings.train["user_id"][0]
    seen = about_person(ServedRecommender(recommender), person)
    own = ratings.train["rating"][ratings.train["user_id"] == person]
    assert [row["rating"] for row in seen["ratings"]] == sorted(own, reverse=True)
    assert {fact["name"] for fact in seen["attributes"]} == {"age", "sex", "occupation"}
    assert facts({"age": None, "name": "Ann", "sex": "F"}, "name") == [{"name": "sex", "value": "F"}]


def test_places_on_the_map_are_principal_components_of_predictions(recommender):
    """Kernel PCA of the covariance of predictions over users, averaged over draws, as an independent computation."""
    fitted = recommender._fitted
    users, items = (side.rated_ids for side in fitted.layout.sides)
    gram = np.zeros((len(items), len(items)))
    for s in range(len(fitted.fit.draws)):
        f = answering.scores(replace(fitted, fit=fitted.fit.only(s)), users, items) / fitted.fit.scale
        f = f - f.mean(axis=1, keepdims=True)  # what a person says of everything
        f = f - f.mean(axis=0, keepdims=True)  # what everybody says of an item
        gram += f.T @ f / len(users) / len(fitted.fit.draws)
    values, vectors = np.linalg.eigh(gram)
    expected = vectors[:, [-1, -2]] * np.sqrt(values[[-1, -2]])
    places, share = positions(Factors(fitted.layout, fitted.fit), 1, 2)
    found = places[fitted.layout.sides[1].numbers(items)]
    np.testing.assert_allclose(np.abs(np.corrcoef(found.T, expected.T)[[0, 1], [2, 3]]), 1, atol=1e-3)
    np.testing.assert_allclose(found.std(axis=0), expected.std(axis=0), rtol=1e-3)
    np.testing.assert_allclose(share, values[[-1, -2]] / values.sum(), rtol=1e-3)


def test_the_map_has_every_rated_item_once_with_its_genres(recommender, ratings):
    drawn = item_map(recommender._fitted)
    assert sorted(drawn["ids"]) == sorted(set(ratings.train["item_id"]))
    assert len(drawn["x"]) == len(drawn["y"]) == len(drawn["titles"]) == len(drawn["ids"])
    fitted = recommender._fitted
    places, _ = positions(Factors(fitted.layout, fitted.fit).thinned(20), 1, 2)
    own = places[fitted.layout.sides[1].numbers(drawn["ids"])]
    np.testing.assert_allclose(np.transpose([drawn["x"], drawn["y"]]), own, rtol=1e-4)
    genres = drawn["colours"][0]
    assert genres["name"] == "genres"
    cells = dict(zip(ratings.items["item_id"], ratings.items["genres"], strict=True))
    for item, places in zip(drawn["ids"], genres["of_items"], strict=True):
        assert {genres["values"][k] for k in places} == set(cells[item]) & set(genres["values"])
    counted = dict(zip(*np.unique(ratings.train["item_id"], return_counts=True), strict=True))
    assert drawn["count"] == [counted[item] for item in drawn["ids"]]


def test_colours_are_values_that_several_items_share():
    table = as_table(
        {
            "item_id": list("abcdefghijkl"),
            "title": [f"film {k}" for k in range(12)],
            "code": [f"c{k}" for k in range(12)],
            "kind": ["x", "y"] * 6,
            "year": [2000 + k for k in range(12)],
            "empty": [None] * 12,
        },
        "items",
    )
    found = {each["name"]: each for each in colourings(table, "item_id", list("abcdefghijkl"))}
    assert set(found) == {"kind", "year"}
    assert found["kind"]["of_items"][:3] == [[0], [1], [0]]
    assert found["year"]["values"][0].startswith("2000 to")
    assert found["year"]["of_items"][0] == [0]
    assert found["year"]["of_items"][-1] == [len(found["year"]["values"]) - 1]
    assert colourings(None, "item_id", ["a"]) == []


def test_figures_at_held_out_ratings_are_those_of_predict(recommender, ratings):
    found = PageState(ratings.test).accuracy(_served(recommender), copy=False)
    y, (mean, ends) = ratings.test["rating"], recommender.predict(ratings.test, interval=0.8, clip=False)
    assert found["source"] == "held out"
    assert found["rmse"] == pytest.approx(rmse(y, recommender.predict(ratings.test)))
    inside = np.mean((ends[:, 0] <= y) & (y <= ends[:, 1]))
    assert {row["share"]: row["inside"] for row in found["coverage"]}[0.8] == pytest.approx(inside)
    assert found["usual_rmse"] == pytest.approx(np.sqrt(np.mean((y - ratings.train["rating"].mean()) ** 2)), rel=1e-6)
    assert len(mean) == found["n"]


def test_rows_that_the_model_has_learned_from_do_not_judge_it(recommender, clicks, ratings):
    both = {name: [*ratings.train[name], *ratings.test[name]] for name in ("user_id", "item_id", "rating")}
    apart = PageState(ratings.test).accuracy(_served(recommender), copy=False)
    found = PageState(both).accuracy(_served(recommender), copy=False)
    assert apart["left_out"] == 0
    assert found == {**apart, "left_out": len(ratings.train)}
    pairs = {key: both[key] for key in ("user_id", "item_id")}
    held = accuracy.of_recommender(clicks._fitted, as_table({key: ratings.test[key] for key in pairs}, "test"))
    found = accuracy.of_recommender(clicks._fitted, as_table(pairs, "test"))
    assert found == {**held, "left_out": len(pairs["user_id"]) - held["n"]}
    for model in (recommender, clicks):
        with pytest.raises(InputError, match="has learned from all"):
            PageState(ratings.train).accuracy(_served(model), copy=False)


def test_a_file_without_ratings_cannot_tell_what_it_has_learned_from(recommender, ratings, tmp_path):
    recommender.save(tmp_path / "private.tgp", ratings=False)
    found = PageState(ratings.test).accuracy(_served(load(tmp_path / "private.tgp")), copy=False)
    assert (found["left_out"], found["n"]) == (None, len(ratings.test))


def test_a_copy_is_judged_by_ratings_that_it_has_not_had(recommender, ratings):
    """Its error is far from that at ratings it knows, and near that of the model at held-out ones."""
    found = accuracy.of_copy(recommender)
    known = rmse(ratings.train["rating"], recommender.predict(ratings.train))
    unseen = rmse(ratings.test["rating"], recommender.predict(ratings.test))
    assert found["source"] == "copy"
    assert found["n"] + found["learned_from"] == len(ratings.train)
    assert known < unseen - 0.1
    assert found["rmse"] == pytest.approx(unseen, abs=0.09)  # its standard error is 0.04


def test_without_held_out_data_nothing_is_claimed(recommender, regressor):
    assert PageState().accuracy(_served(recommender), copy=False) == {"source": None, "can_copy": False}
    assert PageState(copies=True).accuracy(_served(recommender), copy=False)["can_copy"]
    assert PageState().accuracy(_served(recommender), copy=True) == {"source": None, "can_copy": False}


def test_clicks_are_judged_by_hits_in_lists_of_ten(clicks, ratings):
    held = {key: ratings.test[key] for key in ("user_id", "item_id")}
    found = accuracy.of_recommender(clicks._fitted, as_table(held, "test"))
    people = [user for user in dict.fromkeys(held["user_id"]) if user in clicks.history_.users]
    lists = clicks.recommend(people, n=10)
    pairs = set(zip(*held.values(), strict=True))
    hit = {user for user, item in zip(lists["user_id"], lists["item_id"], strict=True) if (user, item) in pairs}
    assert found["people"] == len(people)
    assert found["hit_rate"] == pytest.approx(len(hit) / len(people))
    assert 0 < found["usual_hit_rate"] < 1
    assert levels_of(clicks._fitted) == []
    assert about_item(ServedRecommender(clicks), ratings.items["item_id"][0], [])["distribution"] == []


def test_chains_and_weights_are_those_of_the_model(recommender):
    found = convergence(recommender.fit_)
    diagnostics = recommender.fit_.draws.diagnostics()
    assert found["worst_rhat"] == pytest.approx(diagnostics.worst_rhat)
    of_f = [trace["rhat"] for trace in found["traces"] if trace["label"].startswith("prediction")]
    assert of_f[0] == pytest.approx(diagnostics.worst_rhat)
    assert [trace["label"] for trace in found["traces"]][: -len(of_f)] == ["noise"]  # the number of a step is none
    shares = {(row["side"], row["what"]): row["share"] for row in weights(recommender)}
    expected = {(row.side, row.what): row.contribution for row in recommender.feature_importance().rows}
    assert shares == pytest.approx(expected, abs=0.02)  # from 20 of 24 draws


def test_the_summary_counts_what_was_learned_from(recommender, ratings):
    found = data_summary(recommender._fitted, levels_of(recommender._fitted))
    assert found["ratings"] == len(ratings.train)
    assert found["users"] == len(set(ratings.train["user_id"]))
    assert found["mean"] == pytest.approx(ratings.train["rating"].mean())
    assert sum(bin["count"] for bin in found["distribution"]) == len(ratings.train)
    assert {row["column"] for row in found["columns"]} >= {"age", "genres"}


def test_a_new_person_can_say_what_the_model_uses(recommender, ratings):
    found = about_recommender(ServedRecommender(recommender), levels_of(recommender._fitted))
    asked = {each["name"]: each for each in found["questions"]}
    assert asked["age"]["range"] == [ratings.users["age"].min(), ratings.users["age"].max()]
    assert asked["sex"]["values"] == ["F", "M"]
    assert found["levels"] == list(np.arange(1, 5.1, 0.5))
    counts = dict(zip(*np.unique(ratings.train["item_id"], return_counts=True), strict=True))
    assert counts[found["popular"][0]["id"]] == max(counts.values())


def test_cells_are_shown_as_text():
    cells = {"": [None, np.nan], "3": [3.0], "a, b": [["a", "b"], "a|b"], "<b>": ["<b>"]}
    assert all(shown(cell) == text for text, each in cells.items() for cell in each)


def _served(model):
    from tuckergp.serve.recommending import ServedRecommender

    return ServedRecommender(model)
