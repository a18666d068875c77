"""The formats of exported vectors, one class each: which files they are, as bytes.

All have the tables of ids and vectors, in which the row is the number that an index or a graph answers with.
"""

from __future__ import annotations

import tempfile
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.exports.vectors import Vectors

__all__ = ["Faiss", "Format", "Hnswlib", "Onnx", "Parquet"]

Singles = npt.NDArray[np.float32]


class Format(ABC):
    """A format of vectors.

    Attributes
    ----------
    name : str
        Of `export` and the command line.
    index : bool
        Whether it answers by inner products of one part, and cannot hold several.
    """

    name: ClassVar[str]
    index: ClassVar[bool] = True

    def files(self, parts: Mapping[str, Vectors]) -> Iterator[tuple[str, bytes]]:
        """The names and contents of the files."""
        some = next(iter(parts.values())).embeddings
        vectors = {part: own.embeddings for part, own in parts.items()}
        yield "users.parquet", _table("user_id", some.user_ids, {name: own.users for name, own in vectors.items()})
        yield "items.parquet", _table("item_id", some.item_ids, {name: own.items for name, own in vectors.items()})


class Parquet(Format):
    """Tables of ids and vectors: a column of lists for each part."""

    name: ClassVar[str] = "parquet"
    index: ClassVar[bool] = False


class Faiss(Format):
    """An exact index of the items by inner product, for Faiss."""

    name: ClassVar[str] = "faiss"

    def files(self, parts: Mapping[str, Vectors]) -> Iterator[tuple[str, bytes]]:
        """Tables and ``items.faiss``."""
        faiss = _module("faiss", "Faiss: pip install 'tuckergp[faiss]'")
        yield from super().files(parts)
        (own,) = parts.values()
        index = faiss.IndexFlatIP(own.embeddings.items.shape[1])
        index.add(own.embeddings.items)
        yield "items.faiss", faiss.serialize_index(index).tobytes()


class Hnswlib(Format):
    """An approximate index of the items by inner product, for hnswlib."""

    name: ClassVar[str] = "hnswlib"
    # Neighbours of each item in the graph, and candidates while it is built.
    links: ClassVar[int] = 32
    candidates: ClassVar[int] = 200

    def files(self, parts: Mapping[str, Vectors]) -> Iterator[tuple[str, bytes]]:
        """Tables and ``items.hnsw``."""
        hnswlib = _module("hnswlib", "hnswlib: pip install 'tuckergp[hnswlib]'")
        yield from super().files(parts)
        (own,) = parts.values()
        items = own.embeddings.items
        index = hnswlib.Index(space="ip", dim=items.shape[1])
        index.init_index(len(items), M=self.links, ef_construction=self.candidates, random_seed=0)
        index.add_items(items, np.arange(len(items)), num_threads=1)  # the same file every time
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "items.hnsw"
            index.save_index(str(path))
            yield "items.hnsw", path.read_bytes()


class Onnx(Format):
    """A graph for ONNX Runtime that goes from numbers of users to the best items and their scores."""

    name: ClassVar[str] = "onnx"
    operators: ClassVar[int] = 17

    def files(self, parts: Mapping[str, Vectors]) -> Iterator[tuple[str, bytes]]:
        """Tables and ``recommend.onnx``: inputs user (batch,) and n (1,), outputs item and score, (batch, n)."""
        onnx = _module("onnx", "onnx: pip install 'tuckergp[onnx]'")
        yield from super().files(parts)
        (own,) = parts.values()
        vectors, make = own.embeddings, onnx.helper
        whole, single = onnx.TensorProto.INT64, onnx.TensorProto.FLOAT
        constants = {
            "users": vectors.users,
            "items": np.ascontiguousarray(vectors.items.T),
            "offset": np.array([vectors.offset], dtype=np.float32),
        }
        nodes = [
            make.make_node("Gather", ["users", "user"], ["query"]),
            make.make_node("MatMul", ["query", "items"], ["product"]),
            make.make_node("Add", ["product", "offset"], ["scores"]),
            make.make_node("TopK", ["scores", "n"], ["score", "item"]),
        ]
        graph = make.make_graph(
            nodes,
            "recommend",
            [make.make_tensor_value_info("user", whole, ["batch"]), make.make_tensor_value_info("n", whole, [1])],
            [
                make.make_tensor_value_info(name, kind, ["batch", "n"])
                for name, kind in (("item", whole), ("score", single))
            ],
            [onnx.numpy_helper.from_array(values, name) for name, values in constants.items()],
        )
        model = make.make_model(graph, opset_imports=[make.make_opsetid("", self.operators)], producer_name="tuckergp")
        model.ir_version = 8  # that of the operators, for older runtimes
        onnx.checker.check_model(model)
        yield "recommend.onnx", model.SerializeToString()


def _module(name: str, needed: str) -> Any:
    """A package of an extra; an InputError that says what is needed without it."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(f"This export needs {needed}.") from None


def _table(key: str, ids: Sequence[Any], vectors: Mapping[str, Singles]) -> bytes:
    """A Parquet file with the ids and their vectors, as lists of one length."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        columns = {key: pa.array(list(ids))}
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # of several types
        columns = {key: pa.array([str(each) for each in ids])}
    for part, table in vectors.items():
        columns[part] = pa.FixedSizeListArray.from_arrays(pa.array(table.ravel()), table.shape[1])
    content = BytesIO()
    parquet.write_table(pa.table(columns), content)
    return content.getvalue()
