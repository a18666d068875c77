"""Model files of the command line."""

from __future__ import annotations

from pathlib import Path

from tuckergp.errors import InputError
from tuckergp.recommender import TuckerRecommender
from tuckergp.store.model_file import load

__all__ = ["load_recommender"]


def load_recommender(path: Path) -> TuckerRecommender:
    """The recommender of a file; other models cannot answer the commands."""
    model = load(path)
    if not isinstance(model, TuckerRecommender):
        raise InputError(f"{path} holds a {type(model).__name__}; this command needs what tuckergp fit has written.")
    return model
