"""Fits by Spark against fits on this machine, and against each other."""

import numpy as np
import pytest

from tests.spark.conftest import frame
from tuckergp import TuckerRecommender
from tuckergp.errors import InputError
from tuckergp.inference import ALS, Gibbs
from tuckergp.likelihoods import Clicks
from tuckergp.spark import fit
from tuckergp.spark.reading import Plan, median
from tuckergp.spark.shards import Summary

# what "auto" means for Spark
HERE = {"implicit": False, "time": None, "objective": "rating"}
SHORT = {"rank": 3, "draws": 3, "warmup": 2, "random_state": 5}


def assert_same(ours, local, tolerance):
    assert ours.history_.ids == local.history_.ids
    for mine, theirs in zip(ours.fit_.draws.modes, local.fit_.draws.modes, strict=True):
        np.testing.assert_allclose(mine.rows["psi"], theirs.rows["psi"], atol=tolerance, rtol=tolerance)
        np.testing.assert_allclose(mine.B, theirs.B, atol=tolerance, rtol=tolerance)
        np.testing.assert_allclose(mine.covariance, theirs.covariance, atol=tolerance, rtol=tolerance)
    for name, values in local.fit_.draws.unknowns.items():
        np.testing.assert_allclose(ours.fit_.draws.unknowns[name], values, rtol=tolerance)


@pytest.fixture(scope="module")
def shuffled(spark, table):
    return frame(spark, table, np.random.default_rng(1).permutation(len(table["rating"]))).cache()


@pytest.fixture(scope="module")
def learned(shuffled):
    return fit(shuffled, partitions=2, **SHORT)


def test_it_is_the_local_fit_after_five_sweeps(learned, table):
    local = TuckerRecommender(**SHORT, **HERE, noise="shared").fit(table)
    assert_same(learned, local, 1e-6)
    np.testing.assert_allclose(learned.predict(table), local.predict(table), atol=1e-6)
    assert learned.rating_range_ == local.rating_range_
    steps = [[info.figures["train_rmse"] for info in model.fit_.steps] for model in (learned, local)]
    np.testing.assert_allclose(*steps, rtol=1e-9)
    lists = [model.recommend(["u003", "u100"], n=4) for model in (learned, local)]
    assert list(lists[0]["item_id"]) == list(lists[1]["item_id"])


def test_f_is_watched_at_single_ratings(learned):
    draws, history = learned.fit_.draws, learned.history_
    user, item = (code[draws.observations] for code in history.codes)
    psi = [mode.rows["psi"] for mode in draws.modes]
    f = np.einsum("nsr,nsr->sn", psi[0][user], psi[1][item])
    np.testing.assert_allclose(draws.traces[0], f, atol=1e-5)


@pytest.mark.parametrize("partitions", [3, *(pytest.param(p, marks=pytest.mark.slow) for p in (1, 8))])
def test_partitions_change_no_bit(shuffled, learned, partitions):
    again = fit(shuffled.repartition(partitions), partitions=partitions, **{**SHORT, "draws": 1})
    for mine, theirs in zip(again.fit_.draws.modes, learned.fit_.draws.modes, strict=True):
        np.testing.assert_array_equal(mine.rows["psi"], theirs.rows["psi"][:, :1])
        np.testing.assert_array_equal(mine.B, theirs.B[:, :1])
    assert again.fit_.draws.unknowns["alpha"][0] == learned.fit_.draws.unknowns["alpha"][0]


def test_attributes_are_regressed_on(spark, shuffled, table):
    rng = np.random.default_rng(2)
    ids = sorted(set(table["user_id"]))
    sex = rng.choice(["f", "m"], len(ids)).tolist()
    users = {"user_id": ids, "age": rng.integers(18, 70, len(ids)).tolist(), "sex": sex}
    items = {"item_id": list(range(40)), "kind": rng.choice(["a", "b", "c"], 40).tolist()}
    ours = fit(shuffled, frame(spark, users), items, **SHORT)
    assert_same(ours, TuckerRecommender(**SHORT, **HERE, noise="shared").fit(table, users, items), 1e-6)


def test_als_is_the_local_estimate(shuffled, table):
    als = ALS(iterations=3, sigma_u=0.5)
    ours = fit(shuffled, rank=3, inference=als, random_state=5)
    local = TuckerRecommender(rank=3, inference=als, random_state=5, **HERE).fit(table)
    assert_same(ours, local, 1e-6)
    np.testing.assert_allclose(ours.fit_.steps[-1].figures["log_joint"], local.fit_.steps[-1].figures["log_joint"])


@pytest.mark.slow
def test_a_name_finds_the_prior_scale_by_the_local_trials(shuffled, table):
    ours = fit(shuffled, rank=2, inference="als", random_state=5)
    local = TuckerRecommender(rank=2, inference="als", random_state=5, **HERE).fit(table)
    np.testing.assert_array_equal(ours.fit_.draws.model.sigma_u, local.fit_.draws.model.sigma_u)


def test_clicks_have_their_background(spark, table):
    rng = np.random.default_rng(3)
    clicks = {"user_id": table["user_id"], "item_id": table["item_id"], "count": rng.integers(1, 9, 1800).tolist()}
    few = {**SHORT, "draws": 1, "warmup": 1, "likelihood": Clicks(0.2, 0.5, "log", 0.5)}
    ours = fit(frame(spark, clicks), **few)
    local = TuckerRecommender(**few, **HERE).fit(clicks)
    assert_same(ours, local, 1e-6)
    assert ours.history_.clicks


def test_users_with_very_many_ratings_are_split(spark, table):
    """One user with a fifth of the ratings, one item that everybody rated."""
    extra = 450
    skewed = {
        "user_id": [*["u000"] * extra, *table["user_id"]],
        "item_id": [*range(100, 100 + extra), *table["item_id"]],
        "rating": [*[1.0, 4.0, 5.0] * (extra // 3), *table["rating"]],
    }
    for user in sorted(set(table["user_id"])):
        skewed["user_id"].append(user)
        skewed["item_id"].append(99)
        skewed["rating"].append(3.0)
    order = np.lexsort((skewed["item_id"], skewed["user_id"]))
    arranged = {name: [values[k] for k in order] for name, values in skewed.items()}
    few = {**SHORT, "draws": 1, "warmup": 1}
    ours = fit(frame(spark, skewed), partitions=2, **few)
    assert_same(ours, TuckerRecommender(**few, **HERE, noise="shared").fit(arranged), 1e-6)
    counts = np.unique(arranged["user_id"], return_counts=True)[1]
    plan = Plan.of(counts, 8)
    user = np.repeat(np.arange(len(counts)), counts)
    sizes = np.bincount(plan.shard_of(user, np.arange(len(user))))
    assert plan.hot.tolist() == [0]
    assert sizes.max() < 1.5 * len(user) / 8


@pytest.mark.slow
def test_single_precision_is_close(shuffled, learned):
    how = Gibbs(draws=3, warmup=2, precision="float32")
    again = fit(shuffled, rank=3, inference=how, random_state=5, keep=1)
    assert len(again.fit_.draws) == 1
    (mine,), (theirs,) = ([model.fit_.draws.modes[0].rows["psi"][:, -1]] for model in (again, learned))
    np.testing.assert_allclose(mine, theirs, atol=1e-3)


def test_a_run_goes_on_from_its_checkpoint_and_no_other(spark, table, shuffled, learned, tmp_path):
    fit(shuffled, checkpoint=tmp_path, **{**SHORT, "draws": 1})
    seen = []
    again = fit(shuffled, checkpoint=tmp_path, callback=lambda info: seen.append(info.step), **{**SHORT, "draws": 2})
    assert seen == [4]
    np.testing.assert_array_equal(again.fit_.draws.modes[1].rows["psi"], learned.fit_.draws.modes[1].rows["psi"][:, :2])
    other = {**table, "rating": [5.0, *table["rating"][1:-1], 0.5]}
    with pytest.raises(InputError, match="of other data or settings"):
        fit(frame(spark, other), checkpoint=tmp_path, **SHORT)


def test_the_model_file_is_read_as_any_other(learned, table, tmp_path):
    import tuckergp

    learned.save(tmp_path / "model.tgp")
    again = tuckergp.load(tmp_path / "model.tgp")
    np.testing.assert_array_equal(again.predict(table), learned.predict(table))


def test_summaries_join():
    rng = np.random.default_rng(1)
    parts = [rng.standard_normal(n) + 1e3 for n in (1, 5, 40)]
    each = [Summary(len(y), y.min(), y.max(), y.mean(), ((y - y.mean()) ** 2).sum()) for y in parts]
    joined, whole = each[0].joined(each[1]).joined(each[2]), np.concatenate(parts)
    np.testing.assert_allclose([joined.mean, joined.std], [whole.mean(), whole.std()], rtol=1e-12)
    assert joined[:3] == (46, whole.min(), whole.max())


def test_the_median_of_counted_numbers():
    rng = np.random.default_rng(0)
    for n in (1, 2, 9, 10):
        numbers = rng.integers(0, 4, n).astype(float)
        assert median(*np.unique(numbers, return_counts=True)) == np.median(numbers)


@pytest.mark.slow
def test_movielens_has_the_local_error(spark, movielens):
    """The same draws have the same error on real ratings, those of u1."""
    train, test = movielens.split(1)
    table = {name: np.asarray(train[name]) for name in ("user_id", "item_id", "rating")}
    order = np.lexsort((table["item_id"], table["user_id"]))
    table = {name: values[order].tolist() for name, values in table.items()}
    settings = {"rank": 8, "draws": 20, "warmup": 10, "random_state": 0}
    models = fit(frame(spark, table), **settings), TuckerRecommender(**settings, **HERE, noise="shared").fit(table)
    errors = [np.sqrt(np.mean((model.predict(test) - test.numeric("rating")) ** 2)) for model in models]
    assert errors[0] == pytest.approx(errors[1], abs=1e-5)
    assert errors[0] < 0.94
