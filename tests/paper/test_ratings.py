"""Hyperparameters by cross-validation and by sampling: the search, the one model of both, tables."""

import json
from pathlib import Path

import numpy as np
import pytest

from tuckergp.likelihoods import Gaussian
from tuckergp.model.tucker import TuckerModel, make_core
from tuckergp.paper import ratings
from tuckergp.paper.movielens_data import split_of
from tuckergp.paper.ratings import OneScale, Point, search, task
from tuckergp.paper.sources import load
from tuckergp.random import stream

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "ratings.json"


def bowl(at):
    """Least at scale 2, users 0.1; neither is where the search starts."""
    return (np.log2(at.scale) - 1) ** 2 + np.log10(at.users / 0.1) ** 2


def test_a_search_goes_to_the_least_error_however_far_it_is():
    found, tried = search(bowl, Point(1 / 16, 100.0), {"scale": 2.0, "users": 10.0})
    assert (found.scale, found.users) == pytest.approx((2.0, 0.1))
    assert found.items == 1.0
    assert found.noise is None
    for scale, users in ((1.0, 0.1), (4.0, 0.1), (2.0, 0.01), (2.0, 1.0)):
        assert str(found._replace(scale=scale, users=users)) in tried  # the optimum is inside


def test_a_search_scores_each_point_once():
    scored = []
    _, tried = search(lambda at: scored.append(at) or bowl(at), Point(0.5, 1.0), {"scale": 2.0, "users": 10.0})
    assert len(scored) == len(set(scored)) == len(tried)


def test_the_stored_optimum_lies_inside_of_what_was_tried():
    report = json.loads(RESULTS.read_text())
    cell, factors = report["cells"]["search"], report["settings"]["factors"]
    found = Point(**cell["found"])
    for name, factor in factors.items():
        for step in (factor, 1 / factor):
            there = found._replace(**{name: getattr(found, name) * step})
            assert cell["tried"][str(there)] >= cell["rmse"]
    steps = {name: one.get("rmse", np.inf) for name, one in report["cells"].items() if name.startswith("step/")}
    for how in report["settings"]["steps"]:
        errors = [error for name, error in sorted(steps.items(), key=step_size) if f"/{how}/" in name]
        assert 0 < np.argmin(errors) < len(errors) - 1


def step_size(step):
    """The size in the name of a cell."""
    return float(step[0].split("/")[-1])


def test_variances_of_averages_are_those_of_their_weights(data_dir):
    split = split_of(load("ml-100k", data_dir), 1)
    made = task(split, split.learn, split.choose, Point(0.3, users=0.25, items=4.0))
    for mode, root in zip(made.problem.design.modes, (0.5, 2.0), strict=True):
        assert np.unique(np.asarray(mode.features)) == pytest.approx([root])


def test_one_scale_draws_a_multiple_of_the_identity():
    core = make_core("identity", [4, 4])
    model = TuckerModel(core, Gaussian(), np.full(2, 0.3), 1.0)
    rng = stream(0, 1)
    drawn = [OneScale().precision_prior(model, 0).draw(np.zeros((4, 4)), 0, rng) for _ in range(4_000)]
    first = np.array([one[0, 0] for one in drawn])
    assert all(np.array_equal(one, one[0, 0] * np.eye(4)) for one in drawn)
    # E Lambda^-1 = 0.3^2 I; 1 / lambda has a relative sd of about (dof r / 2)^-1/2 = 0.09
    assert np.mean(1 / first) == pytest.approx(0.09, rel=0.01)


def test_the_table_counts_searching_as_a_cost():
    found = {"scale": 0.3, "users": 1.0, "items": 3.0, "noise": 0.5}
    cells = {
        "search": {"found": found, "tried": {"a": 1.0, "b": 2.0}, "cpu_seconds": 30.0},
        "cross-validated/seed 0": {"rmse": 0.91, "coverage": 0.9, "cpu_seconds": 4.0},
        "cross-validated/seed 1": {"rmse": 0.93, "coverage": 0.9, "cpu_seconds": 6.0},
        "sampled/seed 0": {"rmse": 0.90, "coverage": 0.9, "cpu_seconds": 7.0},
    }
    _, first, second = ratings.hyper_table(cells)
    assert "of 2" in first[0]
    assert "scale 0.3, users 1, items 3, noise 0.5" in first[0]
    assert first[1:] == ["0.9200 ± 0.0141", "0.900 ± 0.000", "35.0"]
    assert second[1:] == ["0.9000", "0.900", "7.0"]
