"""A peer for models of ratings: factorisation machines by Gibbs sampling (myFM), with the features of our settings.

`peers.py` runs them; what learns is run by the Python that has myFM: ``python machines.py asked.npz answered.npy``.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

RANKS = (4, 8, 16)
"""Compared on validation parts, for every setting."""
CHOSEN = {"ratings": 8, "side": 8, "implicit": 8}
"""By setting: the best of them there."""


def figures(movielens: Any, key: str, train: Any, held: Any, seed: int, rank: int, python: str, **lengths: int) -> Any:
    """Learn from ``train`` and score ``held``, with predictions clipped as ours are."""
    from tuckergp.evaluation.metrics import rmse
    from tuckergp.paper.movielens_data import entities_of, ratings_of

    entities = entities_of(movielens)
    learn, test = (ratings_of(entities, part) for part in (train, held))
    arrays = {"learn": learn.index, "y": learn.rating, "test": test.index}
    for d, blocks in enumerate(features(movielens, entities, learn.index, key)):
        arrays |= {f"groups{d}": np.array([block.shape[1] for block in blocks]), f"table{d}": np.hstack(blocks)}
    options = {"rank": rank, "seed": seed, **lengths}
    before = cpu_of_children()
    predicted = answer(python, arrays | {name: np.array(value) for name, value in options.items()})
    error = round(rmse(test.rating, np.clip(predicted, 1, 5)), 5)
    return {"options": options, "rmse": error, "cpu_seconds": round(cpu_of_children() - before, 1)}


def cpu_of_children() -> float:
    """CPU seconds of processes that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def features(movielens: Any, entities: Any, index: Any, key: str) -> list[list[np.ndarray]]:
    """Blocks of features of users and of items beside their ids, as 0 and 1; who rated what has rows of length 1."""
    users, items = entities.users, entities.items
    if key == "ratings":
        return [[np.eye(len(users))], [np.eye(len(items))]]
    of_users = [one_hot(users[name]) for name in ("age", "sex", "occupation")]
    genres = sorted({genre for film in items["genres"] for genre in film})
    of_items = [np.array([[genre in film for genre in genres] for film in items["genres"]], dtype=np.float64)]
    if key == "implicit":
        rated = np.zeros((len(users), len(items)))
        rated[tuple(index.T)] = 1.0
        of_items += [one_hot(movielens.items["year"]), unit(rated.T)]
        of_users += [unit(rated)]
    return [[np.eye(len(users)), *of_users], [np.eye(len(items)), *of_items]]


def one_hot(column: Any) -> np.ndarray:
    """A column for each value."""
    return np.asarray(np.asarray(column, dtype=str)[:, None] == np.unique(np.asarray(column, dtype=str)), np.float64)


def unit(rated: np.ndarray) -> np.ndarray:
    """Rows divided by the roots of their sums."""
    return rated / np.sqrt(np.maximum(rated.sum(axis=1, keepdims=True), 1.0))


def answer(python: str, arrays: dict[str, Any]) -> np.ndarray:
    """Predictions by the other Python."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "asked.npz", Path(folder) / "answered.npy"
        np.savez(asked, **arrays)
        subprocess.run([python, __file__, str(asked), str(answered)], check=True, capture_output=True)
        return np.asarray(np.load(answered), dtype=np.float64)


def work(asked: str, answered: str) -> None:
    """What the other Python runs: relation blocks, a group of hyperparameters for each block of features."""
    from myfm import MyFMRegressor, RelationBlock  # type: ignore[import-not-found]
    from scipy import sparse

    data = np.load(asked)
    tables = [sparse.csr_matrix(data[f"table{d}"]) for d in (0, 1)]
    groups = [int(size) for d in (0, 1) for size in data[f"groups{d}"]]
    learn, test = ([RelationBlock(np.int64(data[name][:, d]), tables[d]) for d in (0, 1)] for name in ("learn", "test"))
    draws, warmup = int(data["draws"]), int(data["warmup"])
    model = MyFMRegressor(int(data["rank"]), random_seed=int(data["seed"]))
    nothing = [sparse.csr_matrix((len(data[name]), 0)) for name in ("learn", "test")]
    model.fit(nothing[0], data["y"], X_rel=learn, n_iter=draws + warmup, n_kept_samples=draws, group_shapes=groups)
    np.save(answered, model.predict(nothing[1], test, n_workers=1))


if __name__ == "__main__":
    work(*sys.argv[1:])
