"""Descriptions of tables: counts that can be checked by hand, and every kind of fault."""

import numpy as np
import pytest

from tuckergp.data.findings import usual_range
from tuckergp.recommender.describe import describe


def ratings(n_users=12, n_items=9, **columns):
    """Every second pair, rated 1 to 5."""
    pairs = [(u, i) for u in range(n_users) for i in range(n_items) if (u + i) % 2 == 0]
    table = {
        "user_id": [f"user {u}" for u, _ in pairs],
        "item_id": [i for _, i in pairs],
        "rating": [1.0 + (u + 2 * i) % 5 for u, i in pairs],
    }
    return {**table, **columns}


def texts(found):
    return [str(finding) for finding in found.findings]


def only(found):
    (finding,) = found.findings
    return finding


def test_counts_are_right():
    table = ratings()
    found = describe(table)
    assert (found.n_ratings, found.n_users, found.n_items) == (len(table["rating"]), 12, 9)
    assert found.density == len(table["rating"]) / (12 * 9)
    assert (found.per_item.least, found.per_item.most) == (6, 6)
    assert found.n_repeated == 0
    assert found.findings == []
    assert "Nothing suspicious." in str(found)


def test_histogram_holds_every_rating():
    table = ratings()
    found = describe(table).ratings
    assert [bar.label for bar in found.histogram] == ["1", "2", "3", "4", "5"]
    assert [bar.count for bar in found.histogram] == [table["rating"].count(level) for level in (1, 2, 3, 4, 5)]
    many = np.random.default_rng(0).normal(size=len(table["rating"]))
    assert sum(bar.count for bar in describe({**table, "rating": many}).ratings.histogram) == len(many)


def test_ratings_far_from_the_others_are_found_and_left_out_of_the_histogram():
    table = ratings()
    table["rating"][7] = 99.0
    found = describe(table)
    assert only(found).where == ("row 7",)
    assert "99" in only(found).what
    assert not found.refused
    assert found.ratings.histogram[-1].label == "5"


@pytest.mark.parametrize("values", [[1, 2, 3, 4, 5] * 9, [0, 1] * 9, [5] * 50, [5] * 45 + [1] * 5])
def test_usual_scales_have_nothing_outside(values):
    low, high = usual_range(np.array(values, dtype=float))
    assert low <= min(values)
    assert high >= max(values)


def test_faults_are_found_together_and_those_refused_come_first():
    table = ratings()
    table["user_id"][3] = None
    table["rating"][4] = np.nan
    table["user_id"] += ["user 1"]
    table["item_id"] += [1]
    table["rating"] += [2.0]
    found = describe(table)
    assert [finding.refused for finding in found.findings] == [True, True, False]
    assert found.findings[0].where == ("row 3",)
    assert found.findings[1].where == ("row 4",)
    assert "an earlier row has" in found.findings[2].what
    assert found.refused
    assert found.n_ratings == len(table["rating"]) - 2


def test_ids_that_differ_in_spelling_alone_are_found():
    table = ratings()
    table["user_id"] = [name if row else " USER 0" for row, name in enumerate(table["user_id"])]
    assert "' USER 0' and 'user 0'" in only(describe(table)).what


def test_text_ids_with_zeros_are_alike():
    table = ratings()
    number = ["7", "07", "7.0", "8"]
    table["user_id"] = [number[row % 4] for row in range(len(table["rating"]))]
    finding = next(one for one in describe(table).findings if "spellings" in one.what)
    assert finding.count == 1


def test_users_with_one_value_only_are_found():
    table = ratings(n_items=30)
    pairs = zip(table["user_id"], table["rating"], strict=True)
    table["rating"] = [3.0 if user == "user 5" else value for user, value in pairs]
    assert "'user 5'" in only(describe(table)).what


def test_a_user_with_very_many_ratings_is_found():
    table = ratings()
    table["user_id"] += ["robot"] * 500
    table["item_id"] += list(range(500))
    table["rating"] += [1.0 + j % 5 for j in range(500)]
    assert "up to 500 ('robot')" in only(describe(table)).what


@pytest.mark.parametrize(
    ("place", "value", "what", "refused"),
    [
        (0, "2999-01-01", "in the future", False),
        (1, "1950-01-01", "before 1970", False),
        (2, "soon", "cannot be read, such as 'soon'", False),
        (3, None, "without a timestamp", False),
    ],
)
def test_times_that_cannot_be_are_found(place, value, what, refused):
    times = ["1998-04-22 10:30"] * len(ratings()["rating"])
    times[place] = value
    found = describe(ratings(timestamp=times))
    assert what in only(found).what
    assert only(found).where == (f"row {place}",)
    assert only(found).refused == refused
    assert "1998-04-22T10:30:00" in (found.first, found.last)


def test_times_in_two_units_are_found():
    times = np.full(len(ratings()["rating"]), 881250949)
    times[5] *= 1000
    found = describe(ratings(timestamp=times))
    assert "another unit" in only(found).what
    assert found.first == found.last


def test_tables_of_users_are_joined_and_checked():
    users = {"user_id": [f"user {u}" for u in range(1, 14)], "age": range(13), "planet": ["Earth"] * 13}
    found = describe(ratings(), users)
    assert (found.tables["users"].without_ratings, found.tables["users"].not_in_table) == (2, 1)
    assert {row[1]: row[2] for row in found.attributes.rows()} == {"age": "number", "planet": "nothing"}
    assert not found.findings
    twice = {name: [*values, values[0]] for name, values in users.items()}
    assert "an earlier row has" in only(describe(ratings(), twice)).what
    foreign = {**users, "user_id": range(13)}
    assert "ids are like 'user 0' there and '0' here" in only(describe(ratings(), foreign)).what


def test_lines_of_files_are_named_where_cells_span_lines(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text('user_id,item_id,rating\nann,"one\ntwo",3\n\nbob,x,\n')
    assert only(describe(path)).where == ("line 5",)


def test_clicks_and_empty_tables():
    table = ratings()
    del table["rating"]
    assert describe(table).ratings is None
    empty = describe({"user_id": [], "item_id": [], "rating": []})
    assert empty.refused
    assert "There are no rows" in str(empty)
