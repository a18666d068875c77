"""Real servers: workers that share a journal and a file, signals, ports, and clients that hang."""

from __future__ import annotations

import concurrent.futures
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import pytest

from tests.cli.command import refuse
from tuckergp import load
from tuckergp.errors import InputError
from tuckergp.serve import running as running_module
from tuckergp.serve.settings import ServeSettings

SOURCE = str(Path(__file__).parents[2] / "src")


class Server:
    """A server in processes of its own."""

    def __init__(self, path, *options):
        command = [sys.executable, "-m", "tuckergp", "serve", str(path), "--port", "0", "--json", *map(str, options)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, **pipes, env={**os.environ, "PYTHONPATH": SOURCE})
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.url = json.loads(line)["url"]
        self.port = int(self.url.rpartition(":")[2])

    def get(self, path, **more):
        """A request over a connection of its own, so that any worker may get it."""
        return httpx.get(self.url + path, timeout=60, verify=False, **more)  # no certificates are read

    def fold_in(self, rating):
        return httpx.post(self.url + "/fold-in", json={"ratings": [rating]}, timeout=60, verify=False)

    def tell(self, number):
        self.process.send_signal(number)


@contextmanager
def server(path, *options):
    running = Server(path, *options)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
        running.process.communicate()


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.03)


def workers_of(running):
    """How many workers have answered yet, from the memory that each told."""
    lines = running.get("/metrics").text.splitlines()
    return sum(line.startswith("tuckergp_memory_bytes{") and not line.endswith(" 0") for line in lines)


def workers(running):
    """The processes that answer."""
    children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
    if not children.exists():
        pytest.skip("no /proc here")
    commands = {int(pid): Path(f"/proc/{pid}/cmdline") for pid in children.read_text().split()}
    return [pid for pid, path in commands.items() if path.exists() and b"spawn_main" in path.read_bytes()]


@pytest.fixture(scope="module")
def two(files, tmp_path_factory):
    """Two workers with a journal and a file that tests replace."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copy(files["ratings"], folder / "model.tgp")
    with server(folder / "model.tgp", "--workers", 2, "--journal", folder / "journal", "--watch", 0) as running:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            wait_for(lambda: max(pool.map(lambda _: workers_of(running), range(8))) == 2)
        yield running, folder


def test_a_rating_posted_to_one_worker_is_seen_by_the_next_request_to_any(two):
    running, _ = two
    for k in range(3):
        rating = {"user_id": f"new {k}", "item_id": "i0003", "rating": 1 + k % 5}
        assert running.fold_in(rating).status_code == 200
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _, k=k: running.get(f"/users/new {k}/recommendations"), range(8)))
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.text for answer in answers}) == 1


def test_workers_map_one_file(two):
    running, _ = two
    if not Path("/proc/self/maps").exists():
        pytest.skip("no /proc here")
    for pid in workers(running):
        maps = [line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if "model.tgp" in line]
        assert maps
        assert all(line.split()[1].startswith("r--") for line in maps)  # none is written to


def test_a_reload_on_sighup_drops_no_request_and_keeps_what_was_folded_in(two, files):
    running, folder = two
    rating = {"user_id": "stays", "item_id": "i0003", "rating": 5}
    assert running.fold_in(rating).status_code == 200
    new = load(files["another"]).recommend("u0003", n=3)["score"].tolist()
    shutil.copy(files["another"], folder / "new.tgp")
    (folder / "new.tgp").replace(folder / "model.tgp")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(running.get, "/users/u0003/recommendations?n=3") for _ in range(100)]
        running.tell(signal.SIGHUP)
        assert {answer.result().status_code for answer in answers} == {200}

        def all_new(_=None):
            lists = pool.map(lambda _: running.get("/users/u0003/recommendations?n=3").json()["items"], range(8))
            return all([line["score"] for line in items] == pytest.approx(new) for items in lists)

        wait_for(all_new)
    assert running.get("/users/stays").json()["ratings"][0]["rating"] == 5


def test_clients_that_hang_keep_nobody_waiting(two):
    running, _ = two
    hanging = []
    for k in range(30):
        client = socket.create_connection(("127.0.0.1", running.port))
        head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
        client.sendall(head + (b"\r\n{" if k % 2 else b""))
        hanging.append(client)
    start = time.monotonic()
    for path in ("/health", "/users/u0003/recommendations") * 4:
        assert running.get(path).status_code == 200
    assert time.monotonic() - start < 20
    for client in hanging:
        client.close()


def test_a_worker_that_dies_is_replaced(two):
    running, _ = two
    first, other = workers(running)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: first not in workers(running) and len(workers(running)) == 2)
    (new,) = set(workers(running)) - {other}
    for _ in range(5):
        running.tell(signal.SIGHUP)  # while the new one starts
        assert running.get("/health").status_code == 200
    wait_for(lambda: "model.tgp" in Path(f"/proc/{new}/maps").read_text())
    assert set(workers(running)) == {new, other}
    assert running.get("/users/stays").status_code == 200


def test_workers_that_do_not_come_up_end_the_server_only_if_none_is_left(files, monkeypatch):
    """A damaged file and one dead worker: the others go on, and it is tried again after longer and longer waits."""
    now, started, alive = [0.0], [], {0: True, 1: False}
    monkeypatch.setattr(running_module.time, "monotonic", lambda: now[0])
    workers = running_module._Workers(ServeSettings(files["ratings"], workers=2), None)

    def start(number, failures=0):
        started.append(now[0])
        process = SimpleNamespace(is_alive=lambda: alive[number], exitcode=1)
        workers._workers[number] = running_module._Worker(process, threading.Event(), failures)

    monkeypatch.setattr(workers, "_start", start)
    for number in range(2):
        start(number)
    for _ in range(400):
        workers._replace_the_dead()
        now[0] += 0.5
    waits = np.diff(started[1:])
    assert len(waits) < 12
    assert waits[:3].tolist() == [1.0, 2.5, 4.5]
    assert max(waits) <= running_module.LONGEST_WAIT + 0.5
    alive[0] = False
    with pytest.raises(InputError, match="Workers end as soon as"):
        workers._replace_the_dead()


def test_sigterm_lets_a_request_finish(two):
    """The last test with these workers, for it ends them."""
    running, _ = two
    ratings = [{"item_id": f"i00{10 + k % 30}", "rating": 1 + k % 5} for k in range(5_000)]
    body = json.dumps({"users": [{"ratings": ratings} for _ in range(9)], "n": 3}).encode()
    head = (
        "POST /recommendations HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    wait_for(lambda: "tuckergp_requests_active 1" in running.get("/metrics").text)  # a new worker counts from 0 on
    client = socket.create_connection(("127.0.0.1", running.port))
    client.sendall(head.encode() + body[:1000])  # it cannot end before the rest has come
    wait_for(lambda: "tuckergp_requests_active 2" in running.get("/metrics").text)
    running.tell(signal.SIGTERM)
    client.sendall(body[1000:])
    answer = b""
    while part := client.recv(1 << 16):
        answer += part
    assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
    assert len(json.loads(answer.partition(b"\r\n\r\n")[2])["lists"]) == 9
    assert running.process.wait(timeout=60) == 0


def test_a_port_in_use_is_one_line(files):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refuse("serve", files["ratings"], "--port", port)
    assert line == f"tuckergp: Port {port} is in use; stop the program that uses it, or take another --port.\n"


@pytest.mark.parametrize(("content", "text"), [(None, "There is no model file"), (b"PK nonsense", "damaged")])
def test_a_file_that_is_missing_or_damaged_is_one_line(tmp_path, content, text):
    path = tmp_path / "model.tgp"
    if content is not None:
        path.write_bytes(content)
    assert text in refuse("serve", path, "--port", 0)
    assert text in refuse("serve", path, "--port", 0, "--workers", 2)


def test_an_address_that_is_none_is_one_line(files):
    assert "Cannot listen on 203.0.113.7" in refuse(
        "serve", files["ratings"], "--host", "203.0.113.7", "--port", 0, "--no-token"
    )


def test_without_fastapi_a_sentence_says_what_to_install(files, monkeypatch):
    for name in list(sys.modules):
        if name.startswith("tuckergp.serve"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert "pip install 'tuckergp[serve]'" in refuse("serve", files["ratings"])
