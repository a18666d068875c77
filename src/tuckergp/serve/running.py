"""The server: one process that listens, and one or several workers that answer.

Workers are processes that accept from one socket and map the same file, so that draws are in memory once. SIGTERM and
Ctrl-C let them finish what they have begun, SIGHUP lets them take the model file again; one that dies is replaced.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tuckergp.errors import DataWarning, InputError
from tuckergp.serve.app import app_of
from tuckergp.serve.computing import cores_shared
from tuckergp.serve.connections import GRACE, server_of
from tuckergp.serve.settings import ServeSettings
from tuckergp.store.journal import Journal
from tuckergp.store.model_file import load

__all__ = ["run"]

log = logging.getLogger("tuckergp.serve")

# So many starts in turn that fail are enough where no worker is left, and the longest wait before another one.
FAILURES, LONGEST_WAIT = 3, 60.0


def run(settings: ServeSettings, listening: socket.socket, started: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGTERM or Ctrl-C; ``started`` is called once the model has been loaded."""
    if settings.workers == 1:
        _work(settings, listening.detach(), started)
        return
    with tempfile.TemporaryDirectory(prefix="tuckergp-") as folder:
        _Workers(replace(settings, folder=Path(folder)), listening).run(started)


def _work(settings: ServeSettings, listening: int, started: Callable[[], None] = lambda: None) -> None:
    """Answer requests until told to stop."""
    early: list[int] = []  # a SIGHUP that comes while the model is loaded
    signal.signal(signal.SIGHUP, lambda number, _: early.append(number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    warnings.simplefilter("ignore", DataWarning)  # of unknown ids and the like, which answers tell
    app = app_of(settings)
    server = server_of(app, settings)
    set_apart()
    app.state.service.taken = set_apart

    def stop(*_: Any) -> None:
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)  # uvicorn puts its own in place, and raises the signal again at the end
    signal.signal(signal.SIGHUP, lambda *_: app.state.watcher.ask())
    if early:
        app.state.watcher.ask()
    started()
    with cores_shared(settings):
        asyncio.run(server.serve([_Fair(fileno=listening)]))


def set_apart() -> None:
    """Take all objects that there are out of garbage collection.

    Large bodies are many objects, which set off collections; these would walk over the model, too, and hold up all
    requests for up to a second.
    """
    gc.unfreeze()  # a model that is not served any more
    gc.collect()
    gc.freeze()


class _Fair(socket.socket):
    """A socket from which each turn of a loop accepts one connection, so that other workers get the next."""

    _accepted_last_turn = False

    def accept(self) -> Any:
        """One connection; none the next time."""
        if self._accepted_last_turn:
            self._accepted_last_turn = False
            raise BlockingIOError
        accepted = super().accept()
        self._accepted_last_turn = True
        return accepted


@dataclass
class _Worker:
    """A process that answers, how many starts in turn have failed, and when the next one is due."""

    process: BaseProcess
    ready: Any
    failures: int = 0
    due: float | None = None


class _Workers:
    """The workers of a server, each started again if it dies."""

    def __init__(self, settings: ServeSettings, listening: socket.socket) -> None:
        self._settings, self._socket = settings, listening
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[int, _Worker] = {}
        self._ended = False

    def run(self, started: Callable[[], None]) -> None:
        """Start them, and stay until told to stop."""
        signal.signal(signal.SIGHUP, lambda *_: self._tell(signal.SIGHUP))
        load(self._settings.path)  # says what is wrong with the file, or the journal, before any worker is started
        if self._settings.journal is not None:
            Journal(self._settings.journal)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        started()
        for worker in range(self._settings.workers):
            self._start(worker)
        try:
            while not self._ended:
                alive = [each.process.sentinel for each in self._workers.values() if each.due is None]
                wait(alive, timeout=0.2)
                self._replace_the_dead()
        finally:
            self._stop()

    def _end(self, *_: Any) -> None:
        self._ended = True

    def _start(self, worker: int, failures: int = 0) -> None:
        ready = self._context.Event()
        arguments = (replace(self._settings, worker=worker), self._socket, ready)
        process = self._context.Process(target=_child, args=arguments, name=f"tuckergp worker {worker}")
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # inherited, until the worker can be told
        process.start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        self._workers[worker] = _Worker(process, ready, failures)

    def _replace_the_dead(self) -> None:
        """Start workers that have died again, after a while if they did not come up; give up when none is left."""
        now = time.monotonic()
        for number, worker in list(self._workers.items()):
            if self._ended or worker.process.is_alive():
                continue
            if worker.due is None:
                worker.failures = 0 if worker.ready.is_set() else worker.failures + 1
                worker.due = now + (min(0.5 * 2**worker.failures, LONGEST_WAIT) if worker.failures else 0.0)
                log.error("Worker %d ended with code %s; another one is started.", number, worker.process.exitcode)
            if worker.failures >= FAILURES and not any(each.process.is_alive() for each in self._workers.values()):
                raise InputError("Workers end as soon as they are started; the lines above say why.")
            if now >= worker.due:
                self._start(number, worker.failures)

    def _tell(self, number: int) -> None:
        for worker in list(self._workers.values()):
            if worker.process.pid is not None and worker.process.is_alive():
                os.kill(worker.process.pid, number)

    def _stop(self) -> None:
        self._socket.close()
        self._tell(signal.SIGTERM)
        for worker in self._workers.values():
            worker.process.join(GRACE + 5)
            if worker.process.is_alive():
                worker.process.kill()


def _child(settings: ServeSettings, listening: socket.socket, ready: Any) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _work(settings, listening.detach(), ready.set)


def _end_with(parent: Any) -> None:
    """End this process when its parent is gone."""
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
