"""The report of how all attributes are used, as a table of text, or of HTML in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from tuckergp.recommender.decisions import Attribute, shown_name

__all__ = ["FeatureReport"]

_HEAD = ("table", "column", "use", "note")


class FeatureReport(Mapping[str, list[Attribute]]):
    """How each column of the user and item tables is used, or why not.

    Parameters
    ----------
    sides : mapping of str to sequence of Attribute
        For ``users`` and ``items``.

    Examples
    --------
    >>> from tuckergp.recommender.attributes import Attributes
    >>> from tuckergp.data.tables import as_table
    >>> users = as_table({"user_id": [1, 2, 3], "age": [20, 30, 40], "sex": ["F", "M", "F"]}, "users")
    >>> print(FeatureReport({"users": Attributes.fit("user_id", users).columns, "items": []}))
    table  column  use       note
    users  age     number    standardised, and by tenths
    users  sex     category  2 levels
    """

    def __init__(self, sides: Mapping[str, Sequence[Attribute]]) -> None:
        self._sides = {name: list(attributes) for name, attributes in sides.items()}

    def __getitem__(self, side: str) -> list[Attribute]:
        return self._sides[side]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sides)

    def __len__(self) -> int:
        return len(self._sides)

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Table, column, use and note of each attribute."""
        listed = [(side, one) for side, all_of in self._sides.items() for one in all_of]
        return [(side, shown_name(one.column), one.use, one.note) for side, one in listed]

    def __str__(self) -> str:
        rows = self.rows()
        if not rows:
            return "There are no attributes."
        widths = [max(len(row[j]) for row in [_HEAD, *rows]) for j in range(3)]
        return "\n".join("  ".join([*map(str.ljust, row, widths), row[3]]) for row in [_HEAD, *rows])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in _HEAD)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
