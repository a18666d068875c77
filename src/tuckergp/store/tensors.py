"""The safetensors format, piece by piece: stacks of arrays are written without a copy of the whole, and read as views.

A file is the length of a header (8 bytes), the header in JSON (dtype, shape and place of every tensor), and the
tensors in little-endian order without gaps. Wider numbers come first, so that all lie at multiples of their size.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Stack", "read_tensors", "write_tensors"]

Array = npt.NDArray[Any]

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


@dataclass(frozen=True)
class Stack:
    """Arrays of one dtype and shape that are written as one tensor, a row each."""

    arrays: list[Array]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of each."""
        return self.arrays[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tensor."""
        return (len(self.arrays), *self.arrays[0].shape)


def write_tensors(tensors: Mapping[str, Array | Stack]) -> Iterator[bytes | memoryview]:
    """The pieces of a file, one after the other.

    Examples
    --------
    >>> content = b"".join(write_tensors({"pair": Stack([np.zeros(3), np.ones(3)])}))
    >>> read_tensors(bytearray(content))["pair"]
    array([[0., 0., 0.],
           [1., 1., 1.]])
    """
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header, start = {}, 0
    for name in order:
        tensor = tensors[name]
        end = start + prod(tensor.shape) * tensor.dtype.itemsize
        dtype = _NAMES[tensor.dtype.newbyteorder("<").str]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for name in order:
        tensor = tensors[name]
        for part in tensor.arrays if isinstance(tensor, Stack) else [tensor]:
            little = np.ascontiguousarray(part, dtype=part.dtype.newbyteorder("<"))
            yield little.reshape(-1).view(np.uint8).data


def read_tensors(content: bytearray) -> dict[str, Array]:
    """The tensors of a file as views of its content; ValueError, KeyError or TypeError where it makes no sense."""
    length = int.from_bytes(content[:8], "little")
    body = memoryview(content)[8 + length :]
    found: dict[str, Array] = {}
    known: dict[str, Any] = json.loads(bytes(content[8 : 8 + length]))
    expected = 0
    for name, entry in sorted(known.items(), key=lambda item: int(item[1]["data_offsets"][0])):
        start, end = entry["data_offsets"]
        shape = tuple(entry["shape"])
        dtype = np.dtype(_DTYPES[entry["dtype"]])
        whole = all(type(size) is int and size >= 0 for size in shape)
        if not whole or start != expected or end - start != prod(shape) * dtype.itemsize or end > len(body):
            raise ValueError(f"the tensor {name} does not lie where it should")
        flat = np.frombuffer(body[start:end], dtype=dtype) if end > start else np.empty(0, dtype)
        found[name] = flat.reshape(shape)
        expected = end
    if expected != len(body):
        raise ValueError("there is more than the tensors")
    return found
