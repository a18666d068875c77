"""The MovieLens table: its pieces on small data, and the accuracy of the settings it chose on the real ones."""

import json
import math
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from tuckergp.data.tables import as_table
from tuckergp.errors import InputError
from tuckergp.paper import movielens as experiment
from tuckergp.paper import movielens_report as report
from tuckergp.paper.movielens_data import Entities, Ratings, age_bins, carve, design_of, entities_of, modes_of
from tuckergp.paper.movielens_search import VARIANTS, Fit, Rung, Settings, Variant, halve, search
from tuckergp.paper.store import Store

PAPER_SIDES = {(a, b, c) for a in (0.25, 0.5, 0.75) for b in (0.15, 0.3, 0.45) for c in (0.15, 0.3, 0.45)}


@pytest.fixture(scope="module")
def small():
    """40 users and 30 items whose ratings follow a rank-2 model with an effect of sex and genre."""
    rng = np.random.default_rng(0)
    sex = rng.integers(2, size=40)
    genres = [[name for name in ("Drama", "War") if rng.random() < 0.5] for _ in range(30)]
    users = as_table(
        {
            "user_id": np.arange(1, 41),
            "age": age_bins(rng.integers(10, 70, size=40)),
            "sex": ["FM"[s] for s in sex],
            "occupation": ["writer"] * 40,
        },
        "users",
    )
    items = as_table({"item_id": np.arange(1, 31), "genres": genres}, "items")
    index = np.stack([rng.integers(40, size=900), rng.integers(30, size=900)], axis=1).astype(np.int32)
    u, v = rng.standard_normal((40, 2)), rng.standard_normal((30, 2))
    drama = np.array(["Drama" in kinds for kinds in genres])
    f = np.sum(u[index[:, 0]] * v[index[:, 1]], axis=1) + (sex[index[:, 0]] - 0.5) * drama[index[:, 1]]
    rating = np.clip(np.round(3.5 + 0.7 * f + 0.3 * rng.standard_normal(900)), 1, 5)
    return Entities(users, items), Ratings(index, rating)


def small_split(small):
    entities, ratings = small
    return experiment.Split(entities, ratings.take(np.arange(720)), ratings.take(np.arange(720, 900)), 0, 1)


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
    split = small_split(small)
    choice = search(split.entities, split.learn, split.choose, small_variant(), seed=0, rank=2)
    assert choice.settings == Settings(0.5, 0.5, 1e-3, init_scale=0.5)
    guess = np.sqrt(np.mean((split.choose.rating - split.learn.rating.mean()) ** 2))
    assert choice.score < 0.9 * guess
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
    choice = search(split.entities, split.learn, split.choose, variant, seed=0, rank=2)
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
    cell = experiment.choose_and_score(split, small_variant(), seed=0, rank=2)
    split.test = Ratings(split.test.index, 6 - split.test.rating)
    other = experiment.choose_and_score(split, small_variant(), seed=0, rank=2)
    assert other["test_rmse"] != cell["test_rmse"]
    for key in ("settings", "epochs", "validation_rmse", "train_rmse"):
        assert cell[key] == other[key]


def test_a_finished_cell_is_not_computed_again(tmp_path):
    path = tmp_path / "results.json"
    Store(path, {"seed": 0}, {}).cell("pmf/u1", lambda: {"test_rmse": 0.9})
    again = Store(path, {"seed": 0}, {"command": "again"})
    assert again.cell("pmf/u1", lambda: pytest.fail("computed again")) == {"test_rmse": 0.9}
    again.cell("pmf/u2", lambda: {"test_rmse": 0.8})
    assert set(json.loads(path.read_text())["cells"]) == {"pmf/u1", "pmf/u2"}
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match="seed=0, not 1; name another file"):
        Store(path, {"seed": 1}, {})
    path.write_text("[]")
    with pytest.raises(InputError, match="does not hold results"):
        Store(path, {"seed": 0}, {})


def test_the_table_shows_means_and_what_was_chosen():
    def cell(test, epochs):
        return {
            "test_rmse": test,
            "epochs": epochs,
            "settings": {**vars(Settings(0.1, 0.01, 1e-6, side=(0.5, 0.3, 0.15)))},
        }

    results = {"cells": {"side/u1": cell(0.92, 9), "side/u2": cell(0.90, 7), "curve/pmf/u1": {}}}
    lines = report.table(results).splitlines()
    assert len(lines) == 3
    assert {line.count("|") for line in lines} == {7}
    assert "0.9014 ± 0.0061 | 0.9100 ± 0.0141 | 0.9200 | 0.9000" in lines[2]
    assert "σ_u 0.1; σ² 0.01; ε_u 1e-06; U starts at 0.1; a 0.5; b 0.3; c 0.15; epochs 7, 9" in lines[2]


def test_side_information_is_5_2_21_and_18_binary_attributes(movielens):
    entities = entities_of(movielens)
    index = np.zeros((1, 2), dtype=np.int32)
    user, item = design_of(entities, modes_of((0.5, 0.3, 0.3)), Ratings(index, np.zeros(1))).modes
    assert user.features.shape == (943, 5 + 2 + 21)
    assert item.features.shape == (1682, 18)


def test_the_chosen_settings_reach_the_accuracy_of_the_full_run_on_u1(movielens, data_dir, tmp_path):
    path = tmp_path / "quick.json"
    done = CliRunner().invoke(experiment.app, ["--quick", "--data", str(data_dir), "-o", str(path)])
    assert done.exit_code == 0, done.output
    cells = json.loads(path.read_text())["cells"]
    found = {name.partition("/")[0]: cell["test_rmse"] for name, cell in cells.items()}
    assert set(found) == set(VARIANTS)
    for key, test in found.items():
        assert test < experiment.chosen()[f"{key}/u1"]["test_rmse"] + 0.02
    assert found["side"] < found["pmf"]
    assert found["learn_w_side"] < found["learn_w"]
    assert len(re.findall(r"^\| (?:W = I|learn W)", done.output, flags=re.MULTILINE)) == 4


def test_the_full_run_came_near_the_paper_and_side_information_helped_on_every_split():
    chosen = experiment.chosen()
    scores = {key: [chosen[f"{key}/u{split}"]["test_rmse"] for split in range(1, 6)] for key in VARIANTS}
    for key, variant in VARIANTS.items():
        assert np.mean(scores[key]) < variant.paper[0] + 0.015
    assert all(np.less(scores["side"], scores["pmf"]))
    assert all(np.less(scores["learn_w_side"], scores["learn_w"]))


def test_a_split_that_does_not_exist_is_refused(movielens, data_dir):
    done = CliRunner().invoke(experiment.app, ["--quick", "--splits", "6", "--data", str(data_dir)])
    assert done.exit_code == 2
    assert "splits 1 to 5" in done.output
    done = CliRunner().invoke(experiment.app, ["--splits", "all"])
    assert done.exit_code == 2
    assert "such as 1,3, not 'all'" in done.output
