"""The largest values of what is read again and again while a benchmark runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["Peaks"]


class Peaks:
    """The largest values by name, of those that ``read`` returns every so many seconds while it is open."""

    def __init__(self, read: Callable[[], dict[str, float]], seconds: float) -> None:
        self.read, self.seconds = read, seconds

    def __enter__(self) -> Peaks:
        self.values, self.done = self.read(), threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()

    def _watch(self) -> None:
        while not self.done.wait(self.seconds):
            self.values = {name: max(value, self.values[name]) for name, value in self.read().items()}
