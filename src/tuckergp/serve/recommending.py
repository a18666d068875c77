"""A recommender as it is served: plain answers to plain questions, from one state of the model.

An object of this class never changes: ratings folded in make another one. So an answer is from the model before or
after, never a mixture, and a reload is one assignment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from tuckergp.data.frames import COLUMNS
from tuckergp.data.names import KEYS
from tuckergp.errors import InputError
from tuckergp.recommender import TuckerRecommender
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.serving import seen_items
from tuckergp.serve.entities import Entities, Texts

__all__ = ["ServedRecommender"]


class ServedRecommender:
    """A recommender at one moment.

    Parameters
    ----------
    model : TuckerRecommender
        Not to be changed by others from now on.
    texts : tuple of Texts or None
        Of an earlier state of the same file.
    """

    kind = "recommender"

    def __init__(self, model: TuckerRecommender, texts: tuple[Texts, Texts] | None = None) -> None:
        # the usual names of columns, whatever those of the training tables were
        self.model = _copied(model, backend_=COLUMNS, columns=None, columns_={})
        sides, tables = self.model.layout_.sides, self.model.tables_
        self.texts = texts or (Texts(sides[0], tables[0]), Texts(sides[1], tables[1]))

    @cached_property
    def users(self) -> Entities:
        """The users."""
        return Entities(self.model.layout_.sides[0], self.model.tables_[0], self.texts[0])

    @cached_property
    def items(self) -> Entities:
        """The items."""
        return Entities(self.model.layout_.sides[1], self.model.tables_[1], self.texts[1])

    @property
    def fitted(self) -> FittedRecommender:
        """The model as the functions of `tuckergp.recommender` take it."""
        return self.model._fitted

    @property
    def facts(self) -> dict[str, Any]:
        """What the model is, in a few numbers and words."""
        model, (users, items) = self.model, self.model.layout_.sides
        low, high = model.rating_range_
        return {
            "kind": self.kind,
            "of": "choices" if model.history_.clicks else "ratings",
            "likelihood": model.fit_.likelihood.name,
            "users": int(np.count_nonzero(users.current)),
            "items": int(np.count_nonzero(items.current)),
            "ratings": len(model.history_),
            "rating_range": None if model.history_.clicks else [low, high],
            "draws": len(model.fit_.draws),
            "by": ["choice"] if model.history_.clicks else ["rating"] if self.fitted.choice is None
                  else ["value", "rating", "choice"],
            "circumstances": list(model.history_.base.occasion_columns),
        }  # fmt: skip

    def predict(self, rows: Sequence[Mapping[str, Any]], unknown: str, **asked: Any) -> Any:
        """Predictions of pairs, as `TuckerRecommender.predict` gives them."""
        read = self.users.read, self.items.read
        if unknown == "refuse":
            read = self.users.known, self.items.known
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
        for key, of in zip(KEYS, read, strict=True):
            gone = next((number for number, row in enumerate(rows) if row.get(key) is None), None)
            if gone is not None:
                raise InputError(f"Row {gone} has no {key!r}; a pair has user_id and item_id.")
            columns[key] = [of(value) for value in columns[key]]
        return self.model.predict(columns, **asked)

    def rated(self, user: Any) -> int:
        """How many items a known user has rated."""
        layout = self.model.layout_
        return int(seen_items(layout, self.model.history_, layout.sides[0].numbers([user])).nnz)

    def recommend(self, user: Any, **asked: Any) -> list[dict[str, Any]]:
        """The best items for one user, who may be a table of one row, best first, with titles."""
        return self._records(self.model.recommend(user, **asked))

    def _records(self, columns: Any) -> list[dict[str, Any]]:
        """Lists as records, with titles."""
        ids = columns["item_id"]
        numbers = {name: np.asarray(columns[name]).tolist() for name in columns if name not in KEYS}
        return [
            {"item_id": value, "title": title, **dict(zip(numbers, cells, strict=True))}
            for value, title, *cells in zip(ids, self.items.titles(ids), *numbers.values(), strict=True)
        ]


def _copied(model: TuckerRecommender, **changed: Any) -> TuckerRecommender:
    """The same fitted model as another object, so that what is folded into one is not in the other."""
    other = TuckerRecommender.__new__(TuckerRecommender)
    other.__dict__ = {**model.__dict__, **changed}
    return other
