"""A client of a server on loopback: requests that are due at given times, and what came of them.

Latencies count from when a request was due, so that a slow answer is not hidden by the requests that it kept back.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Answer", "Client", "Request", "at_once", "at_rate", "figures"]

# Seconds after which a request has failed.
PATIENCE = 60.0


class Request(NamedTuple):
    """An address that is asked for; with JSON that is sent, or its bytes, by POST."""

    path: str
    sent: Any = None


class Answer(NamedTuple):
    """When a request was due, when it was answered, and the status; 0 for none."""

    request: Request
    due: float
    done: float
    status: int


def at_once() -> Iterator[float]:
    """Each request is due when a connection is free: as many as the server can answer."""
    while True:
        yield time.perf_counter()


def at_rate(rate: float) -> Iterator[float]:
    """Requests are due so many times a second, whether or not those before them were answered."""
    start = time.perf_counter()
    return (start + k / rate for k in count())


class Client:
    """Connections to one server.

    Attributes
    ----------
    answers : list of Answer
        In the order in which they came.
    unsent : int
        Requests that were due before the end, and for which no connection was free until then.
    """

    def __init__(self, port: int) -> None:
        self.port, self.answers, self.unsent = port, list[Answer](), 0

    async def one(self, request: Request) -> bytes:
        """The answer to one request, over a connection of its own."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        body = (await _ask(reader, writer, request))[1]
        writer.close()
        return body

    async def load(self, requests: Iterator[Request], dues: Iterator[float], seconds: float, connections: int) -> None:
        """Send requests when they are due, each over the first connection that is free, for some seconds."""
        end = time.perf_counter() + seconds
        await asyncio.gather(*(self._connection(requests, dues, end) for _ in range(connections)))

    async def _connection(self, requests: Iterator[Request], dues: Iterator[float], end: float) -> None:
        streams: Any = None
        for due in dues:  # which all connections share
            if due >= end:
                break
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if time.perf_counter() >= end:
                self.unsent += 1
                continue
            request, status = next(requests), 0
            try:
                streams = streams or await asyncio.open_connection("127.0.0.1", self.port)
                status, _ = await asyncio.wait_for(_ask(*streams, request), PATIENCE)
            except (OSError, asyncio.IncompleteReadError):  # a timeout is an OSError
                streams = streams and streams[1].close()
                await asyncio.sleep(0.1)
            self.answers.append(Answer(request, due, time.perf_counter(), status))
        if streams is not None:
            streams[1].close()


async def _ask(reader: Any, writer: Any, request: Request) -> tuple[int, bytes]:
    sent = request.sent
    text = sent if isinstance(sent, bytes) else b"" if sent is None else json.dumps(sent).encode()
    kind = f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n" if text else ""
    head = f"{'POST' if text else 'GET'} {request.path} HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n"
    writer.write(head.encode() + text)
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    body = await reader.readexactly(int(length[1]) if length else 0)
    return int(head[9:12]), body


def figures(answers: list[Answer], took: float) -> dict[str, Any]:
    """Answers per second, latencies in milliseconds, and failures, of the answers of some seconds."""
    spent = [1000 * (answer.done - answer.due) for answer in answers]
    p50, p99 = (float(np.quantile(spent, q)) if spent else None for q in (0.5, 0.99))
    failed = sum(answer.status != 200 for answer in answers)
    return {"took": took, "per_second": len(spent) / took, "p50": p50, "p99": p99, "requests": len(spent),
            "failed": failed}  # fmt: skip
