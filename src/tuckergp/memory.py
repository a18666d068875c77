"""What memory can hold: sizes are refused before anything is allocated, and rows are taken in blocks."""

from __future__ import annotations

import os

from tuckergp.errors import InputError

__all__ = ["blocks", "physical_memory", "refuse_beyond_memory"]

UNKNOWN = 2**42
"""Bytes that are believed to be there where the system does not say."""


def physical_memory() -> int:
    """Bytes of memory of this machine."""
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        return int(os.sysconf("SC_PHYS_PAGES")) * int(os.sysconf("SC_PAGE_SIZE"))
    return UNKNOWN


def refuse_beyond_memory(size: int, what: str, remedy: str) -> None:
    """Raise an error for something that needs more bytes than this machine has."""
    room = physical_memory()
    if size > room:
        raise InputError(f"{what} {_gigabytes(size)} GB of memory, and this machine has {_gigabytes(room)}; {remedy}.")


def blocks(n: int, step: int) -> list[slice]:
    """Slices of n rows, of ``step`` rows each but the last, and of at least one."""
    step = max(1, step)
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def _gigabytes(size: int) -> str:
    amount = size / 1e9
    return f"{amount:,.0f}" if 10 <= amount < 1e9 else f"{amount:.2g}"
