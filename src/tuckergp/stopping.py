"""Whether work is still wanted: long answers ask from time to time, and end where nobody waits for them any more.

Whoever waits puts `Work` into the context of the computation (`doing`). Without any, nothing ever stops.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Stopped", "Work", "commit", "doing", "stop_if_unwanted"]


class Stopped(BaseException):
    """Nobody waits for the result. No `Exception`, so that nothing that handles faults takes it for one."""


class Work:
    """Work that is either given up or committed, whichever comes first; threads may ask at the same time.

    Examples
    --------
    >>> work = Work()
    >>> work.give_up(), work.commit()
    (True, False)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given_up = self._committed = False

    @property
    def given_up(self) -> bool:
        """Whether nobody waits any more."""
        return self._given_up

    def give_up(self) -> bool:
        """Ask the work to stop; False where it is committed, and must be waited for."""
        with self._lock:
            self._given_up = not self._committed
            return self._given_up

    def commit(self) -> bool:
        """Make sure that the work is not given up from here on; False where it was before."""
        with self._lock:
            self._committed = not self._given_up
            return self._committed


_WORK: ContextVar[Work | None] = ContextVar("tuckergp work", default=None)


@contextmanager
def doing(work: Work | None) -> Iterator[None]:
    """Let this block, and threads that have its context, stop where ``work`` is given up; None: never."""
    token = _WORK.set(work)
    try:
        yield
    finally:
        _WORK.reset(token)


def stop_if_unwanted() -> None:
    """Raise `Stopped` if the work under way was given up; called between blocks of users, rows or draws."""
    work = _WORK.get()
    if work is not None and work.given_up:
        raise Stopped


def commit() -> None:
    """Raise `Stopped` if the work was given up, else it cannot be any more; called before a change that lasts."""
    work = _WORK.get()
    if work is not None and not work.commit():
        raise Stopped
