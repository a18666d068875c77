"""Tables of any make become the same named columns."""

import datetime
import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from tuckergp.data.frames import as_frame
from tuckergp.data.tables import as_table, distinct_rows, is_missing
from tuckergp.errors import InputError

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
    (tmp_path / "table.xyz").write_text("")
    with pytest.raises(InputError, match=r"must end in \.csv, \.tsv, \.dat, \.json, \.jsonl, \.feather or \.parquet"):
        as_table(tmp_path / "table.xyz", "ratings")
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


def written(folder, content, name="r.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


BROKEN = [
    ("a,b\n1,2\n\n3,4,5\n", r"r\.csv line 4 has 3 values, but the header names 2 columns \(a, b\); correct or remove"),
    ("a,b\n1,2\n3\n", r"r\.csv line 3 has 1 value, but the header names 2 columns"),
    ('a,b\n1,"x\ny\nz"\n\n3\n', r"r\.csv line 6 has 1 value"),
    ("a,b\r\n1,2\r\n3\r\n", r"r\.csv line 3 has 1 value"),
    ("a,b\n" + "1,2\n" * 300_000 + "1,2,3\n", r"r\.csv line 300002 has 3 values"),
    ('a,b\n1,2\n3,"x\n4,5\n', r"r\.csv line 3 opens a quote \(\"\) that is never closed"),
    ("", r"r\.csv is empty; its first line must name the columns"),
    ("\n\n", r"r\.csv is empty"),
    ("a,b,a\n1,2,3\n", r"r\.csv has two columns called 'a'; rename one"),
]


@pytest.mark.parametrize(("content", "message"), BROKEN)
def test_a_broken_text_file_is_refused_by_file_and_line(content, message, tmp_path):
    with pytest.raises(InputError, match=message) as caught:
        as_table(written(tmp_path, content), "ratings")
    assert "\n" not in str(caught.value)


def test_rows_are_named_by_their_line_past_blank_lines_and_line_breaks_in_cells(tmp_path):
    path = written(tmp_path, 'name,rating\n\n"a\nb",3\n\nc,good\n')
    with pytest.raises(InputError, match=r"r\.csv column 'rating' must be numeric, but line 6 holds 'good'"):
        as_table(path, "ratings").numeric("rating")
    with pytest.raises(InputError, match="line 6"):
        as_table(path, "ratings", columns=["rating"]).numeric("rating")


def test_a_file_may_have_a_byte_order_mark_be_compressed_or_hold_a_header_alone(tmp_path):
    table = as_table(written(tmp_path, "\ufeffa,b\n1,2\n"), "t")
    assert list(table.columns) == ["a", "b"]
    packed = written(tmp_path, gzip.compress(b"a,b\n1,x\n2,good\n"), "r.csv.gz")
    assert as_table(packed, "t")["b"].tolist() == ["x", "good"]
    with pytest.raises(InputError, match=r"r\.csv\.gz column 'b' must be numeric, but line 2 holds 'x'"):
        as_table(packed, "t").numeric("b")
    with pytest.raises(InputError, match=r"cut\.csv\.gz cannot be read"):
        as_table(written(tmp_path, packed.read_bytes()[:-9], "cut.csv.gz"), "t")
    empty = as_table(written(tmp_path, "a,b\n"), "t")
    assert len(empty) == 0
    assert list(empty.columns) == ["a", "b"]


def test_empty_cells_are_missing_whatever_the_column(tmp_path):
    table = as_table(written(tmp_path, "n,s,d,b\n1,x,2020-01-01,true\n,,,\n2,y,2020-01-02,false\n"), "t")
    for column in table.columns:
        assert is_missing(table[column]).tolist() == [False, True, False]


def test_types_are_those_of_the_whole_column(tmp_path):
    table = as_table(written(tmp_path, "a,b\n" + "1,7\n" * 400_000 + "2.5,x\n"), "t")
    assert table["a"][-1] == 2.5
    assert table["b"][0] == "7"
    assert table["b"][-1] == "x"


@pytest.mark.parametrize("make", ["dict", "pandas", "polars", "pyarrow", "csv", "parquet"])
def test_only_the_columns_asked_for_are_taken(make, tmp_path):
    source = every_make(tmp_path)[make]
    table = as_table(source, "ratings", columns=["rating", "user_id"], optional=["timestamp", "n"])
    assert list(table.columns) == ["rating", "user_id", "n"]
    assert table["user_id"].tolist() == ["ann", "bob", "ann"]
    assert list(as_table(as_table(source, "ratings"), "x", columns=["n"]).columns) == ["n"]
    with pytest.raises(InputError, match=r"ratings.* has no column 'item_id'; its columns are user_id, rating, n\."):
        as_table(source, "ratings", columns=["item_id"])


def test_columns_not_asked_for_are_not_looked_at(tmp_path):
    table = as_table({"a": [1, 2], "b": [1]}, "t", columns=["a"])
    assert len(table) == 2
    assert as_table(written(tmp_path, b"a,b\n1,\xe9\n"), "t", columns=["a"])["a"].tolist() == [1]


def test_equal_texts_of_a_file_are_one_object(tmp_path):
    parquet.write_table(pa.table({"s": ["ann", "", None, "ann"]}), tmp_path / "t.parquet", row_group_size=1)
    values = as_table(tmp_path / "t.parquet", "t")["s"]
    assert values.tolist() == ["ann", "", None, "ann"]
    assert values[0] is values[3]


def test_dates_in_objects_are_days_and_missing_numbers_may_be_kept():
    day = datetime.datetime(1970, 1, 2, 12)
    values = [day, day.date(), day.replace(tzinfo=datetime.UTC), None]
    table = as_table({"d": np.array(values, dtype=object)}, "t")
    np.testing.assert_allclose(table.numeric("d", missing=True), [1.5, 1.0, 1.5, np.nan])
    with pytest.raises(InputError, match=r"t column 'd' is missing \(NaN\) at row 3"):
        table.numeric("d")
    with pytest.raises(InputError, match="is infinite at row 1"):
        as_table({"x": [np.nan, np.inf]}, "t").numeric("x", missing=True)


def test_a_table_is_shown_by_its_first_rows():
    table = as_table({"id": list(range(9)), "text": ["<b>", None, "a\nb", *["x" * 99] * 6]}, "things")
    assert repr(table) == str(table)
    assert str(table).splitlines()[:3] == ["things: 9 rows, 2 columns", "id  text", "0   <b>"]
    assert str(table).splitlines()[-1] == "..."
    assert "x" * 41 not in str(table)
    assert "&lt;b&gt;" in table._repr_html_()
    assert len(table.head(3)) == 3
    assert len(table.head(99)) == 9
    assert list(table.to_pandas().columns) == ["id", "text"]
    assert str(as_table({"id": []}, "none")) == "none: 0 rows, 1 columns\nid"


def test_data_sets_are_shown_by_their_tables():
    from tuckergp.datasets import make_ratings

    shown = repr(make_ratings(n_users=30, n_items=20, n_ratings=300, random_state=0))
    assert shown.startswith("SyntheticRatings\nnoise_floor = ")
    assert "items = items: 20 rows, 4 columns" in shown
    assert len(shown) < 3000


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("kind", [str, str.encode])
def test_zero_bytes_at_the_end_of_text_are_kept(make, kind):
    ids = [kind(text) for text in ("a", "a\0", "\0")]
    assert as_table(make({"user_id": ids, "n": [1, 2, 3]}), "t")["user_id"].tolist() == ids


@pytest.mark.parametrize("values", [["a", "bc"], [b"a", b"b\0"], [1, 2], [datetime.date(2020, 1, 1), None], [[1], [2]]])
def test_cells_of_pyarrow_in_a_list_are_what_they_hold(values):
    assert as_table({"a": list(pa.array(values))}, "t")["a"].tolist() == values


@pytest.mark.parametrize("ids", [[2**63, 2**64 - 1, 1], [-1, 2**63], [2**70, 5], [3, -(2**63)]])
@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_hold_integers_beyond_64_bits(ids, backend):
    column = as_frame({"user_id": ids}, backend)["user_id"]
    assert (column.to_pylist() if backend == "pyarrow" else column.to_list()) == ids
