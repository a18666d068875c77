"""A thread that takes the model file again when it has changed, or on SIGHUP."""

from __future__ import annotations

import logging
import threading

from tuckergp.serve.service import Service, stamp_of

__all__ = ["Watcher"]

log = logging.getLogger("tuckergp.serve")


class Watcher:
    """Looks at the file from time to time, and at once when asked.

    Parameters
    ----------
    service : Service
    every : float
        Seconds between two looks; 0 for none unless asked.
    """

    def __init__(self, service: Service, every: float) -> None:
        self._service, self._every = service, every
        self._wake, self._asked, self._ended = threading.Event(), False, False
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
            self._wake.wait(self._every or None)
            self._wake.clear()
            if self._ended:
                return
            asked, self._asked = self._asked, False
            try:
                self._look(asked)
            except Exception:  # the thread must live on
                log.exception("Looking at the model file failed.")

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
