"""Sessions, plans and sums of users without Spark."""

import socket
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.spark.conftest import why_not
from tests.spark.pieces import counted_of, rows_of
from tuckergp.errors import InputError
from tuckergp.spark.collecting import collected_ratings
from tuckergp.spark.encoding import USER, Plan, _larger, gathered
from tuckergp.spark.reading import _places
from tuckergp.spark.sessions import _check_java, _check_master, java, require_pyspark
from tuckergp.spark.shards import Summary
from tuckergp.spark.summed import Basis

ROOT = Path(__file__).parents[2]
needs_pyspark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@needs_pyspark
def test_no_java_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(InputError, match="needs Java 17 or 21"):
        java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match="needs Java 17 or 21"):
        java()


@needs_pyspark
def test_without_pandas_it_says_what_to_install(monkeypatch):
    """PySpark asks for pandas where it takes functions of Arrow, and does not bring it unless it is asked to."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"Spark needs pyspark, pandas and pyarrow: .*Install tuckergp\[spark\]"):
        require_pyspark()


def test_the_extras_bring_what_pyspark_needs_for_functions_of_arrow():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name in ("spark", "test"):
        assert [each for each in extras[name] if "pyspark" in each] == ["pyspark[sql]>=4,<5"]


def test_an_old_java_is_one_sentence(tmp_path):
    old = tmp_path / "java"
    for version, number in (("1.8.0_392", 8), ("11.0.2", 11)):
        old.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        old.chmod(0o755)
        with pytest.raises(InputError, match=f"is Java {number}; set JAVA_HOME"):
            _check_java(str(old))
    old.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    _check_java(str(old))


def test_a_master_that_nobody_answers_at_is_one_sentence():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(
            InputError, match=f"There is no Spark at the master spark://127.0.0.1:{port}: nobody answers"
        ):
            _check_master(f"spark://127.0.0.1:{port}")
        free.listen()
        _check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")
    with pytest.raises(InputError, match="'nowhere' is no master of Spark"):
        _check_master("nowhere")
    for fine in (None, "local", "local[2]", "local-cluster[2,1,1024]", "yarn", "k8s://https://host"):
        _check_master(fine)


@pytest.mark.parametrize("place", ["host:x", "host", ":7077", "host:", "host:70777", "host:0", "host:-1", "a:7077,b"])
def test_a_master_without_a_port_is_no_address(place):
    wrong = place.split(",")[-1]
    with pytest.raises(InputError, match=f"'{wrong}' of the master spark://{place} is no address; write a host and"):
        _check_master(f"spark://{place}")


def skewed(rng, name):
    """Ratings of 30 users with ids like these, sorted by user: some with more than a shard, one of one item alone."""
    user = np.repeat(np.arange(30), np.where(np.arange(30) % 11 == 3, 120, 10))
    item, rating = rng.integers(40, size=len(user)), rng.integers(10, size=len(user)) / 2.0
    item[user == 3] = 7
    return {"user_id": [name(k) for k in user], "item_id": item.tolist(), "rating": rating.tolist()}, user


@pytest.mark.parametrize("name", [lambda k: 5 * int(k) - 20, lambda k: f"é{k:02d}"], ids=["numbers", "texts"])
def test_ratings_come_back_sorted_whatever_shards_they_were_in(name):
    rng = np.random.default_rng(0)
    table, user = skewed(rng, name)
    per_user, ids = np.bincount(user), [name(k) for k in range(30)]
    plan = Plan.of(counted_of(ids, per_user, 3), 8)
    assert plan.hot.tolist() == [3, 14, 25]
    rows = rows_of(table, plan, rng.permutation(len(user)))
    shards = list(gathered(reversed(rows), range(plan.n_shards), plan, np.ones(1)))
    assert max(len(shard.user) for shard in shards) < 2 * len(user) / 8
    assert sum(shard.piece and shard.first == 3 and len(shard.user) > 0 for shard in shards) > 1
    assert [each for shard in shards if not shard.piece for each in shard.ids.to_pylist()] == ids
    rdd = SimpleNamespace(map=lambda f: SimpleNamespace(toLocalIterator=lambda: map(f, shards)))
    found = collected_ratings(SimpleNamespace(plan=plan, all=rdd), per_user)
    number = {item: k for k, item in enumerate(dict.fromkeys(table["item_id"]))}
    item, rating = np.array([number[value] for value in table["item_id"]]), np.array(table["rating"])
    order = np.lexsort((rating, item, user))
    for mine, theirs in zip(found, (user, item, rating), strict=True):
        np.testing.assert_array_equal(mine, theirs[order])


@pytest.mark.parametrize("share", [0.2, 0.5])
@pytest.mark.parametrize("partitions", [2, 3, 4, 8])
def test_no_task_dominates_however_many_ratings_a_user_has(share, partitions):
    """Ratings of each task, where one user has a fifth or half of all, and everybody has rated item 0."""
    rng, others = np.random.default_rng(1), 900
    most = int(share / (1 - share) * others * 21.5)
    per_user = np.insert(rng.integers(4, 40, others), 400, most)
    user = np.repeat(np.arange(others + 1), per_user)
    item = rng.integers(1, 5_000, len(user))
    item[np.cumsum(per_user) - 1] = 0
    table = {
        "user_id": user.tolist(),
        "item_id": item.tolist(),
        "rating": (rng.integers(1, 11, len(user)) / 2).tolist(),
    }
    plan = Plan.of(counted_of(list(range(others + 1)), per_user), 16)
    places = _places(plan, partitions)
    shards = gathered(rows_of(table, plan), range(plan.n_shards), plan, np.ones(1))
    sizes = np.bincount(places, [len(shard.user) for shard in shards])
    assert sizes.sum() == len(user) == pytest.approx(most / share, rel=0.05)
    assert plan.hot.tolist() == [400]
    assert sizes.max() <= 1.3 * len(user) / partitions
    hot = sizes[places[plan.n_usual] :]
    assert len(hot) == min(partitions, plan.pieces[-1])
    pieces = plan.pieces[-1]
    assert hot.max() <= 1.3 * most * np.ceil(pieces / len(hot)) / pieces


def test_users_that_were_not_counted_leave_a_shard_without_ratings():
    table, user = skewed(np.random.default_rng(0), int)
    plan = Plan.of(counted_of(list(range(30)), np.bincount(user)), 8)
    other = {**table, "user_id": [value + 100 for value in table["user_id"]]}
    shards = gathered(rows_of(other, plan), range(plan.n_shards), plan, np.ones(1))
    assert sum(len(shard.user) for shard in shards) == 0


def test_shards_are_the_same_for_any_parts_of_the_users():
    """Ranges of users with about the same costs, by the sums over all of them."""
    rng = np.random.default_rng(0)
    per_user = np.where(rng.random(500) < 0.01, 9_000, rng.integers(1, 60, 500))
    ids, shards = np.arange(500) * 3, 16
    share = per_user.sum() / shards
    costs = np.concatenate([[0], np.cumsum(np.where(per_user > share, 0, per_user) + USER)])
    ends = np.searchsorted(costs, np.linspace(0, costs[-1], shards + 1))
    for parts in (1, 3, 8, 700):
        plan = Plan.of(counted_of(ids, per_user, parts), shards)
        assert plan.bounds.tolist() == ends.tolist()
        assert plan.last.tolist() == ids[ends[1:] - 1].tolist()
        assert plan.hot.tolist() == np.flatnonzero(per_user > share).tolist()
        assert plan.hot_ids == ids[per_user > share].tolist()
        assert np.diff(plan.pieces).tolist() == np.ceil(9_000 / share * np.ones(len(plan.hot))).tolist()


def test_ids_are_hashed_once_for_many_batches():
    import pyarrow as pa

    batch = pa.RecordBatch.from_pydict({"x": list(range(10_000))})
    sizes = [len(table) for table in _larger(batch for _ in range(250))]
    assert sizes == [1_000_000, 1_000_000, 500_000]


@pytest.mark.parametrize("same", [False, True])
def test_few_rows_have_the_sums_of_products_of_all(same):
    rng = np.random.default_rng(1)
    features, psi = rng.standard_normal((200, 5)), rng.standard_normal((200, 3))
    if same:  # a column that others say already
        features[:, 4] = features[:, 0] - features[:, 1]
    basis = Basis.of(features.T @ features)
    few = basis.rows(features.T @ psi, psi.T @ psi)
    mine = np.vstack([basis.features, np.zeros((3, 5))])
    assert len(few) == len(mine) == (7 if same else 8)
    np.testing.assert_allclose(mine.T @ mine, features.T @ features, atol=1e-10)
    np.testing.assert_allclose(mine.T @ few, features.T @ psi, atol=1e-10)
    np.testing.assert_allclose(few.T @ few, psi.T @ psi, atol=1e-10)


def test_summaries_join():
    rng = np.random.default_rng(1)
    parts = [rng.standard_normal(n) + 1e3 for n in (1, 5, 40)]
    each = [Summary(len(y), y.min(), y.max(), y.mean(), ((y - y.mean()) ** 2).sum()) for y in parts]
    joined, whole = each[0].joined(each[1]).joined(each[2]), np.concatenate(parts)
    np.testing.assert_allclose([joined.mean, joined.std], [whole.mean(), whole.std()], rtol=1e-12)
    assert joined[:3] == (46, whole.min(), whole.max())
