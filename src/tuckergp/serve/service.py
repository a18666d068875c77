"""The model that a worker has at the moment, and how it changes: by the journal, and by another file.

What is served is one immutable object, replaced by one assignment: a request takes it once and is answered by it to the
end, whatever comes meanwhile. Locks are for those who change it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tuckergp.errors import InputError
from tuckergp.recommender import TuckerRecommender
from tuckergp.serve.metrics import Figures
from tuckergp.serve.recommending import ServedRecommender
from tuckergp.serve.refusals import NotFound, Unavailable
from tuckergp.serve.regressing import ServedRegressor
from tuckergp.serve.settings import ServeSettings
from tuckergp.showing import plain
from tuckergp.stopping import commit, doing
from tuckergp.store.journal import FORGET, RATINGS, USERS, Entry, Journal, JournalEnd, Reading, standing
from tuckergp.store.model_file import load

__all__ = ["Served", "Service"]

log = logging.getLogger("tuckergp.serve")

Served = ServedRecommender | ServedRegressor
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Loaded:
    """A model file that was read and when, and how much of the journal is in it."""

    served: Served
    base: Served
    stamp: tuple[int, ...]
    changed: float
    loaded: float
    read: JournalEnd | None = None


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
        self.prepare: Callable[[Served], None] = lambda _: None  # called with another model before it is taken
        self.taken: Callable[[], None] = lambda: None  # called after another file was taken
        self._turn = threading.RLock()  # of those who change the model
        self._loading = threading.Lock()
        self._now = self._load()
        with journal.writing() as writer:
            writer.erase_forgotten()
        self.current()

    # What is served

    def current(self) -> Served:
        """The model as it is now, with the journal up to its end."""
        now = self._now
        if now.read == self.journal.end():
            return now.served
        with self._turn:
            return self._caught_up().served

    def recommender(self) -> ServedRecommender:
        """The same, if it is a recommender."""
        return _recommender(self.current())

    def recommender_of_file(self) -> ServedRecommender:
        """The model as its file has it, if it is a recommender."""
        return _recommender(self.of_file())

    def regressor(self) -> ServedRegressor:
        """The same, if it is a regression model."""
        served = self.current()
        if not isinstance(served, ServedRegressor):
            raise NotFound("This model is a recommender; only a regression model has this.")
        return served

    def of_file(self) -> Served:
        """The model as its file has it, the same in all workers, without what was folded in or forgotten since."""
        return self._now.base

    @property
    def facts(self) -> dict[str, Any]:
        """What is served, and since when."""
        now = self._now
        times = {"changed": now.changed, "loaded": now.loaded}
        return {"file": self.settings.path.name, **times, "fault": self.fault, **now.served.facts}

    @property
    def figures(self) -> Figures:
        """What `/metrics` tells of the model."""
        now = self._now
        added = now.served.added if isinstance(now.served, ServedRecommender) else 0
        bytes_read = 0 if now.read is None else now.read.bytes
        return Figures(self.reloads, now.changed, now.loaded, self.fault is not None, bytes_read, added)

    def warm_up(self) -> None:
        """Prepare the model as it is now for its first requests."""
        self.prepare(self._now.served)

    # Changes by requests

    def fold_in(self, ratings: Sequence[Row], users: Sequence[Row]) -> tuple[ServedRecommender, ServedRecommender]:
        """Fold ratings in for all workers; the model before and after. After an error nothing has changed."""
        with self._turn, self.journal.writing() as journal:
            now = self._advanced(journal.read(self._now.read))
            before = _recommender(now.served)
            if now.read is not None and now.read.bytes > self.settings.most_journal:
                raise Unavailable("The journal is full: let the model learn from it (tuckergp journal learn).")
            ratings = before.read_ratings(ratings)
            after = before.with_ratings(ratings, users)
            commit()
            self._now = replace(now, served=after, read=journal.append(plain({RATINGS: ratings, USERS: list(users)})))
        return before, after

    def forget(self, user: str) -> Any:
        """Forget a user, here, in the journal and in all workers; the id."""
        with self._turn, self.journal.writing() as journal:
            now = self._advanced(journal.read(self._now.read))
            before = _recommender(now.served)
            known = before.users.known(user)
            after = before.without(known)
            commit()
            end = journal.append(plain({FORGET: known}))
            journal.erase(lambda value: str(value) == str(known))
            self._now = replace(now, served=after, read=end)
        return known

    def _caught_up(self) -> Loaded:
        """The model after the entries of the journal that it has not seen; for those who have the turn."""
        self._now = self._advanced(self.journal.read(self._now.read))
        return self._now

    def _advanced(self, reading: Reading) -> Loaded:
        """The model after some entries; from the file on where they are all that the journal has.

        It does not stop where nobody waits: all others need the same.
        """
        with doing(None):
            return _replayed(self._now, reading)

    # Changes of the file

    def reload(self, always: bool = True) -> bool:
        """Take the model file again, where it has changed or ``always``; a damaged one is not taken.

        Requests go on with the old model meanwhile. Returns whether there is another model.
        """
        with self._loading:
            try:
                if not always and stamp_of(self.settings.path) == self._now.stamp:
                    self.fault = None  # it was away for a moment
                    return False
                new = _replayed(self._load(), self.journal.read())
                self.prepare(new.served)
            except Exception as error:
                self._keep_old(error)
                return False
            with self._turn:
                self._now = new
                self._caught_up()
            self.taken()
            self.fault = None
            self.reloads += 1
            log.warning("The model file was loaded again.")
            return True

    def _keep_old(self, error: Exception) -> None:
        """Say once why the new file is not taken."""
        why = _reason(error, self.settings.path.name)
        if self.fault != why:
            expected = isinstance(error, InputError | OSError)
            log.error("The new model file is not taken, the old model is kept: %s", error, exc_info=not expected)
        self.fault = why

    def _load(self) -> Loaded:
        try:
            stamp = stamp_of(self.settings.path)
        except OSError:
            stamp = (0,)  # `load` says what is wrong
        model: Any = load(self.settings.path)
        served = ServedRecommender(model) if isinstance(model, TuckerRecommender) else ServedRegressor(model)
        return Loaded(served, served, stamp, stamp[0] / 1e9, time.time())


def _reason(error: Exception, file: str) -> str:
    """Why a file is not taken, without the folder that it is in."""
    if isinstance(error, FileNotFoundError):
        return f"There is no file {file}."
    if isinstance(error, OSError):
        return f"{file} cannot be read: {error.strerror or 'the log says why'}."
    return str(error) if isinstance(error, InputError) else "it cannot be read; the log says why."


def _recommender(served: Served) -> ServedRecommender:
    if not isinstance(served, ServedRecommender):
        raise NotFound("This model predicts values from inputs: it has no users and items. Ask /predict.")
    return served


def _replayed(now: Loaded, reading: Reading) -> Loaded:
    """A model after entries of a journal: each for itself, as in all workers; all together from the file on.

    What a model cannot take is passed over, and said so.
    """
    served: Served = now.base if reading.anew else now.served
    if isinstance(served, ServedRecommender):
        if reading.anew:
            for entry in reading.entries:
                served = _without(served, entry) if FORGET in entry else served
            folds = [entry for entry in standing(reading.entries) if FORGET not in entry]
            served = _folded(served, folds) if folds else served
        else:
            for entry in reading.entries:
                served = _without(served, entry) if FORGET in entry else _folded(served, [entry])
    return replace(now, served=served, read=reading.end)


def _without(served: ServedRecommender, entry: Entry) -> ServedRecommender:
    try:
        return served.without(served.users.known(entry[FORGET]))
    except NotFound:
        return served  # forgotten already, also by the file
    except Exception as error:
        return _passed_over(served, error)


def _folded(served: ServedRecommender, entries: Sequence[Entry]) -> ServedRecommender:
    """A model with entries folded in at once; where one of them is at fault, in halves until it is alone."""
    try:
        ratings = [row for entry in entries for row in served.read_ratings(entry[RATINGS])]
        return served.with_ratings(ratings, [row for entry in entries for row in entry.get(USERS) or []])
    except Exception as error:
        if len(entries) == 1:
            return _passed_over(served, error)
        half = len(entries) // 2
        return _folded(_folded(served, entries[:half]), entries[half:])


def _passed_over(served: ServedRecommender, error: Exception) -> ServedRecommender:
    log.warning("An entry of the journal cannot be taken by this model, and is passed over: %s", error)
    return served
