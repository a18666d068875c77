"""Columns are found by their usual names, by common ones, by those given, and by their order where they have none."""

import pandas as pd
import pytest

from tuckergp.data.names import missing_column, named_table, taken_names, words
from tuckergp.data.splits import LastN
from tuckergp.errors import InputError


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        ("userId movieId rating timestamp", ("userId", "movieId", "rating", "timestamp")),
        ("UID ISBN Score TS", ("UID", "ISBN", "Score", "TS")),
        ("customer_id product_id stars date", ("customer_id", "product_id", "stars", "date")),
        ("user item rating", ("user", "item", "rating", None)),
        ("User-ID ISBN Book-Rating", ("User-ID", "ISBN", "Book-Rating", None)),
        ("user track_id plays", ("user", "track_id", None, None)),
        ("user_id user item_id rating", ("user_id", "item_id", "rating", None)),
        ("userId user movieId movie", ("userId", "movieId", None, None)),
        ("column_1 column_2 column_3 column_4", ("column_1", "column_2", "column_3", "column_4")),
        ("column_1 column_2", ("column_1", "column_2", None, None)),
        ("0 1 2", ("0", "1", "2", None)),
        ("user_id business_id stars useful", ("user_id", "business_id", "stars", None)),
        ("id item rating", (None, "item", "rating", None)),
        ("kunde ware note", (None, None, None, None)),
    ],
)
def test_common_names_are_found(existing, expected):
    existing, usual = existing.split(), ("user_id", "item_id", "rating", "timestamp")
    taken = taken_names(existing, "ratings")
    wanted = {name: theirs for name, theirs in zip(usual, expected, strict=True) if theirs not in (None, name)}
    assert taken == wanted


def test_given_names_come_first_and_contexts_are_left_alone():
    columns = ["kunde", "user", "item", "date"]
    assert taken_names(columns, "r", {"user_id": "kunde"}) == {
        "user_id": "kunde",
        "item_id": "item",
        "timestamp": "date",
    }
    assert "timestamp" not in taken_names(columns, "r", without=["date"])
    assert taken_names(["user", "item", "plays"], "r", counts=True)["rating"] == "plays"
    assert words({"user_id": "userId", "item_id": "film"}) == "userId as user_id, film as item_id"


def test_an_ambiguous_table_is_refused_with_what_to_write():
    message = (
        r"r\.csv may have user_id in 'uid' or 'customerId'; its columns are uid, customerId, item\. "
        r"Say which it is: columns=\{'user_id': 'uid'\}, or --user-column uid\."
    )
    with pytest.raises(InputError, match=message):
        taken_names(["uid", "customerId", "item"], "r.csv")
    assert taken_names(["uid", "customerId", "item"], "r.csv", {"user_id": "customerId"})["user_id"] == "customerId"


def test_a_file_is_read_by_its_own_names(tmp_path):
    (tmp_path / "r.csv").write_text("userId,movieId,rating,timestamp\n007,1,4.5,100\n7,2,3,200\n")
    table = named_table(tmp_path / "r.csv", "ratings", None)
    assert list(table.columns) == ["user_id", "item_id", "rating", "timestamp"]
    assert table["user_id"].tolist() == ["007", "7"]


def test_splits_find_common_names_and_leave_columns_that_they_are_told():
    table = {"userId": [1, 1, 2, 2], "film": [1, 2, 1, 2], "date": [1, 2, 2, 1]}
    ((_, test),) = LastN(1).split(table)
    assert test["item_id"].tolist() == [2, 1]
    ((_, test),) = LastN(1, column="date").split(table)
    assert test["date"].tolist() == [2, 2]


def test_the_id_of_a_table_of_items_alone_may_be_called_id():
    assert taken_names(["id", "title"], "items", roles=["item_id"]) == {"item_id": "id"}
    assert taken_names(["id", "movieId"], "items", roles=["item_id"]) == {"item_id": "movieId"}


def test_what_to_write_is_a_column_that_is_nothing_else():
    with pytest.raises(InputError, match=r"Say which it is: columns=\{'rating': 'value'\}, or --rating-column value\."):
        raise missing_column("r", "rating", ["user", "item", "value"], {})
    for line in ("My ratings", "# a comment", "user^item^stars"):
        with pytest.raises(InputError, match="The first line must name them all: remove what is above it, or say the"):
            raise missing_column("r.csv", "user_id", [line], {})
    with pytest.raises(InputError, match=r"its columns are ann, heat, 3\. These look like values: write the names of"):
        raise missing_column("r", "user_id", ["ann", "heat", "3"], {})


def test_the_index_of_pandas_is_read_where_it_has_names():
    frame = pd.DataFrame({"user_id": [1, 2], "item_id": [3, 4], "rating": [5.0, 4.0]})
    for keys in ("user_id", ["user_id", "item_id"]):
        table = named_table(frame.set_index(keys), "ratings", None)
        assert {name: values.tolist() for name, values in table.columns.items()} == frame.to_dict("list")
    assert list(named_table(frame.set_index("rating", drop=False), "r", None).columns) == list(frame.columns)


def test_an_option_to_type_quotes_names_with_spaces():
    assert "--item-column 'Movie Title'." in str(missing_column("r.csv", "item_id", ["user_id", "Movie Title"], {}))
