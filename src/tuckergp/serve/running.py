"""The server: one process that listens, and one or several workers that answer.

Workers are processes that accept from one socket and map the same file, so that draws are in memory once. SIGTERM and
Ctrl-C let them finish what they have begun, SIGHUP lets them take the model file again; one that dies is replaced.
"""

from __future__ import annotations

import asyncio
import errno
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
from dataclasses import replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import uvicorn
from threadpoolctl import threadpool_limits
from uvicorn.protocols.http.h11_impl import H11Protocol

from tuckergp.errors import DataWarning, InputError
from tuckergp.serve.app import app_of
from tuckergp.serve.settings import ServeSettings

__all__ = ["listen", "run"]

log = logging.getLogger("tuckergp.serve")

# Seconds that requests under way have to end when the server stops.
GRACE = 30
# A worker that lives so many seconds was started well; so many that did not are enough.
YOUNG, FAILURES = 5.0, 3
BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any that is free."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(f"Port {port} is in use; stop the program that uses it, or take another --port.") from None
        raise InputError(f"Cannot listen on {host} port {port}: {error.strerror or error}.") from None


def run(settings: ServeSettings, listening: socket.socket, started: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGTERM or Ctrl-C; ``started`` is called once the model has been loaded."""
    if settings.workers == 1:
        _work(settings, listening.detach(), started)
        return
    with tempfile.TemporaryDirectory(prefix="tuckergp-") as folder:
        shared = replace(settings, folder=Path(folder))
        app_of(shared)  # says what is wrong with the file, or the journal, before any worker is started
        started()
        _Workers(shared, listening).run()


def _work(settings: ServeSettings, listening: int, started: Callable[[], None] = lambda: None) -> None:
    """Answer requests until told to stop."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    warnings.simplefilter("ignore", DataWarning)  # of unknown ids and the like, which answers tell
    app = app_of(settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # uvicorn puts its own in place, and raises the signal again at the end
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: app.state.watcher.ask())
    config = uvicorn.Config(
        app,
        http=_protocol(settings.patience),
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE,
    )
    started()
    with threadpool_limits(limits=max(1, (os.cpu_count() or 1) // settings.workers), user_api="blas"):
        asyncio.run(uvicorn.Server(config).serve([_Fair(fileno=listening)]))


class _Fair(socket.socket):
    """A socket from which each turn of a loop accepts one connection, so that other workers get the next."""

    _had = False

    def accept(self) -> Any:
        """One connection; none the next time."""
        if self._had:
            self._had = False
            raise BlockingIOError
        accepted = super().accept()
        self._had = True
        return accepted


def _protocol(patience: float) -> type[H11Protocol]:
    """HTTP with an end to the patience for clients that begin a request and do not go on."""

    class Patient(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._deadline = self.loop.call_later(patience, self._give_up)

        def _give_up(self) -> None:
            if getattr(self, "cycle", None) is None and not self.transport.is_closing():
                self.transport.close()

    return Patient


class _Workers:
    """The workers of a server, each started again if it dies."""

    def __init__(self, settings: ServeSettings, listening: socket.socket) -> None:
        self._settings, self._socket = settings, listening
        self._context = multiprocessing.get_context("spawn")
        self._processes: dict[int, tuple[BaseProcess, float]] = {}
        self._failures, self._ended = 0, False

    def run(self) -> None:
        """Start them, and stay until told to stop."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, lambda *_: self._tell(signal.SIGHUP))
        for worker in range(self._settings.workers):
            self._start(worker)
        try:
            while not self._ended:
                wait([process.sentinel for process, _ in self._processes.values()], timeout=0.5)
                self._replace_the_dead()
        finally:
            self._stop()

    def _end(self, *_: Any) -> None:
        self._ended = True

    def _start(self, worker: int) -> None:
        arguments = (replace(self._settings, worker=worker), self._socket)
        process = self._context.Process(target=_child, args=arguments, name=f"tuckergp worker {worker}")
        process.start()
        self._processes[worker] = (process, time.monotonic())

    def _replace_the_dead(self) -> None:
        for worker, (process, started) in list(self._processes.items()):
            if process.is_alive() or self._ended:
                continue
            self._failures = self._failures + 1 if time.monotonic() - started < YOUNG else 0
            if self._failures >= FAILURES:
                raise InputError("Workers end as soon as they are started; the lines above say why.")
            log.error("Worker %d ended with code %s; another one is started.", worker, process.exitcode)
            self._start(worker)

    def _tell(self, number: int) -> None:
        for process, _ in self._processes.values():
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, number)

    def _stop(self) -> None:
        self._socket.close()
        self._tell(signal.SIGTERM)
        for process, _ in self._processes.values():
            process.join(GRACE + 5)
            if process.is_alive():
                process.kill()


def _child(settings: ServeSettings, listening: socket.socket) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _work(settings, listening.detach())


def _end_with(parent: Any) -> None:
    """End this process when its parent is gone."""
    wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
