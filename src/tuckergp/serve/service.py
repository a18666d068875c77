"""The model that a server has at the moment."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuckergp.recommender import TuckerRecommender
from tuckergp.serve.errors import NotFound
from tuckergp.serve.recommending import ServedRecommender
from tuckergp.serve.regressing import ServedRegressor
from tuckergp.serve.settings import ServeSettings
from tuckergp.store.model_file import load

__all__ = ["Served", "Service"]

Served = ServedRecommender | ServedRegressor


@dataclass(frozen=True)
class Loaded:
    """A model file that was read, and when."""

    served: Served
    stamp: tuple[int, ...]
    changed: float
    loaded: float


def stamp_of(path: Path) -> tuple[int, ...]:
    """What changes when a file does."""
    facts = os.stat(path)
    return facts.st_mtime_ns, facts.st_size, facts.st_ino


class Service:
    """What all requests of one worker share: the model, and how it changes."""

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self._now = self._load()

    def current(self) -> Served:
        """The model as it is now, with everything folded in so far."""
        return self._now.served

    def recommender(self) -> ServedRecommender:
        """The same, if it is a recommender."""
        served = self.current()
        if not isinstance(served, ServedRecommender):
            raise NotFound("This model predicts values from inputs: it has no users and items. Ask /predict.")
        return served

    def regressor(self) -> ServedRegressor:
        """The same, if it is a regression model."""
        served = self.current()
        if not isinstance(served, ServedRegressor):
            raise NotFound("This model is a recommender; only a regression model has this.")
        return served

    @property
    def facts(self) -> dict[str, Any]:
        """What is served, and since when."""
        now = self._now
        return {
            "file": self.settings.path.name,
            "changed": now.changed,
            "loaded": now.loaded,
            **now.served.facts,
        }

    def _load(self) -> Loaded:
        path = self.settings.path
        model: Any = load(path)
        stamp = stamp_of(path)
        served = ServedRecommender(model) if isinstance(model, TuckerRecommender) else ServedRegressor(model)
        return Loaded(served, stamp, stamp[0] / 1e9, time.time())
