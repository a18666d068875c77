"""Contestants of another package, `implicit`, run by a Python that has it: a file in, scores out.

    python ranking_peers.py clicks.npz scores.npy

Imports nothing of tuckergp, so that the other Python need not have it. `scores_of` is the side that calls.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["PEERS", "available", "scores_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

PEERS = ("als", "bpr")


def available(python: str) -> str | None:
    """The version of `implicit` that this Python has, or None."""
    ask = "import implicit; print(implicit.__version__)"
    found = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else None


def scores_of(
    python: str, kind: str, options: dict[str, Any], user: Ints, item: Ints, shape: tuple[int, int], seed: int
) -> Floats:
    """Learn from clicks, given as numbers of users and items, and score all pairs; shape (n_users, n_items)."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "clicks.npz", Path(folder) / "scores.npy"
        what = json.dumps({"kind": kind, "options": options, "seed": seed})
        np.savez(asked, user=user, item=item, shape=np.array(shape), what=np.array(what))
        subprocess.run([python, __file__, str(asked), str(answered)], check=True)
        return np.asarray(np.load(answered), dtype=np.float64)


def _work(asked: str, answered: str) -> None:
    """What the other Python runs, on one thread, so that a seed gives the same scores again."""
    from implicit.cpu.als import AlternatingLeastSquares  # type: ignore[import-not-found]
    from implicit.cpu.bpr import BayesianPersonalizedRanking  # type: ignore[import-not-found]
    from scipy import sparse

    data = np.load(asked)
    what, (n_users, n_items) = json.loads(str(data["what"])), map(int, data["shape"])
    ones = np.ones(len(data["user"]), dtype=np.float32)
    clicks = sparse.csr_matrix((ones, (data["user"], data["item"])), shape=(n_users, n_items))
    clicks.data[:] = 1.0  # a pair may be clicked more than once
    fixed = {"num_threads": 1, "random_state": what["seed"]}
    if what["kind"] == "als":
        model = AlternatingLeastSquares(**what["options"], **fixed)
    else:
        model = BayesianPersonalizedRanking(**what["options"], **fixed)
    model.fit(clicks, show_progress=False)
    np.save(answered, np.asarray(model.user_factors) @ np.asarray(model.item_factors).T)


if __name__ == "__main__":
    _work(*sys.argv[1:])
