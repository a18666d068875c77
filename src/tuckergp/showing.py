"""Objects as people see them: the same text in a terminal, in print and in a notebook."""

from __future__ import annotations

from html import escape

__all__ = ["Shown"]


class Shown:
    """An object whose ``str`` is also its repr, and what notebooks show; dataclasses need ``repr=False``."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
