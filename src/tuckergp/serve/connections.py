"""Connections of HTTP: only so many at a time, which wait only so long for a request, and for an answer to be taken."""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
import sys
from collections import Counter
from collections.abc import Collection
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tuckergp.errors import InputError
from tuckergp.serve.guard import HEADERS
from tuckergp.serve.replies import Reply
from tuckergp.serve.settings import ServeSettings

__all__ = ["listen", "server_of"]

# Seconds that requests under way have to end when the server stops.
GRACE = 30
BACKLOG = 2048
# Files and sockets of a worker that are no connections of clients.
SPARE = 100


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 is any that is free."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
        # its protocol is known to a socket of its number alone, and without it asyncio lets answers wait for 40 ms
        return socket.socket(fileno=listening.detach())
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(f"Port {port} is in use; stop the program that uses it, or take another --port.") from None
        raise InputError(f"Cannot listen on {host} port {port}: {error.strerror or error}.") from None


def server_of(app: Any, settings: ServeSettings) -> uvicorn.Server:
    """The server of an app; what proxies say about clients is believed if they are named."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=_protocol(settings.patience, Places(settings.connections, settings.proxies)),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.proxies),
            forwarded_allow_ips=list(settings.proxies),
            backlog=BACKLOG,
            timeout_graceful_shutdown=GRACE,
        )
    )


class Places:
    """Connections that clients may have open: so many per address, and as many in all as the process may open files.

    Parameters
    ----------
    each : int
    proxies : collection of str
        Addresses that stand for many clients, and are counted in all alone.
    total : int or None
        None: what the limit of open files leaves.

    Examples
    --------
    >>> places = Places(1)
    >>> places.take("10.0.0.1"), places.take("10.0.0.1"), places.take("10.0.0.2")
    (True, False, True)
    >>> places.leave("10.0.0.1")
    >>> places.take("10.0.0.1")
    True
    """

    def __init__(self, each: int, proxies: Collection[str] = (), total: int | None = None) -> None:
        self._each, self._proxies, self._taken = each, proxies, Counter[str]()
        self._total = _most_connections() if total is None else total

    def take(self, address: str) -> bool:
        """Whether there is a place for one more connection, which then has it."""
        most = self._total if address in self._proxies else self._each
        if self._taken[address] >= most or self._taken.total() >= self._total:
            return False
        self._taken[address] += 1
        return True

    def leave(self, address: str) -> None:
        """Give a place back."""
        self._taken[address] -= 1
        if not self._taken[address]:
            del self._taken[address]


def _most_connections() -> int:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if files == resource.RLIM_INFINITY else max(SPARE, files - SPARE)


def _protocol(patience: float, places: Places) -> type[H11Protocol]:
    class Patient(H11Protocol):
        """HTTP whose clients have so many seconds to send the head of a request, and to take what is sent."""

        _place: str | None = None
        _for_request: asyncio.TimerHandle | None = None
        _for_reader: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            address = self.client[0] if self.client else ""
            if places.take(address):
                self._place = address
                self._wait_for_request()
            else:
                self._refuse(429, "Too many connections are open; close some, or come back later.")

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if not self._has_request():
                self._wait_for_request()
            elif self._for_request is not None:
                self._for_request.cancel()
                self._for_request = None

        def _has_request(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _wait_for_request(self) -> None:
            if self._for_request is None:
                self._for_request = self.loop.call_later(patience, self._give_up)

        def _give_up(self) -> None:
            self._for_request = None
            if not self._has_request():
                self.transport.abort()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._for_reader = self.loop.call_later(patience, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._for_reader is not None:
                self._for_reader.cancel()

        def connection_lost(self, exc: Exception | None) -> None:
            for timer in (self._for_request, self._for_reader):
                if timer is not None:
                    timer.cancel()
            if self._place is not None:
                places.leave(self._place)
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # an answer is under way
                self.transport.close()
                return
            self._refuse(400, "This is no HTTP request.")

        def _refuse(self, status: int, sentence: str) -> None:
            body = bytes(Reply({"detail": sentence}).body)
            headers = [*HEADERS.items(), ("Content-Type", "application/json"), ("Content-Length", str(len(body))),
                       ("Connection", "close")]  # fmt: skip
            for event in (h11.Response(status_code=status, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    return Patient
