"""Parameters in the style of scikit-learn: of objects that describe something, such as kernels, and of estimators.

The constructor stores what it is given under the same names; reading, setting, comparing and printing follow from its
signature, and `sklearn.base.clone` works. scikit-learn itself, which takes a second to load, is not needed.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from functools import cache
from typing import Any, Self

import numpy as np

from tuckergp.errors import InputError

__all__ = ["Estimator", "Parametrised", "check_fitted", "inner_params", "with_inner"]


class Parametrised:
    """A base class with nested parameters, equality, and a repr that can be evaluated."""

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return list(_names_of(cls))  # type: ignore[arg-type]  # instances have no hash, classes do

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with `deep`, also those of nested objects as ``outer__inner``."""
        params: dict[str, Any] = {}
        for name in self._parameter_names():
            value = getattr(self, name)
            params[name] = value
            if deep and isinstance(value, Parametrised):
                params.update({f"{name}__{inner}": v for inner, v in value.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by the names that `get_params` gives."""
        # outer names first: in set_params(k1=SE(), k1__lengthscale=2) the lengthscale belongs to the new kernel
        for key, value in sorted(params.items(), key=lambda item: "__" in item[0]):
            name, _, inner = key.partition("__")
            if name not in self._parameter_names():
                known = ", ".join(self._parameter_names()) or "none"
                raise InputError(f"{type(self).__name__} has no parameter {name!r}; its parameters are: {known}.")
            if not inner:
                setattr(self, name, value)
                continue
            nested = getattr(self, name)
            if not isinstance(nested, Parametrised):
                raise InputError(f"Parameter {name!r} of {type(self).__name__} has no parameters of its own.")
            nested.set_params(**{inner: value})
        return self

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other) or not isinstance(other, Parametrised):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        return all(_same(mine[name], theirs[name]) for name in mine)

    __hash__ = None  # type: ignore[assignment]  # parameters may change

    def __repr__(self) -> str:
        shown = (f"{k}={_show(v)}" for k, v in self.get_params(deep=False).items() if v is not None)
        return f"{type(self).__name__}({', '.join(shown)})"


class Estimator(Parametrised):
    """A base class of estimators: equal to itself alone, and shown with the parameters that differ from defaults."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        params = self.get_params(deep=False).items()
        shown = (f"{k}={_show(v)}" for k, v in params if not _same(v, defaults[k].default))
        return f"{type(self).__name__}({', '.join(shown)})"


def check_fitted(estimator: Any, before: str = "using it") -> None:
    """Raise scikit-learn's NotFittedError for an estimator without fitted attributes, whose names end in ``_``."""
    if not any(name.endswith("_") and not name.startswith("__") for name in vars(estimator)):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(f"This {type(estimator).__name__} is not fitted yet; call fit before {before}.")


def inner_params(value: Any) -> dict[str, Any]:
    """Parameters inside a value by name: of objects such as kernels, of settings, and of entries of a list by number.

    Examples
    --------
    >>> from tuckergp.kernels import SE
    >>> inner_params([SE(2.0)])["0__lengthscale"]
    2.0
    """
    params: dict[str, Any] = {}
    for name, each in _own(value).items():
        params[name] = each
        params.update({f"{name}__{inner}": own for inner, own in inner_params(each).items()})
    return params


def with_inner(value: Any, name: str, new: Any) -> Any:
    """A copy of a value with one of its `inner_params` replaced.

    Examples
    --------
    >>> from tuckergp.kernels import SE
    >>> with_inner([SE(2.0)], "0__lengthscale", 3.0)
    [SE(lengthscale=3.0)]
    """
    head, _, rest = name.partition("__")
    own = _own(value)
    if head not in own:
        raise InputError(f"{_show(value)} has no parameter {head!r}; its parameters are: {', '.join(own) or 'none'}.")
    changed = with_inner(own[head], rest, new) if rest else new
    if isinstance(value, list | tuple):
        return type(value)(changed if str(place) == head else each for place, each in enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **{head: changed})
    other = copy.copy(value)
    setattr(other, head, changed)
    return other


def _own(value: Any) -> dict[str, Any]:
    """The parameters of a value itself; a list has some if an entry has."""
    if isinstance(value, Parametrised):
        return value.get_params(deep=False)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, list | tuple) and any(map(_own, value)):
        return {str(place): each for place, each in enumerate(value)}
    return {}


@cache
def _names_of(kind: type) -> tuple[str, ...]:
    if kind.__init__ is object.__init__:  # type: ignore[misc]
        return ()
    return tuple(inspect.signature(kind.__init__).parameters)[1:]  # type: ignore[misc]


def _same(a: Any, b: Any) -> bool:
    a, b = (x.tolist() if isinstance(x, np.ndarray) else x for x in (a, b))
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


def _show(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_show, value))}]"
    return repr(value)
