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
    "Content-Security-Policy": "default-src 'self'; img-src 'self'; object-src 'none'; base-uri 'none'; "
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
    unauthenticated : set of str
        Addresses that need no token, for they tell nothing of the model, and take no place of those that do.
    """

    def __init__(self, app: ASGIApp, settings: ServeSettings, metrics: Metrics, unauthenticated: set[str]) -> None:
        self._app, self._settings, self._metrics, self._unauthenticated = app, settings, metrics, unauthenticated
        self._token = None if settings.token is None else settings.token.encode()
        self._hosts = {"localhost", *(host.lower() for host in settings.hosts)}
        self._rates = Rates(settings.rate)
        self.let_in = 0  # requests under way that have a place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass on what is none."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # as it was sent, so that %2F in an id is no slash
        scope = {**scope, "path": scope["raw_path"].decode("latin-1")} if scope.get("raw_path") else scope
        start, statuses = time.perf_counter(), list[int]()

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        place = 0 if scope["path"] in self._unauthenticated else 1
        self._metrics.begin()
        try:
            refused = self._refused(scope, place)
            if refused is None:
                self.let_in += place
                try:
                    await self._app(scope, self._patient(receive), answer)
                finally:
                    self.let_in -= place
            else:
                await refused(scope, receive, answer)
        except Exception:
            if not statuses:  # else it was answered, and is in the log
                raise
        finally:
            self._metrics.end(_route(scope), statuses[0] if statuses else 500, time.perf_counter() - start)

    def _refused(self, scope: Scope, place: int) -> Reply | None:
        """The answer to a request that is not let through."""
        headers = Headers(scope=scope)
        wait = self._rates.wait(_address(scope))
        if wait > 0:
            return _no(429, "Too many requests from here; come back later.", {"Retry-After": str(int(wait) + 1)})
        if self._token is not None:
            if place and not self._has_token(headers):
                return _no(401, "This needs a token: send Authorization: Bearer TOKEN.", {"WWW-Authenticate": "Bearer"})
        elif not self._is_own(headers.getlist("host")):
            return _no(403, "This server is not called so; start it with --allow-host NAME, or with a token.")
        elif not _from_here(scope, headers):
            return _no(403, "Other sites may not ask this server from a browser; give it a token.")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > self._settings.most_bytes:
            return _no(413, self._too_large)
        if self.let_in + place > self._settings.at_once:
            return _no(503, "Too many requests at once; come back in a second.", {"Retry-After": "1"})
        return None

    @property
    def _too_large(self) -> str:
        return f"The request is longer than {self._settings.most_bytes:,} bytes; send it in parts."

    def _has_token(self, headers: Headers) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token or b"")

    def _is_own(self, hosts: list[str]) -> bool:
        """Whether the server is asked by a name that no other site can have: an address, localhost, or a given name."""
        if len(hosts) != 1:
            return False
        try:
            name = urlsplit(f"//{hosts[0]}").hostname or ""
        except ValueError:
            return False
        return name in self._hosts or bool(_ip(name))

    def _patient(self, receive: Receive) -> Receive:
        """Receive a body up to its longest size, and wait for all of it only so long."""
        size, whole, end = 0, False, time.monotonic() + self._settings.patience

        async def receiving() -> Message:
            nonlocal size, whole
            if whole:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, end - time.monotonic()))
            except TimeoutError:
                raise HTTPException(408, "The request did not come to its end in time.") from None
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if size > self._settings.most_bytes:
                raise HTTPException(413, self._too_large)
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


def _ip(text: str) -> str:
    """An address in one spelling; nothing for what is none."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return ""


def _address(scope: Scope) -> str:
    """The address of whoever asks."""
    return _ip((scope.get("client") or ("",))[0])


def _from_here(scope: Scope, headers: Headers) -> bool:
    """Whether a browser says that a page of this server asks, or says nothing; others may only lead to the page."""
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != headers.get("host"):
        return False
    leads_here = scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
    return leads_here or headers.get("sec-fetch-site") not in ("cross-site", "same-site")


def _no(status: int, sentence: str, headers: dict[str, str] | None = None) -> Reply:
    return Reply({"detail": sentence}, status, headers)


def _route(scope: Scope) -> str:
    """The method and the address of a request as OpenAPI writes it."""
    path = getattr(scope.get("route"), "path_format", None)
    return OTHER if path is None else f"{scope['method']} {path}"
