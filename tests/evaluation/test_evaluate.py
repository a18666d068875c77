"""Evaluation end to end: against metrics computed by hand from the same split, and on a small model."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import make_ratings
from tuckergp.data.splits import ColdUsers, Holdout, KFold, UserHoldout, holdout
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.evaluation import scoring
from tuckergp.evaluation.baselines import Biases, Popularity
from tuckergp.evaluation.evaluate import DISTRIBUTIONS, ERRORS, METRICS, RANKING, cross_validate, evaluate, fit_afresh
from tuckergp.evaluation.metrics import mae, rmse
from tuckergp.recommender import learning, value

SMALL = {"rank": 2, "draws": 20, "warmup": 10, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=40, n_items=30, n_ratings=600, random_state=0)


@pytest.fixture(scope="module")
def board(data):
    models = {"gibbs": TuckerRecommender(**SMALL), "by hand": Biases(damping=2.0)}
    return evaluate(
        models,
        data.train,
        split=Holdout(0.25, seed=1),
        users=data.users,
        items=data.items,
        metrics=METRICS,
        k=5,
        baselines=["mean", "biases", "popularity"],
    )


def test_every_metric_is_reported_within_its_interval(board):
    assert board.models == ["gibbs", "by hand", "mean", "biases", "popularity"]
    for row in board.rows():
        assert row["low"] <= row["value"] <= row["high"], row
    assert set(board.estimates["gibbs"]) == set(METRICS)
    assert set(board.estimates["popularity"]) == set(RANKING)


def test_errors_are_those_of_a_model_fitted_by_hand(board, data):
    train, test = holdout(data.train, test_size=0.25, seed=1)
    predicted = TuckerRecommender(**SMALL).fit(train, data.users, data.items).predict(test)
    assert board.value("rmse") == pytest.approx(rmse(test["rating"], predicted))
    assert board.value("mae", "gibbs") == pytest.approx(mae(test["rating"], predicted))


def test_lists_are_those_of_a_loop_over_users(board, data):
    train, test = holdout(data.train, test_size=0.25, seed=1)
    model = Biases(damping=2.0).fit(train)
    catalogue = set(train["item_id"]) | set(test["item_id"]) | set(data.items["item_id"])
    least = np.median(train["rating"])
    recalls, aucs = [], []
    for user in dict.fromkeys(test["user_id"]):
        seen = set(train["item_id"][train["user_id"] == user])
        own = test["user_id"] == user
        liked = set(test["item_id"][own & (test["rating"] >= least)])
        if not liked:
            continue
        items = sorted(catalogue - seen)
        scores = model.predict({"user_id": [user] * len(items), "item_id": items}, clip=False)
        best = [items[place] for place in np.argsort(-scores)[:5]]
        recalls.append(len(liked & set(best)) / len(liked))
        good = np.isin(items, list(liked))
        apart = scores[good][:, None] - scores[~good]
        aucs.append((apart > 0).mean() + 0.5 * (apart == 0).mean())
    assert board.value("recall", "by hand") == pytest.approx(np.mean(recalls))
    assert board.value("auc", "by hand") == pytest.approx(np.mean(aucs))


def test_learning_helps(board):
    assert board.value("rmse", "gibbs") < board.value("rmse", "mean")
    assert board.value("crps", "gibbs") < board.value("crps", "mean")
    assert 0.8 < board.value("interval_coverage", "gibbs") < 0.99
    gain = board.difference("rmse", "gibbs", "mean")
    assert gain.low < gain.value < gain.high < 0
    assert board.difference("catalogue_coverage", "gibbs", "gibbs").value == 0


@pytest.mark.parametrize("likelihood", ["ordinal", "bernoulli"])
def test_coverage_of_levels_is_that_of_the_intervals_that_predict_gives(data, likelihood):
    """Between quantiles of whole levels lie far more ratings than the level of the interval."""
    stars = data.train["rating"]
    levels = (stars > np.median(stars)).astype(float) if likelihood == "bernoulli" else np.round(stars)
    ((train, test),) = Holdout(0.2).split({**data.train.columns, "rating": levels})
    model = TuckerRecommender(rank=2, draws=15, warmup=10, time=None, likelihood=likelihood, random_state=0)
    board = evaluate(model, None, split=[(train, test)], metrics=["interval_coverage"], interval=0.7)
    _, ends = model.fit(train).predict(test, interval=0.7)
    inside = (ends[:, 0] <= test["rating"]) & (test["rating"] <= ends[:, 1])
    assert board.value("interval_coverage") == pytest.approx(inside.mean())


def test_the_size_of_blocks_changes_nothing(data, monkeypatch):
    boards = []
    for size in (scoring.BLOCK, 70):
        monkeypatch.setattr(scoring, "BLOCK", size)
        boards.append(evaluate(Biases(), data.train, metrics=RANKING))
    assert boards[0].rows() == boards[1].rows()


def test_prints_as_a_table_and_converts(board):
    text = str(board)
    assert "ndcg@5" in text
    assert "interval_coverage (90%)" in text
    assert f"{board.value('rmse'):.4f} [" in text
    console = Console(file=io.StringIO(), width=200)
    console.print(board)
    assert "popularity" in console.file.getvalue()
    frame = pd.DataFrame(board.rows())
    assert list(frame.columns) == ["model", "metric", "value", "low", "high", "folds"]
    again = json.loads(json.dumps(board.to_dict()))
    assert again["scores"]["gibbs"]["rmse"]["value"] == board.value("rmse")
    assert again["seconds"]["gibbs"] > 0


def test_folds_are_averaged(data):
    ratings = data.train
    board = cross_validate(Biases(), ratings, n_folds=3, metrics=["rmse", "recall"], seed=2)
    by_hand = [
        rmse(test["rating"], Biases().fit(train).predict(test)) for train, test in KFold(3, seed=2).split(ratings)
    ]
    (row,) = (row for row in board.rows() if row["metric"] == "rmse")
    assert row["folds"] == pytest.approx(by_hand)
    assert row["value"] == pytest.approx(np.mean(by_hand))
    assert board.n_ratings == len(ratings)
    assert board.n_users == len(set(ratings["user_id"]))
    assert board.rows() == cross_validate(Biases(), ratings, n_folds=3, metrics=["rmse", "recall"], seed=2).rows()


def test_given_tables_are_used_as_they_are(data):
    board = evaluate(Biases(), None, split=[(data.train, data.test)], metrics="rmse")
    assert board.value("rmse") == pytest.approx(rmse(data.test["rating"], Biases().fit(data.train).predict(data.test)))


def test_cold_users_can_be_ranked_for(data):
    board = evaluate(Popularity(), data.train, split=ColdUsers(0.3), metrics=["hit_rate", "novelty"])
    assert board.value("hit_rate") > 0


def test_levels_are_scored_by_their_probabilities(data):
    model = TuckerRecommender(**SMALL, likelihood="ordinal")
    board = evaluate(model, data.train, metrics=DISTRIBUTIONS, baselines=["mean"])
    train, test = holdout(data.train)
    fitted = TuckerRecommender(**SMALL, likelihood="ordinal").fit(train)
    place = np.searchsorted(fitted.fit_.levels, test["rating"])
    p = fitted.predict_proba(test)[np.arange(len(test)), place]
    assert board.value("nll") == pytest.approx(-np.log(p).mean())
    assert board.value("crps") < board.value("crps", "mean")


def test_items_of_the_training_part_are_not_relevant_again():
    ratings = {"user_id": [1, 1, 2], "item_id": [1, 2, 3], "rating": [5.0, 1.0, 5.0]}
    candidates = scoring.Candidates.of(*repeated(ratings), None, lambda test, train: np.ones(len(test), dtype=bool), 0)
    # user 1 rated item 1 before; item 3 is new to them
    assert candidates.users == [1]
    row = candidates.relevant.toarray()[0]
    assert [item for item, flag in zip(candidates.items, row, strict=True) if flag] == [3]


def repeated(ratings):
    """The ratings to train on, and a test part in which user 1 rates items 1 (again) and 3."""
    test = {"user_id": [1, 1], "item_id": [1, 3], "rating": [5.0, 5.0]}
    return as_table(ratings, "ratings"), as_table(test, "test")


@pytest.mark.parametrize(
    ("relevant", "message"),
    [
        ("good", "must be a number"),
        (6, "No test user"),
        (lambda ratings: 1, "True or False"),
        (True, "must be a number"),
    ],
)
def test_what_is_relevant_must_be_clear(relevant, message, data):
    with pytest.raises(InputError, match=message):
        evaluate(Biases(), data.train, relevant=relevant)


def test_relevance_by_number_and_by_rule_agree(data):
    boards = [
        evaluate(Biases(), data.train, metrics="ndcg", relevant=relevant)
        for relevant in (4, lambda ratings: ratings >= 4)
    ]
    assert boards[0].rows() == boards[1].rows()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metrics": ["accuracy"]}, "no metric 'accuracy'; there are rmse"),
        ({"metrics": []}, "No metric is named"),
        ({"metrics": "recall@0"}, "'recall@0' must have a whole number of at least 1"),
        ({"metrics": ["rmse@5"]}, "'rmse@5' has a length of lists, which 'rmse' does not know"),
        ({"metrics": ["auc@5"]}, "'auc' does not know"),
        ({"k": 0}, "k must be"),
        ({"interval": 90}, "interval must be between 0 and 1"),
        ({"confidence": 0}, "confidence must be"),
        ({"baselines": ["random"]}, "no baseline 'random'"),
        ({"split": 5}, r"split must be one of tuckergp\.splits, such as KFold\(5\), or pairs of tables, not 5\."),
        ({"split": "time"}, "split must be one of .*, not 'time'"),
    ],
)
def test_bad_settings_are_named_before_anything_is_fitted(settings, message, data):
    with pytest.raises(InputError, match=message):
        evaluate(Biases(), data.train, **settings)


def test_other_misuse_is_named(data, board):
    with pytest.raises(InputError, match="There are no ratings"):
        evaluate(Biases(), None)
    with pytest.raises(InputError, match="no model to evaluate"):
        evaluate({}, data.train)
    for wrong in ("als", {"mine": 3}):
        with pytest.raises(InputError, match=r"A model has fit and predict; ('als'|3) has not\."):
            evaluate(wrong, data.train)
    with pytest.raises(InputError, match="another name"):
        evaluate({"mean": Biases()}, data.train, baselines=["mean"])
    with pytest.raises(InputError, match="use evaluate"):
        cross_validate(Biases(), data.train, split=UserHoldout(n=1))
    with pytest.raises(InputError, match="use inference='gibbs'"):
        evaluate(TuckerRecommender(rank=2, inference="als"), data.train, metrics=["nll"])
    with pytest.raises(InputError, match="'rmse' was not measured for 'popularity'"):
        board.value("rmse", "popularity")
    with pytest.raises(InputError, match="no model 'x'"):
        board.difference("rmse", "x", "gibbs")


def test_says_what_it_does_when_asked_and_leaves_the_model_as_it_is(data, capsys):
    model = Biases()
    evaluate(model, data.train, metrics=[*ERRORS, "ndcg"], progress=True)
    assert "fold 1: Biases" in capsys.readouterr().err
    assert not hasattr(model, "mean_")
    evaluate(model, data.train, metrics=ERRORS, progress=False)
    assert capsys.readouterr().err == ""


def test_ratings_may_have_their_ids_in_an_index(data):
    frame = pd.DataFrame(data.train.columns)
    boards = [evaluate(Biases(), each, metrics=["rmse"]) for each in (frame, frame.set_index(["user_id", "item_id"]))]
    assert boards[0].value("rmse") == boards[1].value("rmse")


def test_no_model_of_choices_is_fitted_to_be_judged_by_predictions(data):
    table, tables = as_table(data.train, "ratings"), [None, None]
    model = TuckerRecommender(rank=2, draws=2, warmup=2, time=None, implicit=False, random_state=0)
    assert fit_afresh(model, table, tables, False, predictions=True).objective == "rating"
    assert fit_afresh(model, table, tables, False).objective == "auto"
    model.objective = "value"
    assert hasattr(fit_afresh(model, table, tables, False, predictions=True), "choice_")


def test_lists_are_evaluated_as_the_model_gives_them(data):
    model = TuckerRecommender(**SMALL, time=None, objective="value")
    split = [holdout(data.train, test_size=0.25, seed=1)]
    board = evaluate({"both": model}, None, split=split, items=data.items, metrics="recall@3", baselines=["popularity"])
    assert board.ranked_by == {"both": "value", "popularity": "popularity"}
    (train, test), least = split[0], np.median(split[0][0]["rating"])
    lists = model.fit(train, items=data.items).recommend(n=3, by="value")
    recalls = []
    for user in dict.fromkeys(test["user_id"]):
        liked = set(test["item_id"][(test["user_id"] == user) & (test["rating"] >= least)])
        if liked:
            recalls.append(len(liked & set(lists["item_id"][lists["user_id"] == user])) / len(liked))
    assert board.value("recall@3") == pytest.approx(np.mean(recalls))
    assert board.to_dict()["ranked_by"]["both"] == "value"
    rows = [line.split() for line in str(board).splitlines()]
    assert ["│", "lists", "sorted", "by", "│", "value", "│", "popularity", "│"] in rows
    assert any(row[1:4] == ["seconds", "to", "fit"] for row in rows)


@pytest.mark.parametrize(("metric", "by"), [("ndcg", {"TuckerRecommender": "value"}), ("rmse", {})])
def test_a_model_of_choices_is_fitted_where_lists_are_judged(metric, by, data, monkeypatch):
    monkeypatch.setattr(value, "ENOUGH", 100)
    asked, make = [], learning.choice_settings
    monkeypatch.setattr(learning, "choice_settings", lambda given: asked.append(given) or make(given))
    board = evaluate(TuckerRecommender(**SMALL, time=None), data.train, metrics=metric)
    assert board.ranked_by == by
    assert len(asked) == len(by)


def test_a_metric_may_say_how_long_its_lists_are(data):
    asked = {"data": data.train, "split": Holdout(0.25, seed=1)}
    names = ["recall", "ndcg", "catalogue_coverage"]
    long = evaluate(Biases(), metrics=[*names, *(f"{name}@3" for name in names)], k=8, **asked)
    short = evaluate(Biases(), metrics=names, k=3, **asked)
    for name in names:
        assert long.estimates["Biases"][f"{name}@3"] == short.estimates["Biases"][name]
        assert long.value(name) != short.value(name)
        assert f"{name}@8" in str(long)
        assert f"{name}@3" in str(long)
