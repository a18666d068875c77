"""What a server answers under load: lists per second and latencies, beside the bare cost of a list over HTTP.

The bare cost is a FastAPI endpoint of the same number of workers that does one matrix-vector product and a partial sort
of the same size. The model has as many users, items, ratings and draws as asked for; its draws are made up around one
sweep, for what it answers does not matter here, its size does. The client is one process with raw sockets on
loopback. The long run asks at fixed times, a rating among each hundred lists, and tells each minute apart. Memory is
read from /proc, so it needs Linux::

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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from clients import Client, Request, at_once, at_rate, figures
from contestants import Data, write_synthetic
from gibbs import facts
from reports import commit, put

from tuckergp.serve.connections import listen

FULL = {"users": 138_000, "items": 27_000, "ratings": 20_000_000, "rank": 16, "draws": 100, "seconds": 30.0,
        "piece": 60.0}  # fmt: skip
QUICK = {"users": 300, "items": 500, "ratings": 6_000, "rank": 4, "draws": 10, "seconds": 1.0, "piece": 1.0}
PAGE = {"users": 20_000, "items": 27_000, "ratings": 3_000_000, "draws": 20}
WORKERS, CONNECTIONS, N, FOLDED = 2, 4, 10, 2000
# Connections at a rate: enough that requests wait at the server. One request of so many is a rating, by so many users.
OPEN, EVERY, RATING_USERS = 16, 100, 200
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
    titles = {
        "item_id": np.arange(size["items"]),
        "title": [f"The {k}th Film ({1950 + k % 70})" for k in range(size["items"])],
    }
    rec.fit({"user_id": data.user, "item_id": data.item, "rating": data.y}, items=titles, progress=False)
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
            await Client(port).one(Request("/health"))
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


# The load


def lists(users: list[Any]) -> Iterator[Request]:
    """Lists for one user after the other, without end."""
    return cycle([Request(f"/users/{user}/recommendations") for user in users])


def mixed(users: list[Any], item: Any) -> Iterator[Request]:
    """The same with a rating in place of each hundredth, by some of the users, who change their minds."""
    for k, request in enumerate(lists(users)):
        rating = {"user_id": users[k % RATING_USERS], "item_id": item, "rating": 1 + k // EVERY % 5}
        yield Request("/fold-in", {"ratings": [rating]}) if k % EVERY == 0 else request


def measured(port: int, users: list[Any], seconds: float) -> dict[str, Any]:
    """What comes of some seconds at full load, after two that are not counted, in which pages are read."""
    asyncio.run(Client(port).load(lists(users), at_once(), min(seconds, 2.0), CONNECTIONS))
    client, start = Client(port), time.perf_counter()
    asyncio.run(client.load(lists(users), at_once(), seconds, CONNECTIONS))
    return figures(client.answers, time.perf_counter() - start)


def memory(server: subprocess.Popen[bytes]) -> list[dict[str, int]]:
    """Bytes of each worker: those that it alone has, those that it shares, and its part of all (its Pss)."""
    workers = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    return [
        of_worker(Path("/proc", pid))
        for pid in workers
        if b"_tracker" not in Path("/proc", pid, "cmdline").read_bytes()
    ]


def of_worker(place: Path) -> dict[str, int]:
    found = {
        name: 1024 * int(size)
        for name, size in re.findall(r"^(\w+): +(\d+) kB", (place / "smaps_rollup").read_text(), re.M)
    }
    sums = {kind: found[f"{kind}_Clean"] + found[f"{kind}_Dirty"] for kind in ("Private", "Shared")}
    return {"private": sums["Private"], "shared": sums["Shared"], "proportional": found["Pss"]}


def private(server: subprocess.Popen[bytes]) -> int:
    return sum(worker["private"] for worker in memory(server))


def bytes_per_user(server: subprocess.Popen[bytes], port: int, item: Any) -> float:
    """Bytes that each user who is folded in, alone, takes in each worker."""
    before = private(server)
    for k in range(FOLDED):
        rating = {"user_id": 10**9 + k, "item_id": item, "rating": 3}
        asyncio.run(Client(port).one(Request("/fold-in", {"ratings": [rating]})))
    time.sleep(3)  # a worker that is not asked follows within a second
    return (private(server) - before) / FOLDED / WORKERS


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


async def beside_large_bodies(port: int) -> dict[str, Any]:
    """Milliseconds of /health while bodies near the longest are sent, which are parsed, checked and then refused."""
    ratings = [{"user_id": k, "item_id": k, "rating": 99} for k in range(43_000)]
    body = json.dumps({"ratings": ratings}, separators=(",", ":")).encode()
    health, sending = Client(port), True

    async def send() -> int:
        count = 0
        while sending:
            await Client(port).one(Request("/fold-in", body))
            count += 1
        return count

    bodies = asyncio.create_task(send())
    await health.load(cycle([Request("/health")]), at_rate(100.0), 10.0, 1)
    sending = False
    worst = max(1000 * (answer.done - answer.due) for answer in health.answers)
    return {"bytes": len(body), "bodies": await bodies, **figures(health.answers, 10.0), "worst": worst}


def large_bodies_here() -> dict[str, float]:
    """The same, of one worker with a small model."""
    with tempfile.TemporaryDirectory() as place:
        folder, port = Path(place) / "data", 8931
        write_model(QUICK, folder)
        with running(ours(folder, port, workers=1), port):
            return asyncio.run(beside_large_bodies(port))


async def sustained(
    server: subprocess.Popen[bytes], port: int, requests: Iterator[Request], rate: float, pieces: int, length: float
) -> dict[str, Any]:
    """Load at a rate in pieces of some seconds: what was answered in each, and the memory at its end.

    Requests are due at fixed times through all pieces, so that what comes late counts as late, in the piece in which
    it comes. A piece is behind where fewer than 95 % of the rate were answered.
    """
    client, start, taken = Client(port), time.perf_counter(), list[Any]()
    loading = asyncio.create_task(client.load(requests, at_rate(rate), pieces * length, OPEN))
    for k in range(1, pieces + 1):
        await asyncio.sleep(max(0.0, start + k * length - time.perf_counter()))
        taken.append(memory(server))
    await loading
    found = []
    for k, held in enumerate(taken):
        low, high = start + k * length, start + (k + 1) * length if k < pieces - 1 else np.inf
        piece = figures([answer for answer in client.answers if low <= answer.done < high], length)
        found.append({**piece, "behind": piece["per_second"] < 0.95 * rate, "memory": held})
    ratings = [answer for answer in client.answers if answer.request.sent is not None]
    whole = {name: figures(some, pieces * length) for name, some in (("all", client.answers), ("fold_ins", ratings))}
    return {"rate": rate, "unsent": client.unsent, **whole, "pieces": found}


def page_loads() -> dict[str, Any]:
    """Milliseconds until the page has all that its first view asks for, in Chromium: the first time, and later ones."""
    from playwright.sync_api import sync_playwright

    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.serve.page.browser import CHROMIUM, FLAGS, Visit

    last = "Math.max(...performance.getEntriesByType('resource').map((each) => each.responseEnd))"
    port, found = 8931, list[float]()
    with tempfile.TemporaryDirectory() as place:
        write_model({**FULL, **PAGE}, Path(place) / "data")
        with running(ours(Path(place) / "data", port, workers=1), port), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            Visit(browser, "about:blank").tab.close()
            for _ in range(10):
                visit = Visit(browser, f"http://127.0.0.1:{port}")
                found.append(float(visit.open().evaluate(last)))
                visit.tab.close()
            browser.close()
    return {**PAGE, "first": found[0], "later": float(np.median(found[1:])), "load": os.getloadavg()[0]}


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
    parser.add_argument("--page", action="store_true", help="only measure how long the page takes to load in Chromium")
    parser.add_argument("--bare", action="store_true", help="only serve the bare endpoint")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.fold_in:
        print(f"{folded_in_here():.0f} bytes for each user who was folded in, with 100 draws of rank 16")
        return
    if options.bodies:
        print(json.dumps(large_bodies_here(), indent=1))
        return
    if options.page:
        print(json.dumps(page_loads(), indent=1))
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
    report: dict[str, Any] = {"command": command, "commit": commit(), "machine": facts(), "size": size}
    report |= {"workers": WORKERS, "connections": CONNECTIONS}
    with tempfile.TemporaryDirectory() as place:
        folder = options.folder or Path(place) / "data"
        users, item = write_model(size, folder)
        environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with running(bare(options.port), options.port, **environment, **{BARE: str(folder / "bare.npy")}):
            report["bare"] = measured(options.port, users, size["seconds"])
        port = options.port + 1
        with running(ours(folder, port), port, **environment) as server:
            report["started"] = memory(server)
            report["served"] = measured(port, users, size["seconds"])
            report["memory"] = memory(server)
            if options.minutes:
                pieces, rate = max(1, round(60 * options.minutes / size["piece"])), 0.8 * report["served"]["per_second"]
                load = sustained(server, port, mixed(users, item), rate, pieces, size["piece"])
                report["sustained"] = {"minutes": options.minutes, **asyncio.run(load)}
            report["bytes_per_user"] = bytes_per_user(server, port, item)
    report["ratios"] = {name: report["served"][name] / report["bare"][name] for name in ("p50", "p99")}
    print(
        json.dumps({name: report[name] for name in ("bare", "served", "ratios", "bytes_per_user")}, indent=1),
        file=sys.stderr,
    )
    put(report, options.output)


if __name__ == "__main__":
    main()
