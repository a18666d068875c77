"""Writes the model files that must load for ever, and what they predict: ``python -m tests.store.make_model_files``.

Run it once for each new version of the format and keep the files of all earlier ones, of which some were made with
other models: `test_storage.py` loads every ``*.tgp`` in the folder fixtures and compares its predictions with the JSON
file beside it. Only a format that has not been released yet may have its files written again.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np

from tuckergp import Mode, TuckerGPRegressor, TuckerRecommender
from tuckergp.errors import NotConvergedWarning
from tuckergp.features import Cholesky, Fourier, Hashing, Nystrom
from tuckergp.kernels import SE, Identity, Linear, Matern12, Matern32, Periodic
from tuckergp.store.model_file import MAJOR, MINOR

FOLDER = Path(__file__).parent / "fixtures"


def recommender() -> tuple[TuckerRecommender, dict[str, list]]:
    """Text ids, attributes of every kind, weeks, a context; and questions, newcomers among them."""
    rng = np.random.default_rng(1)
    users = [f"user {k}" for k in range(8)]
    n = 60
    ratings = {
        "user_id": rng.choice(users[:6], n).tolist(),
        "item_id": rng.integers(100, 106, n).tolist(),
        "rating": rng.integers(1, 6, n).astype(float).tolist(),
        "timestamp": (880_000_000 + rng.integers(0, 30, n) * 86_400).tolist(),
        "device": rng.choice(["phone", "desk"], n).tolist(),
    }
    about_users = {
        "user_id": users,
        "age": [20, 31, None, 44, 50, 28, 33, 61],
        "town": ["Delft", "Gouda", None, "Delft", "Gouda", "Delft", "Gouda", "Delft"],
    }
    about_items = {
        "item_id": [100, 101, 102, 103, 104, 105, 106],
        "genres": [["Drama"], ["Comedy", "Drama"], [], ["Comedy"], ["Action"], ["Action", "Drama"], ["Comedy"]],
        "year": [1990, 1991, 1995, 1996, 1992, 1990, 1999],
    }
    model = TuckerRecommender(rank=2, draws=6, warmup=4, time="week", context="device", random_state=0)
    model.fit(ratings, about_users, about_items)
    questions = {
        "user_id": ["user 0", "user 5", "user 7", "somebody", "user 1"],
        "item_id": [100, 106, 103, 101, 999],
        "timestamp": [880_000_000, 881_000_000, None, 882_000_000, 999_000_000],
        "device": ["phone", "desk", None, "phone", "watch"],
    }
    return model, questions


def regressor() -> tuple[TuckerGPRegressor, dict[str, list]]:
    """Every feature map, most kernels."""
    rng = np.random.default_rng(2)
    n = 40
    X = {
        "station": rng.choice(["Dublin", "Cork", "Kerry"], n).tolist(),
        "day": rng.permutation(n).astype(float).tolist(),
        "east": rng.uniform(size=n).round(3).tolist(),
        "north": rng.uniform(size=n).round(3).tolist(),
    }
    y = np.sin(np.array(X["day"]) / 5) + np.array(X["east"]) + 0.1 * rng.standard_normal(n)
    modes = [
        Mode("station", Identity() + Linear("station"), features=[None, Hashing(4)]),
        Mode("day", Periodic(7.0) + Matern32(5.0), features=[Fourier(6), None]),
        Mode(["east", "north"], SE(0.5, "east") + 0.5 * Matern12(1.0), [Nystrom(5), Cholesky(max_features=5)]),
    ]
    model = TuckerGPRegressor(modes, rank=2, draws=5, warmup=3, random_state=0).fit(X, y)
    questions = {"station": ["Cork", "Galway"], "day": [3.0, 50.5], "east": [0.25, 2.0], "north": [0.5, -1.0]}
    return model, questions


def answers(model, questions: dict[str, list]) -> dict[str, list]:
    """What a model predicts."""
    if not model.fit_.draws.sampled:
        return {"mean": model.predict(questions).tolist()}
    mean, std = model.predict(questions, return_std=True)
    _, quantiles = model.predict(questions, quantiles=[0.1, 0.9])
    return {"mean": mean.tolist(), "std": std.tolist(), "quantiles": quantiles.tolist()}


def main() -> None:
    """Write the files of this version of the format."""
    warnings.simplefilter("ignore", NotConvergedWarning)
    FOLDER.mkdir(exist_ok=True)
    for kind, make in (("model", recommender), ("regressor", regressor)):
        model, questions = make()
        path = FOLDER / f"{kind}-{MAJOR}.{MINOR}.tgp"
        model.save(path)
        known = {"questions": questions, "answers": answers(model, questions)}
        path.with_suffix(".json").write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
