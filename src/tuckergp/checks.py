"""What a parameter may be, declared beside its default, and the one check that refuses everything else.

A declaration is an `Allowed`: a test and the words for what passes it. `setting` attaches it to a field of a dataclass,
and a `Checked` dataclass checks all its fields. Refusals are an `InputError` of one sentence that names the parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Self, TypeVar

import numpy as np

from tuckergp.errors import InputError

__all__ = [
    "JOBS",
    "RANDOM_STATE",
    "RANKS",
    "Allowed",
    "Checked",
    "check",
    "dict_of",
    "instance",
    "list_of",
    "number",
    "one_of",
    "positive",
    "probability",
    "setting",
    "text",
    "whole",
]

T = TypeVar("T")
LONGEST = 120


@dataclass(frozen=True)
class Allowed:
    """What a value may be: a description of each alternative, and the test.

    Examples
    --------
    >>> print(whole(1) | one_of("auto", None))
    a whole number from 1 on, 'auto' or None
    """

    words: tuple[str, ...]
    holds: Callable[[Any], bool]

    def __or__(self, other: Allowed) -> Allowed:
        return Allowed((*self.words, *other.words), lambda value: self.holds(value) or other.holds(value))

    def __str__(self) -> str:
        *first, last = self.words
        return f"{', '.join(first)} or {last}" if first else last


def check(name: str, value: Any, allowed: Allowed) -> None:
    """Refuse a value that is not allowed.

    Examples
    --------
    >>> check("rank", "a", whole(1))
    Traceback (most recent call last):
    ...
    tuckergp.errors.InputError: rank must be a whole number from 1 on, not 'a'.
    """
    if not allowed.holds(value):
        shown = " ".join(repr(value).split())
        shown = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}..."
        raise InputError(f"{name} must be {allowed}, not {shown}.")


def setting(default: T, allowed: Allowed) -> T:
    """A field of a dataclass with a default and a declaration of what it may be; for `Checked`."""
    made: T = field(default=default, metadata={"allowed": allowed})
    return made


@dataclass(frozen=True)
class Checked:
    """A dataclass of parameters, refused if one of them is not what its declaration allows."""

    def __post_init__(self) -> None:
        for name, allowed in _declared(type(self)):  # type: ignore[arg-type]
            if not allowed.holds(getattr(self, name)):
                check(self._label(name), getattr(self, name), allowed)

    def _label(self, name: str) -> str:
        """What refusals call a parameter."""
        return name

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """The parameters of an estimator as they are now."""
        return cls(**{each.name: getattr(estimator, each.name) for each in fields(cls)})


@cache
def _declared(parameters: type[Checked]) -> list[tuple[str, Allowed]]:
    """The fields of a class of parameters that have a declaration."""
    return [(each.name, each.metadata["allowed"]) for each in fields(parameters) if "allowed" in each.metadata]


def whole(least: int, most: int | None = None) -> Allowed:
    """Whole numbers from ``least`` on, or to ``most``, but no bools."""
    end = "on" if most is None else f"to {most}"
    return Allowed(
        (f"a whole number from {least} {end}",),
        lambda value: _is_whole(value) and least <= value and (most is None or value <= most),
    )


def number(words: str = "a finite number", holds: Callable[[Any], bool] = lambda value: True) -> Allowed:
    """Finite numbers of which ``holds`` is true, described by ``words``, but no bools."""

    def is_number(value: Any) -> bool:
        numeric = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        return numeric and bool(np.isfinite(value)) and holds(value)

    return Allowed((words,), is_number)


def positive() -> Allowed:
    """Positive finite numbers."""
    return number("positive", lambda value: value > 0)


def probability() -> Allowed:
    """Numbers between 0 and 1, without both ends."""
    return number("a probability between 0 and 1", lambda value: 0 < value < 1)


def one_of(*options: str | bool | None) -> Allowed:
    """Some names, True, False or None, each of its own type: 1 is not True."""

    def is_one(value: Any) -> bool:
        value = value.item() if isinstance(value, np.generic) else value
        return any(type(value) is type(option) and value == option for option in options)

    return Allowed(tuple(map(repr, options)), is_one)


def instance(words: str, *kinds: type) -> Allowed:
    """Objects of some classes."""
    return Allowed((words,), lambda value: isinstance(value, kinds))


def text(words: str) -> Allowed:
    """Strings, described by ``words``."""
    return instance(words, str)


def list_of(words: str, each: Allowed, least: int = 0) -> Allowed:
    """Lists, tuples and the like, but neither strings nor dicts, of what is allowed for each entry."""

    def is_list(value: Any) -> bool:
        listed = isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)
        return listed and len(value) >= least and _all(each, value)

    return Allowed((words,), is_list)


def dict_of(words: str, each: Allowed) -> Allowed:
    """Dicts from strings to what is allowed for each value."""

    def is_dict(value: Any) -> bool:
        return isinstance(value, Mapping) and _all(text(""), value) and _all(each, value.values())

    return Allowed((words,), is_dict)


def _all(each: Allowed, values: Iterable[Any]) -> bool:
    return all(map(each.holds, values))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


# What several estimators take.

RANKS = whole(1) | list_of("a list of such, one per mode", whole(1), least=1)
JOBS = one_of(None) | Allowed(("a positive number", "-1 for all cores"), lambda value: _is_whole(value) and value != 0)
RANDOM_STATE = one_of(None) | whole(0) | instance("a NumPy generator", np.random.Generator, np.random.RandomState)
