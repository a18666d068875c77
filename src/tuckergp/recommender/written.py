"""Conditions on attributes as text: ``genre=Comedy``, ``year=1980..1999``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tuckergp.errors import InputError

__all__ = ["written_conditions"]

# A number or a date.
END = re.compile(r"[-+]?\d[^ ]*")


def written_conditions(texts: Sequence[str] | None, option: str = "where") -> dict[str, list[Any]] | None:
    """The ``where`` of `TuckerRecommender.recommend`; of several texts for one column, any may hold.

    ``option`` is what errors call them.

    Examples
    --------
    >>> written_conditions(["genre=Comedy", "genre=Drama", "year=1980..1999", "price=..9.99"])
    {'genre': ['Comedy', 'Drama'], 'year': [('1980', '1999')], 'price': [(None, '9.99')]}
    """
    if not texts:
        return None
    found: dict[str, list[Any]] = {}
    for text in texts:
        column, equals, value = (part.strip() for part in text.partition("="))
        if not (column and equals and value):
            raise InputError(
                f"{option} takes a column and a value, such as genre=Comedy or year=1980..1999, not {text!r}."
            )
        found.setdefault(column, []).append(_range(value) or value)
    return found


def _range(text: str) -> tuple[str | None, str | None] | None:
    """The ends of numbers or dates with two dots between, one of which may be missing; None for other texts."""
    low, dots, high = text.partition("..")
    right = dots and (low or high) and all(not end or END.fullmatch(end) for end in (low, high))
    return (low or None, high or None) if right else None
