"""Nested values (states, draws, settings) to arrays and JSON and back, without pickle; and their fingerprint.

Generic over the fields of NamedTuples and dataclasses, so a state that gains a field needs no change here. What a
file names is rebuilt only if it is a NamedTuple or a dataclass of this package.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp._params import Parameters

__all__ = ["contiguous", "decode", "digest", "encode"]

Arrays = dict[str, npt.NDArray[Any]]
PACKAGE = "tuckergp"


def encode(tree: Any) -> tuple[Any, Arrays]:
    """The structure of a tree as JSON, and the arrays that it refers to by number.

    Examples
    --------
    >>> encode((1.5, np.arange(2)))
    ({'tuple': [1.5, {'array': '0'}]}, {'0': array([0, 1])})
    """
    arrays: Arrays = {}
    return _encode(tree, arrays), arrays


def _encode(tree: Any, arrays: Arrays) -> Any:
    if isinstance(tree, np.ndarray | np.generic):
        if tree.dtype.kind not in "fiub":
            raise TypeError(f"arrays of {tree.dtype} cannot be stored")
        key = str(len(arrays))
        # not ascontiguousarray, which makes vectors of numbers
        arrays[key] = np.array(tree, order="C", copy=not isinstance(tree, np.ndarray) or not tree.flags.c_contiguous)
        return {"array" if isinstance(tree, np.ndarray) else "number": key}
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    fields = _fields(tree)
    if fields is not None:
        kind = type(tree)
        return {
            "type": f"{kind.__module__}:{kind.__qualname__}",
            "fields": {name: _encode(value, arrays) for name, value in fields.items()},
        }
    if isinstance(tree, tuple):
        return {"tuple": [_encode(value, arrays) for value in tree]}
    if isinstance(tree, list):
        return [_encode(value, arrays) for value in tree]
    if isinstance(tree, dict) and all(isinstance(key, str) for key in tree):
        return {"dict": {key: _encode(value, arrays) for key, value in tree.items()}}
    raise TypeError(f"a {type(tree).__name__} cannot be stored")


def decode(structure: Any, arrays: Arrays) -> Any:
    """The tree that `encode` took apart; raises ValueError, KeyError or TypeError where it makes no sense."""
    if isinstance(structure, list):
        return [decode(value, arrays) for value in structure]
    if not isinstance(structure, dict):
        return structure
    if "array" in structure:
        return arrays[structure["array"]]
    if "number" in structure:
        return arrays[structure["number"]][()]
    if "tuple" in structure:
        return tuple(decode(value, arrays) for value in structure["tuple"])
    if "dict" in structure:
        return {key: decode(value, arrays) for key, value in structure["dict"].items()}
    fields = {name: decode(value, arrays) for name, value in structure["fields"].items()}
    return _type(structure["type"])(**fields)


def _type(name: str) -> Any:
    module, _, qualified = name.partition(":")
    if module.split(".")[0] != PACKAGE:
        raise ValueError(f"{name} is not of this package")
    try:
        kind = getattr(importlib.import_module(module), qualified)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"there is no {name}") from error
    if not (isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"))):
        raise ValueError(f"{name} holds no values")
    return kind


def _fields(tree: Any) -> dict[str, Any] | None:
    """The fields of a NamedTuple or a dataclass; None for anything else."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return dict(zip(tree._fields, tree, strict=True))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return {field.name: getattr(tree, field.name) for field in dataclasses.fields(tree)}
    return None


def contiguous(tree: Any) -> Any:
    """The same tree of tuples, NamedTuples and dataclasses with all arrays in C order.

    A file has no other order, and products of matrices may differ in the last bit between orders.
    """
    if isinstance(tree, np.ndarray):
        return tree if tree.flags.c_contiguous else np.ascontiguousarray(tree)
    if isinstance(tree, tuple):
        values = [contiguous(value) for value in tree]
        return type(tree)(*values) if hasattr(tree, "_fields") else tuple(values)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return dataclasses.replace(tree, **{name: contiguous(value) for name, value in (_fields(tree) or {}).items()})
    return tree


def digest(tree: Any) -> str:
    """A fingerprint: equal for equal trees, in every process.

    Examples
    --------
    >>> digest((1, np.zeros(2))) == digest((1, np.zeros(2)))
    True
    >>> digest((1, np.zeros(2))) == digest((1, np.zeros(3)))
    False
    """
    found = hashlib.sha256()
    _digest(tree, found)
    return found.hexdigest()


def _digest(tree: Any, found: Any) -> None:
    """Names and sizes go in before contents, so that different trees never look alike."""
    fields = _fields(tree)
    if sparse.issparse(tree):
        matrix: Any = tree
        matrix = matrix.tocsr()
        fields = {"shape": matrix.shape, "data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    if isinstance(tree, np.ndarray) and tree.dtype.kind != "O":
        found.update(f"array {tree.dtype.str} {tree.shape} ".encode())
        found.update(np.ascontiguousarray(tree).data if tree.size else b"")
    elif isinstance(tree, np.generic):
        _digest(tree.item(), found)
    elif tree is None or isinstance(tree, bool | int | float | str | slice | range):
        found.update(f"{type(tree).__name__} {tree!r} ".encode())
    elif fields is not None or isinstance(tree, dict):
        entries = fields if fields is not None else tree
        found.update(f"{type(tree).__name__} {len(entries)} ".encode())
        for name, value in entries.items():
            _digest(name, found)
            _digest(value, found)
    elif isinstance(tree, list | tuple | np.ndarray):
        found.update(f"sequence {len(tree)} ".encode())
        for value in tree:
            _digest(value, found)
    elif isinstance(tree, Parameters):  # kernels and the like print what makes them
        found.update(f"{tree!r} ".encode())
    else:
        _digest({"type": type(tree).__qualname__, **vars(tree)}, found)
