"""Splits by name on the command line: ``random``, ``user:5``, ``last``, ``time:1998-03-01``, ``folds:part``."""

from __future__ import annotations

from typing import Any

from tuckergp.data.splits import ColdItems, ColdUsers, FoldColumn, Holdout, KFold, LastN, TimeSplit, UserHoldout
from tuckergp.errors import InputError

__all__ = ["read_split"]

KINDS = ("random", "user", "last", "time", "cold-users", "cold-items", "folds")


def read_split(text: str, folds: int | None, seed: int) -> Any:
    """Read a splitter from its name and, after a colon, its size: a share, number, time, or column with folds.

    Examples
    --------
    >>> read_split("last:3", None, 0)
    LastN(n=3, keep=1, column='timestamp')
    """
    kind, _, size = text.partition(":")
    if kind not in KINDS:
        raise InputError(f"--split must be one of {', '.join(KINDS)}, with a size after a colon if any, not {text!r}.")
    if folds is not None and kind not in ("random", "folds"):
        raise InputError(f"--folds goes with --split random; {kind} makes one training and one test part.")
    if folds is not None and size:
        raise InputError(f"--split {text} splits the ratings already; leave --folds out.")
    if kind == "folds" and size:
        return FoldColumn(size)
    if kind == "folds" or (kind == "random" and folds is not None):
        return KFold(5 if folds is None else folds, seed)
    if kind == "last":
        return LastN(_count(size, text) if size else 1)
    if kind == "time":
        return (
            TimeSplit() if not size else TimeSplit(share=float(size)) if _is_share(size) else TimeSplit(at=_time(size))
        )
    if kind == "user" and size.isdigit():
        return UserHoldout(n=int(size), seed=seed)
    share = 0.2 if not size else _share(size, text)
    if kind == "user":
        return UserHoldout(share=share, seed=seed)
    if kind == "random":
        return Holdout(share, seed=seed)
    return ColdUsers(share, seed) if kind == "cold-users" else ColdItems(share, seed)


def _is_share(text: str) -> bool:
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False


def _share(text: str, whole: str) -> float:
    if not _is_share(text):
        raise InputError(f"--split {whole} needs a share between 0 and 1 after the colon, such as 0.2.")
    return float(text)


def _count(text: str, whole: str) -> int:
    if not text.isdigit():
        raise InputError(f"--split {whole} needs a whole number after the colon, such as 1.")
    return int(text)


def _time(text: str) -> float | str:
    """A number in the unit of the timestamps, or a date."""
    try:
        return float(text)
    except ValueError:
        return text
