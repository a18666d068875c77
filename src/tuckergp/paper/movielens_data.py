"""MovieLens 100K as the paper models it: binary side information, the modes of eq. cfside, the validation parts.

The fits to these data are in `tuckergp.paper.movielens_search`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.datasets import MovieLens
from tuckergp.data.tables import Table
from tuckergp.features import Hashing
from tuckergp.kernels import Identity, Linear
from tuckergp.model.design import Design
from tuckergp.model.mode import Mode
from tuckergp.random import stream

__all__ = ["Entities", "Ratings", "Split", "age_bins", "carve", "design_of", "entities_of", "modes_of", "split_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

# The paper bins age into five categories and does not say where: under 18, 18-24, 25-34, 35-49, 50 and over.
AGE_EDGES = (18, 25, 35, 50)

# Keys of the random streams; seeds of fits are small numbers, so that they differ from these.
_VALIDATION_KEY = 1_000_001


@dataclass(frozen=True)
class Entities:
    """One row per user (``user_id``, ``age`` bin, ``sex``, ``occupation``) and per item (``item_id``, ``genres``)."""

    users: Table
    items: Table


@dataclass(frozen=True)
class Ratings:
    """The rows of the user and the item of each rating, shape (N, 2), and the ratings (N,)."""

    index: npt.NDArray[np.int32]
    rating: Floats

    def __len__(self) -> int:
        return len(self.rating)

    def take(self, observations: npt.NDArray[Any]) -> Ratings:
        """Some of the ratings."""
        return Ratings(np.ascontiguousarray(self.index[observations]), self.rating[observations])


def age_bins(age: npt.ArrayLike) -> npt.NDArray[Any]:
    """The name of the bin of each age.

    Examples
    --------
    >>> list(age_bins([7, 18, 24, 49, 50]))
    ['under 18', '18-24', '18-24', '35-49', '50 and over']
    """
    low, high = AGE_EDGES[0], AGE_EDGES[-1]
    middle = [f"{a}-{b - 1}" for a, b in pairwise(AGE_EDGES)]
    names = np.array([f"under {low}", *middle, f"{high} and over"], dtype=object)
    return names[np.searchsorted(AGE_EDGES, np.asarray(age), side="right")]


def attribute_tables(movielens: MovieLens) -> tuple[Table, Table]:
    """All attributes of users and films except titles, whose words did not help on a validation part."""
    return movielens.users, movielens.items.select([name for name in movielens.items.columns if name != "title"])


def entities_of(movielens: MovieLens) -> Entities:
    """Users and items with the side information of the paper: 5 + 2 + 21 and 18 binary attributes.

    The paper counts 20 occupations; the data name 21, "none" and "other" among them. All are kept.
    """
    users, items = movielens.users, movielens.items
    columns = {
        "user_id": users["user_id"],
        "age": age_bins(users["age"]),
        "sex": users["sex"],
        "occupation": users["occupation"],
    }
    return Entities(Table(columns, "users", len(users)), items.select(["item_id", "genres"]))


def ratings_of(entities: Entities, table: Table) -> Ratings:
    """Number the users and items of a table of ratings by their rows in ``entities``."""
    index = np.stack(
        [_rows(entities.users["user_id"], table["user_id"]), _rows(entities.items["item_id"], table["item_id"])], axis=1
    )
    return Ratings(index.astype(np.int32), np.asarray(table["rating"], dtype=np.float64))


def _rows(known: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> Ints:
    order = np.argsort(known)
    return order[np.searchsorted(known, wanted, sorter=order)]


def carve(n: int, seed: int, split: int, share: float = 0.1) -> tuple[Ints, Ints]:
    """Split n training ratings into those to learn from and those to choose by, both sorted."""
    shuffled = stream(seed, _VALIDATION_KEY, split).permutation(n)
    cut = round(share * n)
    return np.sort(shuffled[cut:]), np.sort(shuffled[:cut])


@dataclass(frozen=True)
class Split:
    """One official split: ratings to learn from, to choose by, the whole training part, and the test part."""

    number: int
    entities: Entities
    learn: Ratings
    choose: Ratings
    train: Ratings
    test: Ratings

    @classmethod
    def of(cls, number: int, entities: Entities, train: Ratings, test: Ratings, seed: int) -> Split:
        """Set a tenth of the training part aside."""
        learn, choose = carve(len(train), seed, number)
        return cls(number, entities, train.take(learn), train.take(choose), train, test)


def split_of(movielens: MovieLens, number: int, seed: int = 0) -> Split:
    """One of the official splits u1..u5."""
    entities = entities_of(movielens)
    train, test = (ratings_of(entities, part) for part in movielens.split(number))
    return Split.of(number, entities, train, test, seed)


def modes_of(side: tuple[float, float, float] | None = None, buckets: int | None = None) -> list[Mode]:
    """The two modes of f.

    Parameters
    ----------
    side : tuple (a, b, c) or None
        f = a (U_i + b sum_k U_{n1+k})' W (V_j + c sum_k V_{n2+k}), eq. cfside; None for ids alone.
    buckets : int or None
        Hash the ids of each mode into this many features.
    """
    hashing = None if buckets is None else Hashing(buckets)
    if side is None:
        return [Mode(name, Identity(), features=hashing, constant=False) for name in ("user_id", "item_id")]
    a, b, c = side
    features = None if hashing is None else [hashing, None]
    attributes = ("age", "sex", "occupation")
    user = a**2 * Identity("user_id") + (a * b) ** 2 * Linear(*attributes)
    item = Identity("item_id") + c**2 * Linear("genres")
    return [
        Mode(["user_id", *attributes], user, features=features, constant=False),
        Mode(["item_id", "genres"], item, features=features, constant=False),
    ]


def design_of(entities: Entities, modes: list[Mode], ratings: Ratings, seed: int = 0) -> Design:
    """Feature tables of all users and items, and the rows of the ratings; ``seed`` is that of the hash functions."""
    design, _ = Design.of_entities(modes, [entities.users, entities.items], list(ratings.index.T), seed)
    return design
