"""Tables of any make become the same named columns."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tuckergp.errors import InputError
from tuckergp.tables import as_table, distinct_rows, is_missing

COLUMNS = {"user_id": ["ann", "bob", "ann"], "rating": [4.0, 3.5, 1.0], "n": [1, 2, 3]}


def every_make(tmp_path):
    arrow = pa.table(COLUMNS)
    csv.write_csv(arrow, tmp_path / "ratings.csv")
    parquet.write_table(arrow, tmp_path / "ratings.parquet")
    return {
        "dict": COLUMNS,
        "pandas": pd.DataFrame(COLUMNS),
        "polars": pl.DataFrame(COLUMNS),
        "pyarrow": arrow,
        "csv": tmp_path / "ratings.csv",
        "parquet": str(tmp_path / "ratings.parquet"),
    }


@pytest.mark.parametrize("make", ["dict", "pandas", "polars", "pyarrow", "csv", "parquet"])
def test_all_makes_of_table_read_the_same(make, tmp_path):
    table = as_table(every_make(tmp_path)[make], "ratings")
    assert list(table.columns) == ["user_id", "rating", "n"]
    assert table["user_id"].tolist() == ["ann", "bob", "ann"]
    np.testing.assert_array_equal(table.numeric("rating"), [4.0, 3.5, 1.0])
    np.testing.assert_array_equal(table.numeric("n"), [1, 2, 3])


def test_columns_of_a_frame_are_found_by_name_whatever_the_name():
    table = as_table(pd.DataFrame({1: [10.0, 20.0], 0: [1.0, 2.0]}), "X")
    np.testing.assert_array_equal(table["0"], [1.0, 2.0])


def test_distinct_rows_share_a_number():
    table = as_table({"a": ["x", "y", "x", "x"], "b": [1, 1, 1, 2]}, "t")
    first, code = distinct_rows(table, ["a", "b"])
    assert code.tolist() == [0, 2, 0, 1]
    assert first.tolist() == [0, 3, 1]


def test_numbers_are_numbered_in_their_order():
    _, code = distinct_rows(as_table({"a": [3.0, 1.0, 2.0, 1.0]}, "t"), ["a"])
    assert code.tolist() == [2, 0, 1, 0]


def test_missing_values_are_found_in_every_kind_of_column():
    frame = pd.DataFrame({"f": [1.0, np.nan], "s": ["a", None], "d": pd.to_datetime(["2020-01-01", None])})
    table = as_table(frame, "t")
    for column in ("f", "s", "d"):
        assert is_missing(table[column]).tolist() == [False, True]


def test_dates_are_days():
    table = as_table(pd.DataFrame({"d": pd.to_datetime(["1970-01-02 00:00", "1970-01-03 12:00"])}), "t")
    np.testing.assert_allclose(table.numeric("d"), [1.0, 2.5])


def test_bad_tables_get_one_clear_sentence(tmp_path):
    with pytest.raises(InputError, match="ratings has no column 'rating'; its columns are user_id, item_id"):
        as_table({"user_id": [1], "item_id": [2]}, "ratings")["rating"]
    with pytest.raises(InputError, match="must be a pandas, polars or pyarrow table"):
        as_table(3, "ratings")
    with pytest.raises(InputError, match="differ in length: 'a' has 1, 'b' has 2"):
        as_table({"a": [1], "b": [1, 2]}, "ratings")
    with pytest.raises(InputError, match="There is no file"):
        as_table(tmp_path / "none.csv", "ratings")
    (tmp_path / "table.xls").write_text("")
    with pytest.raises(InputError, match=r"must end in \.csv, \.tsv or \.parquet"):
        as_table(tmp_path / "table.xls", "ratings")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match=r"broken\.parquet cannot be read"):
        as_table(tmp_path / "broken.parquet", "ratings")


def test_bad_numbers_are_named_by_row_in_memory_and_by_line_in_a_file(tmp_path):
    with pytest.raises(InputError, match="ratings column 'rating' must be numeric, but row 1 holds 'good'"):
        as_table({"rating": [4.0, "good"]}, "ratings").numeric("rating")
    with pytest.raises(InputError, match=r"ratings column 'rating' is missing \(NaN\) at row 2; .* \(1 of 3\)"):
        as_table({"rating": [4.0, 3.0, np.nan]}, "ratings").numeric("rating")
    with pytest.raises(InputError, match="is infinite at row 0"):
        as_table({"rating": [np.inf, 3.0]}, "ratings").numeric("rating")
    (tmp_path / "r.csv").write_text("user_id,rating\n1,3\n2,good\n")
    with pytest.raises(InputError, match=r"r\.csv column 'rating' must be numeric, but line 3 holds 'good'"):
        as_table(tmp_path / "r.csv", "ratings").numeric("rating")
