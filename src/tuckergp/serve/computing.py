"""Answers that are computed in threads, each within a time.

An answer that takes longer is refused, and its work is given up: it ends at the next block of users, rows or draws.
Until then it keeps its thread, so a worker never computes more than ``threads`` answers, wanted or not.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from anyio import CancelScope
from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from threadpoolctl import threadpool_limits

from tuckergp.serve.refusals import Unavailable
from tuckergp.serve.settings import ServeSettings
from tuckergp.stopping import Work, doing

__all__ = ["TimedRoute", "computed", "cores_shared"]

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class TimedRoute(APIRoute):
    """An address whose function is computed in a thread, within the time that the settings say.

    Bodies are parsed and checked there too, so that the loop goes on meanwhile. Functions that are coroutines are left
    to the loop.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **given: Any) -> None:
        super().__init__(path, endpoint if iscoroutinefunction(endpoint) else _in_this_thread(endpoint), **given)

    def get_route_handler(self) -> Handler:
        """What answers a request: the handler of FastAPI, in a thread once the body is there."""
        handler = super().get_route_handler()
        if not hasattr(self.endpoint, "__wrapped__"):
            return handler

        async def timed(request: Request) -> Response:
            if self.body_field is not None:
                await request.body()  # which the request keeps
            response: Response = await computed(
                lambda: _result(handler(request)), request.app.state.settings.answer_within
            )
            return response

        return timed


def _in_this_thread(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """A function as a coroutine, so that FastAPI looks for no other thread."""

    @wraps(endpoint)
    async def answer(**given: Any) -> Any:
        return endpoint(**given)

    return answer


def _result(coroutine: Coroutine[Any, Any, Response]) -> Response:
    """The result of a coroutine that has all it needs, and never waits."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        response: Response = end.value
        return response
    coroutine.close()
    raise RuntimeError("An address with a plain function waits for something; make it a coroutine.")


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


@contextmanager
def cores_shared(settings: ServeSettings) -> Iterator[None]:
    """A block in which BLAS has as many threads for each answer as there are cores for each that is computed at once.

    With more, threads of several answers, and of other processes, wait for each other: eigenvalues of a small matrix
    took a hundred times as long on busy cores.
    """
    answers = settings.workers * settings.threads
    with threadpool_limits(limits=max(1, (os.cpu_count() or 1) // answers), user_api="blas"):
        yield


def _forget(task: asyncio.Task[Any]) -> None:
    """Take the end of work that nobody waits for, faults included, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
