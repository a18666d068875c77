"""A thread that takes the model file when it has changed, or on SIGHUP, and what others wrote into the journal."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from tuckergp.serve.service import Service, stamp_of

__all__ = ["Watcher"]

# The longest time between two turns.
TURN = 1.0

log = logging.getLogger("tuckergp.serve")


class Watcher:
    """Looks at the file from time to time, and at once when asked; a worker without requests reads the journal too.

    Parameters
    ----------
    service : Service
    every : float
        Seconds between two looks; 0 for none unless asked.
    told : callable
        Called after each turn, a second or less apart.
    """

    def __init__(self, service: Service, every: float, told: Callable[[], None] = lambda: None) -> None:
        self._service, self._every, self._told = service, every, told
        self._wake, self._asked, self._ended = threading.Event(), False, False
        self._next = 0.0
        self._refused: tuple[int, ...] | None = None
        self._thread = threading.Thread(target=self._watch, name="tuckergp watcher", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def ask(self) -> None:
        """Take the file again, changed or not; may be called by a signal handler."""
        self._asked = True
        self._wake.set()

    def stop(self) -> None:
        """End."""
        self._ended = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _watch(self) -> None:
        while True:
            self._wake.wait(min(self._every, TURN) or TURN)
            self._wake.clear()
            if self._ended:
                return
            asked, self._asked = self._asked, False
            try:
                if asked or self._is_due():
                    self._look(asked)
                self._service.current()
                self._told()
            except Exception:  # the thread must live on
                log.exception("Looking at the model file, or at the journal, failed.")

    def _is_due(self) -> bool:
        now = time.monotonic()
        if not self._every or now < self._next:
            return False
        self._next = now + self._every
        return True

    def _look(self, asked: bool) -> None:
        """Reload; a file that was refused is not tried again until it changes."""
        try:
            stamp = stamp_of(self._service.settings.path)
        except OSError:
            stamp = ()
        if not asked and stamp == self._refused:
            return
        taken = self._service.reload(always=asked)
        self._refused = None if taken or self._service.fault is None else stamp
