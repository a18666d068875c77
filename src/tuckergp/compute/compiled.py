"""Functions that numba compiles, and loads, when the first of them is called.

To load numba takes longer than to answer from a small model, which needs no compiled function. So what is decorated
here stands for the compiled function until its first call, which puts the real one in its place in the modules where
compiled code looks names up. Compiled code therefore imports others of its kind by name, never through a module.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import update_wrapper
from importlib import import_module
from typing import Any, TypeVar, cast

__all__ = ["Deferred", "exact", "from_module", "instruction", "jit"]

# Sums may be reordered so that loops vectorise; NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "arcp", "nsz"}

F = TypeVar("F", bound=Callable[..., Any])

_LOADING = threading.Lock()


class Deferred:
    """Something of numba that is made when it is first used; ``names`` are the globals that its code reads."""

    def __init__(self, make: Callable[[], Any], names: dict[str, Any]) -> None:
        self._make = make
        self._names = names
        self._made: Any = None

    @property
    def made(self) -> Any:
        """The thing itself."""
        if self._made is None:
            with _LOADING:
                _load(self)
        return self._made

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return self.made(*arguments)

    def __getattr__(self, name: str) -> Any:
        """An attribute of the thing itself."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.made, name)


def jit(function: F) -> F:
    """A function to compile with sums that may be reordered."""
    return cast(F, _function(function, lambda: _njit(fastmath=FAST)))


def exact(function: F) -> F:
    """A function to compile with sums in the order that is written."""
    return cast(F, _function(function, _njit))


def instruction(function: Callable[..., Any]) -> Any:
    """A function for compiled code that says what its instructions are."""
    return _function(function, lambda: import_module("numba.extending").intrinsic)


def from_module(module: str, name: str | None = None) -> Any:
    """A module, or one of its names, imported at first use."""
    return Deferred(lambda: import_module(module) if name is None else getattr(import_module(module), name), {})


def _njit(**options: Any) -> Any:
    return import_module("numba").njit(cache=True, nogil=True, error_model="numpy", **options)


def _function(function: Callable[..., Any], decorator: Callable[[], Callable[..., Any]]) -> Any:
    return update_wrapper(Deferred(lambda: decorator()(function), function.__globals__), function)


def _load(first: Deferred) -> None:
    """Make a thing and all that its code reads, and put them where the code looks for them."""
    made: dict[Deferred, Any] = {}
    todo = [first]
    while todo:
        each = todo.pop()
        if each not in made and each._made is None:
            made[each] = each._make()
            todo += [value for value in each._names.values() if isinstance(value, Deferred)]
    for each in made:
        for name, value in list(each._names.items()):
            if isinstance(value, Deferred):
                each._names[name] = made.get(value, value._made)
    for each, value in made.items():  # last, because others who find it here do not wait
        each._made = value
