"""What the first answers of a model would compute once for all later ones, before anybody waits for it.

Compiled code is loaded, ratings are counted, and texts are put together for search. What is asked for rarely, such as
the map, and what takes much memory, is left to who asks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from tuckergp.data.names import KEYS
from tuckergp.errors import InputError
from tuckergp.serve.pages import PageState
from tuckergp.serve.people import new_id
from tuckergp.serve.recommending import ServedRecommender
from tuckergp.serve.regressing import ServedRegressor
from tuckergp.serve.views.about import about_recommender
from tuckergp.serve.views.surface import columns_of, surface

__all__ = ["warm"]

log = logging.getLogger("tuckergp.serve")


def warm(served: ServedRecommender | ServedRegressor, page: PageState) -> None:
    """Ask a model what the page asks it first. What it refuses, and any fault, is left to who asks."""
    steps = _recommender(served, page) if isinstance(served, ServedRecommender) else _regressor(served)
    for step in steps:
        try:
            step()
        except InputError:
            pass  # such as lists of a file without ratings
        except Exception:
            log.warning("A new model could not be prepared for its first requests.", exc_info=True)


def _recommender(served: ServedRecommender, page: PageState) -> list[Callable[[], object]]:
    """The start of the page, a list, an explanation, and the list of somebody new."""
    first = [side.ids_at(np.flatnonzero(side.current)[:1]) for side in served.model.layout_.sides]
    if not all(first):
        return []
    (user,), (item,) = first
    return [
        lambda: about_recommender(served, page.levels(served)),
        lambda: [entities.page("a", 0, 1) for entities in (served.users, served.items)],
        lambda: served.recommend([user], n=1),
        lambda: served.explain(user, item, {}),
        lambda: _folded_in(served, item),
    ]


def _folded_in(served: ServedRecommender, item: str) -> None:
    """Somebody new and a rating, in a copy that is dropped."""
    new = new_id(served.users.side.example, 0)
    rating = {} if served.model.history_.clicks else {"rating": served.model.rating_range_[1]}
    served.with_ratings([{KEYS[0]: new, KEYS[1]: item, **rating}]).recommend([new], n=1)


def _regressor(served: ServedRegressor) -> list[Callable[[], object]]:
    """The first view of the page."""
    return [lambda: surface(served.model, columns_of(served.model)["first"], {})]
