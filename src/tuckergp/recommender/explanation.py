"""Explanations as tables and plots of parts that add up. They are computed in `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from tuckergp.recommender.decisions import CO_RATING
from tuckergp.recommender.plots import bars, pair_of_axes, waterfall
from tuckergp.showing import Shown

__all__ = ["Contribution", "Explanation", "Importance"]


OWN = "own"
"""The name of the part that only the id explains."""

PHRASES = {
    ("user", OWN): "user's own taste",
    ("item", OWN): "item's own appeal",
    ("user", CO_RATING): "people who rated the same items",
    ("item", CO_RATING): "items rated by the same people",
    ("time", "period"): "everyone at that time",
    ("time", OWN): "user at that time",
    ("context", OWN): "this combination of contexts",
}
"""Parts that are no attributes, in words, by side and name."""

# Smaller contributions, and with smaller standard deviations, are not shown.
NOTHING = 0.0005

# How many parts are named in a sentence.
NAMED = 2

VERDICTS = {
    "rating": ("You would like it", "You would like it no more than an average item"),
    "probability of a choice": ("Chosen by people like you", "Seldom chosen by people like you"),
}
"""How a sentence begins, by what is predicted: where the parts raise the total above the base, and where not."""
OTHER_VERDICTS = ("Above the average", "Not above the average")


class Contribution(NamedTuple):
    """One part of an explanation: its side, name and value, its contribution, and the standard deviation of that."""

    side: str
    what: str
    value: str
    contribution: float
    std: float

    @property
    def label(self) -> str:
        """The part as text, such as ``user age=33`` or ``user's own taste``."""
        if (self.side, self.what) in PHRASES:
            phrase = PHRASES[self.side, self.what]
            return f"{phrase} ({self.value})" if self.value else phrase
        return " ".join(filter(None, [self.side, f"{self.what}={self.value}" if self.value else self.what]))


@dataclass(frozen=True, repr=False)
class Explanation(Shown):
    """An explanation of one prediction as a sum of contributions.

    Attributes
    ----------
    user, item : id
    rows : tuple of Contribution
        The base first. Their contributions add up to ``total``.
    std : float
        Standard deviation of the total over the draws; 0 for a MAP estimate.
    predicted : float
        What is predicted, such as the rating, not clipped. The total itself where ``latent`` is None.
    latent : str or None
        What the contributions add up to, if it is not the rating: the latent utility of ordinal and Bernoulli models,
        the tendency to choose of models of clicks, or the log of the mean of counts.
    predicts : str
        What ``predicted`` is: ``"rating"``, ``"probability of a choice"``, ``"probability"`` or ``"count"``.
    choice : Explanation or None
        Why the item would be chosen, beside how much it would be liked, where both are asked for.
    value, value_std : float or None
        With ``choice``, what lists by value are sorted by, and its standard deviation (NaN for a MAP estimate).
    """

    user: Any
    item: Any
    rows: tuple[Contribution, ...]
    std: float
    predicted: float
    latent: str | None
    predicts: str = "rating"
    choice: Explanation | None = None
    value: float | None = None
    value_std: float | None = None

    @property
    def total(self) -> float:
        """The sum of all contributions: the mean of f."""
        return float(sum(line.contribution for line in self.rows))

    @property
    def words(self) -> str:
        """The explanation in a sentence, or two where there is a ``choice``, with the parts that count most."""
        raised = self.total > self.rows[0].contribution
        verdict = VERDICTS.get(self.predicts, OTHER_VERDICTS)[0 if raised else 1]
        parts = [f"{line.label} ({line.contribution:+.2g})" for line in self._shown()[:NAMED]]
        reasons = f", mostly by {' and '.join(parts)}" if parts else ""
        further = "" if self.choice is None else f" {self.choice.words}"
        return f"{verdict}: {self.predicts} {self.predicted:.3g}{reasons}.{further}"

    def __str__(self) -> str:
        if self.choice is None or self.value is None or self.value_std is None:
            return self._table()
        value = _text([Contribution("", "value", "", self.value, self.value_std)], ("in lists", "score", "std"))
        each = [f"{part.words}\n\n{part._table()}" for part in (replace(self, choice=None), self.choice)]
        return "\n\n".join([*each, value])

    def _table(self) -> str:
        lines = [self.rows[0], *self._shown(), Contribution("", "total", "", self.total, self.std)]
        if self.latent:
            lines.append(Contribution("", f"predicted {self.predicts}", "", self.predicted, float("nan")))
        return _text(lines, ("part", "adds", "std"))

    def _shown(self) -> list[Contribution]:
        """The parts besides the base, the largest first, without those that add nothing."""
        counts = [line for line in self.rows[1:] if max(abs(line.contribution), line.std) >= NOTHING]
        return sorted(counts, key=lambda line: -abs(line.contribution))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        rows = [line._asdict() for line in self.rows]
        choice = None if self.choice is None else self.choice.to_dict()
        return {**values, "rows": rows, "choice": choice, "total": self.total, "words": self.words}

    def records(self) -> list[dict[str, Any]]:
        """The parts as rows of one table, with what each is a part of."""
        own = [{"explains": self.predicts, **line._asdict()} for line in self.rows]
        return own if self.choice is None else [*own, *self.choice.records()]

    def plot(self, ax: Any = None) -> Any:
        """Plot the contributions from the base to the prediction (extra ``plot``); returns the axes.

        With a ``choice``, two axes, that of the choice below; ``ax`` may be a pair of them.
        """
        if self.choice is not None:
            above, below = pair_of_axes(len(self._shown()), len(self.choice._shown())) if ax is None else ax
            return replace(self, choice=None).plot(above), self.choice.plot(below)
        lines, what = self._shown(), self.latent or self.predicts
        labels, values = [line.label for line in lines], [line.contribution for line in lines]
        return waterfall(labels, values, self.rows[0].contribution, f"{what} of {self.item} by {self.user}", ax)


@dataclass(frozen=True, repr=False)
class Importance(Shown):
    """The share of the variance of f that each part explains; the contributions in ``rows`` are shares, with sum 1."""

    rows: tuple[Contribution, ...]

    def __str__(self) -> str:
        return _text(self.rows, ("part", "share", "std"))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        names = ("side", "what", "share", "std")
        return {"rows": [dict(zip(names, (line.side, line.what, *line[3:]), strict=True)) for line in self.rows]}

    def records(self) -> list[dict[str, Any]]:
        """The parts as rows of a table."""
        return [line._asdict() for line in self.rows]

    def plot(self, ax: Any = None) -> Any:
        """Plot the shares (extra ``plot``); returns the axes."""
        labels, shares = [line.label for line in self.rows], [line.contribution for line in self.rows]
        return bars(labels, shares, [line.std for line in self.rows], "share of the variance of predictions", ax)


def _text(lines: Sequence[Contribution], head: tuple[str, str, str]) -> str:
    width = max(len(head[0]), *(len(line.label) for line in lines))
    rows = [f"{head[0]:<{width}}  {head[1]:>8}  {head[2]:>7}"]
    for line in lines:
        std = f"{line.std:7.3f}" if line.std == line.std else ""
        rows.append(f"{line.label:<{width}}  {line.contribution:8.3f}  {std}".rstrip())
    return "\n".join(rows)
