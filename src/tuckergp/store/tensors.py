"""Reading and writing of the safetensors format: tensors are written without a copy, and read as views.

A file is the length of a header (8 bytes), the header in JSON (dtype, shape and place of every tensor), and the
tensors in little-endian order without gaps. Wider numbers come first, so that all are aligned to their size, and the
header is padded so that the first tensor is aligned to 64 bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["ALIGNMENT", "Place", "as_bytes", "header_of", "read_header", "read_tensors", "write_tensors"]

Array = npt.NDArray[Any]

ALIGNMENT = 64

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


class Place(NamedTuple):
    """The dtype and shape of a tensor, and its offset in a file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int


def header_of(tensors: Mapping[str, Any]) -> bytes:
    """The header of a file of these tensors in this order; times are stored as whole numbers."""
    entries, start = {}, 0
    for name, tensor in tensors.items():
        end = start + prod(tensor.shape) * tensor.dtype.itemsize
        dtype = "I64" if tensor.dtype.kind in "mM" else _NAMES[tensor.dtype.newbyteorder("<").str]
        entries[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(entries).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def write_tensors(tensors: Mapping[str, Array]) -> Iterator[bytes | memoryview]:
    """Yield the content of a file of these tensors, piece by piece.

    Examples
    --------
    >>> content = b"".join(write_tensors({"pair": np.ones((2, 3))}))
    >>> read_tensors(content)["pair"]
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    yield header_of({name: tensors[name] for name in order})
    for name in order:
        yield as_bytes(tensors[name])


def as_bytes(tensor: Array) -> memoryview:
    """The numbers of an array as bytes in the order of a file."""
    little = np.ascontiguousarray(tensor, dtype=tensor.dtype.newbyteorder("<"))
    return little.reshape(-1).view(np.uint8).data


def read_header(content: Any, size: int, largest: int | None = None) -> dict[str, Place]:
    """Read where in a file of this size the tensors are; ``content`` has at least its header.

    ValueError, KeyError or TypeError for an invalid header, or one longer than ``largest``.
    """
    length = int.from_bytes(content[:8], "little")
    if length > (size - 8 if largest is None else largest):
        raise ValueError("a header is longer than it can be")
    entries: dict[str, Any] = json.loads(bytes(content[8 : 8 + length]))
    places, expected = {}, 0
    for name, entry in sorted(entries.items(), key=lambda item: int(item[1]["data_offsets"][0])):
        start, end = entry["data_offsets"]
        shape, dtype = tuple(entry["shape"]), np.dtype(_DTYPES[entry["dtype"]])
        whole = all(type(number) is int and number >= 0 for number in shape)
        if not whole or start != expected or end - start != prod(shape) * dtype.itemsize:
            raise ValueError(f"the tensor {name} does not lie where it should")
        places[name] = Place(dtype, shape, 8 + length + start)
        expected = end
    if 8 + length + expected != size:
        raise ValueError("there is more, or less, than the tensors")
    return places


def read_tensors(content: Any) -> dict[str, Array]:
    """Read the tensors of a file as views of its content; the errors are those of `read_header`."""
    places = read_header(content, len(content))
    return {name: np.ndarray(place.shape, place.dtype, content, place.start) for name, place in places.items()}
