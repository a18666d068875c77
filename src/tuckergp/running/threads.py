"""The number of threads to use: one for small problems, for which threads cost more than they save; and their turns."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from tuckergp.inference.base import Problem

__all__ = ["SHARED_WORK", "few_threads", "one_at_a_time", "one_blas_thread"]

# Multiply-adds of one pass over the data from which on several threads share it.
SHARED_WORK = 5e7


@cache
def _libraries() -> Any:
    """The libraries with threads of their own; to look for them takes longer than some fits."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Use one thread for BLAS, whose sums depend on how many there are in their last digits."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@contextmanager
def few_threads(problem: Problem) -> Iterator[None]:
    """Use one thread where a pass over the data is short, and one for BLAS in any case.

    On small problems threads cost more than they save; those of BLAS, which wait by spinning, cost most on a busy
    machine.
    """
    import numba  # which answers from a model do not need

    before = numba.get_num_threads()
    work = problem.n_observations * float(max(problem.model.core.ranks)) ** 2
    with one_blas_thread():
        try:
            numba.set_num_threads(1 if work < SHARED_WORK else before)
            yield
        finally:
            numba.set_num_threads(before)


# Outside the models, which are copied and pickled.
_TURNS: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()
_ASKING = threading.Lock()


@contextmanager
def one_at_a_time(thing: Any) -> Iterator[None]:
    """Let one thread at a time change an object; others wait."""
    with _ASKING:
        turn = _TURNS.setdefault(thing, threading.RLock())
    with turn:
        yield


def _forget() -> None:
    """In a forked process, forget turns of threads that it does not have."""
    global _ASKING
    _TURNS.clear()
    _ASKING = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
