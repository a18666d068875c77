"""How the trial of clicks judges candidates, how long it takes for each, and when it takes another value."""

from __future__ import annotations

import numpy as np
import pytest

from tuckergp.evaluation.metrics.ranking import ndcg, top_k
from tuckergp.inference import ALS, Gibbs
from tuckergp.likelihoods import Clicks
from tuckergp.recommender import choice_trial
from tuckergp.recommender.choice_trial import POINT_STEPS, Trial, steps_of


def empty_trial() -> Trial:
    return Trial.__new__(Trial)


def test_candidates_are_judged_by_ndcg_of_the_first_places(monkeypatch):
    monkeypatch.setattr(choice_trial, "PLACES", 5)
    monkeypatch.setattr(choice_trial, "PREDICTIONS", 40)  # a few held-out choices at a time
    rng = np.random.default_rng(0)
    trial, held = empty_trial(), rng.random((6, 20)) < 0.3
    held[2], held[3, :8] = False, True  # nothing held out, and more than there are places
    trial.users, trial.held, trial.f = np.arange(6), np.nonzero(held), rng.standard_normal((6, 20)).astype(np.float32)
    some = held.any(axis=1)
    hits = np.take_along_axis(held, top_k(trial.f, 5), axis=1)[some]
    assert trial._score() == pytest.approx(ndcg(hits, held.sum(axis=1)[some]).mean())


def test_a_candidate_takes_a_share_of_the_sweeps_of_the_fit():
    assert steps_of(Gibbs(draws=250, warmup=50)) == 25
    assert steps_of(Gibbs(draws=2_000, warmup=500)) == 25
    assert steps_of(Gibbs(draws=150, warmup=30)) == 15
    assert steps_of(Gibbs(draws=40, warmup=15)) == 10
    assert steps_of(ALS()) == POINT_STEPS


@pytest.mark.parametrize(("better", "taken"), [(0.5, 0.5), (0.0, 0.0)])
def test_another_value_is_taken_where_it_is_better(better, taken):
    trial, tried = empty_trial(), []
    trial.inference, trial.likelihood, trial.best = None, Clicks(zeros=0.2, popularity=0.0), (-np.inf, None)

    def misfit(inference, likelihood):
        tried.append(likelihood.popularity)
        score = 1.0 if likelihood.popularity == better else 0.5
        trial.best = max(trial.best, (score, "a state"), key=lambda each: each[0])
        return -score

    trial.misfit = misfit
    trial.compare("popularity", (0.0, 0.5))
    assert trial.likelihood.popularity == taken
    assert tried == [0.0, 0.5]  # the first one once, because nothing was known of it
    trial.compare("popularity", (0.0, 0.5))
    assert len(tried) == 3
