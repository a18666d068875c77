"""Lists by value: the probability of a choice times how much the user would then like the item."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.recommender.test_together import in_draws
from tuckergp import TuckerRecommender, load
from tuckergp.errors import InputError
from tuckergp.recommender.together import Group, Values

FAST = {"rank": 4, "draws": 20, "warmup": 20, "time": None, "implicit": False, "random_state": 0}
USERS, ITEMS = 160, 40


def world(seed: int = 0) -> pl.DataFrame:
    """Users choose mostly items of their own group, and like those with low numbers."""
    rng = np.random.default_rng(seed)
    same = (np.arange(USERS)[:, None] - np.arange(ITEMS)) % 4 == 0
    chosen = rng.random(same.shape) < np.where(same, 0.5, 0.05)
    chosen[np.arange(USERS), np.arange(USERS) % ITEMS] = True
    chosen[np.arange(ITEMS) % USERS, np.arange(ITEMS)] = True
    user, item = np.nonzero(chosen)
    rating = np.clip(np.round(5 - item / 10 + 0.3 * rng.standard_normal(len(item))), 1, 5)
    return pl.DataFrame({"user_id": [f"u{k}" for k in user], "item_id": [f"i{k}" for k in item], "rating": rating})


@pytest.fixture(scope="module")
def fitted() -> TuckerRecommender:
    return TuckerRecommender(**FAST, objective="value").fit(world())


def parts(rec: TuckerRecommender, user: str) -> tuple[np.ndarray, np.ndarray]:
    """The expected rating and the probability of a choice of all items, by `predict`."""
    pairs = pl.DataFrame({"user_id": [user] * ITEMS, "item_id": [f"i{k}" for k in range(ITEMS)]})
    return rec.predict(pairs, clip=False), rec.choice_.predict(pairs)


def test_scores_are_products_of_what_both_models_predict(fitted: TuckerRecommender) -> None:
    lists = fitted.recommend(["u0"], n=ITEMS, exclude_seen=False)
    rating, choice = parts(fitted, "u0")
    at = [int(item[1:]) for item in lists["item_id"]]
    np.testing.assert_allclose(lists["rating"], rating[at], rtol=1e-5)
    np.testing.assert_allclose(lists["choice"], choice[at], rtol=1e-5)
    utility = np.clip((rating[at] - 1) / 4, 0, 1) ** 2
    np.testing.assert_allclose(lists["score"], choice[at] * utility, rtol=0.05, atol=0.02)  # draws of ratings differ
    assert (np.diff(lists["score"]) <= 0).all()
    assert ((lists["std"] > 0) & (lists["std"] < 1)).all()


def test_the_best_are_chosen_and_liked(fitted: TuckerRecommender) -> None:
    lists = fitted.recommend([f"u{k}" for k in range(20)], n=3, exclude_seen=False)
    user, item = (np.array([int(value[1:]) for value in lists[name]]) for name in ("user_id", "item_id"))
    assert ((user - item) % 4 == 0).mean() > 0.5
    assert item.mean() < 15


def test_lists_by_rating_and_by_choice_are_those_of_one_model(fitted: TuckerRecommender) -> None:
    alone = TuckerRecommender(**FAST, objective="rating").fit(world())
    assert not hasattr(alone, "choice_")
    ours, theirs = fitted.recommend(["u1", "u2"], by="rating"), alone.recommend(["u1", "u2"])
    assert ours.equals(theirs)
    chosen, expected = fitted.recommend(["u1"], by="choice"), fitted.choice_.recommend(["u1"])
    assert chosen.equals(expected)


def test_scores_sort_as_lists_do(fitted: TuckerRecommender) -> None:
    items = [f"i{k}" for k in range(ITEMS)]
    rating, choice = parts(fitted, "u0")
    np.testing.assert_allclose(fitted.scores(["u0"], items, by="rating")[0], rating, rtol=1e-5)
    np.testing.assert_allclose(fitted.scores(["u0"], items, by="choice")[0], choice, rtol=1e-5)
    scores = fitted.scores(["u0"], items)[0]
    lists = fitted.recommend(["u0"], n=ITEMS, exclude_seen=False)
    assert lists["item_id"].to_list() == [items[k] for k in np.argsort(-scores)]
    np.testing.assert_allclose(lists["score"], np.sort(scores)[::-1], rtol=1e-5)


def test_the_rating_and_the_choice_are_explained(fitted: TuckerRecommender) -> None:
    pair = pl.DataFrame({"user_id": ["u0"], "item_id": ["i3"]})
    both, rating, choice = (fitted.explain("u0", "i3", by=by) for by in (None, "rating", "choice"))
    assert both.rows == rating.rows
    assert both.choice == choice
    assert (rating.choice, rating.value) == (None, None)
    assert rating.total == pytest.approx(fitted.predict(pair, clip=False)[0])
    assert choice.predicted == pytest.approx(fitted.choice_.predict(pair)[0])
    assert choice == fitted.choice_.explain("u0", "i3")
    assert fitted.explain("u0", "i3", by="value") == both
    lists = fitted.recommend(["u0"], n=ITEMS, exclude_seen=False).filter(pl.col("item_id") == "i3")
    assert [both.value, both.value_std] == pytest.approx(lists.select("score", "std").row(0))
    with pytest.raises(InputError, match="this one is of choices alone"):
        fitted.choice_.explain("u0", "i3", by="rating")


def test_a_value_is_explained_in_words(fitted: TuckerRecommender) -> None:
    least = int(np.argmin(parts(fitted, "u0")[1]))
    liked, not_liked, not_chosen = (fitted.explain("u0", f"i{k}") for k in (0, 39, least))
    assert liked.words.startswith("You would like it: rating ")
    assert "Chosen by people like you: probability of a choice " in liked.words
    assert not_liked.words.startswith("You would like it no more than an average item: rating ")
    assert "Seldom chosen by people like you: " in not_chosen.words
    largest = max(liked.choice.rows[1:], key=lambda row: abs(row.contribution))
    assert f"mostly by {largest.label} ({largest.contribution:+.2g})" in liked.choice.words
    text = str(liked)
    assert text.index("You would like it") < text.index("Chosen by people like you") < text.index("value")
    assert "predicted probability of a choice" in text
    assert "<pre>You would like it" in liked._repr_html_()
    found = liked.to_dict()
    assert found["words"] == liked.words
    assert found["choice"]["total"] == liked.choice.total
    assert [row["explains"] for row in liked.records()] == ["rating"] * 3 + [
        "probability of a choice"
    ] * 3  # base, user, item


def test_both_explanations_are_plotted(fitted: TuckerRecommender) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    explanation = fitted.explain("u0", "i3")
    above, below = explanation.plot()
    assert "rating of i3 by u0" in above.get_title()
    assert "tendency to choose of i3 by u0" in below.get_title()
    axes = pyplot.subplots(2)[1]
    assert explanation.plot(axes) == tuple(axes)
    pyplot.close("all")


def test_a_group_gets_the_items_of_most_value_to_it(fitted: TuckerRecommender) -> None:
    group, items = ["u0", "u1", "u2"], [f"i{k}" for k in range(ITEMS)]
    single = fitted.recommend(group, n=ITEMS, exclude_seen=False)
    expected = single.group_by("item_id").agg(pl.col("score", "rating", "choice").mean()).sort("score", descending=True)
    found = fitted.recommend_together(group, n=5, exclude_seen=False)
    assert list(found.columns) == ["item_id", "score", "std", "rating", "choice", "rank"]
    assert found["item_id"].to_list() == expected["item_id"].to_list()[:5]
    for name in ("score", "rating", "choice"):
        np.testing.assert_allclose(found[name], expected[name][:5], rtol=1e-5)
    rating, choice = ([in_draws(model, user, items) for user in group] for model in (fitted, fitted.choice_))
    values = [np.clip((r - 1) / 4, 0, 1) ** 2 * c for r, c in zip(rating, choice, strict=True)]
    for how, combine in {"mean": np.mean, "least": np.min}.items():
        together = combine(values, axis=0)
        found = fitted.recommend_together(group, n=ITEMS, how=how, exclude_seen=False)
        at = [items.index(item) for item in found["item_id"]]
        np.testing.assert_allclose(found["std"], together.std(axis=0, ddof=1)[at], rtol=1e-5)
        if how == "least":
            np.testing.assert_allclose(found["score"], together.mean(axis=0)[at], rtol=1e-5)


def test_a_group_may_ask_for_ratings_or_choices_alone(fitted: TuckerRecommender) -> None:
    alone = TuckerRecommender(**FAST, objective="rating").fit(world())
    ours = fitted.recommend_together(["u1", "u2"], by="rating", how="least")
    assert ours.equals(alone.recommend_together(["u1", "u2"], how="least"))
    chosen = fitted.recommend_together(["u1", "u2"], by="choice")
    assert chosen.equals(fitted.choice_.recommend_together(["u1", "u2"]))
    with pytest.raises(InputError, match="by='value' needs"):
        alone.recommend_together(["u1", "u2"], by="value")
    assert len(fitted.recommend_together(["u1"], items=["i1"])) == 0  # seen already


class Told:
    """Draws of ratings, or of choices, as they are given, shape (S, n, m)."""

    def __init__(self, given: Any, sampled: bool = True) -> None:
        self.given, self.draws, self.sampled = np.asarray(given), len(given), sampled

    def in_draws(self, items: Any) -> Any:
        return self.given[:, items]


def test_each_draw_of_the_ratings_goes_with_one_of_the_choices() -> None:
    rng = np.random.default_rng(0)
    rating, choice = rng.random((5, 3, 2)), rng.random((2, 3, 2))
    values = Values(Told(rating), Told(choice), lambda given: given**2)  # type: ignore[arg-type]
    expected = np.stack([rating[s] ** 2 * choice[s % 2] for s in range(5)])
    np.testing.assert_allclose(values.in_draws(np.array([2, 0])), expected[:, [2, 0]])
    np.testing.assert_allclose(values.means(np.arange(3)), (rating**2).mean(axis=0) * choice.mean(axis=0))
    best, score, _ = Group(values, 2, "least").best(np.arange(3), 3)
    np.testing.assert_allclose(score, np.sort(expected.min(axis=2).mean(axis=0))[::-1])
    assert best[0] == np.argmax(expected.min(axis=2).mean(axis=0))
    point = Values(Told(rating[:1], sampled=False), Told(choice), lambda given: given)  # type: ignore[arg-type]
    assert np.isnan(Group(point, 2, "mean").best(np.arange(3), 1)[2]).all()


@pytest.mark.parametrize("strategy", ["ucb", "thompson"])
def test_strategies_work(fitted: TuckerRecommender, strategy: Any) -> None:
    lists = fitted.recommend(["u1", "u2", "u1"], n=4, strategy=strategy, random_state=0)
    assert len(lists) == 12
    again = fitted.recommend(["u1", "u2", "u1"], n=4, strategy=strategy, random_state=0)
    assert lists.equals(again)
    if strategy == "thompson":
        firsts = {fitted.recommend(["u1"], n=1, strategy=strategy, random_state=k)["item_id"][0] for k in range(20)}
        assert len(firsts) > 1
    else:
        mean = fitted.recommend(["u1"], n=4)
        bold = fitted.recommend(["u1"], n=4, strategy=strategy, kappa=50.0)
        assert (np.diff(bold["std"]) <= 0).all()  # hardly anything else counts
        assert bold["std"][0] >= mean["std"].max()


def test_new_ratings_count_for_both_models(fitted: TuckerRecommender, tmp_path: Any) -> None:
    fitted.save(tmp_path / "m.tgp")
    rec = load(tmp_path / "m.tgp")
    assert rec.recommend(["u3"], n=5).equals(fitted.recommend(["u3"], n=5))
    new = pl.DataFrame({"user_id": ["new"] * 4, "item_id": ["i1", "i5", "i9", "i13"], "rating": [5.0, 5.0, 4.0, 4.0]})
    rec.fold_in(new)
    best = rec.recommend(["new"], n=4)
    assert not set(best["item_id"]) & set(new["item_id"])
    assert np.mean([int(item[1:]) % 4 == 1 for item in best["item_id"]]) >= 0.5
    rec.save(tmp_path / "again.tgp")
    assert load(tmp_path / "again.tgp").recommend(["new"], n=4).equals(best)
    rec.partial_fit(new.with_columns(user_id=pl.lit("newer")))
    assert len(rec.recommend(["newer"], n=4)) == 4


def test_small_tables_are_ranked_by_rating_unless_asked() -> None:
    rec = TuckerRecommender(**FAST).fit(world())
    assert "choice" not in rec.recommend(["u0"]).columns
    with pytest.raises(InputError, match=r"by='value' needs a model of ratings and of choices.*objective='value'"):
        rec.recommend(["u0"], by="value")
    with pytest.raises(InputError, match="by must be"):
        rec.recommend(["u0"], by="price")  # type: ignore[arg-type]
    clicks = TuckerRecommender(**FAST).fit(world().drop("rating"))
    with pytest.raises(InputError, match="by='rating' needs"):
        clicks.recommend(["u0"], by="rating")


@pytest.mark.parametrize("options", [{"likelihood": "ordinal"}, {"inference": "als"}])
def test_other_models_of_ratings(options: dict[str, Any]) -> None:
    short = FAST if "likelihood" in options else {k: v for k, v in FAST.items() if k not in ("draws", "warmup")}
    rec = TuckerRecommender(**short, **options, objective="value").fit(world())
    lists = rec.recommend(["u0"], n=5)
    assert list(lists.columns) == ["user_id", "item_id", "score", "std", "rating", "choice", "rank"]
    assert np.isfinite(lists["score"].to_numpy()).all()


def test_the_standard_deviation_is_that_of_a_product() -> None:
    from tuckergp.recommender.value import _product_std

    rng = np.random.default_rng(0)
    first, second = rng.normal(2, 0.5, (4000, 3)), rng.normal(1, 0.3, (3000, 3))
    product = rng.choice(first[:, 0], 200_000) * rng.choice(second[:, 0], 200_000)
    assert _product_std(first, second)[0] == pytest.approx(product.std(), rel=0.02)


def test_filters_and_diversity_go_with_it() -> None:
    items = pl.DataFrame({"item_id": [f"i{k}" for k in range(ITEMS)], "genre": ["ab"[k % 2] for k in range(ITEMS)]})
    rec = TuckerRecommender(**FAST, objective="value").fit(world(), items=items)
    lists = rec.recommend(["u1", "u2"], n=4, where={"genre": "a"}, diversity=0.5)
    assert len(lists) == 8
    assert all(int(item[1:]) % 2 == 0 for item in lists["item_id"])
    rating, choice = parts(rec, "u1")
    mine = lists.head(4)
    at = [int(item[1:]) for item in mine["item_id"]]
    np.testing.assert_allclose(mine["rating"], rating[at], rtol=1e-5)
    np.testing.assert_allclose(mine["choice"], choice[at], rtol=1e-5)
    with pytest.warns(Warning, match="no item"):
        assert len(rec.recommend(["u1"], where={"genre": "c"})) == 0
