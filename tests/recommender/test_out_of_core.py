"""Fits to Parquet files in scratch files against fits to the same ratings in memory."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.cli.command import succeed
from tuckergp import TuckerRecommender, load, scratch
from tuckergp.errors import InputError
from tuckergp.inference import ALS, Gibbs

HERE = {"implicit": False, "time": None, "objective": "rating"}
SMALL = {"user_id": ["b", "a", "b", "c"] * 5, "item_id": [3, 1, 2, 1] * 5, "rating": [4.0, 3.5, 1.0, 2.0] * 5}


@pytest.fixture
def small(tmp_path):
    parquet.write_table(pa.table(SMALL), tmp_path / "small.parquet")
    return tmp_path / "small.parquet"


def assert_same(ours, local):
    assert ours.history_.ids == local.history_.ids
    for mine, theirs in zip(ours.fit_.draws.modes, local.fit_.draws.modes, strict=True):
        np.testing.assert_array_equal(mine.rows["psi"], theirs.rows["psi"])
    np.testing.assert_array_equal(ours.fit_.draws.traces, local.fit_.draws.traces)
    assert ours.rating_range_ == local.rating_range_


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_scratch_files_change_no_bit(movielens, tmp_path, monkeypatch, precision):
    """Real ratings, in several batches, with noise factors of rows; nothing of their length is in memory."""
    names = ("user_id", "item_id", "rating")
    table = {name: np.asarray(movielens.ratings[name]).tolist() for name in names}
    parquet.write_table(pa.table(table), tmp_path / "ratings.parquet", row_group_size=30_000)
    how = {"rank": 3, "inference": Gibbs(draws=2, warmup=1, noise="rows", precision=precision), "random_state": 0}
    local = TuckerRecommender(**how, **HERE).fit(table)
    made, monkeyed = [], scratch.empty

    def watched(shape, dtype=np.float64):
        made.append(monkeyed(shape, dtype))
        return made[-1]

    monkeypatch.setattr("tuckergp.statistics.evidence.empty", watched)
    monkeypatch.setattr("tuckergp.data.filed_history.empty", watched)
    monkeypatch.setattr("tuckergp.data.filed_history.ROWS", 17_000)
    monkeypatch.setattr("tuckergp.recommender.out_of_core.ROWS", 17_000)
    monkeypatch.setattr("tuckergp.scratch.CHUNK", 30_000)
    ours = TuckerRecommender(**how).fit(tmp_path / "ratings.parquet", scratch=tmp_path)
    assert_same(ours, local)
    users = local.history_.ids[0][:3]
    assert ours.recommend(users, n=3)["item_id"].tolist() == local.recommend(users, n=3)["item_id"].tolist()
    mine, theirs = ours.history_.sorted(), local.history_.sorted()
    for name in ("starts", "item", "value", "place"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
    np.testing.assert_array_equal(ours.history_.ratings_per_item, local.history_.ratings_per_item)
    np.testing.assert_array_equal(
        ours.history_.of_users(np.array([5, 2])).rating, theirs.of_users(np.array([5, 2])).rating
    )
    assert len(made) >= 7
    for array in made:
        while isinstance(array.base, np.ndarray):
            array = array.base
        assert isinstance(array, np.memmap)
    assert [path.name for path in tmp_path.iterdir()] == ["ratings.parquet"]


def test_the_command_line_learns_in_scratch_files(small, tmp_path):
    model = tmp_path / "model.tgp"
    options = ["--rank", "2", "--draws", "2", "--warmup", "1", "--seed", "3", "--quiet", "--out-of-core", tmp_path]
    succeed("fit", small, "-o", model, *options)
    local = TuckerRecommender(rank=2, draws=2, warmup=1, random_state=3, **HERE).fit(SMALL)
    np.testing.assert_array_equal(load(model).predict(SMALL), local.predict(SMALL))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"implicit": True}, "implicit=True needs the ratings in memory"),
        ({"time": "week"}, "time='week' needs the ratings in memory"),
        ({"likelihood": "ordinal"}, "likelihood='ordinal' needs the ratings in memory"),
        ({"context": "device"}, "context=.* needs the ratings in memory"),
        ({"inference": "als"}, "an? .*ALS with a sigma_u"),
        ({"rating_scale": (2, 5)}, "no numbers from 2 to 5"),
        ({"columns": {"rating": "stars"}}, "no column 'stars'"),
    ],
)
def test_what_needs_memory_is_refused(small, settings, words):
    with pytest.raises(InputError, match=words):
        TuckerRecommender(rank=2, **settings).fit(small, scratch=small.parent)


def test_what_cannot_be_read_in_pieces_is_refused(small, tmp_path):
    model = TuckerRecommender(rank=2, inference=ALS(iterations=1))
    model.fit(small, scratch=tmp_path)
    (tmp_path / "ratings.csv").write_text("user_id,item_id,rating\n")
    for source, words in (
        (SMALL, "for the path of a Parquet file, not for a dict"),
        (tmp_path / "ratings.csv", "is no Parquet file"),
        (tmp_path / "none.parquet", "There is no file"),
    ):
        with pytest.raises(InputError, match=words):
            model.fit(source, scratch=tmp_path)
    with pytest.raises(InputError, match="There is no folder"):
        model.fit(small, scratch=tmp_path / "nowhere")
    parquet.write_table(pa.table({**SMALL, "rating": [None, *SMALL["rating"][1:]]}), small)
    with pytest.raises(InputError, match="'rating' has rows without a value"):
        model.fit(small, scratch=tmp_path)
