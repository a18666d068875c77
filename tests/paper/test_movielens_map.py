"""The MovieLens table: its pieces on small data, and the accuracy of the settings it chose on the real ones."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tuckergp.paper import movielens_map, report
from tuckergp.paper.movielens_data import Ratings, Split, age_bins, carve, design_of, entities_of, modes_of
from tuckergp.paper.movielens_map import MOVIELENS_MAP, choose_and_score
from tuckergp.paper.movielens_search import VARIANTS, Fit, Rung, Settings, Variant, halve, search
from tuckergp.paper.run import Run

from .test_experiments import RESULTS

PAPER_SIDES = {(a, b, c) for a in (0.25, 0.5, 0.75) for b in (0.15, 0.3, 0.45) for c in (0.15, 0.3, 0.45)}


def small_split(small):
    entities, ratings = small
    return Split.of(1, entities, ratings.take(np.arange(720)), ratings.take(np.arange(720, 900)), seed=0)


def small_variant(**changes):
    settings = {
        "title": "small",
        "paper": (1.0, 0.1),
        "grid": (Settings(0.5, 0.5, 1e-3), Settings(0.5, 0.5, 1e-6), Settings(0.5, 1e-9, 1e-3)),
        "starts": ((0.5, "prior"),),
        "rungs": (Rung(3, 2), Rung(40, 1)),
        "patience": 3,
    }
    return Variant(**{**settings, **changes})


def beginner(split):
    return lambda settings: Fit(split.entities, split.learn, settings, seed=0, rank=2)


def test_ages_fall_in_five_bins():
    ages = np.arange(5, 80)
    assert len(set(age_bins(ages))) == 5
    assert list(age_bins([17, 18, 34, 35, 73])) == ["under 18", "18-24", "25-34", "35-49", "50 and over"]


def test_the_grids_are_the_papers():
    assert len(VARIANTS["pmf"].grid) == len(VARIANTS["side"].grid) == 3 * 4 * 3
    assert len(VARIANTS["learn_w"].grid) == len(VARIANTS["learn_w_side"].grid) == 2**4
    assert set(VARIANTS["side"].sides) == set(VARIANTS["learn_w_side"].sides) == PAPER_SIDES
    assert all(cell.step_w is None for cell in VARIANTS["pmf"].grid)
    assert all(cell.step_w in (1e-5, 1e-6) for cell in VARIANTS["learn_w"].grid)


def test_modes_are_the_papers_features(small):
    entities, ratings = small
    a, b, c = 0.5, 0.3, 0.45
    user, item = (mode.table.toarray() for mode in design_of(entities, modes_of((a, b, c)), ratings).modes)
    np.testing.assert_allclose(user[:, :40], a * np.eye(40))
    np.testing.assert_allclose(item[:, :30], np.eye(30))
    # one age bin, one sex and one occupation each
    np.testing.assert_allclose(user[:, 40:].sum(axis=1), 3 * a * b)
    np.testing.assert_allclose(item[:, 30:].sum(axis=1), [c * len(kinds) for kinds in entities.items["genres"]])
    assert set(np.unique(user[:, 40:])) <= {0.0, a * b}


def test_hashed_ids_have_one_signed_entry_a_row(small):
    entities, ratings = small
    for mode in design_of(entities, modes_of(buckets=8), ratings).modes:
        assert mode.table.shape[1] == 8
        np.testing.assert_array_equal(abs(mode.table).sum(axis=1), 1.0)


def test_the_validation_part_is_a_tenth_and_the_same_every_time():
    learn, choose = carve(1000, seed=0, split=1)
    assert len(choose) == 100
    np.testing.assert_array_equal(np.sort(np.concatenate([learn, choose])), np.arange(1000))
    np.testing.assert_array_equal(choose, carve(1000, seed=0, split=1)[1])
    assert not np.array_equal(choose, carve(1000, seed=0, split=2)[1])


def test_a_fit_continued_equals_a_fit_in_one_go_and_watching_changes_nothing(small):
    entities, ratings = small
    settings = Settings(0.5, 0.5, 1e-3, 1e-3, side=(0.5, 0.3, 0.3))
    one = Fit(entities, ratings, settings, seed=1, rank=2).run(6)
    other = Fit(entities, ratings, settings, seed=1, rank=2)
    other.watch(ratings, 4, patience=99)
    other.run(6)
    assert one.score(ratings) == pytest.approx(other.score(ratings), rel=1e-9)
    assert one.train_rmse == pytest.approx(other.train_rmse, rel=1e-9)


def test_the_search_takes_the_cell_that_learns_and_drops_those_that_diverge_or_stand_still(small):
    """After 200 epochs the error was 0.57 to 0.66 of that of the mean from six starts, after 40 up to 1.01 of it."""
    split, variant = small_split(small), small_variant(rungs=(Rung(3, 2), Rung(200, 1)))
    choice = search(beginner(split), split.choose, variant)
    assert choice.settings == Settings(0.5, 0.5, 1e-3, init_scale=0.5)
    guess = np.sqrt(np.mean((split.choose.rating - split.learn.rating.mean()) ** 2))
    assert choice.score < 0.8 * guess
    best = Fit(split.entities, split.learn, choice.settings, seed=0, rank=2)
    assert best.run(choice.epochs).score(split.choose) == pytest.approx(choice.score, rel=1e-9)


def test_the_search_with_side_information_visits_every_scale(small):
    split = small_split(small)
    sides = tuple((a, 0.3, 0.3) for a in (0.25, 0.5, 0.75))
    variant = small_variant(
        grid=(Settings(0.5, 0.5, 1e-3, side=(0.5, 0.3, 0.3)),),
        sides=sides,
        starts=((0.5, "prior"), (0.1, "prior")),
        rungs=(Rung(4, 3),),
    )
    choice = search(beginner(split), split.choose, variant)
    # 1 cell, 2 further (a, b, c), and the best of them at the other start, of 4 epochs each
    assert choice.trained_epochs == 4 * 4
    assert choice.settings.side in sides


def test_a_learned_core_starts_at_its_prior_or_near_the_identity(small):
    entities, ratings = small
    prior, near = (
        Fit(entities, ratings, Settings(0.5, 0.5, 1e-3, 1e-3, core_start=start), seed=0, rank=3).state.w
        for start in ("prior", "identity")
    )
    np.testing.assert_allclose(near.reshape(3, 3), np.eye(3) + 0.1 * prior.reshape(3, 3))


def test_divergence_scores_infinity(small):
    entities, ratings = small
    fit = Fit(entities, ratings, Settings(0.5, 1e-9, 1e-3), seed=0, rank=2)
    assert fit.watch(ratings, 10, patience=5) == math.inf
    assert fit.diverged
    assert halve([fit], ratings, [Rung(20, 1)], patience=5) == [fit]
    assert fit.epochs < 10


def test_a_cell_is_chosen_without_the_test_part(small):
    split = small_split(small)
    cell = choose_and_score(split, small_variant(), seed=0, rank=2)
    split = replace(split, test=Ratings(split.test.index, 6 - split.test.rating))
    other = choose_and_score(split, small_variant(), seed=0, rank=2)
    assert other["test_rmse"] != cell["test_rmse"]
    for key in ("settings", "epochs", "validation_rmse", "train_rmse"):
        assert cell[key] == other[key]


def test_differences_are_those_of_the_splits_that_both_have():
    cells = {
        "pmf/u1": {"test_rmse": 0.93, "validation_rmse": 0.95},
        "pmf/u2": {"test_rmse": 0.92, "validation_rmse": 0.95},
        "learn_w/u1": {"test_rmse": 0.94, "validation_rmse": 0.94},
        "side/u1": {"test_rmse": None, "validation_rmse": 0.91},
        "curve/pmf/u1": {},
    }
    assert movielens_map.differences_table(cells) == [
        ["RMSE of", "less that of", "part", "u1", "u2", "mean"],
        ["W = I, side information", "W = I (PMF)", "validation", "-0.0400", "", "-0.0400"],
        ["learn W", "W = I (PMF)", "test", "+0.0100", "", "+0.0100"],
        ["learn W", "W = I (PMF)", "validation", "-0.0100", "", "-0.0100"],
    ]


def test_the_tables_show_means_beside_the_papers_and_what_was_chosen():
    settings = vars(Settings(0.1, 0.01, 1e-6, side=(0.5, 0.3, 0.15)))
    cells = {
        "side/u1": {"test_rmse": 0.92, "epochs": 9, "settings": settings},
        "side/u2": {"test_rmse": 0.90, "epochs": 7, "settings": settings},
        "movielens_gibbs/side/u1/seed 0": {"rmse": 0.8},
        "movielens_gibbs/side/u1/seed 1": {"rmse": 0.9},
    }
    head, row = movielens_map.map_table(cells)
    assert head[1:-1] == ["u1, u2: mean ± sd", "u1", "u2"]
    assert row[:-1] == ["W = I, side information", "0.9100 ± 0.0141", "0.9200", "0.9000"]
    assert row[-1] == "σ_u 0.1; σ² 0.01; ε_u 1e-06; U starts at 0.1; a 0.5; b 0.3; c 0.15; epochs 7, 9"
    compared = movielens_map.compared_table(cells)
    assert ["W = I, side information", "0.9014 ± 0.0061", "0.9100 ± 0.0141"] in compared
    assert ["sampled: + the paper's side information", "", "0.8500"] in compared


def test_side_information_is_5_2_21_and_18_binary_attributes(movielens):
    entities = entities_of(movielens)
    index = np.zeros((1, 2), dtype=np.int32)
    user, item = design_of(entities, modes_of((0.5, 0.3, 0.3)), Ratings(index, np.zeros(1))).modes
    assert user.features.shape == (943, 5 + 2 + 21)
    assert item.features.shape == (1682, 18)


def test_settings_chosen_before_reach_what_the_full_run_reached_on_u1(data_dir):
    """W = I alone; a learned W takes seconds, and the quick run of the report has it."""
    run = Run(MOVIELENS_MAP, data=data_dir, quick=True)
    stored = report.stored(RESULTS)["movielens_map"]["cells"]
    for key in ("pmf", "side"):
        assert run[f"{key}/u1"]["test_rmse"] == pytest.approx(stored[f"{key}/u1"]["test_rmse"], abs=0.005)
    assert run["side/u1"]["test_rmse"] < run["pmf/u1"]["test_rmse"]


def test_claims_are_checked_with_the_settings_that_the_table_chose(data_dir, monkeypatch):
    run = Run(MOVIELENS_MAP, data=data_dir)
    run.done["pmf/u1"] = {"settings": vars(Settings(0.1, 0.01, 1e-6))}
    asked = {}
    stop = lambda split, variant, seed, known, **options: asked.update({tuple(options.items()): known()}) or {}  # noqa: E731
    monkeypatch.setattr(movielens_map, "_stop_and_score", stop)
    run.work = movielens_map.checks(run, run_split(data_dir), "pmf")
    for name in ("batch/pmf/u1/10", "batch_same_rate/pmf/u1/10", "buckets/pmf/u1/none"):
        run[name]
    assert asked[(("batch_size", 10), ("pace", 1))].step_u == 1e-6
    assert asked[(("batch_size", 10),)].step_u == pytest.approx(1e-7)
    assert asked[(("buckets", None),)] == Settings(0.1, 0.01, 1e-6)


def run_split(data_dir):
    from tuckergp.paper.movielens_data import split_of
    from tuckergp.paper.sources import load

    return split_of(load("ml-100k", data_dir), 1)


def test_the_full_run_came_near_the_paper_and_side_information_helped_on_every_split():
    cells = report.stored(RESULTS)["movielens_map"]["cells"]
    scores = {key: [cells[f"{key}/u{split}"]["test_rmse"] for split in range(1, 6)] for key in VARIANTS}
    for key, variant in VARIANTS.items():
        assert np.mean(scores[key]) < variant.paper[0] + 0.015
    assert all(np.less(scores["side"], scores["pmf"]))
    assert all(np.less(scores["learn_w_side"], scores["learn_w"]))
