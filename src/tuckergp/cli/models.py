"""Loading of model files for commands."""

from __future__ import annotations

from pathlib import Path

from tuckergp.data.frames import COLUMNS
from tuckergp.errors import InputError
from tuckergp.recommender import TuckerRecommender
from tuckergp.store.model_file import load

__all__ = ["load_recommender"]


def load_recommender(path: Path) -> TuckerRecommender:
    """Load a recommender whose answers are columns; an error for other models, which the commands do not support."""
    model = load(path)
    if not isinstance(model, TuckerRecommender):
        raise InputError(f"{path} holds a {type(model).__name__}; this command needs what tuckergp fit has written.")
    if not hasattr(model, "columns_"):  # of an earlier version
        model.columns_ = dict(model.columns or {})
    model.backend_ = COLUMNS  # commands write answers; to make a data frame first would load its library
    return model
