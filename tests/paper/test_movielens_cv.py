"""The paper's table tuned by cross-validation: folds, what is chosen by what, and the rule that is kept apart."""

from dataclasses import replace

import numpy as np
import pytest

from tuckergp.paper import report
from tuckergp.paper.movielens_cv import Folds, best_epoch_table, choose, chosen_table, cv_table, fold_parts
from tuckergp.paper.movielens_cv import refit_and_score as refit
from tuckergp.paper.movielens_data import Ratings
from tuckergp.paper.movielens_search import VARIANTS, Fit, Rung, Settings

from .test_experiments import RESULTS
from .test_movielens_map import small_split, small_variant

SETTINGS = Settings(0.5, 0.5, 1e-3, 1e-3, init_scale=1.0)


def test_every_rating_is_held_out_once_the_same_way_every_time(small):
    ratings = Ratings(small[1].index, np.arange(len(small[1]), dtype=float))
    parts = fold_parts(ratings, 5, seed=0, split=1)
    assert [len(held) for _, held in parts] == [180] * 5
    np.testing.assert_array_equal(np.sort(np.concatenate([held.rating for _, held in parts])), ratings.rating)
    for learn, held in parts:
        assert len(learn) == 720
        assert not set(learn.rating) & set(held.rating)
    again, other = fold_parts(ratings, 5, 0, 1), fold_parts(ratings, 5, 0, 2)
    np.testing.assert_array_equal(again[0][1].rating, parts[0][1].rating)
    assert not np.array_equal(other[0][1].rating, parts[0][1].rating)


def test_folds_are_fits_of_their_own_scored_by_their_mean(small):
    entities, ratings = small
    parts = fold_parts(ratings, 3, seed=0, split=1)
    folds = Folds(entities, parts, SETTINGS, rank=2)
    best = folds.watch([held for _, held in parts], epochs=4, patience=9)
    by_hand = [
        [Fit(entities, learn, SETTINGS, fold, rank=2).run(epochs).score(held) for epochs in range(1, 5)]
        for fold, (learn, held) in enumerate(parts)
    ]
    np.testing.assert_allclose(folds.held_rmse, np.mean(by_hand, axis=0), rtol=1e-9)
    assert best == min(folds.held_rmse)
    assert len({fold[0] for fold in by_hand}) == 3


def test_folds_end_when_one_diverges(small):
    entities, ratings = small
    parts = fold_parts(ratings, 2, seed=0, split=1)
    folds = Folds(entities, parts, Settings(0.5, 1e-9, 1e-3), rank=2)
    assert folds.watch([held for _, held in parts], 10, 5) == np.inf
    assert folds.diverged
    assert folds.epochs < 10


def test_the_choice_sees_no_test_rating_starts_at_the_prior_and_counts_steps(small):
    split, variant = small_split(small), small_variant(rungs=(Rung(3, 2), Rung(20, 1)))
    made = choose(split, variant, folds=4, seed=0, rank=2)
    flipped = replace(split, test=Ratings(split.test.index, 6 - split.test.rating))
    assert choose(flipped, variant, folds=4, seed=0, rank=2) == made
    assert made["settings"]["init_scale"] == 1.0
    assert made["settings"]["core_start"] == "prior"
    assert made["epochs"] == max(1, round(0.75 * made["chosen_epochs"]))


def test_the_test_error_is_that_of_the_chosen_epoch_and_the_least_one_is_beside_it(small):
    split = small_split(small)
    curve = [Fit(split.entities, split.train, SETTINGS, 3, rank=2).run(n).score(split.test) for n in range(1, 13)]
    cell = refit(split, lambda: (SETTINGS, 5), (6, 12), seed=3, rank=2)
    assert cell["test_rmse"] == pytest.approx(curve[4], abs=1e-5)
    assert cell["best_test_rmse"] == pytest.approx(min(curve), abs=1e-5)
    assert cell["best_test_epoch"] == np.argmin(curve) + 1
    fixed = refit(split, lambda: (replace(SETTINGS, step_w=None), 5), (6, 12), seed=3, rank=2)
    assert fixed["best_test_epoch"] <= 6
    diverged = refit(split, lambda: (Settings(0.5, 1e-9, 1e-3), 5), (6, 12), seed=3, rank=2)
    assert diverged["test_rmse"] is None


def test_tables_are_means_over_seeds_then_over_splits():
    at = vars(replace(SETTINGS, side=(0.5, 0.3, 0.15)))
    chosen = {"settings": at, "epochs": 9, "validation_rmse": 0.91, "searched_epochs": 5, "cpu_seconds": 7.4}
    cells = {
        "side/u1": chosen,
        "side/u1/seed 0": {"test_rmse": 0.90, "best_test_rmse": 0.88},
        "side/u1/seed 1": {"test_rmse": 0.92, "best_test_rmse": 0.88},
        "side/u2/seed 0": {"test_rmse": 0.93, "best_test_rmse": 0.90},
        "side/u3/seed 0": {"test_rmse": 0.1, "best_test_rmse": 0.1},  # without its counterpart
        "small/side/u1/seed 0": {"test_rmse": 0.95, "best_test_rmse": 0.94},
        "small/side/u2/seed 0": {"test_rmse": 0.95, "best_test_rmse": 0.94},
    }
    title = VARIANTS["side"].title
    assert [title, "0.9014 ± 0.0061", "0.9200 ± 0.0141", "0.9500 ± 0.0000", "u1, u2"] in cv_table(cells)
    assert [title, "0.9014 ± 0.0061", "0.8900 ± 0.0141", "0.9400 ± 0.0000", "u1, u2"] in best_epoch_table(cells)
    assert chosen_table(cells)[1:] == [
        [title, "u1", "0.5", "0.5", "0.001", "0.001", "0.5, 0.3, 0.15", "9", "0.9100", "7"]
    ]


def test_what_was_chosen_is_from_the_papers_grid():
    for name, cell in report.stored(RESULTS)["movielens_cv"]["cells"].items():
        key, _, rest = name.partition("/")
        if key in VARIANTS and "/" not in rest:
            at = Settings.from_json(cell["settings"])
            sides = (None, *VARIANTS[key].sides)
            assert replace(at, side=None, init_scale=0.1) in [replace(one, side=None) for one in VARIANTS[key].grid]
            assert at.side in sides
