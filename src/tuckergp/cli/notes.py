"""Warnings of the library as lines on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from tuckergp import errors

__all__ = ["collected", "say"]


@contextmanager
def collected() -> Iterator[list[str]]:
    """Collect the texts of this library's warnings, each once; the list is filled after the block."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        for name in errors.__all__:
            if name.endswith("Warning"):
                warnings.simplefilter("always", getattr(errors, name))
        yield texts
    texts += dict.fromkeys(str(one.message) for one in caught)


def say(*texts: str) -> None:
    """Print lines on standard error."""
    for text in texts:
        print(f"tuckergp: {text}", file=sys.stderr)
