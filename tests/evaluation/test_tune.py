"""Searches: the same folds for all, settings of the inference, failures in the table, honest choices."""

import json
import math
import sys

import numpy as np
import pandas as pd
import pytest

import tuckergp
from tuckergp import TuckerRecommender, tune
from tuckergp.data.datasets import make_ratings
from tuckergp.data.splits import Holdout, KFold, holdout
from tuckergp.errors import DivergenceError, InputError
from tuckergp.evaluation.baselines import Biases, Popularity
from tuckergp.evaluation.evaluate import evaluate
from tuckergp.evaluation.tuning.space import configured, default_grid
from tuckergp.inference import ALS, SGD, Gibbs
from tuckergp.inference.scale_search import FIRST
from tuckergp.inference.sgd import PAPER_FIXED, PAPER_LEARNED

MAP = TuckerRecommender(rank=2, inference="als")
DRAWS = TuckerRecommender(rank=2, draws=12, warmup=6)


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=40, n_items=30, n_ratings=600, random_state=0)


@pytest.fixture(scope="module")
def found(data):
    grid = {"inference__sigma_u": [1.5, 0.3, 1e-3], "rank": [1, 3]}
    return tune(MAP, data.train, data.users, data.items, grid=grid, split=KFold(3, seed=5), random_state=7)


def test_scores_are_those_of_models_evaluated_by_hand(found, data):
    assert found.metric == "rmse"
    assert len(found.table) == 6
    for row in found.table:
        model = configured(MAP, {"rank": row["rank"], "inference__sigma_u": row["inference__sigma_u"]})
        model.set_params(random_state=7)
        board = evaluate(model, data.train, split=KFold(3, seed=5), users=data.users, items=data.items, metrics="rmse")
        by_hand = board.rows()[0]["folds"]
        assert row["folds"] == pytest.approx(by_hand)
        assert row["mean"] == pytest.approx(np.mean(by_hand))
        assert row["sd"] == pytest.approx(np.std(by_hand, ddof=1))


def test_the_best_is_kept_and_learned_from_all_ratings(found, data):
    means = [row["mean"] for row in found.table]
    assert means == sorted(means)
    assert found.best_score == means[0]
    assert found.best_params["inference__sigma_u"] == 0.3
    again = configured(MAP, found.best_params).set_params(random_state=7).fit(data.train, data.users, data.items)
    np.testing.assert_array_equal(found.best_model.predict(data.test), again.predict(data.test))
    assert MAP.inference == "als"
    assert not hasattr(MAP, "fit_")


def test_distances_to_the_best_are_paired(found):
    best, second = found.table[:2]
    difference = np.subtract(second["folds"], best["folds"])
    assert best["behind"] == 0
    assert second["behind"] == pytest.approx(difference.mean())
    assert second["behind_sd"] == pytest.approx(difference.std(ddof=1))


def test_prints_as_a_table_and_converts(found):
    text = str(found)
    assert f"{found.best_score:.4f}" in text
    assert text.index(f"{found.best_score:.4f}") < text.index(f"{found.table[1]['mean']:.4f}")
    assert "6 configurations on 3 folds; smaller is better" in text
    assert len(pd.DataFrame(found.table)) == 6
    again = json.loads(json.dumps(found.to_dict()))
    assert again["best_params"] == found.best_params
    assert again["seed"] == 7


def test_the_same_seed_finds_the_same(found, data):
    settings = {"grid": {"rank": [1, 2]}, "split": KFold(2), "refit": False}
    first, second = (tune(DRAWS, data.train, **settings, random_state=3) for _ in range(2))
    assert [row["folds"] for row in first.table] == [row["folds"] for row in second.table]
    assert first.best_model.random_state == 3
    assert not hasattr(first.best_model, "fit_")


def test_a_model_keeps_its_own_seed(data):
    model = TuckerRecommender(rank=2, inference="als", random_state=11)
    assert tune(model, data.train, grid={"rank": [2]}, split=KFold(2), refit=False).best_model.random_state == 11


def test_samplers_are_compared_by_log_score_part_by_part(data):
    found = tune(DRAWS, data.train, data.users, data.items, random_state=0)
    assert found.metric == "nll"
    assert found.n_folds == 3
    tried = [tuple(trial.params.values()) for trial in found.trials]
    assert list(found.trials[0].params) == ["rank", "side_information", "implicit", "time", "noise"]
    assert tried == [
        (1, True, "auto", "auto", "auto"),
        (2, True, "auto", "auto", "auto"),
        (4, True, "auto", "auto", "auto"),
        (2, False, "auto", "auto", "auto"),
        (2, True, False, "auto", "auto"),
        (2, True, "auto", None, "auto"),
        (2, True, "auto", "auto", "shared"),
    ]
    seconds = [trial.seconds for trial in found.trials]
    assert all(math.isfinite(trial.mean) for trial in found.trials)
    assert min(seconds) > 0


def test_parts_that_a_model_has_not_are_not_taken_away(data):
    plain = {name: data.train[name] for name in ("user_id", "item_id", "rating")}
    model = TuckerRecommender(rank=(3, 3), inference=Gibbs(noise="rows"), implicit=False)
    table = tuckergp.data.tables.as_table(plain, "ratings")
    assert default_grid(model, table, attributes=False) == [{"rank": [(3, 3)]}, {"inference__noise": ["shared"]}]
    assert default_grid(DRAWS, table, attributes=False, search="optuna") == {
        "rank": (1, 4, "log"),
        "implicit": ["auto", False],
        "noise": ["auto", "shared"],
    }


def test_the_papers_update_is_tuned_on_the_papers_grid():
    sgd = SGD(method="sgd")
    for core, paper in (("identity", PAPER_FIXED), ("full", PAPER_LEARNED)):
        grid = default_grid(TuckerRecommender(inference=sgd, core=core))
        assert grid == {f"inference__{name}": values for name, values in paper.items()}
    adam = default_grid(TuckerRecommender(rank=16, inference="sgd"))
    assert list(adam) == ["inference__sigma_u", "inference__noise", "inference__step_u"]
    # around where the trials of the name begin
    assert min(adam["inference__sigma_u"]) < FIRST * 16**-0.25 < max(adam["inference__sigma_u"])


def test_settings_of_a_named_inference_start_from_what_the_name_stands_for():
    named = configured(TuckerRecommender(rank=16, inference="als"), {"rank": 81, "inference__iterations": 3})
    assert named.inference == ALS(iterations=3, noise=1.0, sigma_u="auto")
    sampler = configured(TuckerRecommender(draws=40, warmup=9, noise="shared"), {"inference__dof": 30.0})
    assert sampler.inference == Gibbs(draws=40, warmup=9, noise="shared", dof=30.0)
    assert (sampler.draws, sampler.warmup, sampler.noise) == (250, 50, "auto")


def test_failures_have_their_reason_in_the_table(data, monkeypatch):
    step = ALS.step

    def diverge(self, *arguments):
        if self.noise == 0.5:
            raise DivergenceError("It diverged;\n  lower the step.")
        return step(self, *arguments)

    monkeypatch.setattr(ALS, "step", diverge)
    grid = {"inference__noise": [0.5, -1.0, 1.0]}
    found = tune(MAP, data.train, grid=grid, split=KFold(2), random_state=0)
    assert [row["failed"] for row in found.table] == [
        None,
        "It diverged; lower the step.",
        "ALS: noise must be positive, not -1.0.",
    ]
    assert found.best_params == {"inference__noise": 1.0}
    assert "It diverged; lower the step." in str(found)
    assert found.to_dict()["table"][1]["mean"] is None
    with pytest.raises(InputError, match=r"All 1 configurations failed\. The first: It diverged"):
        tune(MAP, data.train, grid={"inference__noise": [0.5]}, split=KFold(2))


def test_a_refit_that_fails_does_not_lose_the_search(data, monkeypatch):
    def refuse(self, ratings, users=None, items=None):
        if len(ratings) == len(data.train):
            raise DivergenceError("Too much.")
        return Biases.fit(self, ratings)

    picky = type("Picky", (Biases,), {"fit": refuse})
    with pytest.warns(UserWarning, match="fails on all ratings, and is not fitted: Too much"):
        found = tune(picky(), data.train, grid={"damping": [1.0]}, split=KFold(2))
    assert not hasattr(found.best_model, "mean_")


def test_an_interrupted_search_returns_what_is_finished(data, monkeypatch):
    def fit(self, ratings, users=None, items=None):
        if self.damping == 3.0:
            raise KeyboardInterrupt
        return Biases.fit(self, ratings)

    stopped = type("Stopped", (Biases,), {"fit": fit})
    found = tune(stopped(), data.train, grid={"damping": [1.0, 2.0, 3.0, 4.0]}, split=KFold(2))
    assert [trial.params["damping"] for trial in found.trials] == [1.0, 2.0]
    assert not found.complete
    assert "interrupted" in str(found)
    with pytest.raises(KeyboardInterrupt):
        tune(stopped(), data.train, grid={"damping": [3.0]}, split=KFold(2))


def test_lists_are_better_the_larger_the_score(data):
    found = tune(Biases(), data.train, grid={"damping": [0.0, 50.0]}, metric="ndcg", k=5, split=Holdout(0.3))
    assert found.table[0]["mean"] >= found.table[1]["mean"]
    assert found.table[1]["behind"] >= 0
    assert math.isnan(found.table[0]["sd"])
    assert found.to_dict()["table"][0]["sd"] is None
    assert "larger is better" in str(found)


def test_given_parts_are_used_as_they_are(data):
    parts = ((data.train, data.test) for _ in range(1))
    found = tune(Biases(), None, grid={"damping": [1.0, 9.0]}, split=parts, refit=False)
    board = evaluate(Biases(9.0), None, split=[(data.train, data.test)], metrics="rmse")
    assert {row["damping"]: row["mean"] for row in found.table}[9.0] == pytest.approx(board.value("rmse"))


def test_levels_and_numbers_are_compared_by_crps(data):
    grid = {"likelihood": ["gaussian", "ordinal"]}
    assert tune(DRAWS, data.train, grid=grid, split=Holdout(0.2), refit=False, random_state=0).metric == "crps"
    with pytest.raises(InputError, match="compare them by 'crps'"):
        tune(DRAWS, data.train, grid=grid, metric="nll")
    mixed = tune(MAP, data.train, grid={"inference": ["als", Gibbs(4, 2)]}, split=Holdout(0.2), refit=False)
    assert mixed.metric == "rmse"
    assert "Gibbs(draws=4" in json.dumps(mixed.to_dict())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"grid": {"ranks": [1]}},
            "no parameter 'ranks'; its parameters are: rank, inference, ",
        ),
        ({"grid": {"inference__step_u": [1.0]}}, "no setting of inference='als'; its settings are: iterations, noise"),
        ({"grid": {"rank__x": [1]}}, "'rank__x' is no setting of rank=2; its settings are: none"),
        ({"grid": {"rank": []}}, "no values for 'rank'"),
        ({"grid": {"rank": 3}}, "needs a list of values for 'rank', such as"),
        ({"grid": {"core": "full"}}, "needs a list of values for 'core'"),
        ({"grid": {}}, "The grid is empty"),
        ({"grid": 3}, "grid must be a dict"),
        ({"grid": [3]}, "grid must be a dict"),
        ({"grid": {"rank": (1, 4)}}, "'rank' has a range; a grid search needs a list"),
        ({"grid": {"rank": (1, 4, 9)}}, "A range is"),
        ({"grid": {"rank": (4, 1)}}, "to a larger one"),
        ({"grid": {"inference__noise": (0.0, 1.0, "log")}}, "must be above 0"),
        ({"metric": "accuracy"}, "There is no metric 'accuracy'; there are rmse"),
        ({"metric": "interval_coverage"}, "near its level"),
        ({"search": "random"}, "search must be 'grid' or 'optuna'"),
        ({"split": 5}, "pairs"),
    ],
)
def test_bad_settings_are_named_before_anything_is_fitted(settings, message, data, monkeypatch):
    monkeypatch.setattr(TuckerRecommender, "fit", None)
    with pytest.raises(InputError, match=message):
        tune(MAP, data.train, **{"grid": {"rank": [1]}, **settings})


def test_other_misuse_is_named(data):
    with pytest.raises(InputError, match="no default grid for Biases"):
        tune(Biases(), data.train)
    with pytest.raises(InputError, match="use refit=False"):
        tune(Biases(), None, grid={"damping": [1.0]}, split=[(data.train, data.test)])
    with pytest.raises(InputError, match="needs a model with parameters"):
        tune("als", data.train)
    with pytest.raises(InputError, match="Popularity has no rmse"):
        tune(Popularity(), data.train, grid=[{}])
    with pytest.raises(InputError, match=r"All 2 configurations failed.*use inference='gibbs'"):
        tune(MAP, data.train, grid={"rank": [1, 2]}, metric="nll")


def test_optuna_is_an_extra(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"needs Optuna: pip install 'tuckergp\[tune\]'"):
        tune(MAP, data.train, search="optuna")


def test_optuna_searches_ranges_and_values(data, capsys):
    pytest.importorskip("optuna")
    grid = {"inference__sigma_u": (0.01, 2.0, "log"), "rank": (1, 3), "inference__noise": [1.0, -1.0]}
    settings = {"grid": grid, "split": KFold(2), "search": "optuna", "trials": 12}
    found = tune(MAP, data.train, **settings, random_state=0)
    assert len(found.trials) == 12
    assert all(0.01 <= trial.params["inference__sigma_u"] <= 2 for trial in found.trials)
    assert {trial.params["rank"] for trial in found.trials} <= {1, 2, 3}
    assert {trial.failed is None for trial in found.trials} == {True, False}
    assert found.best_score == min(trial.mean for trial in found.trials if trial.failed is None)
    again = tune(MAP, data.train, **settings, random_state=0, refit=False)
    assert [trial.params for trial in again.trials] == [trial.params for trial in found.trials]
    assert capsys.readouterr().err == ""


def test_optuna_does_not_fit_the_same_twice(data):
    pytest.importorskip("optuna")
    settings = {"split": Holdout(0.2), "search": "optuna", "trials": 9, "random_state": 0}
    found = tune(Biases(), data.train, grid={"damping": [1.0, 5.0]}, **settings)
    assert sorted(trial.params["damping"] for trial in found.trials) == [1.0, 5.0]
    best = tune(Biases(), data.train, grid={"damping": [0.0, 500.0]}, metric="ndcg", **settings)
    assert best.best_score == max(trial.mean for trial in best.trials)
    with pytest.raises(InputError, match="trials must be a whole number"):
        tune(MAP, data.train, search="optuna", trials=0)
    with pytest.raises(InputError, match="needs one dict"):
        tune(MAP, data.train, search="optuna", grid=[{"rank": [1]}, {"rank": [2]}])


def test_shows_a_progress_line_when_asked(data, capsys):
    tune(Biases(), data.train, grid={"damping": [1.0, 5.0]}, split=KFold(2), progress=True)
    shown = capsys.readouterr().err
    assert "Tuning" in shown
    assert "4/4" in shown
    assert "best rmse" in shown
    tune(Biases(), data.train, grid={"damping": [1.0, 5.0]}, split=KFold(2), progress=False)
    assert capsys.readouterr().err == ""


def test_on_movielens_the_default_grid_puts_a_bad_prior_right(movielens):
    """Chosen on the training part alone, better on ratings that the search never saw."""
    some = movielens.ratings.take(np.flatnonzero(movielens.ratings["user_id"] % 4 == 1))
    train, test = holdout(some, test_size=0.2, seed=1)
    model = TuckerRecommender(rank=4, inference=ALS(noise=1.0, sigma_u=1.0), random_state=0)
    tables = {"users": movielens.users, "items": movielens.items}
    found = tune(model, train, **tables, split=Holdout(0.2), random_state=0, refit=False)
    models = {"tuned": found.best_model, "as it was": model}
    board = evaluate(models, None, split=[(train, test)], **tables, metrics="rmse")
    assert board.difference("rmse", "tuned", "as it was").high < -0.02
