"""Conversion of nested values (states, draws, settings) to JSON and arrays and back, without pickle; fingerprints.

Generic over the fields of NamedTuples and dataclasses, so a state that gains a field needs no change here. Checkpoints
name classes by module and name; model files (`tuckergp.store.model_file`) extend `Writer` and `Reader` with names that
stay when code moves.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.params import Parametrised
from tuckergp.residuals.grown import RowsInPlace
from tuckergp.store.plain import is_plain, pack, unpack

__all__ = ["Reader", "Writer", "contiguous", "decode", "digest", "encode", "fields_of"]

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Json = Any
PACKAGE = "tuckergp"


def encode(tree: Any) -> tuple[Json, Arrays]:
    """Convert a tree to JSON, and the arrays that the JSON refers to by number.

    Examples
    --------
    >>> encode((1.5, np.arange(2)))
    ({'tuple': [1.5, {'array': '0'}]}, {'0': array([0, 1])})
    """
    writer = Writer()
    return writer.encode(tree), writer.arrays


def decode(structure: Json, arrays: Mapping[str, Array]) -> Any:
    """Rebuild the tree that `encode` converted; ValueError, KeyError or TypeError for an invalid structure."""
    return Reader(arrays).decode(structure)


class Writer:
    """Converts trees of nested values to JSON and arrays.

    Subclasses may name classes differently (`name`), support more of them (`fields`), or store some values elsewhere
    (`encode`, `array`).

    Attributes
    ----------
    arrays : dict of str to ndarray
        The arrays that the structures written so far refer to.
    path : list of str
        The current place in the tree; after an error, the place of the error.
    """

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.path: list[str] = []

    def encode(self, tree: Any) -> Json:
        """The structure of a tree."""
        if is_plain(tree):
            return pack(tree)
        if isinstance(tree, np.ndarray | np.generic):
            return self.array(tree)
        fields = self.fields(tree)
        if fields is not None:
            name = self.name(type(tree))
            return {"type": name, "fields": {field: self.at(field, value) for field, value in fields.items()}}
        if isinstance(tree, tuple):
            return {"tuple": self.each(tree)}
        if isinstance(tree, list):
            return self.each(tree)
        if isinstance(tree, set | frozenset):
            return {type(tree).__name__: sorted(map(self.encode, tree), key=json.dumps)}
        if isinstance(tree, Mapping):
            if all(type(key) is str for key in tree):
                return {"dict": {key: self.at(key, value) for key, value in tree.items()}}
            return {"items": [self.at("keys", list(tree)), self.at("values", list(tree.values()))]}
        raise TypeError(f"a {type(tree).__name__} cannot be stored")

    def at(self, name: object, value: Any) -> Json:
        """The structure of a part of the tree."""
        self.path.append(str(name))
        structure = self.encode(value)
        self.path.pop()
        return structure

    def each(self, values: Any) -> list[Json]:
        """The structures of the values of a sequence."""
        return [self.at(place, value) for place, value in enumerate(values)]

    def array(self, values: Any) -> Json:
        """Store an array or a NumPy number and return the reference to it."""
        if values.dtype.kind not in "fiub":
            raise TypeError(f"arrays of {values.dtype} cannot be stored")
        key = str(len(self.arrays))
        alone = not isinstance(values, np.ndarray)
        # not ascontiguousarray, which makes vectors of numbers
        self.arrays[key] = np.array(values, order="C", copy=alone or not values.flags.c_contiguous)
        return {"number" if alone else "array": key}

    def name(self, kind: type) -> str:
        """The name of a class in structures."""
        return f"{kind.__module__}:{kind.__qualname__}"

    def fields(self, tree: Any) -> dict[str, Any] | None:
        """The fields of an object; None for a value without fields."""
        return fields_of(tree)


class Reader:
    """Rebuilds trees from JSON and arrays.

    Subclasses find classes by other names (`kind`), build them otherwise (`build`), or know more tags (`special`).
    """

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = arrays

    def decode(self, structure: Json) -> Any:
        """The tree of a structure."""
        if isinstance(structure, list):
            return [self.decode(value) for value in structure]
        if not isinstance(structure, dict):
            return structure
        if "type" in structure:
            fields = {name: self.decode(value) for name, value in structure["fields"].items()}
            return self.build(self.kind(structure["type"]), fields)
        ((tag, content),) = structure.items()
        return self.special(tag, content)

    def special(self, tag: str, content: Json) -> Any:
        """The value of ``{tag: content}``."""
        if tag == "array":
            return self.arrays[content]
        if tag == "number":
            return self.arrays[content][()]
        if tag == "tuple":
            return tuple(self.decode(value) for value in content)
        if tag == "dict":
            return {key: self.decode(value) for key, value in content.items()}
        if tag == "items":
            keys, values = map(self.decode, content)
            return dict(zip(keys, values, strict=True))
        if tag in ("set", "frozenset"):
            values = (self.decode(value) for value in content)
            return set(values) if tag == "set" else frozenset(values)
        return unpack(tag, content)

    def kind(self, name: str) -> Any:
        """The class of a name: a NamedTuple or a dataclass of this package, nothing else."""
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

    def build(self, kind: Any, fields: dict[str, Any]) -> Any:
        """Build an object from its fields."""
        return kind(**fields)


def fields_of(tree: Any) -> dict[str, Any] | None:
    """The public fields of a NamedTuple or a dataclass; None for anything else."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return dict(zip(tree._fields, tree, strict=True))
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        public = (field.name for field in dataclasses.fields(tree) if not field.name.startswith("_"))
        return {name: getattr(tree, name) for name in public}
    return None


def contiguous(tree: Any) -> Any:
    """The same tree of tuples, NamedTuples and dataclasses with all arrays in C order.

    Files store arrays in C order, and matrix products may differ in the last bit between orders.
    """
    if isinstance(tree, np.ndarray):
        return tree if tree.flags.c_contiguous else np.ascontiguousarray(tree)
    if isinstance(tree, tuple):
        values = [contiguous(value) for value in tree]
        return type(tree)(*values) if hasattr(tree, "_fields") else tuple(values)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return dataclasses.replace(tree, **{name: contiguous(value) for name, value in (fields_of(tree) or {}).items()})
    return tree


def digest(tree: Any) -> str:
    """A fingerprint of a tree: equal for equal trees, in every process.

    Examples
    --------
    >>> digest((1, np.zeros(2))) == digest((1, np.zeros(2)))
    True
    >>> digest((1, np.zeros(2))) == digest((1, np.zeros(3)))
    False
    """
    sha = hashlib.sha256()
    _digest(tree, sha)
    return sha.hexdigest()


def _digest(tree: Any, sha: Any) -> None:
    """Update a hash with a tree: names and sizes before contents, so that different trees always differ."""
    if isinstance(tree, RowsInPlace):  # equal to the array that it stands for
        tree = np.asarray(tree)
    fields = fields_of(tree)
    if sparse.issparse(tree):
        matrix: Any = tree
        matrix = matrix.tocsr()
        fields = {"shape": matrix.shape, "data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    if isinstance(tree, np.ndarray) and tree.dtype.kind != "O":
        sha.update(f"array {tree.dtype.str} {tree.shape} ".encode())
        plain = np.ascontiguousarray(tree.view(np.int64) if tree.dtype.kind in "mM" else tree)
        sha.update(plain.data if tree.size else b"")
    elif isinstance(tree, np.generic) and not is_plain(tree):
        _digest(tree.item(), sha)
    elif is_plain(tree):
        sha.update(f"{type(tree).__name__} {tree!r} ".encode())
    elif fields is not None or isinstance(tree, dict):
        entries = fields if fields is not None else tree
        sha.update(f"{type(tree).__name__} {len(entries)} ".encode())
        for name, value in entries.items():
            _digest(name, sha)
            _digest(value, sha)
    elif isinstance(tree, list | tuple | np.ndarray):
        sha.update(f"sequence {len(tree)} ".encode())
        for value in tree:
            _digest(value, sha)
    elif isinstance(tree, set | frozenset):
        _digest(sorted(map(digest, tree)), sha)
    elif isinstance(tree, Parametrised):  # kernels and the like print what makes them
        sha.update(f"{tree!r} ".encode())
    else:
        _digest({"type": type(tree).__qualname__, **vars(tree)}, sha)
