"""Ids keep their spelling, and their type is decided once."""

import uuid
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from tuckergp.data import reading
from tuckergp.data.id_types import aligned, integers_of
from tuckergp.data.ids import number_ids
from tuckergp.data.names import standard_names
from tuckergp.data.tables import Table, as_table, read_table
from tuckergp.errors import DataWarning, InputError


def ids_of(folder, *ids):
    path = folder / "r.csv"
    path.write_text("\n".join(["user_id,item_id", *(f"{value},1" for value in ids)]) + "\n")
    return as_table(path, "ratings")["user_id"].tolist()


def is_canonical(text):
    """The twin: Python reads the text as an integer of 64 bits and writes it back the same."""
    try:
        return str(int(text)) == text and -(2**63) <= int(text) < 2**63
    except ValueError:
        return False


SPELLINGS = [
    *("0", "7", "-7", "10", "99", "100", "-100", "999999999999999999", "1000000000000000000"),
    *(str(2**63 - 1), str(2**63), str(-(2**63)), str(-(2**63) - 1), str(10**25)),
    *("007", "07", "00", "-0", "+7", "1e3", "7.0", "7.5", "0x1F", "1_000", "ann", "٧", "-", "--7"),
]


@pytest.mark.parametrize("text", SPELLINGS)
@pytest.mark.parametrize("others", [[], ["3"], ["3", "12345", "-8"]])
def test_an_id_column_is_of_integers_if_python_writes_all_of_them_so(text, others, tmp_path):
    texts = [*others, text, *others]
    expected = list(map(int, texts)) if is_canonical(text) else texts
    assert ids_of(tmp_path, *texts) == expected


def test_random_integers_are_as_long_as_python_writes_them():
    rng = np.random.default_rng(0)
    numbers = np.concatenate([rng.integers(-(10**k), 10**k, 50) for k in range(1, 19)])
    texts = list(map(str, numbers.tolist()))
    np.testing.assert_array_equal(integers_of(pa.chunked_array([texts[:100], texts[100:]])), numbers)
    assert integers_of(pa.chunked_array([[*texts, "-012"]])) is None


@pytest.mark.parametrize("texts", [["0x0234567890abcdef", "0x0234567890ABCDEF"], ["0X7fffffffffffffff", "07", "7"]])
def test_hexadecimal_ids_that_are_as_short_as_decimal_ones_stay_text(texts, tmp_path):
    assert ids_of(tmp_path, *texts) == texts


def test_ids_beyond_64_bits_stay_apart(tmp_path):
    assert len(set(ids_of(tmp_path, *(2**63 + k for k in range(6))))) == 6
    assert len(set(ids_of(tmp_path, *(10**25 + k for k in range(6))))) == 6
    assert ids_of(tmp_path, "007", "07", "7") == ["007", "07", "7"]


def test_missing_ids_and_spaces_do_not_make_text_of_integers(tmp_path):
    assert ids_of(tmp_path, " 7", "12 ") == [7, 12]
    assert ids_of(tmp_path, "7", "", "NA") == [7, None, None]
    assert ids_of(tmp_path, "ann", "", "NA") == ["ann", None, "NA"]
    (tmp_path / "r.csv").write_text("user_id,item_id\n7,1\n,1\n")
    with pytest.raises(InputError, match=r"r\.csv column 'user_id' is missing at line 3"):
        number_ids(as_table(tmp_path / "r.csv", "ratings"), "user_id")


def test_a_column_that_turns_out_to_hold_ids_is_read_again(tmp_path):
    path = tmp_path / "r.csv"
    ids = [f"{10**25}", f"{10**25 + 1}"]
    path.write_text(f"kunde,item_id\n{ids[0]},1\n{ids[1]},2\n")
    table = as_table(path, "ratings")
    assert table["kunde"].tolist() == [1e25, 1e25]
    assert standard_names(table, {"user_id": "kunde"})["user_id"].tolist() == ids
    direct = as_table(path, "ratings", ids=["kunde", "item_id"])
    assert standard_names(direct, {"user_id": "kunde"})["user_id"].tolist() == ids


def test_numbers_with_decimals_from_a_text_file_are_no_ids(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("a\n1.5\n2.5\n")
    with pytest.raises(
        InputError, match=r"r\.csv column 'a' holds numbers with decimals or beyond 64 bits, which are no ids; write"
    ):
        number_ids(as_table(path, "ratings"), "a")
    ids, _ = number_ids(Table({"a": np.array([1.5, 2.5])}, "ratings", 2), "a")
    assert ids == [1.5, 2.5]


@pytest.mark.parametrize(
    ("values", "example", "expected"),
    [
        (np.array([7, 12]), "007", ["7", "12"]),
        (np.array([7, True, "x", None, 1.5, np.int64(3)], dtype=object), "a", ["7", True, "x", None, 1.5, "3"]),
        (np.array(["12", "007", "ann", None, "-3"], dtype=object), 5, [12, "007", "ann", None, -3]),
        (np.array(["12", "1.5", "x"], dtype=object), 2.5, [12, 1.5, "x"]),
        (np.array([1, 2]), 5, [1, 2]),
        (np.array(["1"], dtype=object), ("a", 1), ["1"]),
        (np.array(["1"], dtype=object), True, ["1"]),
    ],
)
def test_ids_take_the_type_of_known_ones(values, example, expected):
    out = aligned(values, example).tolist()
    assert out == expected
    assert list(map(type, out)) == list(map(type, expected))


@pytest.mark.parametrize(
    ("sep", "encoding"), [(",", "utf-8"), (";", "utf-8-sig"), ("\t", "utf-16"), (",", "cp1252"), ("::", "utf-8")]
)
def test_numbers_with_leading_zeros_are_text_in_every_column(sep, encoding, tmp_path):
    rows = [["item_id", "postcode", "year", "name"], ["1", "01234", "1990", "Zoë"], ["2", "99999", "2001", "x"]]
    file = tmp_path / "items.csv"
    file.write_text("".join(f"{sep.join(row)}\n" for row in rows), encoding=encoding)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # of Windows-1252
        table = read_table(file)
    assert table["postcode"].tolist() == ["01234", "99999"]
    assert table["year"].tolist() == [1990, 2001]
    assert table["item_id"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["0", "7", "10"], [0, 7, 10]),
        (["0.5", "00.5", "7"], [0.5, 0.5, 7.0]),
        (["", "007", "7"], [None, "007", "7"]),
        (['"007"', "7", "7"], ["007", "7", "7"]),
        (["7", "7", " 07"], ["7", "7", " 07"]),
        (["-07", "1", "2"], ["-07", "1", "2"]),
    ],
)
def test_leading_zeros_are_those_of_whole_numbers(cells, values, tmp_path):
    file = tmp_path / "items.csv"
    file.write_text("a,code\n" + "".join(f"x,{cell}\n" for cell in cells))
    assert read_table(file)["code"].tolist() == values


def test_leading_zeros_are_found_at_the_border_of_two_pieces(tmp_path, monkeypatch):
    file = tmp_path / "items.csv"
    file.write_text("a,code\nx,7\nx,-01\n")
    for piece in range(1, 20):
        monkeypatch.setattr(reading, "PIECE", piece)
        assert read_table(file)["code"].tolist() == ["7", "-01"]


UUIDS = [uuid.UUID(int=k * 10**30) for k in (1, 2, 1)]


@pytest.mark.parametrize("kind", [pa.uuid(), pa.binary(16)])
@pytest.mark.parametrize("ending", ["parquet", "feather", None])
def test_uuids_of_arrow_are_their_usual_text(kind, ending, tmp_path):
    data = pa.table({"user_id": pa.array([each.bytes for each in UUIDS] + [None], kind)})
    if ending == "parquet":
        parquet.write_table(data, data := tmp_path / "r.parquet")
    elif ending == "feather":
        feather.write_feather(data, data := tmp_path / "r.feather")
    assert as_table(data, "ratings")["user_id"].tolist() == [*map(str, UUIDS), None]


def test_other_bytes_stay_bytes():
    data = pa.table({"user_id": pa.array([b"ab", b"cd"], pa.binary(2)), "item_id": pa.array([b"ab", b"c"])})
    table = as_table(data, "ratings")
    assert table["user_id"].tolist() == [b"ab", b"cd"]
    assert table["item_id"].tolist() == [b"ab", b"c"]


def test_a_uuid_and_its_text_are_the_same_id():
    objects = np.array(UUIDS, dtype=object)
    texts = np.array([*map(str, UUIDS)], dtype=object)
    assert aligned(objects, texts[0]).tolist() == texts.tolist()
    assert aligned(texts, objects[0]).tolist() == UUIDS
    assert aligned(np.array(["x"], dtype=object), objects[0]).tolist() == ["x"]
