"""Clients that do not come to an end: those who send slowly, those who do not read, and those who send nonsense."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import contextmanager

import httpx
import pytest

from tuckergp.serve.app import app_of
from tuckergp.serve.connections import Places, listen, server_of
from tuckergp.serve.settings import ServeSettings

PATIENCE = 0.3


@contextmanager
def running(path, **settings):
    """A server in a thread, and its port."""
    settings = ServeSettings(path, watch=0.0, patience=PATIENCE, **settings)
    with listen("127.0.0.1", 0) as listening:
        server = server_of(app_of(settings), settings)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        wait_for(lambda: server.started)
        yield server, listening.getsockname()[1]
        server.should_exit = True
        thread.join(10)


def wait_for(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def server(files):
    with running(files["ratings"]) as started:
        yield started


def connected(server):
    client = socket.create_connection(("127.0.0.1", server[1]))
    client.settimeout(10)
    return client


def test_who_begins_another_request_and_stops_is_cut_off(server):
    with connected(server) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += client.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 200")
        client.sendall(b"GET / HT")
        wait_for(lambda: cut_off(client))
    with connected(server) as client:
        wait_for(lambda: cut_off(client, b"x"))  # each of which would begin the patience anew


def test_who_sends_nothing_and_who_goes_on_after_a_refusal_are_cut_off(server):
    with connected(server) as silent, connected(server) as talking:
        talking.sendall(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n")
        assert talking.recv(1 << 16).startswith(b"HTTP/1.1 413")
        wait_for(lambda: cut_off(talking, b"x") and cut_off(silent))


def cut_off(client, data=b""):
    try:
        if data:
            client.sendall(data)
        client.setblocking(False)
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        client.setblocking(True)


def test_who_does_not_read_is_cut_off_and_takes_nobodys_place(server):
    running, _ = server
    with connected(server) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        try:
            for _ in range(10_000):
                client.send(b"GET /assets/style.css HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
        except BlockingIOError:  # the server reads no more
            pass
        wait_for(lambda: not running.server_state.connections)


def test_who_has_many_connections_open_gets_no_more_until_some_are_closed(files):
    with running(files["ratings"], connections=2) as server:
        state = server[0].server_state
        with connected(server), connected(server):
            wait_for(lambda: len(state.connections) == 2)
            with connected(server) as third:
                answer = b"".join(iter(lambda: third.recv(1 << 16), b""))
            assert answer.startswith(b"HTTP/1.1 429")
            assert b"Too many connections are open" in answer
        wait_for(lambda: not state.connections)
        assert httpx.get(f"http://127.0.0.1:{server[1]}/health").status_code == 200


def test_proxies_have_as_many_connections_as_there_are():
    places = Places(1, ["10.0.0.9"], total=3)
    asked = ("10.0.0.9", "10.0.0.9", "10.0.0.1", "10.0.0.2")
    assert [places.take(address) for address in asked] == [True, True, True, False]
    places.leave("10.0.0.9")
    assert places.take("10.0.0.2")


def test_what_is_no_http_is_told_so_as_all_else_is(server):
    with connected(server) as client:
        client.sendall(b"nonsense\r\n\r\n")
        answer = b""
        while part := client.recv(1 << 16):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert b"content-security-policy" in head.lower()
    assert json.loads(body) == {"detail": "This is no HTTP request."}


@pytest.mark.parametrize(("proxies", "statuses"), [((), [200, 200, 429]), (("127.0.0.1",), [200, 200, 200])])
def test_only_proxies_that_are_named_say_who_asks(files, proxies, statuses):
    with running(files["ratings"], rate=1.0, proxies=proxies) as (_, port), httpx.Client() as client:
        asked = [client.get(f"http://127.0.0.1:{port}/health", headers={"X-Forwarded-For": f"10.0.0.{k}"})
                 for k in range(3)]  # fmt: skip
        assert [answer.status_code for answer in asked] == statuses
        if proxies:  # what is no address is one client
            more = [
                client.get(f"http://127.0.0.1:{port}/health", headers={"X-Forwarded-For": f"x{k}"}) for k in range(3)
            ]
            assert more[-1].status_code == 429
