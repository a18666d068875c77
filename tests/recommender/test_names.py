"""Tables with the names that people have."""

import pandas as pd
import pytest
from scipy import sparse
from tuckergp.describe import describe

import tuckergp
from tuckergp import TuckerRecommender
from tuckergp.errors import InputError

FAST = {"rank": 1, "inference": "als"}
LENS = (
    "userId,movieId,rating,timestamp\n1,10,4.0,964982703\n1,20,3.5,964981247\n2,10,1.0,964982224\n2,30,5.0,964983815\n"
)


@pytest.fixture
def lens(tmp_path):
    (tmp_path / "ratings.csv").write_text(LENS)
    (tmp_path / "movies.csv").write_text("movieId,title,genres\n10,Heat,Crime|Drama\n20,Big,Comedy\n30,Up,Comedy\n")
    return tmp_path


def test_movielens_own_files_work(lens):
    model = TuckerRecommender(**FAST).fit(lens / "ratings.csv", items=lens / "movies.csv")
    assert model.columns_ == {"user_id": "userId", "item_id": "movieId"}
    assert list(model.recommend(1, n=1).columns)[:2] == ["userId", "movieId"]
    model.save(lens / "m.tgp")
    again = tuckergp.load(lens / "m.tgp")
    assert list(again.recommend(1, n=1).columns)[:2] == ["userId", "movieId"]
    pairs = {"user": [1], "item_id": [30]}
    assert again.predict(pairs, on_unknown="raise") == model.predict({"userId": [1], "movieId": [30]})
    again.fold_in({"userId": [3], "movieId": [10], "rating": [2.0]})
    assert again.history_.flat.ids[0] == [1, 2, 3]


def test_describe_says_which_columns_were_taken(lens):
    report = describe(lens / "ratings.csv", items=lens / "movies.csv")
    assert "  columns           userId as user_id, movieId as item_id" in str(report)
    assert report.to_dict()["columns"] == {"user_id": "userId", "item_id": "movieId"}
    assert not report.refused


@pytest.mark.parametrize("column", ["plays", "count", "weight", "Play_Count"])
def test_counts_are_no_ratings(column):
    table = {"user": [1, 1, 2, 2], "track": [1, 2, 1, 3], column: [10, 200, 3, 4]}
    with pytest.raises(
        InputError, match=f"ratings has no column 'rating', and '{column}' holds counts, which are no ra"
    ):
        TuckerRecommender(**FAST, likelihood="gaussian").fit(table)
    assert TuckerRecommender(**FAST).fit(table).history_.clicks
    model = TuckerRecommender(rank=1, likelihood="negative_binomial", draws=2, warmup=2, random_state=0).fit(table)
    assert model.history_.rating.tolist() == [10, 200, 3, 4]
    assert TuckerRecommender(**FAST).fit({**table, "rating": [1, 2, 3, 4]}).history_.rating.tolist() == [1, 2, 3, 4]


def test_a_missing_column_is_answered_with_all_columns_and_what_to_write():
    table = {"kunde": [1], "ware": [2], "rating": [3.0], "timestamp": [5]}
    message = (
        r"ratings has no column 'user_id'; its columns are kunde, ware, rating, timestamp\. "
        r"Say which it is: columns=\{'user_id': 'kunde'\}, or --user-column kunde\."
    )
    with pytest.raises(InputError, match=message):
        TuckerRecommender(**FAST).fit(table)
    with pytest.raises(InputError, match=message):
        describe(table)


def test_a_context_is_no_timestamp():
    table = {"user": [1, 1, 2, 2] * 3, "item": [1, 2, 1, 3] * 3, "stars": [1.0, 2, 3, 5] * 3, "date": ["a", "b"] * 6}
    model = TuckerRecommender(rank=1, draws=2, warmup=2, context="date", random_state=0).fit(table)
    assert "timestamp" not in model.columns_
    assert model.columns_["rating"] == "stars"


def test_a_column_that_is_named_must_exist_though_the_usual_one_does():
    table = {"user_id": [1, 1, 2], "item_id": [1, 2, 1], "rating": [1.0, 2.0, 3.0]}
    for usual in ("user_id", "rating", "timestamp"):
        with pytest.raises(InputError, match=f"ratings has no column 'nope'.*columns=.'{usual}': 'NAME'"):
            TuckerRecommender(**FAST, columns={usual: "nope"}).fit(table)


def test_answers_have_the_usual_names_where_tables_have_none(tmp_path):
    rows = [(1, 10, 4.0), (1, 20, 3.5), (2, 10, 1.0), (2, 30, 5.0)]
    for ratings in (rows, pd.DataFrame(rows)):
        model = TuckerRecommender(**FAST).fit(ratings)
        assert list(model.recommend(1, n=1).columns)[:2] == ["user_id", "item_id"]
        pairs = {"user_id": [1], "item_id": [30]}
        assert model.predict([(1, 30)]) == model.predict(pd.DataFrame([[1, 30]])) == model.predict(pairs)
    model.save(tmp_path / "m.tgp")
    assert list(tuckergp.load(tmp_path / "m.tgp").similar_items(10).columns)[:1] == ["item_id"]


def test_items_may_have_an_id_and_ratings_an_index():
    ratings = pd.DataFrame([(1, 10, 4.0), (1, 20, 3.5), (2, 10, 1.0)], columns=["user_id", "item_id", "rating"])
    items = pd.DataFrame({"id": [10, 20], "title": ["Heat", "Big"]})
    model = TuckerRecommender(**FAST).fit(ratings.set_index(["user_id", "item_id"]), items=items)
    assert model.recommend(2, n=1, titles="title")["title"].tolist() == ["Big"]


def test_two_columns_of_one_name_and_ids_of_a_matrix_given_twice_are_refused():
    twice = pd.DataFrame([[1, 2, 3.0, 4.0]], columns=["user_id", "item_id", "rating", "rating"])
    with pytest.raises(InputError, match=r"ratings has two columns called 'rating'; rename one\."):
        TuckerRecommender(**FAST).fit(twice)
    with pytest.raises(InputError, match="users has the id 'b' twice; give each row and column one of its own"):
        tuckergp.from_matrix(sparse.csr_array([[1, 2], [3, 4]]), users=["b", "b"])
