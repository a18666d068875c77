"""The number of threads to use: one for small problems, for which threads cost more than they save."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numba
from threadpoolctl import threadpool_limits

from tuckergp.inference.base import Problem

__all__ = ["SHARED_WORK", "few_threads"]

# Multiply-adds of one pass over the data from which on several threads share it.
SHARED_WORK = 1e7


@contextmanager
def few_threads(problem: Problem) -> Iterator[None]:
    """Use one thread where a pass over the data is short, and one for BLAS in any case.

    On small problems threads cost more than they save; those of BLAS, which wait by spinning, cost most on a busy
    machine.
    """
    before = numba.get_num_threads()
    work = len(problem.y) * float(max(problem.model.core.ranks)) ** 2
    with threadpool_limits(limits=1, user_api="blas"):
        try:
            numba.set_num_threads(1 if work < SHARED_WORK else before)
            yield
        finally:
            numba.set_num_threads(before)
