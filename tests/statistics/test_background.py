"""Cells that are not listed: the statistics of a background against those of all cells, listed."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tuckergp.likelihoods.background import Background
from tuckergp.likelihoods.precision import Precision
from tuckergp.model.tucker import Core, make_core
from tuckergp.statistics.core import core_given_factors
from tuckergp.statistics.evidence import Evidence, Sorted

USERS, ITEMS, RANK, ALPHA = 5, 7, 3, 1.7


def case(kind: str, rng: np.random.Generator) -> tuple[Core, np.ndarray, tuple[int, ...]]:
    """A core, the rows of some observations, and how many rows each mode has."""
    pairs = rng.permutation(list(product(range(USERS), range(ITEMS))))[:14]
    if kind in ("identity", "full"):
        return make_core(kind, [RANK, RANK], rng), pairs.astype(np.int32), (USERS, ITEMS)
    week = rng.integers(2, size=len(pairs))
    if kind == "drift":  # rows of the third mode belong to one user each
        _, third = np.unique(pairs[:, 0] * 2 + week, return_inverse=True)
    else:
        third = rng.integers(3, size=len(pairs))
    index = np.column_stack([pairs, third]).astype(np.int32)
    return make_core("identity", [RANK] * 3, rng), index, (USERS, ITEMS, int(third.max()) + 1)


def sort(index: np.ndarray, d: int, rows: int) -> Sorted:
    ptr = np.concatenate([[0], np.cumsum(np.bincount(index[:, d], minlength=rows))]).astype(np.int64)
    return Sorted(ptr, index, d)


def listed(background: Background) -> tuple[np.ndarray, np.ndarray]:
    """All cells of a background, and their weights."""
    index, weight = [], []
    for occasion, of_occasion in zip(background.index, background.weight, strict=True):
        for j, across in enumerate(background.across):
            cell = occasion.copy()
            cell[background.crossed] = j
            index.append(cell)
            weight.append(of_occasion * across)
    return np.array(index, dtype=np.int32), np.array(weight)


@pytest.fixture(params=["identity", "full", "drift", "context"])
def world(request: pytest.FixtureRequest) -> dict:
    rng = np.random.default_rng(3)
    core, index, rows = case(request.param, rng)
    background = Background.of(index, rows, rng.uniform(0.5, 2, USERS), rng.uniform(0.1, 0.5, ITEMS))
    zeros, zero_weight = listed(background)
    y, weight = rng.normal(size=len(index)), rng.uniform(0.5, 2, len(index))
    psi = [rng.normal(size=(m, RANK)) for m in rows]
    W = rng.normal(size=core.n_weights) if core.learned else np.ones(1)
    return {
        "core": core, "rows": rows, "psi": psi, "W": W, "index": index, "y": y,
        "precision": Precision(ALPHA, weight, background=background),
        "all_index": np.concatenate([index, zeros]),
        "all_y": np.concatenate([y, np.zeros(len(zeros))]),
        "all_precision": Precision(ALPHA, np.concatenate([weight, zero_weight])),
    }  # fmt: skip


def evidence(world: dict, d: int, whole: bool) -> Evidence:
    start = "all_" if whole else ""
    index, y, precision = (world[start + name] for name in ("index", "y", "precision"))
    data = sort(index, d, world["rows"][d])
    return Evidence(data, y, precision, world["core"], d, world["psi"], world["W"])


def test_statistics_are_those_of_all_cells(world: dict) -> None:
    for d in range(len(world["rows"])):
        A, b = evidence(world, d, whole=False).statistics()
        all_A, all_b = evidence(world, d, whole=True).statistics()
        np.testing.assert_allclose(A, all_A, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(b, all_b, rtol=1e-10, atol=1e-12)


def test_solves_are_those_of_all_cells(world: dict) -> None:
    rng = np.random.default_rng(0)
    for d, rows in enumerate(world["rows"]):
        shift, noise = rng.normal(size=(2, rows, RANK))
        prior = np.eye(RANK) * 2.0 + 0.3
        ours, theirs = (evidence(world, d, whole).solve(shift, prior, noise) for whole in (False, True))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_squares_are_those_of_all_cells(world: dict) -> None:
    sums, of_all = evidence(world, 0, whole=False).residuals(), evidence(world, 0, whole=True).residuals()
    assert sums.squares.sum() + sums.background == pytest.approx(of_all.squares.sum())
    assert of_all.background == 0


def test_a_learned_core_sees_all_cells(world: dict) -> None:
    if not world["core"].learned:
        pytest.skip("the core is fixed")
    ours, theirs = (
        core_given_factors(
            world["core"],
            world["psi"],
            world[start + "index"],
            sort(world[start + "index"], 0, USERS),
            world[start + "y"],
            world[start + "precision"],
            1.0,
            world["W"],
        )
        for start in ("", "all_")
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_a_pair_weighs_the_same_in_however_many_circumstances() -> None:
    index = np.array([[0, 0, 0], [0, 1, 1], [0, 2, 1], [1, 0, 2]], dtype=np.int32)
    background = Background.of(index, (2, 3, 3), np.array([2.0, 3.0]), np.ones(3))
    np.testing.assert_allclose(background.of_rows(0), [2.0, 3.0])
    np.testing.assert_allclose(background.of_rows(2), [2 / 3, 4 / 3, 3.0])
