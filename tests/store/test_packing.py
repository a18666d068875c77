"""Trees of values, arrays, tables and objects come back from JSON, tensors and Parquet as they were."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load as load_official
from scipy import sparse

from tuckergp import TuckerRecommender
from tuckergp.data.tables import Table, as_table
from tuckergp.features import Exact
from tuckergp.inference.base import Info
from tuckergp.kernels import SE, Constant, Identity
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.store import cells, schema
from tuckergp.store.cells import read_columns, write_columns
from tuckergp.store.packing import Packer, Unpacker
from tuckergp.store.tensors import read_header, read_tensors, write_tensors
from tuckergp.store.trees import decode, encode

VALUES = [
    None, True, 3, -(2**80), 1.5, float("inf"), -0.0, "text", "\ud800", b"\x00\xff", datetime.date(1, 1, 1),
    datetime.datetime(2000, 1, 1, 1, 2, 3, 4), datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC),
    datetime.time(1, 2), datetime.timedelta(-1, 2, 3), uuid.UUID(int=7), decimal.Decimal("1.50"), slice(1, None),
    range(2, 9, 3), np.datetime64("2000-01-01T00:00:00.000000001"), np.timedelta64(3, "h"),
    (), [], {}, set(), frozenset(), (1, ("a", None)), [[1], ["b"]], {"a": {"b": 1}}, {1: "a", (2, "x"): None},
    {1, 2}, frozenset({"a", b"b"}),
]  # fmt: skip


def round_trip(tree):
    packer = Packer()
    structure = json.loads(json.dumps(packer.encode(tree), allow_nan=False))
    return Unpacker(Content(packer)).decode(structure)


class Content:
    """What a structure refers to, without a file."""

    def __init__(self, packer):
        self.arrays = read_tensors(bytearray(b"".join(write_tensors(packer.arrays))))
        self.table = {name: bytearray(content) for name, content in packer.tables.items()}.__getitem__
        self.packer, self.size = packer, 10_000

    def rows(self, key, shape, below, times=None):
        assert list(self.packer.rows[key].shape) == shape
        return self.packer.rows[key]


def same(a, b):
    if isinstance(a, np.ndarray):
        alike = a.dtype == b.dtype and a.shape == b.shape and a.flags.c_contiguous == b.flags.c_contiguous
        return alike and a.tolist() == b.tolist()
    return type(a) is type(b) and (repr(a) == repr(b) or a == b)


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_values_come_back_as_they_were(value):
    assert same(round_trip(value), value)
    structure, arrays = encode(value)  # checkpoints do the same
    assert same(decode(json.loads(json.dumps(structure)), arrays), value)


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
@pytest.mark.parametrize("n", [1, 2, 150])
def test_columns_of_values_come_back_as_they_were(value, n):
    if isinstance(value, dict | slice | range):
        return  # no cell of a table
    for column in ([value] * n, [value, None] * n, [value, "other"] * n):
        assert all(map(same, round_trip(column), column))
        content, kinds = write_columns({"x": column})
        assert all(map(same, read_columns(content, kinds, len(column))[0], column))


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.arange(6.0).reshape(2, 3).T,
        np.zeros((0, 3)),
        np.array(2.5, dtype=np.float32),
        np.array([True, False]),
        np.arange(3, dtype=np.uint16),
        np.array(["2000", "NaT"], dtype="datetime64[ns]"),
        np.array(["2000-01", "NaT"], dtype="datetime64[M]"),
        np.array(["a", None, 1], dtype=object),
        np.array(["a", None] * 100, dtype=object),
    ],
    ids=repr,
)
def test_arrays_keep_type_shape_and_order(array):
    assert same(round_trip(array), array)
    assert same(round_trip([(array, 1.0), {"a": array.copy("K")}])[1]["a"], array)


def test_numbers_of_numpy_are_told_from_python_s():
    assert list(map(type, round_trip([2.0, np.float64(2.0), np.int32(3), 3]))) == [float, np.float64, np.int32, int]


def test_an_array_that_is_there_twice_is_stored_once():
    array = np.arange(3.0)
    packer = Packer()
    packer.encode([array, (array, array.copy())])
    assert len(packer.arrays) == 2


@pytest.mark.parametrize(
    "history",
    [
        [Info(k, {"rmse": k / 3, "noise": 0.5}, k == 9, k % 2) for k in range(150)],
        [Info(1, {"a": 1.0}), Info(2**40, {"b": float("nan")}), Info(3, {}, True)],
        [],
    ],
    ids=["sampler", "figures that differ", "none"],
)
def test_a_learning_curve_is_one_table(history):
    packer = Packer()
    ratings = {"user_id": [1, 2], "item_id": [1, 2], "rating": [1.0, 2.0]}
    fit = TuckerRecommender(rank=1, inference="als", random_state=0).fit(ratings).fit_
    packer.at("fit_", replace(fit, steps=history))
    assert list(packer.tables) == (["fit_.steps"])
    again = round_trip(replace(fit, steps=history)).steps
    assert repr(again) == repr(history)
    assert all(type(info.step) is int and type(info.done) is bool for info in again)


def test_tables_come_back_with_their_names_and_lines():
    table = Table({"a\ud800": np.arange(3), "": np.array([None, "x", (1,)], dtype=object)}, "ratings.csv", 3, 2)
    again = round_trip(table)
    assert list(again.columns) == list(table.columns)
    assert (again.name, again.n_rows, again.first_line) == ("ratings.csv", 3, 2)
    assert all(same(again[name], table[name]) for name in table.columns)
    assert round_trip(Table({}, "moment", 7)) == Table({}, "moment", 7)


def test_what_pandas_calls_missing_is_missing():
    frame = pd.DataFrame({"x": pd.Series([pd.Timestamp("2000-01-01 10:00"), pd.NaT, pd.NA, 1], dtype=object)})
    again = round_trip(as_table(frame, "users"))
    assert again["x"].tolist() == [datetime.datetime(2000, 1, 1, 10), None, None, 1]
    with pytest.raises(TypeError, match="a time with nanoseconds"):
        round_trip([pd.Timestamp("2000-01-01 00:00:00.000000001")])


def test_kernels_and_maps_come_back_with_what_they_learned():
    kernel = SE([1.0, 2.0], columns=("a", "b")) * (Constant() + 0.5 * Identity("a"))
    assert round_trip(kernel) == kernel
    assert repr(round_trip(kernel)) == repr(kernel)
    fitted = Exact().fit({"a": ["x", "y", "x"]}, Identity())
    assert np.array_equal(round_trip(fitted).transform({"a": ["y", "z"]}).toarray(), [[0, 1], [0, 0]])


def test_sparse_matrices_come_back():
    matrix = sparse.csr_array(np.array([[0, 1.5], [0, 0], [2.5, 0]]))
    again = round_trip(matrix)
    assert isinstance(again, sparse.csr_array)
    assert np.array_equal(again.toarray(), matrix.toarray())


def test_tensors_are_safetensors():
    tensors = {
        "wide": np.arange(4.0).reshape(2, 2),
        "turned": np.arange(6, dtype=np.int16).reshape(2, 3).T,
        "big": np.array([1, 2], dtype=">i4"),
        "truth": np.array(True),
        "none": np.zeros((0, 2)),
    }
    content = b"".join(write_tensors(tensors))
    official, ours = load_official(content), read_tensors(bytearray(content))
    assert official.keys() == ours.keys() == tensors.keys()
    assert all(same(official[name], ours[name]) for name in tensors)
    assert min(place.start for place in read_header(content, len(content)).values()) % 64 == 0


@pytest.mark.parametrize(
    "header",
    [
        {"a": {"dtype": "F64", "shape": [3], "data_offsets": [0, 16]}},
        {"a": {"dtype": "F64", "shape": [-2], "data_offsets": [0, 16]}},
        {"a": {"dtype": "F64", "shape": [2], "data_offsets": [8, 24]}},
        {"a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}},
        {"a": {"dtype": "F64", "shape": [4], "data_offsets": [0, 32]}},
        {"a": {"dtype": "F64", "shape": [10**12], "data_offsets": [0, 8 * 10**12]}},
        {"a": {"dtype": "X", "shape": [2], "data_offsets": [0, 16]}},
        {"a": {}},
        [],
    ],
)
def test_tensors_that_lie_elsewhere_are_refused(header):
    text = json.dumps(header).encode()
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        read_tensors(bytearray(len(text).to_bytes(8, "little") + text + bytes(16)))


def test_a_header_longer_than_allowed_is_not_read():
    with pytest.raises(ValueError, match="longer than it can be"):
        read_header((10**9).to_bytes(8, "little"), 2 * 10**9, 1000)


def test_a_table_of_another_length_than_it_should_have_is_not_read(monkeypatch):
    content, kinds = write_columns({"x": np.zeros(1000)})
    monkeypatch.setattr(cells.parquet.ParquetFile, "read", None)
    with pytest.raises(ValueError, match="has 1000 rows, not 7"):
        read_columns(content, kinds, 7)


def test_a_short_file_that_claims_many_rows_is_not_read(monkeypatch):
    content, kinds = write_columns({"x": np.zeros(20_000_000, dtype=np.int8)})
    assert len(content) < 100_000
    monkeypatch.setattr(cells.parquet.ParquetFile, "read", None)
    with pytest.raises(ValueError, match="cannot be as short as it is"):
        read_columns(content, kinds, 20_000_000)


def test_every_class_of_the_registries_has_a_name_in_files():
    from tuckergp import features, inference, kernels
    from tuckergp.residuals import RESIDUALS

    abstract = {"Kernel", "Stationary", "FeatureMap", "Inference"}
    for module in (kernels, features, inference):
        for name in set(module.__all__) - abstract:
            if isinstance(getattr(module, name), type):
                kind = getattr(module, name)
                assert schema.class_of(kind.__name__) is kind
    for kind in (*LIKELIHOODS.values(), *RESIDUALS):
        assert schema.class_of(schema.name_of(kind)) is kind
    for name in abstract:
        with pytest.raises(schema.UnknownClass):
            schema.class_of(name)
