"""Synthetic choices whose chances are known, so that the best possible lists are.

Everybody chooses some items, one after the other, with chances in proportion to weights:

    log w(u, i) = fame_i + BIAS b_i + TASTE U_u' V_i / sqrt(RANK)

Fame is by Zipf's law. U, V and b have unit variance; half of it is linear in the attributes of `make_ratings` (age,
sex, occupation; year, genres), and half is each row's own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Made", "made"]

RANK, TASTE, BIAS, EXPLAINED = 4, 1.0, 0.5, 0.5
# Median of the number of choices of a user, and the standard deviation of its logarithm.
CHOICES, SPREAD, LEAST = 25.0, 0.7, 8


class Made(NamedTuple):
    """Choices, attributes, and log weights at the rows of ``users`` and ``items``.

    ``weight`` is the true one. In ``new_users`` and ``new_items`` it is the logarithm of the expected one for somebody
    who knows all but what is a user's, or an item's, own.
    """

    clicks: Any
    users: Any
    items: Any
    weight: Any
    new_users: Any
    new_items: Any


def made(n_users: int, n_items: int, seed: int) -> Made:
    """Make choices; the same seed gives the same ones."""
    from tuckergp.datasets import make_ratings

    from tuckergp.data.tables import Table

    rng = np.random.default_rng(seed)
    tables = make_ratings(n_users, n_items, 5 * n_users, random_state=seed)
    users, items = tables.users, tables.items
    U, own_U = parts(
        numbers([users["age"]], [[word] for word in users["sex"]], [[x] for x in users["occupation"]]), rng
    )
    V, own_V = parts(numbers([items["year"]], items["genres"]), rng)
    fame = -np.log(8.0 + rng.permutation(n_items))

    def weight(user: Any, item: Any, fame: Any) -> Any:
        return fame + BIAS * item[:, RANK] + TASTE / RANK**0.5 * user[:, :RANK] @ item[:, :RANK].T

    true = weight(U + own_U, V + own_V, fame)
    # the mean of exp of a normal variable has half of the variance
    variance = TASTE**2 / RANK * (1 - EXPLAINED) * ((V + own_V)[:, :RANK] ** 2).sum(axis=1)
    count = np.clip(np.rint(CHOICES * rng.lognormal(0.0, SPREAD, n_users)), LEAST, n_items // 2).astype(np.intp)
    order = np.argsort(-(true + rng.gumbel(size=true.shape)), axis=1)  # a weighted draw without replacement
    chosen = np.concatenate([row[:n] for row, n in zip(order, count, strict=True)])
    columns = {"user_id": np.repeat(users["user_id"], count), "item_id": items["item_id"][chosen]}
    clicks = Table(columns, "clicks", len(chosen))
    # for new items, what varies besides is the same for all items of a user
    expected = weight(U, V + own_V, fame) + variance / 2, weight(U + own_U, V, 0.0)
    return Made(clicks, users, items, true, *expected)


def numbers(columns: list[Any], *lists: Any) -> Any:
    """Standardised numbers beside a column for each word."""
    from hybrids import flags

    standard = [(column - column.mean()) / column.std() for column in (np.asarray(c, dtype=float) for c in columns)]
    return np.column_stack([*standard, *(flags(words).toarray() for words in lists)])


def parts(X: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Factors and biases from attributes, and each row's own part of them, both (n_rows, RANK + 1)."""
    explained = X @ rng.standard_normal((X.shape[1], RANK + 1))
    explained = (explained - explained.mean(axis=0)) / explained.std(axis=0)
    return EXPLAINED**0.5 * explained, (1 - EXPLAINED) ** 0.5 * rng.standard_normal(explained.shape)
