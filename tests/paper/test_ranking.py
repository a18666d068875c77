"""The ranking experiment: parts that do not overlap, one measure for all, tables from results."""

import dataclasses
import json

import numpy as np
import pytest

from tuckergp.paper import ranking
from tuckergp.paper.ranking_tables import with_new_users
from tuckergp.paper.run import Run, fill
from tuckergp.paper.sources import load

pytestmark = pytest.mark.filterwarnings("ignore::tuckergp.errors.NotConvergedWarning")


@pytest.fixture(scope="module", params=ranking.SPLITS)
def contest(request, data_dir):
    """The ratings of every tenth user."""
    return ranking.contest_of(Run(ranking.RANKING, data=data_dir, quick=True), request.param, 0)


def pairs_of(table):
    return set(zip(table["user_id"].tolist(), table["item_id"].tolist(), strict=True))


def test_validation_parts_have_nothing_of_the_test_part(data_dir):
    ratings = load("ml-100k", data_dir).ratings
    for split in ranking.SPLITS:
        base, test = ranking.parts(ratings, split, 0)
        learn, held = ranking.parts(base, split, ranking.VALIDATION)
        assert not pairs_of(test) & (pairs_of(learn) | pairs_of(held))
        assert not pairs_of(learn) & pairs_of(held)
        assert 0.19 < len(test) / len(ratings) < 0.21
    assert learn["timestamp"].max() <= held["timestamp"].min() <= held["timestamp"].max() <= test["timestamp"].min()


def test_an_oracle_has_full_marks_and_what_was_seen_is_not_recommended(contest):
    candidates = contest.rated
    best = np.zeros((len(candidates.users), len(candidates.items)))
    best[candidates.seen.toarray()] = 3.0
    best[candidates.relevant.toarray()] = 1.0
    row = {user: k for k, user in enumerate(candidates.users)}
    for user, liked in zip(contest.liked.users, contest.liked.relevant.toarray(), strict=True):
        best[row[user], liked] = 2.0
    figures = ranking.lists(contest, best)
    assert figures["ndcg"] == figures["ndcg_all"] == figures["ndcg_known"] == 1.0
    assert figures["ndcg_100"] == 1.0
    assert figures["recall"] <= figures["recall_20"] <= figures["recall_50"] <= 1.0
    relevant = contest.liked.relevant.toarray().sum(axis=1)
    assert figures["recall_20"] == pytest.approx(np.mean(np.minimum(20 / relevant, 1.0)), abs=1e-5)
    worst = ranking.lists(contest, -best)
    assert worst["ndcg"] == worst["recall_all"] == 0.0


def test_contestants_that_predict_ratings_have_errors_and_those_that_rank_have_lists(contest):
    for name in ("popularity", "mean", "biases"):
        cell = ranking.measure(contest, name, {}, 0)
        assert ("rmse" in cell) == (name != "popularity")
        assert ("ndcg" in cell) == (name == "popularity")
        assert 0.7 < cell.get("rmse", 1.0) < 1.4
    assert 0.0 < ranking.measure(contest, "popularity", {}, 0)["ndcg"] < 0.5


def test_one_list_for_all_covers_little_and_what_nobody_rated_is_novel(contest):
    """Popular items first, and unpopular items first: coverage counts the ten of each user, novelty their raters."""
    users = len(contest.rated.users)
    popular, rare = (
        ranking.lists(contest, np.tile(sign * contest.popularity, (users, 1)))["novelty"] for sign in (1, -1)
    )
    assert popular < 3 < rare <= np.log2(len(set(contest.train["user_id"].tolist())) + 1) + 1e-5
    own = np.random.default_rng(0).random((users, len(contest.rated.items)))
    few = ranking.lists(contest, np.tile(own[0], (users, 1)))["coverage"]
    assert 10 / own.shape[1] <= few < ranking.lists(contest, own)["coverage"]


@pytest.mark.parametrize("name", [*ranking.ITEM_BASELINES, "pairs_als", "pairs_als_alone"])
def test_models_of_clicks_do_not_read_ratings(contest, name):
    """Lists are the same whatever the ratings of the training part, and there are no errors of ratings."""
    options = ranking.QUICK.get(name, {})
    other = {**contest.train.columns, "rating": np.ones(len(contest.train))}
    shuffled = dataclasses.replace(contest, train=dataclasses.replace(contest.train, columns=other))
    figures, again = (ranking.measure(each, name, options, 0) for each in (contest, shuffled))
    assert {key: value for key, value in figures.items() if key != "seconds"} == {
        key: value for key, value in again.items() if key != "seconds"
    }
    assert "rmse" not in figures
    assert figures["ndcg"] > 0


@pytest.mark.parametrize("name", ranking.ITEM_BASELINES)
def test_who_learns_from_liked_items_alone_sees_no_others(contest, name):
    """The lists are those of a training part without the others, and of popularity for who is left without any."""
    user = contest.train["user_id"]
    rating = np.where(user == contest.rated.users[0], 1.0, contest.train["rating"])
    train = dataclasses.replace(contest.train, columns={**contest.train.columns, "rating": rating})
    figures = ranking.measure(dataclasses.replace(contest, train=train), f"{name}_liked", {}, 0)
    liked = train.take(np.flatnonzero(rating >= 4)).select(("user_id", "item_id"))
    scores = ranking.ITEM_BASELINES[name]().fit(liked).scores(contest.rated.users, contest.rated.items)
    known = np.isin(contest.rated.users, liked["user_id"])
    assert not known[0]
    assert figures == ranking.lists(contest, np.where(known[:, None], scores, contest.popularity))


def test_our_models_of_liked_items_learn_from_these_alone(contest):
    """The lists are those of a contest with fewer ratings to learn from, and the same candidates."""
    liked = contest.train.take(np.flatnonzero(contest.train["rating"] >= 4))
    without = dataclasses.replace(contest, train=liked)
    options = {"rank": 2, "inference": "als"}
    expected = ranking.measure(without, "pairs_alone", options, 0)
    found = ranking.measure(contest, "pairs_alone_liked", options, 0)
    same = [
        key for key in expected if key != "seconds" and not key.endswith("_known")
    ]  # who is known is another matter
    assert {key: found[key] for key in same} == {key: expected[key] for key in same}
    assert found["ndcg"] != ranking.measure(contest, "pairs_alone", options, 0)["ndcg"]


def test_new_users_are_told_from_all_and_known_ones():
    counts = {"ranked_users": 5, "ranked_known": 2}
    cells = {
        "time/counts/seed 0": counts,
        "time/ease/seed 0": {"ndcg": (0.1 + 0.3 + 3 * 0.6) / 5, "ndcg_known": 0.2},
        "user/counts/seed 0": {"ranked_users": 5, "ranked_known": 5},
        "user/ease/seed 0": {"ndcg": 0.2, "ndcg_known": 0.2},
    }
    found = with_new_users(cells)
    assert found["time/ease/seed 0"]["ndcg_new"] == pytest.approx(0.6)
    assert {key: cell for key, cell in found.items() if "time/ease" not in key} == {
        key: cell for key, cell in cells.items() if "time/ease" not in key
    }


def test_test_parts_are_measured_with_what_was_chosen(data_dir, monkeypatch):
    calls = []

    def measure(contest, name, options, seed):
        calls.append((name, options))
        more = {"rmse": 0.9 + 0.01 * seed, "rmse_known": 0.9} if name in ("week", "none") else {}
        return {**more, **dict.fromkeys(("ndcg", "recall", "ndcg_all", "ndcg_known"), 0.2), "seconds": 1.0}

    monkeypatch.setattr(ranking, "measure", measure)
    monkeypatch.setattr(ranking, "decision", lambda contest, seed: {"time": "week", "seconds": 2.0})
    run = Run(ranking.RANKING, data=data_dir)
    names = ("clicks", "ease", "none", "week", "auto", "counts")
    fill([run], only=",".join(f"time/{name}/" for name in names))
    assert calls == [("ease", {"l2": 100.0}), ("clicks", ranking.CHOSEN["time"]), ("none", {}), ("week", {})] * 3
    lists, errors, parts, decisions = (
        {row[0]: row[1:] for row in table.rows(run.done)}
        for name in ("lists", "errors", "parts", "decisions")
        for table in ranking.RANKING.tables
        if table.name == f"ranking_{name}"
    )
    assert lists[ranking.CONTESTANTS["clicks"]] == ["", "", "", *["0.2000 ± 0.0000"] * 3, ""]
    assert [row[1] for row in errors.values()][1:] == ["0.9100 ± 0.0100"] * 3  # none, week, and what was decided
    assert parts[ranking.SPLITS["time"]][2] == "301 (192)"
    assert decisions[ranking.SPLITS["time"]] == ["weeks, weeks, weeks", "+0.0000, +0.0000, +0.0000", "2", "1"]


def test_choices_show_the_best_of_every_contestant():
    cells = {f'user/als/{{"factors": {n}}}': {"ndcg": n / 100, "seconds": 1.0} for n in (8, 32, 16)}
    cells |= {'user/clicks/{"rank": 2}': {"ndcg": 0.2, "seconds": 3.0}, "user/popularity/{}": {"ndcg": 0.1}}
    als, clicks = ranking.choice_table(cells)[1:]
    assert als[2:] == ["3", '`{"factors": 32}`', "0.3200", "0.0800, 0.1600"]
    assert clicks[1] == ranking.CONTESTANTS["clicks"]
    assert ranking.tries_table(cells)[1:] == [['`{"rank": 2}`', "0.2000", "", "3"]]


def test_what_was_chosen_was_the_best_on_the_validation_parts():
    from tuckergp.paper import report

    from .test_experiments import RESULTS

    cells = report.stored(RESULTS)["ranking_choice"]["cells"]
    rows = ranking.choice_table(cells)
    for split, chosen in ranking.ITEM_CHOSEN.items():
        for name, options in chosen.items():
            grid = ranking.ITEM_GRIDS[name.removesuffix(ranking.LIKED_ALONE)]
            scores = [cells[f"{split}/{name}/{json.dumps(each)}"]["ndcg"] for each in grid]
            assert grid[int(np.argmax(scores))] == options
            for key, value in options.items():  # the best is inside the grid
                assert min(each[key] for each in grid) < value < max(each[key] for each in grid)
    ours = [row[3] for row in rows if row[1] == ranking.CONTESTANTS["clicks"]]
    assert ours == [f"`{json.dumps(ranking.CHOSEN[split])}`" for split in ("user", "time")]
