"""The files and tables that people have: found out how they are written, and read."""

import bz2
import gzip
import io
import json
import sys
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from scipy import sparse

import tuckergp
from tuckergp import from_matrix, read_table
from tuckergp.data.frames import backend_of
from tuckergp.data.names import named_table
from tuckergp.data.tables import as_table
from tuckergp.errors import DataWarning, InputError

TEXT = "user_id,item_id,rating\n007,1,4.5\n7,2,3\n"
EXPECTED = {"user_id": ["007", "7"], "item_id": [1, 2], "rating": [4.5, 3.0]}


def plain(table):
    return {name: values.tolist() for name, values in table.columns.items()}


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("ending", [".csv", ".CSV", ".txt", ".tsv", ".dat"])
@pytest.mark.parametrize("sep", [",", ";", "\t", "|", "::"])
def test_the_delimiter_is_found_out(sep, ending, tmp_path):
    assert plain(as_table(write(tmp_path, f"r{ending}", TEXT.replace(",", sep)), "r")) == EXPECTED


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ('a,b\n"x;y;z",1\n"p;q;r",2\n', {"a": ["x;y;z", "p;q;r"], "b": [1, 2]}),
        ("a;b\n1,5;2\n3,25;4\n", {"a": [1.5, 3.25], "b": [2, 4]}),
        ("a;b\n1.5;x,y\n3;z\n", {"a": [1.5, 3.0], "b": ["x,y", "z"]}),
        ("a\n1\n2\n", {"a": [1, 2]}),
        ("a,g\n1,x|y\n2,z|w|v\n", {"a": [1, 2], "g": ["x|y", "z|w|v"]}),
        ("0,1,2\n5,6,7\n", {"0": [5], "1": [6], "2": [7]}),
    ],
)
def test_only_what_parts_the_lines_is_a_delimiter(content, columns, tmp_path):
    assert plain(as_table(write(tmp_path, "r.csv", content), "r")) == columns


def test_a_delimiter_and_an_encoding_can_be_insisted_on(tmp_path):
    path = write(tmp_path, "r.csv", "a;b,c\n1;2,3\n")
    assert list(read_table(path, sep=";").columns) == ["a", "b,c"]
    assert list(read_table(path, sep=",").columns) == ["a;b", "c"]
    path = write(tmp_path, "r.csv", "name\nй\n".encode("koi8-r"))
    assert read_table(path, encoding="koi8-r")["name"].tolist() == ["й"]
    with pytest.raises(InputError, match="encoding 'klingon' is not known"):
        read_table(path, encoding="klingon")
    with pytest.raises(InputError, match=r"r\.csv line 2 is not UTF-8 text \(byte 0xca\); give the encoding"):
        read_table(path, encoding="utf-8")


@pytest.mark.parametrize("late", [False, True])
def test_text_that_is_not_unicode_is_read_as_windows_writes_it_with_a_warning(late, tmp_path):
    text = "user_id,name\n" + "1,x\n" * (40_000 if late else 0) + "2,café “x”\n"
    path = write(tmp_path, "r.csv", text.encode("cp1252"))
    line = text.count("\n")
    with pytest.warns(
        DataWarning, match=rf"r\.csv line {line} is not UTF-8 text \(byte 0xe9\); it was read as Windows"
    ):
        assert as_table(path, "r")["name"][-1] == "café “x”"
    with pytest.warns(DataWarning):
        assert as_table(write(tmp_path, "r.csv", b"user_id,n\n1,\x81\xe9\n"), "r")["n"][0] == "\x81é"


def test_byte_order_marks_say_the_encoding(tmp_path):
    for encoding in ("utf-16", "utf-8-sig"):
        assert plain(as_table(write(tmp_path, "r.csv", TEXT.encode(encoding)), "r")) == EXPECTED


def test_compressed_files(tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("folder/r.csv", TEXT)
        archive.writestr("readme.md", "x")
    files = {"r.csv.gz": gzip.compress(TEXT.encode()), "r.csv.bz2": bz2.compress(TEXT.encode())}
    for name, content in {**files, "r.csv.zip": packed.getvalue(), "R.CSV.GZ": files["r.csv.gz"]}.items():
        table = as_table(write(tmp_path, name, content), "r")
        assert plain(table) == EXPECTED
        assert table.row_label(1) == "line 3"
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("other.csv", TEXT)
    with pytest.raises(InputError, match=r"must hold one table; it holds folder/r\.csv, other\.csv"):
        as_table(write(tmp_path, "r.zip", packed.getvalue()), "r")
    with pytest.raises(InputError, match=r"r\.zip cannot be read"):
        as_table(write(tmp_path, "r.zip", b"PK nothing"), "r")


def test_movielens_dat_files_have_no_header_and_two_colons(tmp_path):
    ratings = write(tmp_path, "ratings.dat", "1::1193::5::978300760\n1::661::3::978302109\n")
    table = named_table(ratings, "ratings", None)
    assert plain(table) == {
        "user_id": [1, 1],
        "item_id": [1193, 661],
        "rating": [5, 3],
        "timestamp": [978300760, 978302109],
    }
    assert table.row_label(1) == "line 2"
    movies = write(
        tmp_path, "movies.dat", '1::Toy Story: "X", 1995::Animation|Comedy\n2::Caf\xe9::Drama\n'.encode("latin-1")
    )
    with pytest.warns(DataWarning):
        items = named_table(movies, "items", None, ["item_id"])
    assert items["item_id"].tolist() == [1, 2]
    assert items["column_2"].tolist() == ['Toy Story: "X", 1995', "Café"]
    with pytest.warns(
        DataWarning, match=r"r\.csv begins with numbers, not with names .* column_1, column_2, column_3\."
    ):
        assert named_table(write(tmp_path, "r.csv", "1,2,5\n1,3,4\n"), "r", None)["rating"].tolist() == [5, 4]
    tabs = write(tmp_path, "u.data", "196\t242\t3\t881250949\n186\t302\t3\t891717742\n")
    assert named_table(tabs, "ratings", None)["item_id"].tolist() == [242, 302]


def test_json_lines_and_feather(tmp_path):
    rows = [{"user_id": "007", "item_id": 1, "rating": 4.5}, {"user_id": "7", "item_id": 2, "rating": 3.0}]
    lines = write(tmp_path, "r.jsonl", "\n\n".join(map(json.dumps, rows)) + "\n")
    assert plain(as_table(lines, "r")) == EXPECTED
    assert as_table(lines, "r").row_label(1) == "line 3"
    feather.write_feather(pa.table(EXPECTED), tmp_path / "r.feather")
    assert plain(as_table(tmp_path / "r.feather", "r")) == EXPECTED
    feather.write_feather(pd.DataFrame({"c": pd.Categorical(["x", "y", "x"])}), tmp_path / "c.feather")
    assert as_table(tmp_path / "c.feather", "r")["c"].tolist() == ["x", "y", "x"]
    assert list(named_table(tmp_path / "r.feather", "r", None).columns) == list(EXPECTED)


def test_ids_of_json_lines_keep_their_spelling(tmp_path):
    ids = [2**63, 2**63 + 1, 10**25]
    rows = [{"user_id": user, "item_id": "2020-01-01", "rating": 3, "day": "2020-01-01"} for user in ids]
    table = as_table(write(tmp_path, "r.jsonl", "\n".join(map(json.dumps, rows))), "r")
    assert table["user_id"].tolist() == ids
    assert table["item_id"].tolist() == ["2020-01-01"] * 3
    assert table["day"].dtype.kind == "M"
    other = write(tmp_path, "r.jsonl", f'{{"uid": {2**63}, "item_id": 1}}\n{{"uid": 1, "item_id": 1}}\n')
    assert named_table(other, "r", None)["user_id"].tolist() == [2**63, 1]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_file_has_a_list_of_objects_or_lines(tmp_path, indent, monkeypatch):
    rows = [{"user_id": "007", "item_id": 1, "rating": 4.5}, {"user_id": "7", "item_id": 2, "rating": 3}]
    whole = json.dumps(rows, indent=indent)
    assert plain(as_table(write(tmp_path, "r.json", whole), "r")) == EXPECTED
    assert plain(as_table(write(tmp_path, "r.json.gz", gzip.compress(whole.encode())), "r")) == EXPECTED
    assert plain(as_table(write(tmp_path, "l.json", "\n".join(map(json.dumps, rows))), "r")) == EXPECTED
    standard_input(monkeypatch, whole.encode())
    assert plain(as_table("-", "r")) == EXPECTED
    with pytest.raises(InputError, match=r"r\.json must be a list of JSON objects such as .*; correct or remove it\."):
        as_table(write(tmp_path, "r.json", "[1, 2]"), "r")


def test_a_broken_line_of_json_is_named_and_mixed_types_are_read(tmp_path):
    good = '{"user_id": "a", "item_id": 1, "x": null}\n\n{"user_id": 1, "item_id": 2, "x": 2.5}\n'
    table = as_table(write(tmp_path, "r.jsonl", good), "r")
    assert table["user_id"].tolist() == ["a", "1"]
    assert table["item_id"].tolist() == [1, 2]
    assert np.isnan(table["x"][0])
    for bad in ('{"user_id": 1\n', "[1, 2]\n"):
        with pytest.raises(
            InputError, match=r"r\.jsonl line 4 must be a JSON object such as \{\.\.\.\}.*correct or rem"
        ):
            as_table(write(tmp_path, "r.jsonl", good + bad), "r")


@pytest.mark.parametrize("lead", ["sep=;\r\n", '"sep=;"\n', "\ufeffsep=;\r\n"])
def test_what_spreadsheets_export(tmp_path, lead):
    content = lead + "user_id;item_id; rating ;;\r\n007;1;4,5;;\r\n7;2;3,0;;\r\n;;;;\r\n;;;;\r\n"
    table = as_table(write(tmp_path, "r.csv", content), "r")
    assert plain(table) == EXPECTED
    assert table.row_label(1) == "line 4"
    assert plain(as_table(write(tmp_path, "r.csv", content), "r", columns=["rating"])) == {"rating": [4.5, 3.0]}
    with pytest.raises(InputError, match=r"r\.csv line 6 has 2 values, but the header names 5 columns"):
        as_table(write(tmp_path, "r.csv", content.replace(";;;;\r\n;;;;", ";;;;\r\n;")), "r")
    inner = content.replace("7;2;3,0", ";;;;\r\n7;2;3,0")
    assert as_table(write(tmp_path, "r.csv", inner), "r")["user_id"].tolist() == ["007", None, "7"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("r.xlsx", b"PK\x03\x04", r"r\.xlsx is a spreadsheet; save it as CSV, or read it with pandas\.read_excel\."),
        ("r.csv", b"PK\x03\x04abc", r"r\.csv is a zip archive or a spreadsheet; unpack it, or save it as CSV\."),
        ("r.csv", b"a,b\n1\x00,2\n", r"r\.csv is no text, for it holds zero bytes; save it as CSV, or name its enc"),
        ("r.csv", b",,\n1,2,3\n", r"r\.csv is empty; its first line must name the columns\."),
    ],
)
def test_what_is_no_text_is_refused_with_a_remedy(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message):
        as_table(write(tmp_path, name, content), "r")


def test_a_packed_file_may_have_another_ending(tmp_path):
    assert plain(as_table(write(tmp_path, "r.csv", gzip.compress(TEXT.encode())), "r")) == EXPECTED


def test_values_with_spaces_between(tmp_path):
    assert plain(as_table(write(tmp_path, "r.txt", TEXT.replace(",", " ")), "r")) == EXPECTED
    assert plain(as_table(write(tmp_path, "t.csv", "title\nThe Big Heat\nUp\n"), "r")) == {
        "title": ["The Big Heat", "Up"]
    }
    spaced = as_table(write(tmp_path, "s.csv", "user_id, item_id, rating\n1, 2, 3\n"), "r")
    assert plain(spaced) == {"user_id": [1], "item_id": [2], "rating": [3]}


def test_addresses_delimiters_and_encodings_of_the_wrong_type_are_refused(tmp_path):
    path = write(tmp_path, "r.csv", TEXT)
    with pytest.raises(InputError, match=r"https://x\.org/r\.csv is an address; download the file, and name it\."):
        as_table("https://x.org/r.csv", "r")
    with pytest.raises(InputError, match="encoding 3 is not known"):
        read_table(path, encoding=3)
    with pytest.raises(InputError, match="sep must be text, such as ';', or None, not 3"):
        read_table(path, sep=3)


def standard_input(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_standard_input_may_be_of_any_format_and_is_read_once(tmp_path, monkeypatch):
    parquet.write_table(pa.table(EXPECTED), tmp_path / "r.parquet")
    for content in (TEXT.encode(), gzip.compress(TEXT.encode()), (tmp_path / "r.parquet").read_bytes()):
        standard_input(monkeypatch, content)
        assert plain(named_table("-", "ratings", None)) == EXPECTED
    standard_input(monkeypatch, TEXT.encode() + b"8,3,good\n")
    with pytest.raises(InputError, match="standard input column 'rating' must be numeric, but line 4 holds 'good'"):
        as_table("-", "ratings").numeric("rating")


def test_home_and_patterns(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path, "part-1.csv", "user_id,item_id,rating\n1,1,4\n2,2,3\n")
    write(tmp_path, "part-2.csv", "user_id,item_id,rating\n007,3,5\n1,4,bad\n")
    table = as_table("~/part-*.csv", "r")
    assert table["user_id"].tolist() == ["1", "2", "007", "1"]
    with pytest.raises(
        InputError, match=r"part-\*\.csv column 'rating' must be numeric, but line 3 of part-2\.csv holds"
    ):
        table.numeric("rating")
    write(tmp_path, "part-3.csv", "user_id,stars\n1,1\n")
    with pytest.raises(
        InputError, match=r"part-3\.csv has the columns user_id, stars, and part-1\.csv has user_id, item"
    ):
        as_table("~/part-*.csv", "r")
    with pytest.raises(InputError, match="There is no file that matches"):
        as_table(tmp_path / "x*.csv", "r")
    odd = write(tmp_path, "a[1].csv", TEXT)
    assert plain(as_table(odd, "r")) == EXPECTED


def test_tables_in_memory_of_all_makes():
    rows = list(zip(*EXPECTED.values(), strict=True))
    assert plain(named_table(rows, "r", None)) == EXPECTED
    assert plain(named_table([dict(zip(EXPECTED, row, strict=True)) for row in rows], "r", None)) == EXPECTED
    assert plain(as_table(pl.LazyFrame(EXPECTED), "r")) == EXPECTED
    assert plain(named_table(pl.LazyFrame(EXPECTED), "r", None)) == EXPECTED
    assert backend_of(pl.LazyFrame(EXPECTED)) == "polars"
    pairs = np.array([[3, 4], [5, 6]])
    assert plain(named_table(pairs, "r", None)) == {"user_id": [3, 5], "item_id": [4, 6]}
    named = np.array([(1, 2.5)], dtype=[("user_id", int), ("rating", float)])
    assert plain(as_table(named, "r")) == {"user_id": [1], "rating": [2.5]}
    with pytest.raises(InputError, match="r row 1 has 1 values and row 0 has 2; give all as many"):
        as_table([(1, 2), (3,)], "r")


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array, sparse.lil_matrix])
def test_sparse_matrices(make):
    matrix = make(np.array([[5.0, 0.0, 1.0], [0.0, 3.0, 0.0]]))
    assert plain(as_table(matrix, "r")) == {"user_id": [0, 0, 1], "item_id": [0, 2, 1], "rating": [5.0, 1.0, 3.0]}
    table = from_matrix(matrix, users=["ann", "bob"], items=[10, 20, 30])
    assert table["user_id"].tolist() == ["ann", "ann", "bob"]
    assert table["item_id"].tolist() == [10, 30, 20]
    with pytest.raises(InputError, match="users has 1 ids, but the matrix has 2"):
        from_matrix(matrix, users=["ann"])
    model = tuckergp.TuckerRecommender(rank=1, inference="als").fit(matrix)
    assert model.predict([(0, 1)]).shape == (1,)
