"""Values read from a file compared with the types that the fields of their classes declare.

The one check that every object of a file passes: what code may rely on is what its annotations say. Numbers declared as
floats are finite as well. Sizes, and what must fit together, are checked in `tuckergp.store.checks`.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from tuckergp.params import Parametrised
from tuckergp.residuals.grown import RowsInPlace

__all__ = ["check_fields", "fits", "hints_of"]


def check_fields(thing: Any, hints: Mapping[str, Any]) -> None:
    """Raise a ValueError for an object with a field that is not what `hints_of` its class says."""
    for name, value in _fields(thing):
        if name in hints and not fits(value, hints[name]):
            raise ValueError(f"{name} of a {type(thing).__name__} is a {type(value).__name__} that cannot be there")


def _fields(thing: Any) -> list[tuple[str, Any]]:
    if isinstance(thing, tuple):
        return list(zip(thing._fields, thing, strict=True))  # type: ignore[attr-defined]
    return list(vars(thing).items())


def hints_of(kind: type, known: dict[str, Any]) -> dict[str, Any]:
    """The declared types of the fields of a class; for kernels and feature maps, of parameters and what was learned.

    ``known`` has classes by name that annotations may name without an import.
    """
    hints = typing.get_type_hints(kind, localns=known)
    if issubclass(kind, Parametrised) and kind.__init__ is not object.__init__:
        hints = _of_parameters(kind) | hints  # a field may hold less than the argument of its name takes
    if dataclasses.is_dataclass(kind):
        stored = {field.name for field in dataclasses.fields(kind)}
        return {name: hint for name, hint in hints.items() if name in stored}
    return {name: hint for name, hint in hints.items() if typing.get_origin(hint) is not typing.ClassVar}


def _of_parameters(kind: type) -> dict[str, Any]:
    """The declared types of the arguments of a constructor; several arguments of one name become a sequence."""
    made = typing.get_type_hints(kind.__init__)  # type: ignore[misc]
    several = inspect.Parameter.VAR_POSITIONAL
    for name, parameter in inspect.signature(kind.__init__).parameters.items():  # type: ignore[misc]
        if parameter.kind is several and name in made:
            made[name] = Sequence[made[name]]  # type: ignore[valid-type]
    return made


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type, and finite where it is a float or an array of floats.

    Examples
    --------
    >>> fits((1, 2.5), tuple[int, float]), fits([1, None], list[int]), fits(float("nan"), float)
    (True, False, False)
    """
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or isinstance(hint, str | typing.TypeVar):
        return True
    if hint is None or hint is type(None):
        return value is None
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, each) for each in inside)
    if origin is typing.Literal:
        return any(type(value) is type(each) and value == each for each in inside)
    if origin is not None:
        return _FITS[origin](value, inside) if origin in _FITS else isinstance(value, origin)
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and not isinstance(value, bool) and _is_finite(value)
    return isinstance(value, hint)


_NUMBERS: dict[Any, tuple[type, ...]] = {
    int: (int, np.integer),
    float: (int, float, np.integer, np.floating),
}


def _is_finite(value: Any) -> bool:
    return isinstance(value, int) or bool(np.isfinite(value))


def _fits_array(value: Any, inside: tuple[Any, ...]) -> bool:
    """Arrays in memory or in a mapped file, whose numbers are checked when they are read."""
    (scalar,) = typing.get_args(inside[1]) if len(inside) > 1 else (Any,)
    if not isinstance(value, np.ndarray | RowsInPlace):
        return False
    if scalar is Any:
        return True
    if not issubclass(value.dtype.type, scalar):
        return False
    return isinstance(value, RowsInPlace) or value.dtype.kind != "f" or bool(np.isfinite(value).all())


def _fits_tuple(value: Any, inside: tuple[Any, ...]) -> bool:
    if not isinstance(value, tuple):
        return False
    if len(inside) == 2 and inside[1] is Ellipsis:
        return all(fits(each, inside[0]) for each in value)
    return len(value) == len(inside) and all(map(fits, value, inside))


def _fits_each(*kinds: type) -> Callable[[Any, tuple[Any, ...]], bool]:
    def holds(value: Any, inside: tuple[Any, ...]) -> bool:
        listed = isinstance(value, kinds) and not isinstance(value, str | bytes)
        return listed and (inside[0] is Any or all(fits(each, inside[0]) for each in value))

    return holds


def _fits_mapping(value: Any, inside: tuple[Any, ...]) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(fits(key, inside[0]) and fits(each, inside[1]) for key, each in value.items())


_FITS: dict[Any, Callable[[Any, tuple[Any, ...]], bool]] = {
    np.ndarray: _fits_array,
    tuple: _fits_tuple,
    list: _fits_each(list),
    Sequence: _fits_each(Sequence, np.ndarray),
    frozenset: _fits_each(frozenset),
    set: _fits_each(Set),
    dict: _fits_mapping,
    Mapping: _fits_mapping,
}
