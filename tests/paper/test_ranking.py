"""The ranking experiment: parts that do not overlap, one measure for all, cells filled once, tables from results."""

import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from tuckergp import TuckerRecommender
from tuckergp.data.datasets import load_movielens_100k
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.evaluation.scoring import item_scores
from tuckergp.paper import ranking as experiment
from tuckergp.paper import ranking_peers, ranking_report, ranking_scores
from tuckergp.paper.store import Store

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")

TINY = {"rank": 2, "draws": 6, "warmup": 4}


@pytest.fixture(scope="module")
def movielens(data_dir):
    return load_movielens_100k(data_dir)


@pytest.fixture(scope="module", params=experiment.SPLITS)
def contest(request, movielens):
    """The ratings of every tenth user."""
    some = movielens.ratings.take(np.flatnonzero(movielens.ratings["user_id"] % 10 == 0))
    return ranking_scores.Contest.of(movielens, *experiment.parts(some, request.param, 0))


def pairs_of(table: Table):
    return set(zip(table["user_id"].tolist(), table["item_id"].tolist(), strict=True))


def test_validation_parts_have_nothing_of_the_test_part(movielens):
    for split in experiment.SPLITS:
        base, test = experiment.parts(movielens.ratings, split, 0)
        learn, held = experiment.parts(base, split, experiment.VALIDATION)
        assert not pairs_of(test) & (pairs_of(learn) | pairs_of(held))
        assert not pairs_of(learn) & pairs_of(held)
        assert 0.19 < len(test) / len(movielens.ratings) < 0.21
    assert learn["timestamp"].max() <= held["timestamp"].min() <= held["timestamp"].max() <= test["timestamp"].min()


def test_an_oracle_has_full_marks_and_what_was_seen_is_not_recommended(contest):
    candidates = contest.rated
    best = np.zeros((len(candidates.users), len(candidates.items)))
    best[candidates.seen.toarray()] = 3.0
    best[candidates.relevant.toarray()] = 1.0
    row = {user: k for k, user in enumerate(candidates.users)}
    for user, liked in zip(contest.liked.users, contest.liked.relevant.toarray(), strict=True):
        best[row[user], liked] = 2.0
    figures = ranking_scores.figures_of(contest, best)
    assert figures["ndcg"] == figures["ndcg_all"] == figures["ndcg_known"] == 1.0
    worst = ranking_scores.figures_of(contest, -best)
    assert worst["ndcg"] == worst["recall_all"] == 0.0


def test_products_of_factors_are_in_the_order_of_predict(contest):
    users = sorted(contest.learned)[:4]
    items = sorted(set(contest.train["item_id"].tolist()))[:50]
    for options in ({"time": "week", "implicit": False}, {"time": None, "likelihood": "bernoulli"}):
        train = contest.train.select(["user_id", "item_id"]) if "likelihood" in options else contest.train
        model = TuckerRecommender(**TINY, **options, random_state=0).fit(train)
        scores, predicted = ranking_scores.product_scores(model, users, items), item_scores(model, users, items)
        if "likelihood" in options:
            np.testing.assert_allclose(scores, predicted, atol=1e-6)
        else:
            np.testing.assert_allclose(scores, (predicted - model.fit_.mean) / model.fit_.scale, atol=1e-5)


def test_every_contestant_of_our_own_is_measured(contest):
    for name in ("popularity", "mean", "biases", *ranking_scores.ALWAYS):
        options = TINY if name in ranking_scores.ALWAYS else {}
        cell = ranking_scores.measure(contest, name, options, 0, sys.executable)
        assert ("rmse" in cell) == (name not in ("popularity", "clicks"))
        assert ("ndcg" in cell) == (name not in ("mean", "biases"))
        assert 0.7 < cell.get("rmse", 1.0) < 1.4
        assert 0.0 <= cell.get("ndcg", 0.0) < 0.5
    with pytest.raises(InputError, match="There is no contestant 'magic'"):
        ranking_scores.measure(contest, "magic", {}, 0, sys.executable)


def test_peers_are_called_with_numbers_and_newcomers_get_popularity(contest, monkeypatch):
    def scores_of(python, kind, options, user, item, shape, seed):
        assert (python, kind, options, seed) == ("python", "als", {"factors": 2}, 5)
        assert user.max() == shape[0] - 1
        assert item.max() < shape[1] == 1_682
        return np.full(shape, -1.0)

    monkeypatch.setattr(ranking_peers, "scores_of", scores_of)
    popularity = np.arange(1_682.0)
    scores = ranking_scores._peer(contest, "als", {"factors": 2}, 5, "python", popularity)
    known = np.array([user in contest.learned for user in contest.rated.users])
    assert (scores[known] == -1).all()
    assert (scores[~known] == popularity).all()


def test_peers_are_there_or_left_out(tmp_path, data_dir, monkeypatch):
    assert ranking_peers.available(sys.executable) is None or ranking_peers.available(sys.executable)[0].isdigit()
    monkeypatch.setattr(experiment, "available", lambda python: None)
    file = tmp_path / "results.json"
    arguments = ["choose", "--data", str(data_dir), "-o", str(file), "--contestants", "popularity,als"]
    found = CliRunner().invoke(experiment.app, arguments)
    assert found.exit_code == 0, found.output
    assert "als and bpr are left out" in found.output
    assert '"user/popularity/{}"' in file.read_text()
    assert "/als/" not in file.read_text()


def test_unknown_names_are_refused(data_dir):
    for option, value in (("--contestants", "magic"), ("--splits", "magic"), ("--seeds", "one")):
        found = CliRunner().invoke(
            experiment.app, ["test", "--contestants", "mean", option, value, "--data", str(data_dir)]
        )
        assert found.exit_code == 2
        assert value in found.output


def test_cells_are_filled_once_and_become_tables(monkeypatch, movielens):
    calls = []

    def measure(contest, name, options, seed, python):
        calls.append(name)
        more = {"rmse": 0.9 + 0.01 * seed, "rmse_known": 0.9} if name in ("week", "none") else {}
        return {**more, **dict.fromkeys(("ndcg", "recall", "ndcg_all", "ndcg_known"), 0.2), "seconds": 1.0}

    monkeypatch.setattr(experiment, "measure", measure)
    monkeypatch.setattr(experiment, "decision", lambda contest, seed: {"time": "week", "seconds": 2.0})
    store = Store(None, {}, {})
    for _ in range(2):
        experiment.evaluate(movielens, store, ["time"], [0, 1], ["clicks", "none", "week"], "", lambda line: None)
    assert calls == ["clicks", "none", "week"] * 2
    assert "clicks |  |  |  | 0.2000 ± 0.0000 |" in ranking_report.list_table(store.results)
    errors = ranking_report.error_table(store.results)
    assert errors.count("0.9050 ± 0.0071") == 3  # none, week, and what was decided
    assert "| 301 (192) |" in ranking_report.parts_table(store.results)
    assert "| weeks, weeks | +0.0000, +0.0000 | 2 | 1 |" in ranking_report.decision_table(store.results)

    calls.clear()
    store = Store(None, {}, {})
    monkeypatch.setitem(experiment.GRIDS, "clicks", [{"rank": 2}, {"rank": 4}])
    monkeypatch.setitem(experiment.CHOSEN["user"], "clicks", {"rank": 4})
    experiment.choose(movielens, store, ["user"], ["clicks"], "", lambda line: None)
    assert calls == ["clicks"] * 2
    assert '| 2 | `{"rank": 4}` | 0.2000 |' in ranking_report.choice_table(store.results)
    assert '| `{"rank": 2}` | 0.2000 |  | 1 |' in ranking_report.tries_table(store.results)
