"""Chains in parallel processes, with the same draws as one after the other.

Processes, because much of a sweep is Python, which runs in one thread at a time. They are started by loky, as in
scikit-learn, so a script needs no ``if __name__ == "__main__"``. Each reports every sweep to the parent, which shows
progress, calls the callback, and tells them to stop.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from tuckergp.running.chains import Task, warn_of_checkpoint
from tuckergp.running.checkpoint import ChainRecord
from tuckergp.running.control import Callback

__all__ = ["Turn", "run_in_processes", "run_one_by_one", "turns"]

# A chain and the time at which to stop it, on the clock of time.monotonic, which all processes share; None for never.
Turn = tuple[int, float | None]


def turns(chains: Sequence[int], jobs: int, max_time: float | None) -> list[Turn]:
    """Divide ``max_time`` among the chains: those that run at the same time stop at the same time."""
    rounds = -(-len(chains) // jobs) if chains else 0
    began = time.monotonic()
    return [
        (chain, None if max_time is None else began + max_time * (number // jobs + 1) / rounds)
        for number, chain in enumerate(chains)
    ]


def run_one_by_one(
    task: Task, todo: Sequence[Turn], interrupted: Callable[[], bool], report: Callback
) -> list[ChainRecord]:
    """Run chains one after the other in this process, until one is interrupted."""
    records = []
    for chain, until in todo:
        records.append(task.run(chain, lambda until=until: interrupted() or _past(until), report))  # type: ignore[misc]
        if interrupted():
            break
    return records


def run_in_processes(
    task: Task, todo: Sequence[Turn], jobs: int, interrupted: Callable[[], bool], report: Callback
) -> list[ChainRecord]:
    """Run chains in ``jobs`` processes; an error of one of them or of ``report`` stops all and is raised here."""
    import numba  # neither is needed to answer from a model
    from joblib.externals.loky.backend import get_context

    context = get_context("loky")
    threads = max(1, numba.get_num_threads() // jobs)
    working: dict[Connection, Any] = {}
    records: list[ChainRecord] = []
    failure: Exception | None = None
    told_to_stop = False
    try:
        for job in range(jobs):
            mine, theirs = context.Pipe()
            process = context.Process(target=_work, args=(task, todo[job::jobs], threads, theirs), daemon=True)
            with _deaf_to_ctrl_c():
                process.start()
            theirs.close()
            working[mine] = process
        while working:
            for connection in wait(list(working), timeout=0.1):
                kind, content = _receive(connection)  # type: ignore[arg-type]
                if kind == "sweep" and failure is None:
                    try:
                        report(content)
                    except Exception as error:
                        failure = error
                elif kind == "warning":
                    warn_of_checkpoint(content)
                elif kind == "chain":
                    records.append(content)
                elif kind == "error":
                    failure = failure or content
                if kind in ("error", "end"):
                    working.pop(connection).join()  # type: ignore[call-overload]
            if not told_to_stop and (failure is not None or interrupted()):
                told_to_stop = True
                for connection in working:
                    _tell_to_stop(connection)
    finally:
        for process in working.values():
            _kill(process)
    if failure is not None:
        raise failure
    return records


def _kill(process: Any) -> None:
    """End a process at once; those of loky have no kill, and ours ignore SIGTERM."""
    if sys.platform == "win32":
        process.terminate()
    else:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    process.join()


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Start processes that ignore Ctrl-C, which a terminal sends to all of them: the parent handles it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _receive(connection: Connection) -> tuple[str, Any]:
    try:
        message: tuple[str, Any] = connection.recv()
    except (EOFError, OSError):
        return "error", RuntimeError(
            "A process that ran chains ended without a word, perhaps for want of memory; lower n_jobs, and give a "
            "checkpoint to lose little."
        )
    return message


def _tell_to_stop(connection: Connection) -> None:
    try:
        connection.send("stop")
    except OSError:  # it has just ended by itself
        return


def _work(task: Task, todo: Sequence[Turn], threads: int, connection: Connection) -> None:
    """Run chains one after the other in a worker process and send the records to the parent."""
    import numba

    for request in (signal.SIGINT, signal.SIGTERM):  # which whole groups of processes get; the parent decides
        signal.signal(request, signal.SIG_IGN)
    numba.set_num_threads(min(threads, numba.get_num_threads()))
    stopped = False

    def asked() -> bool:
        nonlocal stopped
        stopped = stopped or connection.poll()
        return stopped

    try:
        for number, (chain, until) in enumerate(todo):
            if number and asked():  # the first takes a sweep in any case, so that there is something
                break
            record = task.run(
                chain,
                lambda until=until: asked() or _past(until),  # type: ignore[misc]
                lambda info: connection.send(("sweep", info)),
                lambda text: connection.send(("warning", text)),
            )
            connection.send(("chain", record))
        connection.send(("end", None))
    except (BrokenPipeError, ConnectionResetError):  # the parent is gone
        return
    except Exception as error:
        connection.send(("error", error))


def _past(until: float | None) -> bool:
    return until is not None and time.monotonic() > until
