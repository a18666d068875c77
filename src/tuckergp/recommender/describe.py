"""`describe`: a summary of a table of ratings, and its faults, before anything is learned from it.

Counts and distributions are here, faults in `tuckergp.data.findings`. The result prints as text and converts to plain
data.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.findings import SHOWN, Finding, as_numbers, as_times, find, usual_range
from tuckergp.data.history import KEYS, RATING, TIMESTAMP
from tuckergp.data.id_types import describe_type
from tuckergp.data.ids import with_aligned_ids
from tuckergp.data.names import missing_column, named_table, taken_names, words
from tuckergp.data.tables import Table, column_names, distinct_rows, is_missing, show_cell
from tuckergp.errors import DataWarning
from tuckergp.recommender.attributes import Attribute, Attributes
from tuckergp.recommender.feature_report import FeatureReport
from tuckergp.recommender.layout import SIDES
from tuckergp.showing import Shown

__all__ = ["Bar", "Counts", "Description", "Finding", "Known", "RatingValues", "describe"]

Ints = npt.NDArray[np.intp]

MOST_LEVELS, BINS = 12, 10
BAR_WIDTH = 30


@dataclass(frozen=True)
class Counts:
    """The number of ratings per user, or per item: smallest, median, mean and largest."""

    least: int
    median: float
    mean: float
    most: int

    @classmethod
    def of(cls, code: Ints) -> Counts:
        """Count from the number of the user or item of each rating."""
        counts = np.bincount(code)
        return cls(int(counts.min()), float(np.median(counts)), float(counts.mean()), int(counts.max()))


@dataclass(frozen=True)
class Bar:
    """One bar of a histogram: a level, or a range including both ends, and the number of ratings in it."""

    low: float
    high: float
    count: int

    @property
    def label(self) -> str:
        """The level, or the ends of the range."""
        return f"{self.low:g}" if self.low == self.high else f"{self.low:.4g} to {self.high:.4g}"


@dataclass(frozen=True)
class RatingValues:
    """The ratings as numbers: their range, mean, standard deviation, distinct values, and histogram.

    The histogram leaves out ratings that are far from all others.
    """

    least: float
    most: float
    mean: float
    std: float
    n_distinct: int
    histogram: tuple[Bar, ...]

    @classmethod
    def of(cls, y: npt.NDArray[np.float64]) -> RatingValues:
        """Compute the summary from the ratings."""
        levels, counts = np.unique(y, return_counts=True)
        low, high = usual_range(y)
        near = (levels >= low) & (levels <= high)
        if near.sum() <= MOST_LEVELS:
            pairs = zip(levels[near].tolist(), counts[near].tolist(), strict=True)
            bars = tuple(Bar(level, level, count) for level, count in pairs)
        else:
            heights, edges = np.histogram(levels[near], bins=BINS, weights=counts[near])
            ends = edges.tolist()
            bars = tuple(Bar(ends[j], ends[j + 1], int(height)) for j, height in enumerate(heights))
        return cls(float(y.min()), float(y.max()), float(y.mean()), float(y.std()), len(levels), bars)


@dataclass(frozen=True)
class Known:
    """A table of users or items: its rows, how many have no ratings, and how many with ratings it lacks."""

    name: str
    n_rows: int
    without_ratings: int
    not_in_table: int


@dataclass(frozen=True, repr=False)
class Description(Shown):
    """The result of `describe`: counts, distributions and findings.

    Attributes
    ----------
    name : str
        The table or file.
    n_rows : int
    n_ratings, n_users, n_items : int
        Numbers of usable ratings, and of users and items in them.
    density : float
        Share of all pairs of user and item that have a rating.
    columns : dict of str to str
        The columns taken for ``user_id``, ``item_id``, ``rating`` and ``timestamp`` that have other names.
    id_types : dict of str to str
        For ``user_id`` and ``item_id``, whether ids are integers or text: decided here, for all later tables.
    n_repeated : int
        Rows with a user and an item that an earlier row has.
    per_user, per_item : Counts or None
    ratings : RatingValues or None
        None for clicks.
    first, last : str or None
        The range of the timestamps, those in the future and before 1970 included.
    tables : dict of str to Known
        For ``users`` and ``items``, where they were given.
    attributes : FeatureReport
        How their columns would be used.
    findings : list of Finding
        Faults that `TuckerRecommender.fit` refuses first, then what is strange.
    """

    name: str
    n_rows: int
    n_ratings: int
    n_users: int
    n_items: int
    density: float
    columns: Mapping[str, str]
    id_types: Mapping[str, str]
    n_repeated: int
    per_user: Counts | None
    per_item: Counts | None
    ratings: RatingValues | None
    first: str | None
    last: str | None
    tables: Mapping[str, Known]
    attributes: FeatureReport
    findings: list[Finding]

    @property
    def refused(self) -> bool:
        """Whether `TuckerRecommender.fit` would refuse the tables."""
        return any(finding.refused for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """The description as plain numbers, text, lists and dicts."""
        plain = ("name", "n_rows", "n_ratings", "n_users", "n_items", "density", "n_repeated", "first", "last")
        objects = {name: getattr(self, name) for name in ("per_user", "per_item", "ratings")}
        return {
            **{name: getattr(self, name) for name in plain},
            **{name: None if value is None else asdict(value) for name, value in objects.items()},
            "columns": dict(self.columns),
            "id_types": dict(self.id_types),
            "tables": {side: asdict(known) for side, known in self.tables.items()},
            "attributes": [
                dict(zip(("table", "column", "use", "note"), row, strict=True)) for row in self.attributes.rows()
            ],
            "findings": [asdict(finding) for finding in self.findings],
            "refused": self.refused,
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.name}: {self.n_ratings:,} ratings of {self.n_items:,} items by {self.n_users:,} users"
        yield f"  density           {self.density:.3%} of all pairs"
        if self.columns:
            yield f"  columns           {words(self.columns)}"
        if self.n_rows:
            kinds = ", ".join(f"{key} {kind}" for key, kind in self.id_types.items())
            text = " (007 and 7 are two)" if "text" in self.id_types.values() else ""
            yield f"  ids               {kinds}{text}"
        for label, counts in (("ratings per user", self.per_user), ("ratings per item", self.per_item)):
            if counts is not None:
                yield (
                    f"  {label:<17} {counts.least:,} to {counts.most:,}, median {counts.median:g}, "
                    f"mean {counts.mean:.1f}"
                )
        yield f"  repeated pairs    {self.n_repeated:,}"
        if self.first is not None:
            yield f"  time              {self.first} to {self.last}"
        if self.ratings is not None:
            values = self.ratings
            figures = f"mean {values.mean:.4g}, sd {values.std:.4g}"
            yield f"  rating            {values.least:g} to {values.most:g}, {figures}"
            yield from _bars(values.histogram)
        for side, known in self.tables.items():
            yield (
                f"{known.name}: {known.n_rows:,} {side}, {known.without_ratings:,} of them without ratings; "
                f"{known.not_in_table:,} with ratings are not in it"
            )
        if self.attributes.rows():
            yield from (f"  {line}" for line in str(self.attributes).splitlines())
        yield from self._verdict()

    def _verdict(self) -> Iterator[str]:
        for heading, refused in (("To be mended before a model is fitted", True), ("Suspicious", False)):
            chosen = [finding for finding in self.findings if finding.refused == refused]
            if chosen:
                yield f"{heading}:"
                yield from (f"  {finding}" for finding in chosen)
        if not self.findings:
            yield "Nothing suspicious."


def describe(
    ratings: Any, users: Any = None, items: Any = None, columns: Mapping[str, str] | None = None
) -> Description:
    """Describe a table of ratings and list what is wrong or strange in it.

    Parameters
    ----------
    ratings : table with columns user_id and item_id, and rating and timestamp where there are any; or a path to one
    users, items : table with user_id (item_id) and attributes, or None
    columns : dict or None
        Other names of the columns, as for `TuckerRecommender`.

    Returns
    -------
    Description

    Examples
    --------
    >>> report = describe({"user_id": [1, 1, 2, 2], "item_id": [7, 8, 7, 7], "rating": [4.0, 5.0, 3.0, 3.0]})
    >>> print(report)
    ratings: 4 ratings of 2 items by 2 users
      density           75.000% of all pairs
      ids               user_id integers, item_id integers
      ratings per user  2 to 2, median 2, mean 2.0
      ratings per item  1 to 3, median 2, mean 2.0
      repeated pairs    1
      rating            3 to 5, mean 3.75, sd 0.8292
        3 ##############################           2   50.0%
        4 ###############                          1   25.0%
        5 ###############                          1   25.0%
    Suspicious:
      ratings: 1 row with a user and an item that an earlier row has: row 3. All are learned from, unless duplicates \
is 'mean', 'last' or 'refuse'.
    """
    taken = taken_names(*column_names(ratings, "ratings"), columns)
    table = named_table(ratings, "ratings", taken)
    for key in KEYS:
        if key not in table:
            raise missing_column(table.name, key, list(table.columns), columns or {})
    sound = ~(is_missing(table[KEYS[0]]) | is_missing(table[KEYS[1]]))
    y = as_numbers(table[RATING]) if RATING in table else np.ones(len(table))
    sound &= np.isfinite(y)
    kept = table.take(np.flatnonzero(sound))
    places = [distinct_rows(kept, [key]) for key in KEYS]
    ids = [kept[key][first].tolist() for key, (first, _) in zip(KEYS, places, strict=True)]
    codes = [code for _, code in places]
    findings = find(table, sound, codes, ids)
    if not len(table):
        findings = [Finding(table.name, "There are no rows", 0, (), "Give ratings to learn from.", refused=True)]
    tables: dict[str, Known] = {}
    attributes: dict[str, Any] = {}
    for source, side, key, rated in zip((users, items), SIDES, KEYS, ids, strict=True):
        if source is not None:
            known = _aligned(named_table(source, side, taken, [key]), key, rated)
            tables[side] = _known(known, key, set(rated))
            findings += _faults_of(known, key, tables[side], rated)
            attributes[side] = _attributes(known, key)
    pairs = len(np.unique(codes[0].astype(np.int64) * max(len(ids[1]), 1) + codes[1]))
    first, last = _span(table)
    return Description(
        name=table.name,
        n_rows=len(table),
        n_ratings=len(kept),
        n_users=len(ids[0]),
        n_items=len(ids[1]),
        columns=taken,
        id_types={key: describe_type(table[key]) for key in KEYS},
        density=pairs / max(len(ids[0]) * len(ids[1]), 1),
        n_repeated=len(kept) - pairs,
        per_user=Counts.of(codes[0]) if len(kept) else None,
        per_item=Counts.of(codes[1]) if len(kept) else None,
        ratings=RatingValues.of(y[sound]) if len(kept) and RATING in table else None,
        first=first,
        last=last,
        tables=tables,
        attributes=FeatureReport(attributes),
        findings=sorted(findings, key=lambda finding: not finding.refused),
    )


def _aligned(table: Table, key: str, rated: list[Any]) -> Table:
    """A table of users or items with ids of the type that the ratings have."""
    return with_aligned_ids(table, key, rated[0]) if rated and key in table else table


def _attributes(table: Table, key: str) -> tuple[Attribute, ...]:
    """How each column of a table of users or items would be used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the report says so
        return Attributes.fit(key, table).columns


def _known(table: Table, key: str, rated: set[Any]) -> Known:
    listed = set(table[key][~is_missing(table[key])].tolist())
    return Known(table.name, len(table), len(listed - rated), len(rated - listed))


def _faults_of(table: Table, key: str, known: Known, rated: list[Any]) -> Iterator[Finding]:
    """The faults for which `TuckerRecommender.fit` refuses a table of users or items."""
    missing = is_missing(table[key])
    if missing.any():
        yield _fault(table, missing, f"without {key}", "Fill in the ids, or remove the rows.")
    first, _ = distinct_rows(table, [key])
    again = ~missing
    again[first] = False
    if again.any():
        yield _fault(table, again, f"whose {key} an earlier row has", "Keep one row for each.")
    if rated and len(table) and known.not_in_table == len(rated):
        example = table[key][int(np.argmax(~missing))]
        rated_id, listed_id = show_cell(rated[0]), show_cell(example)
        what = f"No {key} of the ratings is in it: ids are like {rated_id} there and {listed_id} here"
        yield Finding(table.name, what, len(rated), (), "Give both the same type and spelling.", refused=True)


def _fault(table: Table, flags: npt.NDArray[np.bool_], what: str, remedy: str) -> Finding:
    rows = np.flatnonzero(flags)
    text = f"{len(rows):,} {'row' if len(rows) == 1 else 'rows'} {what}"
    return Finding(table.name, text, len(rows), tuple(table.row_labels(rows[:SHOWN].tolist())), remedy, refused=True)


def _span(table: Table) -> tuple[str | None, str | None]:
    if TIMESTAMP not in table:
        return None, None
    times = as_times(table)
    known = times[~np.isnat(times)]
    return (str(known.min()), str(known.max())) if len(known) else (None, None)


def _bars(histogram: tuple[Bar, ...]) -> Iterator[str]:
    total, most = sum(bar.count for bar in histogram), max((bar.count for bar in histogram), default=1)
    width = max((len(bar.label) for bar in histogram), default=0)
    for bar in histogram:
        drawn = "#" * round(BAR_WIDTH * bar.count / max(most, 1))
        share = bar.count / max(total, 1)
        yield f"    {bar.label:>{width}} {drawn:<{BAR_WIDTH}} {bar.count:>11,} {share:>7.1%}"
