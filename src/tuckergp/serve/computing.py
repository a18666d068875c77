"""Answers that are computed in threads, each within a time.

An answer that takes longer is refused, and its work is given up: it ends at the next block of users, rows or draws.
Until then it keeps its thread, so a worker never computes more than ``threads`` answers, wanted or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any

from anyio import CancelScope
from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute

from tuckergp.serve.refusals import Unavailable
from tuckergp.stopping import Work, doing

__all__ = ["TimedRoute", "computed"]


class TimedRoute(APIRoute):
    """An address whose function is computed in a thread, within the time that the settings say."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **given: Any) -> None:
        super().__init__(path, endpoint if iscoroutinefunction(endpoint) else _timed(endpoint), **given)


def _timed(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(endpoint)
    async def timed(request: Request, **given: Any) -> Any:
        return await computed(partial(endpoint, request, **given), request.app.state.settings.answer_within)

    return timed


async def computed(compute: Callable[[], Any], seconds: float) -> Any:
    """What a function returns in a thread; it is given up after so many seconds (0: never), unless it is committed."""
    work, scope = Work(), CancelScope()

    async def in_thread() -> Any:
        with doing(work), scope:
            return await run_in_threadpool(compute)

    task = asyncio.create_task(in_thread())
    done, _ = await asyncio.wait({task}, timeout=seconds or None)
    if done or not work.give_up():
        return await task
    scope.cancel()  # who waits for a thread leaves; a computation has its thread until it ends
    task.add_done_callback(_forget)
    raise Unavailable(f"This took longer than {seconds:g} seconds and was given up; ask for less at once, or later.")


def _forget(task: asyncio.Task[Any]) -> None:
    """Take the end of work that nobody waits for, faults included, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
