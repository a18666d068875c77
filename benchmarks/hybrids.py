"""A peer for lists that reads attributes: LightFM with the WARP loss, embeddings of ids and of attributes.

`peers.py`, `lastfm.py` and `cold_lists.py` run it; what learns is run by the Python that has LightFM:
``python hybrids.py asked.npz answered.npy``, on one thread, so that a seed gives the same scores again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse


def scores_of(
    python: str,
    options: dict[str, Any],
    clicks: sparse.csr_array,
    attributes: Sequence[sparse.csr_array],
    seed: int,
    rows: Any = None,
) -> np.ndarray:
    """Learn from clicks (n_users, n_items) and score all items for some users (all), shape (n_rows, n_items).

    ``attributes`` has one row per user, then per item. Besides them, each user and item with clicks has an embedding.
    In ``options``, ``alpha`` is the penalty of both sides, and with ``shares`` the features of a row sum to 1.
    """
    counts = np.diff(clicks.indptr), np.bincount(clicks.indices, minlength=clicks.shape[1])
    sides = zip(attributes, counts, strict=True)
    arrays: dict[str, Any] = {"rows": np.arange(clicks.shape[0]) if rows is None else rows}
    arrays["what"] = np.array(json.dumps({**options, "seed": seed}))
    for name, part in zip(("clicks", "users", "items"), (clicks, *(features(*side) for side in sides)), strict=True):
        found = part.tocoo()
        arrays |= {f"{name}_row": found.row, f"{name}_column": found.col, f"{name}_shape": np.array(found.shape)}
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "asked.npz", Path(folder) / "scores.npy"
        np.savez(asked, **arrays)
        subprocess.run([python, __file__, str(asked), str(answered)], check=True)
        return np.load(answered).astype(np.float64)


def features(attributes: sparse.csr_array, count: Any) -> sparse.csr_array:
    """Ids beside attributes; no id where there are no clicks, since its embedding would stay as it was drawn."""
    ids = sparse.diags_array((count > 0).astype(np.float64))
    return sparse.csr_array(sparse.hstack([ids, attributes]))


def flags(lists: Sequence[Sequence[Any]]) -> sparse.csr_array:
    """Words of each row as a matrix of 0 and 1, one column per word."""
    place = {word: k for k, word in enumerate(sorted({word for words in lists for word in words}))}
    pairs = sorted({(row, place[word]) for row, words in enumerate(lists) for word in words})
    row, column = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    return sparse.csr_array((np.ones(len(row)), (row, column)), shape=(len(lists), len(place)))


def words_of(users: Any, items: Any, years: bool = False) -> tuple[dict[Any, list[str]], dict[Any, list[str]]]:
    """By id, what is known of people (age group, sex, occupation) and of films (genres, decade, also the year)."""
    from tuckergp.paper.movielens_data import age_bins

    words = zip(users["user_id"], age_bins(users["age"]), users["sex"], users["occupation"], strict=True)
    of_user = {key: [f"{k}: {word}" for k, word in enumerate(some)] for key, *some in words}
    of_item = {}
    for key, genres, year in zip(items["item_id"], items["genres"], items["year"], strict=True):
        released = [f"{int(year) // 10}0s", *([str(int(year))] if years else [])] if year == year else []
        of_item[key] = [*genres, *released]
    return of_user, of_item


def work(asked: str, answered: str) -> None:
    """What the other Python runs."""
    from lightfm import LightFM

    data = np.load(asked)
    what = json.loads(str(data["what"]))
    clicks, users, items = (
        sparse.coo_matrix(
            (np.ones(len(data[f"{name}_row"]), dtype=np.float32), (data[f"{name}_row"], data[f"{name}_column"])),
            shape=tuple(data[f"{name}_shape"]),
        )
        for name in ("clicks", "users", "items")
    )
    given = {"user_features": users.tocsr(), "item_features": items.tocsr()}
    if what.pop("shares"):
        given = {name: shares(part) for name, part in given.items()}
    seed, epochs, alpha = what.pop("seed"), what.pop("epochs"), what.pop("alpha")
    model = LightFM(loss="warp", random_state=seed, item_alpha=alpha, user_alpha=alpha, **what)
    model.fit(clicks, **given, epochs=epochs, num_threads=1)
    item_bias, item = model.get_item_representations(given["item_features"])
    _, user = model.get_user_representations(given["user_features"])
    np.save(answered, user[data["rows"]] @ item.T + item_bias)


def shares(part: Any) -> Any:
    """Rows that sum to 1, as LightFM's own reader of data sets makes them."""
    total = np.maximum(np.asarray(part.sum(axis=1)).ravel(), 1e-9)
    return sparse.csr_matrix(sparse.diags((1.0 / total).astype(np.float32)) @ part, dtype=np.float32)


if __name__ == "__main__":
    work(*sys.argv[1:])
