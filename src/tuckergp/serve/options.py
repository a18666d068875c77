"""Options of a list, as requests write them, as arguments of `TuckerRecommender.recommend`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tuckergp.errors import InputError
from tuckergp.recommender.written import written_conditions
from tuckergp.serve.recommending import ServedRecommender
from tuckergp.serve.schemas import BodyOptions, ListOptions, QueryOptions, Range

__all__ = ["arguments", "together"]

# Reasons take an explanation per item, and diversity compares each item of a list with those before it.
MOST_REASONED, MOST_DIVERSE, MOST_LISTED = 100, 2_000, 20_000


def arguments(served: ServedRecommender, asked: QueryOptions | BodyOptions, lists: int = 1) -> dict[str, Any]:
    """The arguments that these options stand for, for so many lists."""
    for wanted, most, what in (
        (asked.reasons, MOST_REASONED, "Reasons are given for"),
        (asked.diversity, MOST_DIVERSE, "Diverse lists have"),
        (True, MOST_LISTED, "Lists have"),
    ):
        if wanted and asked.n * lists > most:
            raise InputError(f"{what} at most {most:,} items at once; ask for fewer items or lists.")
    own = _of_query(served, asked) if isinstance(asked, QueryOptions) else _of_body(served, asked)
    return {**_common(asked), **own}


def together(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments for a group; options that a group does not have are refused."""
    usual = {**_common(ListOptions.model_validate({})), "boosts": None}
    taken = ("n", "by", "exclude_seen", "items", "exclude", "where", "min_ratings")
    for name, value in given.items():
        if name not in taken and value != usual[name]:
            option = "seed" if name == "random_state" else name
            raise InputError(f"A list for a group takes no {option!r}; leave it out, or ask for a list for each.")
    return {name: given[name] for name in taken}


def _common(asked: ListOptions) -> dict[str, Any]:
    same = ("n", "by", "strategy", "kappa", "diversity", "min_ratings", "exclude_seen", "reasons")
    return {**{name: getattr(asked, name) for name in same}, "random_state": asked.seed}


def _of_query(served: ServedRecommender, asked: QueryOptions) -> dict[str, Any]:
    boosts = [_written_boost(text) for text in asked.boost]
    return {
        "where": written_conditions(asked.where),
        "items": served.items.known_all(asked.items) or None,
        "exclude": served.items.read_all(asked.exclude) or None,
        "boosts": _boosts(served, [item for item, _ in boosts], [points for _, points in boosts]),
    }


def _written_boost(text: str) -> tuple[str, float]:
    item, _, points = text.rpartition(":")
    try:
        return item, float(points)
    except ValueError:
        raise InputError(f"boost takes an id and points, such as ID:0.5, not {text[:80]!r}.") from None


def _of_body(served: ServedRecommender, asked: BodyOptions) -> dict[str, Any]:
    sold_out = [line.item_id for line in asked.stock if not line.left]
    items = asked.items
    return {
        "where": {column: _condition(value) for column, value in asked.where.items()} or None,
        "items": None if items is None else served.items.known_all(items),
        "exclude": served.items.read_all([*asked.exclude, *sold_out]) or None,
        "boosts": _boosts(served, [line.item_id for line in asked.boosts], [line.boost for line in asked.boosts]),
    }


def _boosts(served: ServedRecommender, items: Sequence[Any], points: Sequence[float]) -> dict[Any, float] | None:
    """Points by item; an item that is not known is a mistake, as among ``items``."""
    return dict(zip(served.items.known_all(items), points, strict=True)) or None


def _condition(value: Any) -> Any:
    if isinstance(value, Range):
        return value.low, value.high
    return list(map(_condition, value)) if isinstance(value, Sequence) and not isinstance(value, str) else value
