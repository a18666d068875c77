"""Objects as people see them, the same text in a terminal, in print and in a notebook; and values as JSON has them."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

__all__ = ["Shown", "plain"]


class Shown:
    """An object whose ``str`` is also its repr, and what notebooks show; dataclasses need ``repr=False``."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def plain(value: Any) -> Any:
    """A value as JSON has it: NaN and infinity are None, dates and other objects are text.

    Examples
    --------
    >>> plain({"std": np.float32(np.nan), "genres": ("Comedy", "Drama")})
    {'std': None, 'genres': ['Comedy', 'Drama']}
    """
    if isinstance(value, np.generic):
        value = str(value) if isinstance(value, np.datetime64) else value.item()
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)
