"""What the trial of drift runs, on which ratings, and how it decides."""

from types import SimpleNamespace

import numpy as np
import pytest

from tuckergp import TuckerRecommender
from tuckergp.data.tables import as_table
from tuckergp.recommender import drift_trial
from tuckergp.recommender.drift_trial import DRAWS, RANK, WARMUP, drift_helps


def ratings(n=1000):
    rng = np.random.default_rng(0)
    return as_table({"user_id": rng.integers(60, size=n), "item_id": np.arange(n), "rating": rng.normal(size=n)}, "r")


@pytest.fixture
def trial(monkeypatch):
    """Runs that are not run: what they were asked for, and the scores to answer with, by unit."""
    asked = SimpleNamespace(runs=[], score={}, clock=0.0, steps=WARMUP + DRAWS)

    def learn(settings, given, run):
        asked.runs.append((settings, given, run.control))
        asked.clock += 4.0
        return SimpleNamespace(unit=settings.time, fit=SimpleNamespace(steps=[None] * asked.steps))

    def predict(fitted, held, **_):
        asked.held = held
        return asked.score[fitted.unit](len(held)), None

    monkeypatch.setattr(drift_trial, "learn", learn)
    monkeypatch.setattr(drift_trial, "predict", predict)
    monkeypatch.setattr(drift_trial, "normal_nll", lambda y, mean, std: mean)
    monkeypatch.setattr(drift_trial, "time", SimpleNamespace(monotonic=lambda: asked.clock))
    return asked


def scores(mean):
    """Scores of this mean and standard deviation 1."""

    def of(n):
        values = np.random.default_rng(1).normal(size=n)
        return mean + (values - values.mean()) / values.std()

    return of


@pytest.mark.parametrize(("gain", "expected"), [(0.2, True), (0.05, False), (-0.2, False)])
def test_a_gain_above_its_standard_error_decides(gain, expected, trial):
    trial.score = {"week": np.zeros, None: scores(gain)}  # negative log densities, of about 100 held-out ratings
    assert drift_helps(TuckerRecommender(), ratings(), None, None, 0) is expected
    assert 70 < len(trial.held) < 130


@pytest.mark.parametrize(("rank", "expected"), [(3, 3), (64, RANK)])
def test_runs_are_short_and_differ_in_weeks_alone(rank, expected, trial):
    trial.score = {"week": np.zeros, None: np.zeros}
    model = TuckerRecommender(rank=rank, chains=4, n_jobs=2, likelihood="student")
    drift_helps(model, ratings(), None, None, 0, max_time=10.0)
    (first, given, control), (second, again, later) = trial.runs
    assert (first.rank, first.chains, first.likelihood, first.draws, first.warmup) == (
        *(expected, 1, "gaussian", DRAWS, WARMUP),
    )
    assert (first.time, second.time) == ("week", None)
    assert given.ratings is again.ratings
    assert (control.max_time, later.max_time) == (10.0, 6.0)


@pytest.mark.parametrize("steps", [0, WARMUP, WARMUP + DRAWS - 1])
def test_a_run_that_was_cut_decides_nothing(steps, trial):
    trial.steps = steps
    with pytest.warns(UserWarning, match="The time was too short to try out whether users drift"):
        assert not drift_helps(TuckerRecommender(), ratings(), None, None, 0, max_time=1.0)
    assert len(trial.runs) == 1


def test_of_many_ratings_some_users_are_taken_with_all_they_have(trial, monkeypatch):
    monkeypatch.setattr(drift_trial, "MOST_RATINGS", 400)
    trial.score = {"week": np.zeros, None: np.zeros}
    table = ratings()
    drift_helps(TuckerRecommender(), table, None, None, 0)
    kept = trial.runs[0][1].ratings
    taken = sorted([*kept["item_id"].tolist(), *trial.held["item_id"].tolist()])
    users = set(kept["user_id"].tolist()) | set(trial.held["user_id"].tolist())
    assert taken == np.flatnonzero(np.isin(table["user_id"], list(users))).tolist()
    assert 200 < len(taken) < 600
