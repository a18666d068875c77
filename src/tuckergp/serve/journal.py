"""What a journal holds for the next fit: its ratings as a table, who was forgotten, and the refit itself.

Needs no FastAPI. The file is that of `tuckergp.store.journal`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tuckergp.data.names import KEYS, RATING
from tuckergp.errors import InputError
from tuckergp.recommender import TuckerRecommender
from tuckergp.serve.recommending import ServedRecommender, as_columns
from tuckergp.store.journal import FORGET, RATINGS, USERS, Entry, Journal, standing
from tuckergp.store.model_file import load

__all__ = ["Learned", "forgotten_in", "learn", "ratings_in", "rotate"]


def ratings_in(path: str | Path) -> dict[str, list[Any]]:
    """The ratings of a journal as a table, for `TuckerRecommender.partial_fit`: the last of each pair, or all clicks.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = Journal(Path(folder) / "journal")
    ...     with journal.writing() as writer:
    ...         _ = writer.append({"ratings": [{"user_id": "ann", "item_id": 7, "rating": 4.0}]})
    ...     ratings_in(Path(folder) / "journal")
    {'user_id': ['ann'], 'item_id': [7], 'rating': [4.0]}
    """
    last: dict[Any, Mapping[str, Any]] = {}
    for entry in standing(_journal(path).read().entries):
        for row in entry.get(RATINGS) or []:
            key = (row["user_id"], row["item_id"]) if "rating" in row else object()
            last.pop(key, None)
            last[key] = row
    return as_columns(list(last.values()))


def forgotten_in(path: str | Path) -> list[Any]:
    """The ids of all who were forgotten, each once: what a fit must forget before it goes on."""
    return _forgotten(_journal(path).read().entries)


def _forgotten(entries: list[Entry]) -> list[Any]:
    return list(dict.fromkeys(entry[FORGET] for entry in entries if FORGET in entry))


def _journal(path: str | Path) -> Journal:
    path = Path(path)
    if not path.is_file():
        raise InputError(f"There is no journal {path}.")
    return Journal(path)


class Learned(NamedTuple):
    """How many ratings a model went on learning from, and how many people it has forgotten."""

    ratings: int
    forgotten: int


def learn(model: str | Path, journal: str | Path, warmup: int = 10, progress: bool | None = None) -> Learned:
    """Let a model file go on learning from a journal, forget whom it says, and take from the journal what is learned.

    What comes into the journal meanwhile stays in it. A server that is running takes the new file, and then has no
    lines to fold in but those.

    Parameters
    ----------
    model : path
        The file of a recommender, which is replaced.
    journal : path
    warmup, progress
        As in `TuckerRecommender.partial_fit`.
    """
    file, rec = _journal(journal), load(model)
    if not isinstance(rec, TuckerRecommender):
        raise InputError(f"{model} is a regression model; a journal is learned from by a recommender.")
    entries, end, _ = file.read()
    users = ServedRecommender(rec).users
    known = [user for user in users.read_all(_forgotten(entries)) if user in users.side.number]
    for user in known:
        rec.forget(user)
    served = ServedRecommender(rec)
    rest = standing(entries)
    ratings = [row for entry in rest for row in served.read_ratings(entry.get(RATINGS) or [])]
    about = served.completed([row for entry in rest for row in entry.get(USERS) or []])
    if ratings or about:
        clicks = rec.history_.clicks
        new = as_columns(ratings, *KEYS, *(() if clicks else (RATING,)))
        rec.partial_fit(new, as_columns(about) if about else None, warmup=warmup, progress=progress,
                        duplicates=None if clicks else "last")  # fmt: skip
    rec.save(model)
    with file.writing() as writer:
        writer.drop(end)
    return Learned(len(ratings), len(known))


def rotate(journal: str | Path, to: str | Path, model: str | Path) -> int:
    """Move the lines of a journal to another file; those that forget somebody whom a model file knows stay as well.

    For models that are fitted anew from tables which have what the journal has. Returns how many lines stay.
    """
    file, to = _journal(journal), Path(to)
    if to.exists():
        raise InputError(f"{to} exists; name a file that does not.")
    rec = load(model)
    users = ServedRecommender(rec).users if isinstance(rec, TuckerRecommender) else None

    def stays(entry: Entry) -> bool:
        return FORGET in entry and users is not None and users.read(entry[FORGET]) in users.side.number

    with file.writing() as writer:
        writer.copy(to)
        reading = writer.read()
        writer.drop(reading.end, stays)
    return sum(map(stays, reading.entries))
