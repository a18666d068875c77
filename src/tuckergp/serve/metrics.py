"""Figures of a server in Prometheus' text format: requests, latencies, model age, memory, drift.

Workers share one array of numbers, each with a row of its own, so that any of them can answer for all.
"""

from __future__ import annotations

import logging
import os
import resource
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.data.names import RATING
from tuckergp.serve.recommending import ServedRecommender

__all__ = ["Drift", "Figures", "Metrics"]

log = logging.getLogger("tuckergp.serve")

Floats = npt.NDArray[np.float64]

STATUSES = (200, 400, 401, 403, 404, 405, 408, 413, 422, 429, 500, 503, 0)
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
OTHER = "other"
# Of a request for each route: how often each status, how many in each bucket, and the seconds in total.
PER_ROUTE = len(STATUSES) + len(BUCKETS) + 2
# Of a worker: memory, requests under way, the figures of its model, and of drift the weight and the sums of z and z^2.
MEMORY, ACTIVE, RELOADS, CHANGED, LOADED, FAULT, JOURNAL, ADDED, WEIGHT, SUM, SQUARES, PER_WORKER = range(12)


class Figures(NamedTuple):
    """Of the model of a worker: how often a file was taken, when it was written and loaded, and whether a newer one is
    at fault; the bytes of the journal, and how many users and items were added.
    """

    reloads: int
    changed: float
    loaded: float
    fault: bool
    journal: int
    added: int


class Metrics:
    """The figures of all workers.

    Parameters
    ----------
    routes : sequence of str
        The method and address of each, such as ``GET /users``.
    path : Path or None
        The file that workers share; None for one worker.
    workers, worker : int
    """

    def __init__(self, routes: Sequence[str], path: Path | None = None, workers: int = 1, worker: int = 0) -> None:
        self.routes = {route: number for number, route in enumerate([*routes, OTHER])}
        shape = (workers, PER_WORKER + PER_ROUTE * len(self.routes))
        self._all = np.zeros(shape) if path is None else _shared(path, shape)
        self._own = self._all[worker]
        self._own[ACTIVE] = 0.0
        self._measured = 0.0
        self.drift = Drift(self._own)

    def begin(self) -> int:
        """Count a request that has come; how many this worker has now."""
        self._own[ACTIVE] += 1
        return int(self._own[ACTIVE])

    def end(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        start = PER_WORKER + PER_ROUTE * self.routes.get(route, self.routes[OTHER])
        self._own[start + (STATUSES.index(status) if status in STATUSES else len(STATUSES) - 1)] += 1
        self._own[start + len(STATUSES) + bisect_left(BUCKETS, seconds)] += 1
        self._own[start + PER_ROUTE - 1] += seconds
        self._own[ACTIVE] -= 1
        now = time.monotonic()
        if now > self._measured + 1:
            self._measured = now
            self._own[MEMORY] = resident()

    def note(self, figures: Figures) -> None:
        """Keep the figures of this worker's model, for whichever worker is asked."""
        self._own[MEMORY] = resident()
        self._own[RELOADS : ADDED + 1] = figures

    def text(self) -> str:
        """The figures of all workers."""
        total = self._all.sum(axis=0)
        return "\n".join([*self._requests(total), *self._gauges(total), ""])

    def _requests(self, total: Floats) -> Iterator[str]:
        used = [(route, total[PER_WORKER + PER_ROUTE * k :][:PER_ROUTE]) for route, k in self.routes.items()]
        used = [(route, cells) for route, cells in used if cells[: len(STATUSES)].any()]
        yield from _head("tuckergp_requests_total", "counter", "Requests by address and status.")
        for route, cells in used:
            for status, count in zip(STATUSES, cells, strict=False):
                if count:
                    yield f'tuckergp_requests_total{{route="{route}",status="{status or OTHER}"}} {count:.0f}'
        yield from _head("tuckergp_request_seconds", "histogram", "How long answers took.")
        for route, cells in used:
            counts = np.cumsum(cells[len(STATUSES) : PER_ROUTE - 1])
            for bound, count in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
                yield f'tuckergp_request_seconds_bucket{{route="{route}",le="{bound}"}} {count:.0f}'
            yield f'tuckergp_request_seconds_sum{{route="{route}"}} {cells[-1]:.6f}'
            yield f'tuckergp_request_seconds_count{{route="{route}"}} {counts[-1]:.0f}'

    def _gauges(self, total: Floats) -> Iterator[str]:
        most, now = self._all.max(axis=0), time.time()
        started = self._all[self._all[:, LOADED] > 0]
        age, loaded = (now - started[:, [CHANGED, LOADED]].min(axis=0, initial=now)).tolist()
        yield from _gauge("tuckergp_model_age_seconds", "Since the oldest model file in use was written.", age)
        yield from _gauge("tuckergp_model_loaded_seconds", "Since a worker loaded its file, the longest.", loaded)
        yield from _gauge("tuckergp_model_fault", "1 if a worker could not take a newer model file.", most[FAULT])
        yield from _gauge("tuckergp_journal_bytes", "The size of the journal.", most[JOURNAL])
        yield from _gauge("tuckergp_added", "Users and items that were added since the fit.", most[ADDED])
        yield from _head("tuckergp_memory_bytes", "gauge", "Resident memory of each worker, shared pages included.")
        for worker, row in enumerate(self._all):
            yield f'tuckergp_memory_bytes{{worker="{worker}"}} {row[MEMORY]:.0f}'
        yield from _gauge("tuckergp_requests_active", "Requests under way.", total[ACTIVE])
        yield from _head("tuckergp_reloads_total", "counter", "Model files taken since the start.")
        yield f"tuckergp_reloads_total {most[RELOADS]:.0f}"
        weight = total[WEIGHT]
        yield from _gauge("tuckergp_drift_ratings", "Recent ratings that drift is judged by.", weight)
        if weight > 0:
            mean, square = total[SUM] / weight, total[SQUARES] / weight
            yield from _gauge("tuckergp_drift_mean_z", "Their mean deviation in standard deviations; 0 expected.", mean)
            yield from _gauge("tuckergp_drift_rms_z", "Their root mean square deviation; 1 expected.", square**0.5)


class Drift:
    """How far recent ratings are from what was predicted for them, in predictive standard deviations.

    Each rating counts less with each that follows: those of the last `MEMORY_OF` count most.
    """

    MEMORY_OF = 1000
    MOST_JUDGED = 200

    def __init__(self, cells: Floats) -> None:
        self._cells, self._lock = cells, threading.Lock()

    def add(self, before: ServedRecommender, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take ratings into account, with the model as it was before they were folded in."""
        model = before.model
        if model.history_.clicks or not model.fit_.draws.sampled:
            return
        judged = [row for row in rows[-self.MOST_JUDGED :] if row.get(RATING) is not None]
        if not judged:
            return
        pairs = [{name: value for name, value in row.items() if name != RATING} for row in judged]
        try:
            mean, std = before.predict(pairs, return_std=True, clip=False)
            z = (np.array([float(row[RATING]) for row in judged]) - mean) / std
        except Exception:  # the ratings are kept all the same
            log.exception("Ratings that were folded in could not be judged for drift.")
            return
        self.count(z[np.isfinite(z)])

    def count(self, z: Floats) -> None:
        """Take standardised deviations into account."""
        kept = (1 - 1 / self.MEMORY_OF) ** np.arange(len(z))[::-1]
        with self._lock:
            self._cells[WEIGHT : SQUARES + 1] *= (1 - 1 / self.MEMORY_OF) ** len(z)
            self._cells[WEIGHT : SQUARES + 1] += kept.sum(), kept @ z, kept @ z**2


def resident() -> float:
    """Bytes of memory that this process has."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):  # not Linux: the most that it ever had
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return float(most if sys.platform == "darwin" else most * 1024)
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


def _shared(path: Path, shape: tuple[int, int]) -> Floats:
    """An array in a file, zeros at first; sharing processes must agree on its shape."""
    with open(path, "a+b") as file:
        file.truncate(8 * shape[0] * shape[1])
    return np.memmap(path, dtype=np.float64, mode="r+", shape=shape)


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]


def _gauge(name: str, words: str, value: float) -> list[str]:
    return [*_head(name, "gauge", words), f"{name} {value:.6g}"]
