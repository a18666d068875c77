"""The client of the benchmark of the server: what is late counts from when it was due, and a run ends on time."""

import asyncio
import importlib
import time
from itertools import repeat
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def clients(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("clients")


def loaded(clients, dues, seconds, connections, stalled=(0.0, 0.0), status="200 OK"):
    """A client after some seconds with a server that answers at once, but not between two moments."""

    async def answer(reader, writer):
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                passed = time.perf_counter() - start
                await asyncio.sleep(stalled[1] - passed if stalled[0] <= passed < stalled[1] else 0)
                writer.write(f"HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}".encode())
        except asyncio.IncompleteReadError:
            writer.close()

    async def run():
        nonlocal start
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        client = clients.Client(server.sockets[0].getsockname()[1])
        start = time.perf_counter()
        await client.load(repeat(clients.Request("/")), dues(), seconds, connections)
        return client, time.perf_counter() - start

    start = 0.0
    return asyncio.run(run())


def test_requests_that_a_stall_keeps_back_count_from_when_they_were_due(clients):
    client, took = loaded(clients, lambda: clients.at_rate(100.0), 2.0, 1, stalled=(0.5, 1.5))
    found = clients.figures(client.answers, took)
    assert (
        190 <= found["requests"] + client.unsent <= 201
    )  # all that were due, not those that one connection had time for
    assert found["p99"] > 900
    waits = [answer.done - answer.due for answer in client.answers if 0.55 < answer.due - client.answers[0].due < 1.4]
    assert len(waits) > 80
    assert sorted(waits, reverse=True) == pytest.approx(waits, abs=0.05)  # the earlier it was due, the longer it waited


def test_a_run_ends_on_time_and_says_what_it_did_not_send(clients):
    client, took = loaded(clients, lambda: clients.at_rate(100.0), 0.6, 2, stalled=(0.2, 1.0))
    assert took < 2.0
    assert client.unsent > 20
    assert len(client.answers) + client.unsent == pytest.approx(60, abs=2)


def test_at_once_is_as_many_as_the_server_can_answer_and_failures_are_counted(clients):
    client, took = loaded(clients, clients.at_once, 0.5, 4, status="500 No")
    found = clients.figures(client.answers, took)
    assert found["requests"] == found["failed"] == len(client.answers) > 50
    assert client.unsent <= 4
    assert found["per_second"] == pytest.approx(len(client.answers) / took)
    assert clients.figures([], 1.0) == {"took": 1.0, "per_second": 0.0, "p50": None, "p99": None, "requests": 0,
                                        "failed": 0}  # fmt: skip
