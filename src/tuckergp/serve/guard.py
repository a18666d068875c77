"""What stands before the app: who may ask, how much and how often; headers of every answer; and the counting.

A plain ASGI layer around everything else, so that errors pass through it too. It never waits for the model.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import time
from collections import OrderedDict
from typing import Any
from urllib.parse import urlsplit

from fastapi import HTTPException
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tuckergp.serve.metrics import OTHER, Metrics
from tuckergp.serve.replies import Reply
from tuckergp.serve.settings import ServeSettings

__all__ = ["Guard"]

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# How many clients are remembered.
CLIENTS = 10_000


class Guard:
    """An ASGI app around another one.

    Parameters
    ----------
    app : ASGI app
    settings : ServeSettings
    metrics : Metrics
    free : set of str
        Addresses that need no token, for they tell nothing of the model.
    """

    def __init__(self, app: ASGIApp, settings: ServeSettings, metrics: Metrics, free: set[str]) -> None:
        self._app, self._settings, self._metrics, self._free = app, settings, metrics, free
        self._token = None if settings.token is None else f"Bearer {settings.token}".encode()
        self._rates = Rates(settings.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass on what is none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, statuses = time.perf_counter(), list[int]()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        active = self._metrics.begin()
        try:
            refused = self._refused(scope, active)
            if refused is None:
                await self._app(scope, self._patient(receive), answer)
            else:
                await refused(scope, receive, answer)
        except Exception:
            if not statuses:  # else it was answered, and is in the log
                raise
        finally:
            self._metrics.end(_route(scope), statuses[0] if statuses else 500, time.perf_counter() - start)

    def _refused(self, scope: Scope, active: int) -> Reply | None:
        """The answer to a request that is not let through."""
        headers = Headers(scope=scope)
        if active > self._settings.at_once and scope["path"] != "/health":
            return _no(503, "Too many requests at once; come back in a second.", {"Retry-After": "1"})
        if self._token is not None:
            given = headers.get("authorization", "").encode("utf-8", "replace")
            if scope["path"] not in self._free and not hmac.compare_digest(given, self._token):
                return _no(401, "This needs a token: send Authorization: Bearer TOKEN.", {"WWW-Authenticate": "Bearer"})
        elif not self._is_own(headers.getlist("host")):
            return _no(403, "This server is not called so; start it with --allow-host NAME, or with a token.")
        elif not _same_origin(headers):
            return _no(403, "Other sites may not ask this server from a browser; give it a token.")
        wait = self._rates.wait((scope.get("client") or ("",))[0])
        if wait > 0:
            return _no(429, "Too many requests from here; come back later.", {"Retry-After": str(int(wait) + 1)})
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > self._settings.most_bytes:
            return self._too_large()
        return None

    def _too_large(self) -> Reply:
        return _no(413, f"The request is longer than {self._settings.most_bytes:,} bytes; send it in parts.")

    def _is_own(self, hosts: list[str]) -> bool:
        """Whether the server is asked by a name that no other site can have: an address, localhost, or a given name."""
        if len(hosts) != 1:
            return False
        try:
            name = urlsplit(f"//{hosts[0]}").hostname or ""
        except ValueError:
            return False
        if name == "localhost" or name in {host.lower() for host in self._settings.hosts}:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _patient(self, receive: Receive) -> Receive:
        """Receive a body up to its longest size, and wait for each part only so long."""
        size, whole = 0, False

        async def receiving() -> Message:
            nonlocal size, whole
            if whole:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), self._settings.patience)
            except TimeoutError:
                raise HTTPException(408, "The request did not come to its end in time.") from None
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if size > self._settings.most_bytes:
                raise HTTPException(413, f"The request is longer than {self._settings.most_bytes:,} bytes; send it in "
                                    "parts.")  # fmt: skip
            return message

        return receiving


class Rates:
    """How often clients may ask: on average so often a second, and twice that at once.

    Examples
    --------
    >>> rates = Rates(1.0)
    >>> [rates.wait("ann", now=0.0) for _ in range(3)]
    [0.0, 0.0, 1.0]
    >>> rates.wait("bob", now=0.0), rates.wait("ann", now=5.0)
    (0.0, 0.0)
    """

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, 2 * max(rate, 1.0)
        self._left: OrderedDict[Any, tuple[float, float]] = OrderedDict()

    def wait(self, client: Any, now: float | None = None) -> float:
        """Seconds after which a client may ask again; 0 if it may now."""
        if not self._rate:
            return 0.0
        now = time.monotonic() if now is None else now
        left, last = self._left.pop(client, (self._most, now))
        left = min(self._most, left + (now - last) * self._rate)
        allowed = left >= 1
        self._left[client] = (left - 1 if allowed else left, now)
        if len(self._left) > CLIENTS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._rate


def _same_origin(headers: Headers) -> bool:
    """Whether a browser says that the request comes from a page of this server, or says nothing."""
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host")


def _no(status: int, sentence: str, headers: dict[str, str] | None = None) -> Reply:
    return Reply({"detail": sentence}, status, headers)


def _route(scope: Scope) -> str:
    """The method and the address of a request as OpenAPI writes it."""
    path = getattr(scope.get("route"), "path_format", None)
    return OTHER if path is None else f"{scope['method']} {path}"
