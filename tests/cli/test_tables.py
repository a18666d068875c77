"""Tables that commands write."""

import math

import numpy as np
import pyarrow as pa
import pytest

from tuckergp.cli import tables

COLUMNS = {
    "whole": [1, -2, 3],
    "whole array": np.array([1, 2, 3], np.int32),
    "unsigned": np.array([0, 1, 2**64 - 1], np.uint64),
    "beyond 64 bits": [1, 2, 2**64],
    "numbers": np.array([1.0, 1e-7, 1e300]),
    "every second": np.arange(6.0)[::2],
    "infinite": np.array([math.inf, -math.inf, 0.5]),
    "missing number": np.array([1.0, math.nan, 2.0]),
    "text": ["a", "", 'Zo\u00eb, "x"'],
    "missing text": ["a", None, "b"],
    "flags": [True, False, True],
    "mixed": [1, "a", None],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_written_as_arrow_would_have_them(name, monkeypatch):
    """Most are made without `pyarrow.array`, which loads pandas."""
    ours = tables._as_csv({"x": COLUMNS[name]}, ",")
    monkeypatch.setattr(tables, "_plain_arrow", lambda values: None)
    assert tables._as_csv({"x": COLUMNS[name]}, ",") == ours


def test_whole_numbers_beyond_64_bits_keep_their_digits():
    assert tables._as_csv({"x": COLUMNS["beyond 64 bits"]}, ",") == b"x\n1\n2\n18446744073709551616\n"


def test_columns_without_missing_values_need_no_pandas():
    plain = [name for name, values in COLUMNS.items() if isinstance(tables._plain_arrow(values), pa.Array)]
    assert plain == ["whole", "whole array", "unsigned", "numbers", "every second", "infinite", "text"]
