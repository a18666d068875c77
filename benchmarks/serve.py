"""What a server answers under load: lists per second and latencies, beside the bare cost of a list over HTTP.

The bare cost is a FastAPI endpoint of the same number of workers that does one matrix-vector product and a partial sort
of the same size. The model has as many users, items, ratings and draws as asked for; its draws are made up around one
sweep, for what it answers does not matter here, its size does. The client is one process with raw sockets on loopback::

    python benchmarks/serve.py -o benchmarks/results/serve.json               # peak, some minutes
    python benchmarks/serve.py --minutes 30 -o benchmarks/results/serve.json  # and 30 minutes at 80 % of it
    python benchmarks/serve.py --quick

``--folder FOLDER`` keeps the model, which takes longest to make, for the next run of the same size.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from contestants import Data, write_synthetic
from gibbs import facts
from reports import put

from tuckergp.serve.connections import listen

FULL = {"users": 138_000, "items": 27_000, "ratings": 20_000_000, "rank": 16, "draws": 100, "seconds": 30.0}
QUICK = {"users": 300, "items": 500, "ratings": 6_000, "rank": 4, "draws": 10, "seconds": 1.0}
WORKERS, CONNECTIONS, N, FOLDED = 2, 4, 10, 2000
BARE = "TUCKERGP_BARE"


# The model and the bare endpoint


def write_model(size: dict[str, Any], folder: Path) -> tuple[list[Any], int]:
    """Write a model of this size, and the vectors of its items, unless they are there; ids of users, and an item."""
    if not (folder / "model.tgp").is_file():
        _write_model(size, folder)
    data = Data(folder)
    if [*data.sizes, len(data.y)] != [size[name] for name in ("users", "items", "ratings")]:
        raise SystemExit(f"{folder} has a model of another size; take another folder")
    return np.unique(data.user)[:5_000].tolist(), int(data.item[0])


def _write_model(size: dict[str, Any], folder: Path) -> None:
    from tuckergp import TuckerRecommender

    if not (folder / "sizes.npy").is_file():  # which is written last
        write_synthetic(folder, size["users"], size["items"], size["ratings"])
    data = Data(folder)
    given = {"draws": 1, "warmup": 1, "implicit": False, "time": None, "objective": "rating", "noise": "shared"}
    rec = TuckerRecommender(rank=size["rank"], **given, random_state=0)
    rec.fit({"user_id": data.user, "item_id": data.item, "rating": data.y}, progress=False)
    rec.fit_ = replace(rec.fit_, draws=widened(rec.fit_.draws, size["draws"]))
    V = np.asarray(rec.fit_.draws.modes[1].rows["psi"], dtype=np.float32)
    np.save(folder / "bare.npy", V.reshape(len(V), -1))
    rec.save(folder / "model.tgp")


def widened(draws: Any, count: int) -> Any:
    """One draw as many, each a little different."""
    rng = np.random.default_rng(0)

    def by_row(values: Any) -> Any:
        wide = np.repeat(np.asarray(values), count, axis=1)
        return wide + np.float32(0.05) * rng.standard_normal(wide.shape, dtype=np.float32)

    def by_draw(values: Any) -> Any:
        return np.repeat(np.asarray(values), count, axis=0)

    modes = tuple(
        replace(
            mode,
            B=by_row(mode.B),
            covariance=by_draw(mode.covariance),
            rows={name: by_row(values) for name, values in mode.rows.items()},
            values={name: by_draw(values) for name, values in mode.values.items()},
        )
        for mode in draws.modes
    )
    unknowns = {name: by_draw(values) for name, values in draws.unknowns.items()}
    return replace(draws, modes=modes, W=by_draw(draws.W), unknowns=unknowns, lengths=(count,), names=None)


def bare_app() -> Any:
    """A list as bare as it can be: a product over the items, and the best of it."""
    from fastapi import FastAPI

    app, V = FastAPI(), np.load(os.environ[BARE], mmap_mode="r")
    Q = np.random.default_rng(0).standard_normal((1000, V.shape[1])).astype(np.float32)

    @app.get("/users/{user}/recommendations")
    def best(user: int) -> dict[str, Any]:
        scores = V @ Q[user % len(Q)]
        found = np.argpartition(-scores, N)[:N]
        found = found[np.argsort(-scores[found])]
        return {"items": found.tolist(), "scores": scores[found].tolist()}

    return app


# Servers


@contextmanager
def running(command: list[str], port: int, **environment: str) -> Any:
    """A server until the end of the block, from when it answers."""
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
    try:
        asyncio.run(answering(port))
        yield process
    finally:
        process.terminate()
        process.wait(60)


async def answering(port: int) -> None:
    """Wait until a server answers anything."""
    for _ in range(600):
        try:
            await Client(port, ["/health"]).one("/health")
            return
        except OSError:
            await asyncio.sleep(0.2)
    raise SystemExit("the server does not answer")


def ours(folder: Path, port: int, workers: int = WORKERS) -> list[str]:
    return [sys.executable, "-m", "tuckergp", "serve", str(folder / "model.tgp"), "--port", str(port),
            "--workers", str(workers), "--rate", "0"]  # fmt: skip


def bare(port: int) -> list[str]:
    return [sys.executable, __file__, "--bare", "--port", str(port)]


def serve_bare(port: int) -> None:
    """Serve the bare endpoint until SIGTERM."""
    listening = listen("127.0.0.1", port)
    workers = [multiprocessing.get_context("fork").Process(target=_bare, args=(listening,)) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    signal.signal(signal.SIGTERM, lambda *_: [worker.terminate() for worker in workers])
    for worker in workers:
        worker.join()


def _bare(listening: Any) -> None:
    import uvicorn

    uvicorn.Server(uvicorn.Config(bare_app(), log_level="warning", access_log=False)).run(sockets=[listening])


# The client


class Client:
    """Connections that ask for one address after the other; ``spent`` are the milliseconds of each answer.

    At a rate they count from when a request was due, so that a slow answer is not hidden by the requests it kept back.
    """

    def __init__(self, port: int, paths: list[str]) -> None:
        self.port, self.paths, self.spent, self.failed, self._next = port, paths, list[float](), 0, 0

    async def one(self, path: str, sent: Any = None) -> bytes:
        """The answer to one request, over a connection of its own; with JSON that is sent (or its bytes), to a POST."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        body = (await self._ask(reader, writer, path, sent))[1]
        writer.close()
        return body

    async def _ask(self, reader: Any, writer: Any, path: str, sent: Any = None) -> tuple[int, bytes]:
        text = sent if isinstance(sent, bytes) else b"" if sent is None else json.dumps(sent).encode()
        kind = f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n" if text else ""
        head = f"{'POST' if text else 'GET'} {path} HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n"
        writer.write(head.encode() + text)
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        body = await reader.readexactly(int(length[1]) if length else 0)
        return int(head[9:12]), body

    async def _connection(self, end: float, pause: float) -> None:
        streams, due = None, time.perf_counter()
        while due < end:
            self._next += 1
            try:
                streams = streams or await asyncio.open_connection("127.0.0.1", self.port)
                status, _ = await self._ask(*streams, self.paths[self._next % len(self.paths)])
                self.failed += status != 200
                self.spent.append(1000 * (time.perf_counter() - due))
            except (OSError, asyncio.IncompleteReadError):
                self.failed, streams = self.failed + 1, None
                await asyncio.sleep(0.1)
            due = due + pause if pause else time.perf_counter()
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
        if streams is not None:
            streams[1].close()

    async def load(self, seconds: float, connections: int, rate: float = 0.0) -> dict[str, float]:
        """Ask for some seconds, at once or at a rate; requests per second, latencies and failures."""
        start = time.perf_counter()
        pause = connections / rate if rate else 0.0
        await asyncio.gather(*(self._connection(start + seconds, pause) for _ in range(connections)))
        spent = np.array(self.spent)
        took = time.perf_counter() - start
        p50, p99 = (float(np.quantile(spent, q)) for q in (0.5, 0.99))
        return {"per_second": len(spent) / took, "p50": p50, "p99": p99, "requests": len(spent), "failed": self.failed}


def measured(port: int, users: list[Any], seconds: float, rate: float = 0.0) -> dict[str, float]:
    """What comes of some seconds of load; at full load after two that are not counted, in which pages are read."""
    paths = [f"/users/{user}/recommendations" for user in users]
    if not rate:
        asyncio.run(Client(port, paths).load(min(seconds, 2.0), CONNECTIONS))
    return asyncio.run(Client(port, paths).load(seconds, CONNECTIONS, rate))


def memory(port: int) -> float:
    """Resident bytes of all workers together, shared pages counted by each."""
    text = asyncio.run(Client(port, []).one("/metrics")).decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("tuckergp_memory_bytes{"))


def bytes_per_user(port: int, item: Any) -> float:
    """Resident bytes that each user who is folded in, alone, takes in each worker."""
    before = memory(port)
    for k in range(FOLDED):
        rating = {"user_id": 10**9 + k, "item_id": item, "rating": 3}
        asyncio.run(Client(port, []).one("/fold-in", {"ratings": [rating]}))
    time.sleep(3)  # a worker that is not asked follows within a second
    return (memory(port) - before) / FOLDED / WORKERS


def folded_in_here() -> float:
    """Resident bytes for each of some users who are folded into a small model in this process, one after the other."""
    from tuckergp import load
    from tuckergp.serve.metrics import resident
    from tuckergp.serve.recommending import ServedRecommender

    with tempfile.TemporaryDirectory() as place:
        _, item = write_model({**QUICK, "rank": FULL["rank"], "draws": FULL["draws"]}, Path(place) / "data")
        served = ServedRecommender(load(Path(place) / "data" / "model.tgp"))
        start = 0.0
        for k in range(FOLDED + 100):
            served = served.with_ratings([{"user_id": 10**9 + k, "item_id": item, "rating": 3}])
            start = resident() if k == 99 else start
        return (resident() - start) / FOLDED


async def beside_large_bodies(port: int) -> dict[str, float]:
    """Milliseconds of /health while bodies near the longest are sent, which are parsed, checked and then refused."""
    ratings = [{"user_id": k, "item_id": k, "rating": 99} for k in range(43_000)]
    body = json.dumps({"ratings": ratings}, separators=(",", ":")).encode()
    health, sending = Client(port, ["/health"]), True

    async def send() -> int:
        count = 0
        while sending:
            await Client(port, []).one("/fold-in", body)
            count += 1
        return count

    bodies = asyncio.create_task(send())
    figures = await health.load(10.0, 1, 100.0)
    sending = False
    return {"bytes": len(body), "bodies": await bodies, **figures, "worst": max(health.spent)}


def large_bodies_here() -> dict[str, float]:
    """The same, of one worker with a small model."""
    with tempfile.TemporaryDirectory() as place:
        folder, port = Path(place) / "data", 8931
        write_model(QUICK, folder)
        with running(ours(folder, port, workers=1), port):
            return asyncio.run(beside_large_bodies(port))


def sustained(port: int, users: list[Any], minutes: float, rate: float) -> dict[str, Any]:
    """Load at a rate for some minutes, in pieces of a minute: how memory grows, and what fails."""
    pieces = [measured(port, users, 60.0, rate) | {"memory": memory(port)} for _ in range(max(1, round(minutes)))]
    later = [piece["memory"] for piece in pieces[1:]]  # in the first minute pages of the file are still read
    return {
        "minutes": len(pieces),
        "bytes_per_minute": float(np.polyfit(np.arange(len(later)), later, 1)[0]) if len(later) > 1 else None,
        "rate": rate,
        "failed": sum(piece["failed"] for piece in pieces),
        "requests": sum(piece["requests"] for piece in pieces),
        "p99": max(piece["p99"] for piece in pieces),
        "memory": [piece["memory"] for piece in pieces],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small model, in seconds")
    parser.add_argument("--minutes", type=float, default=0.0, help="how long to go on at 80 %% of the peak")
    parser.add_argument("--users", type=int, help="another number of users, with ratings in proportion")
    parser.add_argument("--seconds", type=float, help="how long to ask for the peak")
    parser.add_argument("--folder", type=Path, help="keep the model here, and take the one that is here")
    parser.add_argument("--port", type=int, default=8931)
    parser.add_argument("--fold-in", action="store_true", help="only measure what users who are folded in take")
    parser.add_argument("--bodies", action="store_true", help="only measure how long large bodies hold up others")
    parser.add_argument("--bare", action="store_true", help="only serve the bare endpoint")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.fold_in:
        print(f"{folded_in_here():.0f} bytes for each user who was folded in, with 100 draws of rank 16")
        return
    if options.bodies:
        print(json.dumps(large_bodies_here(), indent=1))
        return
    if options.bare:
        serve_bare(options.port)
        return
    size = dict(QUICK if options.quick else FULL)
    if options.users:
        size |= {"users": options.users, "ratings": size["ratings"] * options.users // size["users"]}
    if options.seconds:
        size |= {"seconds": options.seconds}
    command = "python benchmarks/serve.py"
    command += " --quick" * options.quick
    command += "".join(f" --{name} {v:g}" for name in ("users", "seconds", "minutes") if (v := getattr(options, name)))
    report: dict[str, Any] = {"command": command, "machine": facts(), "size": size}
    report |= {"workers": WORKERS, "connections": CONNECTIONS}
    with tempfile.TemporaryDirectory() as place:
        folder = options.folder or Path(place) / "data"
        users, item = write_model(size, folder)
        environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with running(bare(options.port), options.port, **environment, **{BARE: str(folder / "bare.npy")}):
            report["bare"] = measured(options.port, users, size["seconds"])
        with running(ours(folder, options.port + 1), options.port + 1, **environment):
            report["served"] = measured(options.port + 1, users, size["seconds"])
            report["memory"] = memory(options.port + 1)
            if options.minutes:
                rate = 0.8 * report["served"]["per_second"]
                report["sustained"] = sustained(options.port + 1, users, options.minutes, rate)
            report["bytes_per_user"] = bytes_per_user(options.port + 1, item)
    report["ratios"] = {name: report["served"][name] / report["bare"][name] for name in ("p50", "p99")}
    print(
        json.dumps({name: report[name] for name in ("bare", "served", "ratios", "bytes_per_user")}, indent=1),
        file=sys.stderr,
    )
    put(report, options.output)


if __name__ == "__main__":
    main()
