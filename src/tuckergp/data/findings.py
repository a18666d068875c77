"""What is wrong or unusual in a table of ratings: every kind of fault, how often, and where first.

`TuckerRecommender.fit` stops at the first fault. This module lists all, and also what can be learned from but is
probably a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.history import KEYS, RATING, TIMESTAMP
from tuckergp.data.periods import FINEST, times_at, unit_steps
from tuckergp.data.tables import Table, distinct_rows, is_missing, show_cell
from tuckergp.errors import InputError

__all__ = ["Finding", "as_numbers", "as_times", "find", "usual_range"]

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]

SHOWN = 3
# Ratings more than this many times the usual spread outside the middle half are reported.
FAR = 5.0
# Users who gave one value only are reported from this many ratings on.
LEAST_OF_ONE_VALUE = 10
# Users with more than this many times the 0.9 quantile of the numbers of ratings, and more than MANY, are reported.
MANY_TIMES, MANY = 20, 200


@dataclass(frozen=True)
class Finding:
    """One kind of fault.

    Attributes
    ----------
    table : str
        The table or file.
    what : str
        A sentence that describes it.
    count : int
        How many rows, or ids, have it.
    where : tuple of str
        The first rows: ``line 7`` of a file, ``row 5`` (from 0) of a table.
    remedy : str
    refused : bool
        Whether `TuckerRecommender.fit` refuses the table for it.
    """

    table: str
    what: str
    count: int
    where: tuple[str, ...]
    remedy: str
    refused: bool = False

    def __str__(self) -> str:
        more = ", ..." if self.count > len(self.where) > 0 else ""
        return f"{self.table}: {self.what}{': ' if self.where else ''}{', '.join(self.where)}{more}. {self.remedy}"


@dataclass(frozen=True)
class _Unlabelled:
    """A finding with its rows as numbers, before they are named."""

    what: str
    count: int
    rows: tuple[int, ...]
    remedy: str
    refused: bool = False


def find(table: Table, sound: Flags, codes: Sequence[Ints], ids: Sequence[list[Any]]) -> list[Finding]:
    """List all kinds of faults of a table of ratings.

    Parameters
    ----------
    table : Table
        With the usual column names; rating and timestamp may be missing.
    sound : ndarray of bool, shape (n_rows,)
        The rows with ids and a rating.
    codes, ids : sequences of length 2
        Numbers of the users and items of the sound rows, and their ids.
    """
    findings: list[_Unlabelled] = []
    for key in KEYS:
        findings += _ids(table, key)
    findings += _pairs(table, sound, codes, len(ids[1]))
    if RATING in table:
        findings += _ratings(table, sound, codes[0], ids[0])
    if TIMESTAMP in table:
        findings += _times(table)
    findings += _busy_users(sound, codes[0], ids[0])
    rows = [row for one in findings for row in one.rows]
    labels = dict(zip(rows, table.row_labels(rows), strict=True))
    return [
        Finding(table.name, one.what, one.count, tuple(labels[row] for row in one.rows), one.remedy, one.refused)
        for one in sorted(findings, key=lambda one: not one.refused)
    ]


def as_numbers(values: npt.NDArray[Any]) -> Floats:
    """A column as numbers, NaN where it holds none."""
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    numbers = np.full(len(values), np.nan)
    for row, value in enumerate(values.tolist()):
        try:
            numbers[row] = float(value)
        except OverflowError:
            numbers[row] = np.inf
        except (TypeError, ValueError):
            continue
    return numbers


def usual_range(ratings: Floats) -> tuple[float, float]:
    """The range outside which ratings count as far from the others."""
    if len(ratings) == 0:
        return -np.inf, np.inf
    low, first, third, high = np.quantile(ratings, [0.025, 0.25, 0.75, 0.975])
    spread = max(third - first, (high - low) / 4)
    if spread == 0:
        return -np.inf, np.inf
    return first - FAR * spread, third + FAR * spread


def as_times(table: Table) -> npt.NDArray[Any]:
    """The timestamps to the second, NaT where there is none or it cannot be read; each number in its own unit."""
    values = table[TIMESTAMP]
    times = np.full(len(values), np.datetime64("NaT"), dtype="datetime64[s]")
    rows = np.flatnonzero(~is_missing(values))
    if values.dtype.kind in "iuf":
        numbers = values.astype(np.float64)
        rows = rows[np.isfinite(numbers[rows])]
        rows = rows[unit_steps(numbers[rows]) <= FINEST]
        steps = unit_steps(numbers[rows])
        times[rows] = (numbers[rows] / 1_000.0**steps).astype(np.int64).astype("datetime64[s]")
        return times
    try:
        times[rows] = times_at(table, TIMESTAMP, rows)
    except InputError:
        read: dict[Any, Any] = {}
        plain = Table({TIMESTAMP: values}, table.name, len(values))
        for row in rows:
            if values[row] not in read:
                try:
                    read[values[row]] = times_at(plain, TIMESTAMP, np.array([row]))[0]
                except InputError:
                    read[values[row]] = np.datetime64("NaT")
            times[row] = read[values[row]]
    return times


def _at(flags: Flags, what: str, remedy: str, refused: bool = False) -> Iterator[_Unlabelled]:
    """Report the rows that are flagged; ``{n}`` in the text is their number."""
    rows = np.flatnonzero(flags)
    if len(rows):
        text = what.format(n=f"{len(rows):,} {'row' if len(rows) == 1 else 'rows'}")
        yield _Unlabelled(text, len(rows), tuple(rows[:SHOWN].tolist()), remedy, refused)


def _ids(table: Table, key: str) -> Iterator[_Unlabelled]:
    missing = is_missing(table[key])
    yield from _at(missing, f"{{n}} without {key}", "Fill in the ids, or remove the rows.", refused=True)
    rows = np.flatnonzero(~missing)
    places, code = distinct_rows(table.select([key]).take(rows), [key])
    ids = table[key][rows[places]].tolist()
    kinds = {isinstance(value, str) for value in ids}
    if len(kinds) > 1:
        is_text = np.array([isinstance(value, str) for value in ids])
        other = np.zeros(len(table), dtype=bool)
        other[rows] = is_text[code] != is_text[code[0]]
        yield from _at(other, f"{key} is text in some rows and a number in {{n}}", "Give ids one type.", refused=True)
    alike: dict[str, list[int]] = {}
    for number, value in enumerate(ids):
        if isinstance(value, str):
            alike.setdefault(_spelling(value), []).append(number)
    groups = [group for group in alike.values() if len(group) > 1]
    if groups:
        first = np.full(len(ids), len(table))
        np.minimum.at(first, code, rows)
        # report the row with the second spelling
        seconds = sorted(int(np.sort(first[group])[1]) for group in groups)
        shown = " and ".join(show_cell(ids[number]) for number in groups[0][:2])
        yield _Unlabelled(
            f"{len(groups):,} {key} in several spellings, such as {shown}",
            len(groups),
            tuple(seconds[:SHOWN]),
            "If they are the same, spell them alike.",
        )


def _spelling(text: str) -> str:
    """An id without case, spaces, leading zeros and a decimal point followed by zeros."""
    plain = " ".join(text.split()).casefold()
    return (re.sub(r"\.0+$", "", plain).lstrip("0") or "0") if re.fullmatch(r"\d+(\.0+)?", plain) else plain


def _pairs(table: Table, sound: Flags, codes: Sequence[Ints], n_items: int) -> Iterator[_Unlabelled]:
    pair = codes[0].astype(np.int64) * n_items + codes[1]
    _, first = np.unique(pair, return_index=True)
    again = np.ones(len(pair), dtype=bool)
    again[first] = False
    flags = np.zeros(len(table), dtype=bool)
    flags[np.flatnonzero(sound)] = again
    yield from _at(
        flags,
        "{n} with a user and an item that an earlier row has",
        "All are learned from, unless duplicates is 'mean', 'last' or 'refuse'.",
    )


def _ratings(table: Table, sound: Flags, user: Ints, users: list[Any]) -> Iterator[_Unlabelled]:
    values = table[RATING]
    numbers = as_numbers(values)
    missing = is_missing(values) | (np.isnan(numbers) if values.dtype.kind == "f" else False)
    yield from _at(missing, "{n} without a rating", "Fill in the ratings, or remove the rows.", refused=True)
    text = np.isnan(numbers) & ~missing
    if text.any():
        shown = show_cell(values[int(np.argmax(text))])
        yield from _at(text, f"{{n}} whose rating is no number, such as {shown}", "Correct them.", refused=True)
    yield from _at(np.isinf(numbers), "{n} whose rating is infinite", "Correct them.", refused=True)
    y = numbers[sound]
    low, high = usual_range(y)
    far = sound & ((numbers < low) | (numbers > high))
    if far.any():
        shown = ", ".join(f"{value:g}" for value in np.unique(numbers[far])[:SHOWN])
        yield from _at(
            far, f"{{n}} whose rating is far from the others ({shown})", "A rating_scale refuses what is outside it."
        )
    if len(y) and y.min() < y.max():
        least, most = np.full(len(users), np.inf), np.full(len(users), -np.inf)
        np.minimum.at(least, user, y)
        np.maximum.at(most, user, y)
        flat = (least == most) & (np.bincount(user, minlength=len(users)) >= LEAST_OF_ONE_VALUE)
        yield from _about_users(
            flat,
            sound,
            user,
            users,
            "with the same rating for everything",
            "Their ratings tell items apart in nothing.",
        )


def _busy_users(sound: Flags, user: Ints, users: list[Any]) -> Iterator[_Unlabelled]:
    counts = np.bincount(user, minlength=len(users))
    if len(counts):
        busy = counts > max(MANY, MANY_TIMES * float(np.quantile(counts, 0.9)))
        most = int(counts.max())
        yield from _about_users(
            busy, sound, user, users, f"with very many ratings, up to {most:,}", "Shared accounts or programs?"
        )


def _about_users(
    flags: Flags, sound: Flags, user: Ints, users: list[Any], what: str, remedy: str
) -> Iterator[_Unlabelled]:
    """Report the users that are flagged, with the first row of each."""
    numbers = np.flatnonzero(flags)
    if len(numbers):
        first = np.full(len(users), len(sound))
        np.minimum.at(first, user, np.flatnonzero(sound))
        shown = ", ".join(show_cell(users[number]) for number in numbers[:SHOWN])
        ends = ", ..." if len(numbers) > SHOWN else ""
        people = "1 user" if len(numbers) == 1 else f"{len(numbers):,} users"
        rows = tuple(first[numbers[:SHOWN]].tolist())
        yield _Unlabelled(f"{people} {what} ({shown}{ends})", len(numbers), rows, remedy)


def _times(table: Table) -> Iterator[_Unlabelled]:
    values = table[TIMESTAMP]
    missing = is_missing(values)
    yield from _at(missing, "{n} without a timestamp", "Such rows say nothing of drift over time.")
    times = as_times(table)
    unreadable = np.isnat(times) & ~missing
    if unreadable.any():
        shown = show_cell(values[int(np.argmax(unreadable))])
        yield from _at(
            unreadable,
            f"{{n}} whose timestamp cannot be read, such as {shown}",
            "All times are left out, unless drift is asked for; write 1998-04-22 10:30, or seconds since 1970.",
        )
    if values.dtype.kind in "iuf":
        rows = np.flatnonzero(~np.isnat(times))
        steps = unit_steps(values[rows].astype(np.float64))
        if len(steps):
            other = np.zeros(len(values), dtype=bool)
            other[rows] = steps != np.bincount(steps).argmax()
            yield from _at(
                other,
                "{n} whose timestamp is in another unit than the others",
                "All are read in one unit; give them in seconds.",
            )
    tomorrow = np.datetime64("now", "s") + np.timedelta64(1, "D")
    yield from _at(times > tomorrow, "{n} with a timestamp in the future", "Correct them, or their unit.")
    yield from _at(
        times < np.datetime64("1970-01-01", "s"), "{n} with a timestamp before 1970", "Correct them, or their unit."
    )
