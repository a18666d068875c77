"""The formats of exported vectors, one class each: which files they are, as bytes.

All have the tables of ids and vectors, in which the row is the number that an index or a graph answers with.
"""

from __future__ import annotations

import importlib
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
    file : str or None
        The file beside the tables.
    package, extra : str
        What it is written with, and what to install for that.
    """

    name: ClassVar[str]
    index: ClassVar[bool] = True
    file: ClassVar[str | None] = None
    package: ClassVar[str] = "pyarrow"
    extra: ClassVar[str] = "pyarrow"

    def module(self) -> Any:
        """The package that it is written with; an InputError that says what is needed without it."""
        try:
            return importlib.import_module(self.package)
        except ImportError:
            raise InputError(f"This export needs {self.extra}.") from None

    def check(self, parts: Mapping[str, Vectors]) -> None:
        """Refuse what cannot be written, before anything is."""
        self.module()

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
    file: ClassVar[str | None] = "items.faiss"
    package: ClassVar[str] = "faiss"
    extra: ClassVar[str] = "Faiss: pip install 'tuckergp[faiss]'"

    def files(self, parts: Mapping[str, Vectors]) -> Iterator[tuple[str, bytes]]:
        """Tables and ``items.faiss``."""
        faiss = self.module()
        yield from super().files(parts)
        (own,) = parts.values()
        index = faiss.IndexFlatIP(own.embeddings.items.shape[1])
        index.add(own.embeddings.items)
        yield str(self.file), faiss.serialize_index(index).tobytes()


class Hnswlib(Format):
    """An approximate index of the items by inner product, for hnswlib."""

    name: ClassVar[str] = "hnswlib"
    file: ClassVar[str | None] = "items.hnsw"
    package: ClassVar[str] = "hnswlib"
    extra: ClassVar[str] = "hnswlib: pip install 'tuckergp[hnswlib]'"
    # Neighbours of each item in the graph, and candidates while it is built.
    links: ClassVar[int] = 32
    candidates: ClassVar[int] = 200

    def files(self, parts: Mapping[str, Vectors]) -> Iterator[tuple[str, bytes]]:
        """Tables and ``items.hnsw``."""
        hnswlib = self.module()
        yield from super().files(parts)
        (own,) = parts.values()
        items = own.embeddings.items
        index = hnswlib.Index(space="ip", dim=items.shape[1])
        index.init_index(len(items), M=self.links, ef_construction=self.candidates, random_seed=0)
        index.add_items(items, np.arange(len(items)), num_threads=1)  # the same file every time
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "items.hnsw"
            index.save_index(str(path))
            yield str(self.file), path.read_bytes()


class Onnx(Format):
    """A graph for ONNX Runtime that goes from numbers of users to the best items and their scores."""

    name: ClassVar[str] = "onnx"
    file: ClassVar[str | None] = "recommend.onnx"
    package: ClassVar[str] = "onnx"
    extra: ClassVar[str] = "onnx: pip install 'tuckergp[onnx]'"
    operators: ClassVar[int] = 17
    # Bytes that a graph may have, by the format in which it is written.
    most: ClassVar[int] = 2**31 - 2**20

    def check(self, parts: Mapping[str, Vectors]) -> None:
        """Refuse graphs that are too large for a file."""
        super().check(parts)
        size = sum(own.embeddings.users.nbytes + own.embeddings.items.nbytes for own in parts.values())
        if size > self.most:
            raise InputError(
                f"The vectors take {size / 1e9:.2g} GB, and an ONNX file holds 2; export a smaller width, or "
                f"to='parquet' or 'faiss'."
            )

    def files(self, parts: Mapping[str, Vectors]) -> Iterator[tuple[str, bytes]]:
        """Tables and ``recommend.onnx``: inputs user (batch,) and n (1,), outputs item and score, (batch, n)."""
        onnx = self.module()
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
        yield str(self.file), model.SerializeToString()


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
