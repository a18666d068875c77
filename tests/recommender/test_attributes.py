"""How every column of an attribute table is used: by its values, or as the user chose."""

import datetime
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from tuckergp import TuckerRecommender
from tuckergp.data.tables import as_table
from tuckergp.errors import DataWarning, InputError
from tuckergp.kernels import SE, Cosine, Identity, Linear, Matern32, Periodic
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.model.mode import Mode
from tuckergp.recommender.attributes import BLOCK_VARIANCE, TEXT_VARIANCE, WHO_RATED_WHAT, Attributes, check_keys, join
from tuckergp.recommender.feature_report import FeatureReport
from tuckergp.recommender.words import BUCKETS, buckets, words

N = 60
TITLES = [f"{a} {b} ({year})" for a in ("Toy", "Dead", "Lost") for b in ("Story", "Man", "River", "Hotel") for year in
          range(1990, 1995)]  # fmt: skip


def users_with(name="x", values=(), **more):
    table = {"user_id": list(range(len(values))), name: list(values), **more}
    return as_table(pd.DataFrame(table) if name == "frame" else table, "users")


def decision(values, choice="auto"):
    table = users_with("x", values)
    choices = {} if choice == "auto" else {"x": choice}
    return Attributes.fit("user_id", table, choices).columns[0]


def features(table, choices=None, rows=None, key="user_id"):
    """The features of the attributes in a mode, without those of the ids and the constant, dense, and their names."""
    attributes = Attributes.fit(key, table, choices)
    encoded = attributes.encode(table)
    mode = Mode(list(encoded.columns), attributes.kernel(encoded), constant=False)
    fitted, _ = FittedMode.fit(mode, encoded, {}, np.random.default_rng(0))
    asked = encoded if rows is None else attributes.encode(rows)
    names = [name for block in fitted.blocks for name in block.map.feature_names_]
    parts = [block.map.transform(asked) for block in fitted.blocks]
    return np.hstack([part if isinstance(part, np.ndarray) else part.toarray() for part in parts]), names


def test_movielens_columns_are_used_as_what_they_are(movielens):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        users = Attributes.fit("user_id", movielens.users).columns
        items = Attributes.fit("item_id", movielens.items).columns
    assert {one.column: one.use for one in (*users, *items)} == {
        "age": "number", "sex": "category", "occupation": "category", "zip_code": "nothing",
        "title": "text", "year": "number", "genres": "bag",
    }  # fmt: skip
    assert {one.column: one.note for one in users}["zip_code"] == "795 different texts in 943 rows say little"


DATES = [datetime.date(2000, 1, 1) + datetime.timedelta(days=k) for k in range(N)]


@pytest.mark.parametrize(
    ("values", "use", "note"),
    [
        (np.arange(N) / 7, "number", "standardised, and by tenths"),
        ([1, 2.5, None] * 20, "number", "standardised, and by tenths; 20 missing"),
        (DATES, "number", "dates, standardised"),
        (pd.to_datetime(DATES), "number", "dates, standardised"),
        ([str(date) for date in DATES], "number", "dates, standardised"),
        (["a", "b", None] * 20, "category", "2 levels; 20 missing"),
        ([True, False] * 30, "category", "yes or no"),
        ([True, False, None] * 20, "category", "yes or no; 20 missing"),
        ([5.0, np.nan, 5.0] * 20, "category", "1 levels; 20 missing"),
        (["a|b", "c", "b|c"] * 20, "bag", "several values per row"),
        ([["a", "b"], [], None] * 20, "bag", "several values per row; 20 missing"),
        (TITLES, "text", "words, hashed to 256"),
        ([*TITLES[:50], "Face|Off", *[None] * 9], "text", "words, hashed to 256; 9 missing"),
        (["七人の侍" + chr(0x4E00 + k) for k in range(N)], "text", "words"),
        ([f"T{k}8H" for k in range(N)], "nothing", "60 different texts in 60 rows say little"),
        ([f"SW{k} {k}AA" for k in range(N)], "nothing", "60 different texts"),
        ([f"00{k:02}e29b-41d4-a716-446655440000" for k in range(N)], "nothing", "60 different texts"),
        ([f"ann{k}@mail.org" for k in range(N)], "nothing", "60 different texts"),
        ([{"a": 1}, {"b": 1}, {"a": 1}] * 20, "nothing", "cells of type dict cannot be compared"),
    ],
)  # fmt: skip
def test_a_column_is_used_as_its_values_suggest(values, use, note):
    found = decision(values)
    assert found.use == use
    assert found.note.startswith(note)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([3] * N, "the same value everywhere"),
        ([1e9 / 3] * N, "the same value everywhere"),
        (["x"] * N, "the same value everywhere"),
        ([True] * N, "the same value everywhere"),
        (["a|b"] * N, "the same value everywhere"),
        ([None] * N, "all its values are missing"),
        ([np.nan] * N, "all its values are missing"),
    ],
)
@pytest.mark.parametrize("choice", ["auto", "category"])
def test_a_column_that_says_nothing_is_named_in_a_warning(values, why, choice):
    with pytest.warns(DataWarning, match=rf"^users column 'x' is not used: .*{why}\. Remove or repair it\.$"):
        found = decision(values, choice)
    assert found.use == "nothing"
    assert why in found.note


def test_who_rated_what_never_warns():
    table = as_table({"user_id": [1, 2], WHO_RATED_WHAT: [(0,), (0,)]}, "users")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Attributes.fit("user_id", table).columns[0].use == "bag"


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (["a", "b", None], ["x=a", "x=b", "x=<missing>"]),
        ([True, False, None], ["x=False", "x=True", "x=<missing>"]),
        (["a|b", "b", None], ["x=a", "x=b", "x=<missing>"]),
        ([["a", "b"], ["b"], None], ["x=a", "x=b", "x=<missing>"]),
    ],
)
def test_missing_is_a_level_of_categories_and_bags(values, names):
    phi, found = features(users_with("x", values))
    assert found == names
    np.testing.assert_array_equal(phi[2] > 0, [False, False, True])


@pytest.mark.parametrize(
    ("values", "levels", "first"),
    [
        (np.arange(100.0), np.arange(100) // 10, 0),
        ([1.0] * 40 + [2.0] * 55 + [3.0] * 5, [0] * 40 + [1] * 55 + [2] * 5, 1),  # the last would be with the 2s
        ([0.0] * 60 + [1.0, 2, 3, 4, 5, 6, 7, 8] * 5, [0] * 60 + [1, 1, 2, 2, 3, 3, 4, 4] * 5, 1),
        ([0.0, 1.0] * 50, [0, 1] * 50, 1),
        ([*range(42), *[42] * 15, *range(43, 86)], np.repeat(range(11), [10] * 4 + [2, 15, 3] + [10] * 4), 0),
    ],
)
def test_numbers_have_ten_levels_and_one_for_each_value_that_a_tenth_share(values, levels, first):
    table = users_with("x", values)
    encoded = Attributes.fit("user_id", table).encode(table)
    np.testing.assert_array_equal([int(text.split()[1]) for text in encoded["x level"]], np.array(levels) + first)


def test_missing_is_a_level_of_numbers_and_texts():
    phi, names = features(users_with("x", [1.0, 2.0, np.nan]))
    assert phi[2, 0] == 0
    assert (phi[2] > 0).nonzero()[0].tolist() == [names.index("x level=level missing")]
    phi, names = features(users_with("x", ["the red house", "a blue house", None]), {"x": "text"})
    assert (phi[2] > 0).nonzero()[0].tolist() == [names.index("x=<missing>")]


def test_an_empty_bag_is_not_missing():
    phi, names = features(users_with("x", [["a"], [], None]))
    assert names == ["x=a", "x=<missing>"]
    np.testing.assert_array_equal(phi[1], [0, 0])


MANY = [f"tag {k}" for k in range(40)]


@pytest.mark.parametrize(
    ("bags", "cosine"),
    [
        ([["a"], ["b"], ["a", "b"], ["c"], MANY], True),
        ([["a"], ["b"], ["a", "b", "c"], ["c", "d"], ["a", "d"]], False),
        ([["a"], [], [], [], ["b"]], False),  # what is empty is like nothing in any case
        (["a|b", "|".join(MANY), None, "b", "c", "d"], True),
        (["Action", "Action|Comedy|Drama", None, "Drama", "War", "Drama"], False),
    ],
)
def test_bags_are_compared_by_cosine_where_some_have_many_times_the_values_of_others(bags, cosine):
    table = users_with("x", bags)
    attributes = Attributes.fit("user_id", table)
    assert ("compared by cosine" in attributes.columns[0].note) is cosine
    encoded = attributes.encode(table)
    term = (Cosine if cosine else Linear)("x")
    expected = Identity("user_id")(encoded) + BLOCK_VARIANCE / term.diag(encoded).mean() * term(encoded)
    np.testing.assert_allclose(attributes.kernel(encoded)(encoded), expected)


def test_a_long_bag_compared_by_cosine_weighs_as_much_as_a_short_one():
    phi, names = features(users_with("x", [["a"], MANY, ["a", "b"], ["b"], None]))
    np.testing.assert_allclose((phi**2).sum(axis=1), BLOCK_VARIANCE)
    assert phi[4].nonzero()[0].tolist() == [names.index("x=<missing>")]


def test_a_kernel_chosen_for_a_bag_overrules_the_cosine():
    phi, _ = features(users_with("x", [["a"], MANY, ["b"], ["b"]]), {"x": Linear()})
    np.testing.assert_allclose((phi[1] ** 2).sum(), 40 * (phi[0] ** 2).sum())


def test_texts_have_unit_length_whatever_their_own():
    texts = ["red house", "red red RED, house!", "a green house of stone and wood", "a mouse", None, "..."]
    phi, _ = features(users_with("x", texts), {"x": "text"})
    np.testing.assert_allclose((phi**2).sum(axis=1), np.array([1, 1, 1, 1, 1, 0]) * TEXT_VARIANCE * 6 / 5)
    np.testing.assert_array_equal(phi[0], phi[1])


def test_words_of_most_texts_say_nothing():
    one = Attributes.fit("user_id", users_with("x", [f"the {w} of" for w in "abcdef"]), {"x": "text"}).columns[0]
    assert one.common == set(buckets("the of"))


def test_words_are_those_of_any_language_in_lower_case():
    assert words("Les Misérables, L'été: ΣΊΣΥΦΟΣ snake_case") == [
        "les", "misérables", "l", "été", "σίσυφοσ", "snake", "case",
    ]  # fmt: skip
    assert words("七人の侍 2") == ["七", "人", "の", "侍", "2"]


def test_buckets_do_not_depend_on_the_process_or_the_platform():
    # MurmurHash3 (32 bits, seed 0) of "hello" is 0x248bfa47, a published test vector
    assert buckets("Hello hello") == (f"word {0x248BFA47 % BUCKETS}",)
    code = "from tuckergp.recommender.words import buckets; print(*buckets('Toy Story (1995)'), sep=',')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert tuple(run.stdout.strip().split(",")) == buckets("Toy Story (1995)")


def test_rows_never_seen_have_the_features_of_what_they_share():
    table = users_with("x", ["a", "b", "a"])
    phi, _ = features(table, rows=as_table({"user_id": [9, 8], "x": ["b", "z"]}, "users"))
    assert (phi > 0).tolist() == [[False, True], [False, False]]


@pytest.mark.parametrize("values", [["a|b", "c|d", "a|b"], [1, 2, 1], [["a"], ["b"], ["a"]], pd.to_datetime(DATES[:2])])
def test_any_column_can_be_read_as_categories(values):
    phi, names = features(users_with("x", values), {"x": "category"})
    assert len(names) == 2
    np.testing.assert_array_equal((phi > 0).sum(axis=1), np.ones(len(values)))


def test_a_reading_can_be_forced():
    assert decision(["1", "2.5", None], "number").mean == 1.75
    assert decision(["1", "2.5", None], "number").note == "as asked: standardised, and by tenths; 1 missing"
    assert decision([True, False], "number").use == "number"
    assert decision(["a", "b"], "bag").use == "bag"
    assert decision(["a b", "c d"], "text").use == "text"


def test_a_column_can_be_left_out():
    table = users_with("x", [1.0, 2.0, 3.0])
    attributes = Attributes.fit("user_id", table, {"x": None})
    assert [(one.use, one.note) for one in attributes.columns] == [("nothing", "left out as asked")]
    assert attributes.kernel(attributes.encode(table)) == Identity("user_id")


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"age": None}, r"users has no attribute 'age' to choose for; its attributes are x\."),
        ({"user_id": "category"}, "users has no attribute 'user_id'"),
        (
            {"x": "numbers"},
            r"users column 'x' must be one of 'number', 'category', 'bag', 'text', 'vector', a tuckergp kernel",
        ),
        ({"x": 3}, "or None to leave it out; not 3"),
        ({"x": "number"}, r"users column 'x' must be numeric, but row 1 holds 'b'\."),
        ({"x": SE(1.0)}, r"SE\(lengthscale=1\.0\) needs numbers, but users column 'x' holds '3' at row 0; choose"),
        ({"x": Linear("age")}, r"Linear\('age'\) chosen for users column 'x' names other columns; give it none"),
    ],
)
def test_choices_that_cannot_be_are_refused(choices, message):
    with pytest.raises(InputError, match=message) as caught:
        Attributes.fit("user_id", users_with("x", ["3", "b", "3"]), choices)
    assert "\n" not in str(caught.value)


def test_other_choices_that_cannot_be_are_refused():
    with pytest.raises(InputError, match=r"cannot be read as text: row 0 holds 1\.5"):
        decision([1.5, 2.5], "text")
    with pytest.raises(InputError, match="must be numeric, but row 0 holds"):
        decision([["a"], ["b"]], "number")
    with pytest.raises(InputError, match="The table with user_id that was not given has no attribute 'age'"):
        Attributes.fit("user_id", None, {"age": "number"})


AGES = np.array([20.0, 30.0, 50.0, 60.0])


@pytest.mark.parametrize("kernel", [SE(1.0), Matern32(2.0), SE(1.0) + Linear(), 2.0 * SE(0.5), SE(3.0) * Matern32(1.0)])
def test_a_kernel_compares_the_standardised_numbers(kernel):
    phi, _ = features(users_with("age", AGES), {"age": kernel})
    z = (AGES - AGES.mean()) / AGES.std()
    scale = 1.0 if repr(kernel).startswith("2.0") else BLOCK_VARIANCE / kernel.diag(z).mean()
    np.testing.assert_allclose(phi @ phi.T, scale * kernel(z), atol=1e-6)


def test_a_period_is_in_units_of_the_column():
    months = np.arange(24.0)
    phi, _ = features(users_with("month", months), {"month": Periodic(12.0)})
    np.testing.assert_allclose(phi @ phi.T, BLOCK_VARIANCE * Periodic(12.0)(months), atol=1e-6)


def test_a_missing_number_with_a_kernel_is_the_mean_and_a_level():
    table = users_with("age", [20.0, np.nan, 40.0, 30.0])
    phi, names = features(table, {"age": SE(1.0)})
    assert names[-1] == "age missing=<missing>"
    assert (phi[:, -1] > 0).tolist() == [False, True, False, False]
    np.testing.assert_allclose(phi[1, :-1], phi[3, :-1])
    attribute = Attributes.fit("user_id", table, {"age": SE(1.0)}).columns[0]
    assert attribute.note == "SE(lengthscale=1.0) on the standardised numbers; 1 missing"


def test_a_kernel_of_levels_compares_any_column():
    phi, _ = features(users_with("x", ["a", "b", "a", None]), {"x": Identity()})
    np.testing.assert_allclose(phi @ phi.T, BLOCK_VARIANCE * Identity()(["a", "b", "a", "c"]))


def test_a_recommender_is_learned_from_every_kind_of_attribute():
    rng = np.random.default_rng(0)
    ratings = {"user_id": rng.integers(40, size=800), "item_id": rng.integers(N, size=800)}
    ratings["rating"] = 3.0 + ratings["item_id"] % 2 + 0.1 * rng.standard_normal(800)
    users = {"user_id": np.arange(50), "age": rng.integers(18, 70, size=50).astype(float), "vip": [True, None] * 25}
    items = {"item_id": np.arange(N), "title": TITLES, "tags": ["x|y", None, "y"] * 20, "when": pd.to_datetime(DATES)}
    model = TuckerRecommender(
        rank=2, draws=10, warmup=5, attributes={"users": {"age": Matern32(1.0)}}, random_state=0
    ).fit(ratings, users, items)
    assert np.isfinite(model.predict({"user_id": [1, 45, 99], "item_id": [1, 2, 999]})).all()


def test_the_report_is_an_aligned_table_and_a_mapping(movielens):
    sides = {
        "users": Attributes.fit("user_id", movielens.users, {"sex": None}).columns,
        "items": Attributes.fit("item_id", movielens.items).columns,
    }
    report = FeatureReport(sides)
    assert list(report) == ["users", "items"]
    assert len(report) == 2
    assert [one.column for one in report["items"]] == ["title", "year", "genres"]
    lines = str(report).splitlines()
    assert lines[0].split() == ["table", "column", "use", "note"]
    assert lines[2] == "users  sex         nothing   left out as asked"
    assert len({line.index(row.note) for line, row in zip(lines[1:], report["users"], strict=False)}) == 1
    assert "<td>occupation</td><td>category</td>" in report._repr_html_()
    assert str(FeatureReport({"users": [], "items": []})) == "There are no attributes."


def test_ids_without_a_row_have_missing_attributes_of_the_right_type():
    frame = pd.DataFrame({"user_id": [1, 2], "day": pd.to_datetime(["1970-01-02", "1970-01-04"]), "age": [1.0, 2.0],
                          "n": [1, 2]})  # fmt: skip
    joined = join(as_table(frame, "users"), "user_id", [2, 7], "users")
    np.testing.assert_array_equal(joined.numeric("day", missing=True), [3.0, np.nan])
    np.testing.assert_array_equal(joined.numeric("age", missing=True), [2.0, np.nan])
    assert joined["n"].tolist() == [2, None]


def test_keys_must_be_there_once_and_of_one_type():
    with pytest.raises(InputError, match="users has user_id 'b' twice, at row 1 and row 3; keep one row for each"):
        check_keys(as_table({"user_id": ["a", "b", "c", "b"]}, "users"), "user_id")
    with pytest.raises(InputError, match="users column 'user_id' mixes str and int ids, first at row 1"):
        check_keys(as_table({"user_id": ["a", 1]}, "users"), "user_id")
