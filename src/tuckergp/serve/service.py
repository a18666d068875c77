"""The model that a worker has at the moment, and how it changes: by the journal, and by another file.

What is served is one immutable object, replaced by one assignment: a request takes it once and is answered by it to the
end, whatever comes meanwhile. Locks are for those who change it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tuckergp.errors import InputError
from tuckergp.recommender import TuckerRecommender
from tuckergp.serve.journal import FORGET, RATINGS, USERS, Entry, Journal, Place
from tuckergp.serve.recommending import ServedRecommender
from tuckergp.serve.refusals import NotFound
from tuckergp.serve.regressing import ServedRegressor
from tuckergp.serve.settings import ServeSettings
from tuckergp.store.model_file import load

__all__ = ["Served", "Service"]

log = logging.getLogger("tuckergp.serve")

Served = ServedRecommender | ServedRegressor
Row = Mapping[str, Any]
# From so many entries on, those that follow each other are folded in together.
MANY = 50


@dataclass(frozen=True)
class Loaded:
    """A model file that was read and when, and how much of the journal is in it."""

    served: Served
    base: Served
    stamp: tuple[int, ...]
    changed: float
    loaded: float
    read: Place | None = None


def stamp_of(path: Path) -> tuple[int, ...]:
    """What changes when a file does."""
    facts = os.stat(path)
    return facts.st_mtime_ns, facts.st_size, facts.st_ino


class Service:
    """What all requests of one worker share.

    Parameters
    ----------
    settings : ServeSettings
    journal : Journal
    """

    def __init__(self, settings: ServeSettings, journal: Journal) -> None:
        self.settings, self.journal = settings, journal
        self.fault: str | None = None  # why the last file could not be taken
        self.reloads = 0
        self._turn = threading.RLock()  # of those who change the model
        self._loading = threading.Lock()
        self._now = self._load()
        self.current()

    # What is served

    def current(self) -> Served:
        """The model as it is now, with the journal up to its end."""
        now = self._now
        if now.read == self.journal.place():
            return now.served
        with self._turn:
            return self._caught_up().served

    def recommender(self) -> ServedRecommender:
        """The same, if it is a recommender."""
        return _recommender(self.current())

    def regressor(self) -> ServedRegressor:
        """The same, if it is a regression model."""
        served = self.current()
        if not isinstance(served, ServedRegressor):
            raise NotFound("This model is a recommender; only a regression model has this.")
        return served

    @property
    def facts(self) -> dict[str, Any]:
        """What is served, and since when."""
        now = self._now
        times = {"changed": now.changed, "loaded": now.loaded}
        return {"file": self.settings.path.name, **times, "fault": self.fault, **now.served.facts}

    @property
    def times(self) -> tuple[float, float]:
        """When the model file was written, and when it was loaded, in seconds since 1970."""
        return self._now.changed, self._now.loaded

    # Changes by requests

    def fold_in(self, ratings: Sequence[Row], users: Sequence[Row]) -> tuple[ServedRecommender, ServedRecommender]:
        """Fold ratings in for all workers; the model before and after. After an error nothing has changed."""
        with self._turn, self.journal.writing() as journal:
            now = self._advanced(*journal.read(self._now.read))
            before = _recommender(now.served)
            after = before.with_ratings(ratings, users)
            place = journal.append({RATINGS: list(ratings), USERS: list(users)})
            self._now = replace(now, served=after, read=place)
        return before, after

    def forget(self, user: str) -> Any:
        """Forget a user, here, in the journal and in all workers; the id."""
        with self._turn, self.journal.writing() as journal:
            now = self._advanced(*journal.read(self._now.read))
            before = _recommender(now.served)
            known = before.users.known(user)
            after = before.without(known)
            place = journal.append({FORGET: known if isinstance(known, str | int | float) else str(known)})
            journal.erase(lambda value: value is not None and before.users.read(value) == known)
            self._now = replace(now, served=after, read=place)
        return known

    def _caught_up(self) -> Loaded:
        """The model after the entries of the journal that it has not seen; for those who have the turn."""
        self._now = self._advanced(*self.journal.read(self._now.read))
        return self._now

    def _advanced(self, entries: Sequence[Entry], place: Place, other: bool) -> Loaded:
        """The model after some entries; from the file on where the journal is another one."""
        now = self._now
        return replace(now, served=_replayed(now.base if other else now.served, entries), read=place)

    # Changes of the file

    def reload(self, always: bool = True) -> bool:
        """Take the model file again, where it has changed or ``always``; a damaged one is not taken.

        Requests go on with the old model meanwhile. Returns whether there is another model.
        """
        with self._loading:
            try:
                if not always and stamp_of(self.settings.path) == self._now.stamp:
                    return False
                new = self._load()
                entries, place, _ = self.journal.read(None)
                new = replace(new, served=_replayed(new.base, entries), read=place)
            except (InputError, OSError) as error:
                if self.fault != str(error):
                    log.error("The new model file is not taken, the old model is kept: %s", error)
                self.fault = str(error)
                return False
            with self._turn:
                self._now = new
                self._caught_up()
            self.fault = None
            self.reloads += 1
            log.warning("The model file was loaded again.")
            return True

    def _load(self) -> Loaded:
        path = self.settings.path
        before = stamp_of(path) if path.exists() else ()
        model: Any = load(path)
        served = ServedRecommender(model) if isinstance(model, TuckerRecommender) else ServedRegressor(model)
        return Loaded(served, served, before, before[0] / 1e9, time.time())


def _recommender(served: Served) -> ServedRecommender:
    if not isinstance(served, ServedRecommender):
        raise NotFound("This model predicts values from inputs: it has no users and items. Ask /predict.")
    return served


def _replayed(served: Served, entries: Sequence[Entry]) -> Served:
    """A model after the entries of a journal; those that it cannot take are passed over, and said so."""
    if not isinstance(served, ServedRecommender):
        return served
    for entry in _together(entries) if len(entries) >= MANY else entries:
        served = _after(served, entry)
    return served


def _together(entries: Sequence[Entry]) -> list[Entry]:
    """Entries with fold-ins that follow each other as one."""
    found: list[Entry] = []
    for entry in entries:
        if FORGET in entry or not found or FORGET in found[-1]:
            found.append({**entry, "parts": [entry]})
        else:
            last = found[-1]
            found[-1] = {
                RATINGS: [*last[RATINGS], *entry[RATINGS]],
                USERS: [*(last.get(USERS) or []), *(entry.get(USERS) or [])],
                "parts": [*last["parts"], entry],
            }
    return found


def _after(served: ServedRecommender, entry: Entry) -> ServedRecommender:
    try:
        if FORGET in entry:
            return served.without(served.users.known(entry[FORGET]))
        return served.with_ratings(entry[RATINGS], entry.get(USERS) or [])
    except NotFound:
        return served  # forgotten already, also by the file
    except (InputError, KeyError, TypeError) as error:
        parts = entry.get("parts") or []
        if len(parts) > 1:  # one of them is at fault
            for part in parts:
                served = _after(served, part)
            return served
        log.warning("An entry of the journal cannot be taken by this model, and is passed over: %s", error)
        return served
