"""The sampling experiments on MovieLens 100K: what is learned from and scored, and tables."""

import numpy as np
import pytest

from tuckergp.paper import movielens_gibbs, movielens_scarce
from tuckergp.paper.run import Run, fill


@pytest.fixture
def calls(monkeypatch):
    """What was learned from and scored, instead of learning."""
    made = []

    def score(movielens, key, train, held, seed, options):
        made.append((key, len(train), len(held), options))
        return {"rmse": 0.9 + 0.001 * seed, "coverage": 0.9, "worst_rhat": 1.1 + seed, "median_ess": 100.0}

    monkeypatch.setattr(movielens_gibbs, "score", score)
    monkeypatch.setattr(movielens_scarce, "score", score)
    return made


def test_test_parts_are_scored_with_whole_training_parts(calls, data_dir):
    run = Run(movielens_gibbs.MOVIELENS_GIBBS, data=data_dir)
    fill([run], only="ratings/u1,ratings/u2")
    assert calls == [("ratings", 80_000, 20_000, {})] * 6
    _, row = movielens_gibbs.gibbs_table(run.done)
    assert row[:6] == ["ratings alone", "10", "0.9010 ± 0.0000", "0.0010", "0.9010", "90.0%"]
    assert row[6:8] == ["100", "2.10, 3.10"]
    del run.done["ratings/u2/seed 1"]
    assert len(movielens_gibbs.gibbs_table(run.done)) == 1


def test_ranks_are_chosen_on_a_tenth_of_training_parts(calls, data_dir):
    run = Run(movielens_gibbs.MOVIELENS_GIBBS_CHOICE, data=data_dir)
    fill([run], only="side/")
    assert calls == [("side", 72_000, 8_000, {"rank": rank}) for rank in (10, 15, 24, 32, 64)] * 2
    assert movielens_gibbs.choice_table(run.done)[1] == [
        "+ the paper's side information",
        "10: 0.9000, 15: 0.9000, 24: 0.9000, **32: 0.9000**, 64: 0.9000",
    ]


def test_peers_that_were_run_stand_before_those_that_are_quoted():
    cells = {f"myFM side/u{n}/seed 0": {"rmse": 0.89 + 0.01 * n, "options": {"rank": 8}} for n in (1, 3)}
    measured, quoted = movielens_gibbs.peers_of(cells, "side").split("; ")
    assert measured == "0.9100 ± 0.0141 myFM on u1, u3, rank 8"
    assert quoted.startswith("quoted, not run here: 0.8887 SMURFF")
    assert movielens_gibbs.peers_of(cells, "week") == "quoted, not run here: 0.8778 myFM"
    assert movielens_gibbs.peers_of({}, "ratings").startswith("quoted, not run here: 0.8963")


def test_ranks_of_peers_are_chosen_by_their_own_errors():
    errors = {"side/rank 10": 0.8, "side/rank 32": 0.9, "myFM side/rank 8": 0.95, "myFM side/rank 16": 0.91}
    cells = {f"{name}/u1": {"rmse": error} for name, error in errors.items()}
    assert [row[1] for row in movielens_gibbs.choice_table(cells)[1:]] == [
        "10: 0.8000, **32: 0.9000**",
        "8: 0.9500, **16: 0.9100**",
    ]
    cells["side/rank 10/u3"] = {"rmse": 0.7}
    assert movielens_gibbs.choice_table(cells)[1][1] == "10: 0.7500"  # rank 32 lacks a split


def test_scarce_ratings_are_thinned(calls, data_dir):
    run = Run(movielens_scarce.MOVIELENS_SCARCE, data=data_dir)
    fill([run], only="5%/u1,20%/u1/200")
    assert [(train, options["draws"] + options["warmup"]) for _, train, _, options in calls] == [
        (4_000, 200),
        (4_000, 2_000),
        (16_000, 200),
        (16_000, 2_000),
    ]
    head, first, second = movielens_scarce.scarce_table(run.done)
    assert head == ["training ratings kept", "200 sweeps", "2000 sweeps", "biases"]
    assert first[:3] == ["5%", "0.9000", "0.9000"]
    assert 0.9 < float(first[3]) < 1.2
    assert second == ["20%", "0.9000", "0.9000", ""]


def test_settings_may_use_what_they_say(data_dir, monkeypatch):
    from tuckergp.paper.sources import load

    given = []

    class Model:
        def __init__(self, **options):
            pass

        def fit(self, train, users, items):
            given.append((users, items))

    monkeypatch.setattr(movielens_gibbs, "TuckerRecommender", Model)
    movielens = load("ml-100k", data_dir)
    for setting in movielens_gibbs.SETTINGS.values():
        movielens_gibbs.learned(movielens, setting, movielens.ratings.take(np.arange(5)), 0, {})
    assert given[0] == (None, None)
    assert set(given[1][0].columns) == {"user_id", "age", "sex", "occupation"}
    assert set(given[1][1].columns) == {"item_id", "genres"}
    assert all("title" not in items.columns and len(items.columns) > 2 for _, items in given[2:])
