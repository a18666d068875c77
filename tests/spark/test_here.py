"""What a fit by Spark learns, with the shards of its workers in this process: no Java is needed."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from tests.spark.pieces import counted_of, rows_of
from tuckergp import TuckerRecommender
from tuckergp.data.history import History
from tuckergp.data.tables import Table, as_table
from tuckergp.errors import InputError
from tuckergp.inference import ALS, Gibbs
from tuckergp.likelihoods import Clicks
from tuckergp.random import stream
from tuckergp.recommender.layout import Layout
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.running.control import Control
from tuckergp.spark import collecting
from tuckergp.spark.collecting import collected_draws
from tuckergp.spark.encoding import Plan, gathered
from tuckergp.spark.fitting import _learn, _settings
from tuckergp.spark.reading import Sharded, SparkRatings
from tuckergp.spark.shards import Features, sweep
from tuckergp.spark.sums import nodes

# Users with several shards, more than rows that stand for all users.
HOT = [3, 7, 11, 20, 21, 30, 31, 38]
AUTO = {"implicit": False, "time": None, "objective": "rating"}
SHORT = {"rank": 3, "draws": 3, "warmup": 2, "random_state": 5}


class Here:
    """A Spark context whose partitions are this process: one of whole users, one of pieces of hot users."""

    def broadcast(self, value):
        return SimpleNamespace(value=value, destroy=lambda: None)

    def runJob(self, shards, task, partitions):
        return list(task(shard for shard in shards if partitions is None or shard.piece))

    def getConf(self):
        return {}


class Shards(list):
    def getNumPartitions(self):
        return 1

    def mapPartitions(self, task, keep):
        return SimpleNamespace(toLocalIterator=lambda: task(iter(self)))


def learned_here(table, settings, seed=5, users=None, shards=4, stored=True, checkpoint=None, callback=None):
    """Draws of users and of items, and what is learned beside them; a callback is also given the shards."""
    ids, user = np.unique(table["user_id"], return_inverse=True)
    ids = ids.tolist()
    first = list(dict.fromkeys(table["item_id"]))
    item = np.array([first.index(value) for value in table["item_id"]])
    none = np.zeros(0, dtype=np.int32)
    history = History((ids, first), (none, none), np.zeros(0), Table({}, "ratings", 0))
    attributes = None if users is None else as_table(users, "users")
    _, design = Layout.fit(history, (attributes, None), rng=stream(seed, 1, 1))
    counted = counted_of(ids, np.bincount(user))
    plan = Plan.of(counted, shards)
    rows = design.modes[0].features
    features = Features(len(ids), rows[:1] if users is None else rows)
    parts = rows_of(table, plan)
    if users is not None:
        parts += [(number, features.between(*plan.users(number))) for number in range(plan.n_usual)]
    made = Shards(gathered(parts, range(plan.n_shards), plan, features.alike))
    sharded = Sharded(Here(), made, range(1), plan, None, len(nodes(range(plan.n_shards))))
    asked = RecommenderSettings.of(TuckerRecommender(**_settings(settings))).decided(True)
    data = SparkRatings(None, counted, pa.array(first), np.bincount(item), float(np.median(table["rating"])), {})
    seen = None if callback is None else lambda info: callback(info, made)
    control = Control(checkpoint, 0.0, None, seen, False, None)
    how = asked.inference if not isinstance(asked.inference, str) else Gibbs(draws=asked.draws, warmup=asked.warmup)
    return _learn(asked, how, data, design, features, sharded, seed, control, stored)


def factors_of(learned):
    return np.asarray(collected_draws(learned.workers, learned.fit.draws, learned.number).modes[0].rows["psi"])


def assert_as_locally(learned, local, tolerance=1e-6):
    """Rows, covariances, and what is learned beside them."""
    mine, theirs = learned.fit.draws, local.fit_.draws
    np.testing.assert_allclose(factors_of(learned), theirs.modes[0].rows["psi"], atol=tolerance)
    np.testing.assert_allclose(mine.modes[1].rows["psi"], theirs.modes[1].rows["psi"], atol=tolerance)
    for d in range(2):
        np.testing.assert_allclose(mine.modes[d].covariance, theirs.modes[d].covariance, rtol=tolerance)
        np.testing.assert_allclose(mine.modes[d].B, theirs.modes[d].B, atol=tolerance)
    for name, values in theirs.unknowns.items():
        np.testing.assert_allclose(mine.unknowns[name], values, rtol=tolerance)
    for ours, other in zip(learned.fit.steps, local.fit_.steps, strict=True):
        for name in set(ours.figures) & set(other.figures):
            np.testing.assert_allclose(ours.figures[name], other.figures[name], rtol=1e-6)


def clicks_of_hot_users():
    """Some users with all 30 items, and so with several shards each; the others with four."""
    rng = np.random.default_rng(4)
    chosen = [np.arange(30) if u in HOT else np.sort(rng.choice(30, 4, replace=False)) for u in range(40)]
    user = np.repeat(np.arange(40), [len(each) for each in chosen])
    counts = rng.integers(1, 9, len(user)).astype(float)
    return {"user_id": user.tolist(), "item_id": np.concatenate(chosen).tolist(), "rating": counts.tolist()}


def counted(clicks):
    return {"user_id": clicks["user_id"], "item_id": clicks["item_id"], "count": clicks["rating"]}


def exchanged(values):
    """The values with the first one and the next that differs exchanged."""
    other = next(k for k, value in enumerate(values) if value != values[0])
    return [values[other], *values[1:other], values[0], *values[other + 1 :]]


def test_sizes_of_components_are_learned_as_by_the_local_fit(table):
    """Sums over users say what Lambda of all modes needs."""
    settings = {"rank": 3, "inference": Gibbs(draws=3, warmup=2, shrinkage=True), "random_state": 5}
    local = TuckerRecommender(**settings, **AUTO).fit(table)
    assert_as_locally(learned_here(table, settings), local)
    assert all(np.ptp(mode.covariance[0].diagonal()) > 0.01 for mode in local.fit_.draws.modes)


def test_ratings_that_are_all_equal_are_learned_as_by_the_local_fit(table):
    same = {**table, "rating": [0.1] * len(table["rating"])}
    assert_as_locally(learned_here(same, SHORT), TuckerRecommender(**SHORT, **AUTO, noise="shared").fit(same))


@pytest.mark.parametrize("inference", [Gibbs(draws=3, warmup=2), ALS(iterations=3)], ids=["gibbs", "als"])
def test_clicks_of_users_in_several_shards_have_their_background_once(inference):
    clicks = clicks_of_hot_users()
    settings = {"rank": 3, "inference": inference, "likelihood": Clicks(0.2, 0.5, "log", 0.5, 0), "random_state": 5}
    learned = learned_here(clicks, settings, shards=16)
    assert learned.workers.sharded.plan.hot.tolist() == HOT
    assert_as_locally(learned, TuckerRecommender(**settings, **AUTO).fit(counted(clicks)))


@pytest.mark.parametrize(
    "inference", [Gibbs(draws=3, warmup=2), ALS(iterations=3, sigma_u="auto")], ids=["gibbs", "als"]
)
def test_what_is_left_open_of_clicks_is_decided_as_by_the_local_fit(inference):
    """By a trial on held-out clicks, the same ones: those of a table sorted by the ids of users and items."""
    clicks = clicks_of_hot_users()
    clicks = {name: [values[k] for k in range(len(values)) if k % 3] for name, values in clicks.items()}
    settings = {"rank": 3, "inference": inference, "likelihood": "clicks", "random_state": 5}
    learned = learned_here(clicks, settings)
    local = TuckerRecommender(**{**settings, "likelihood": Clicks(activity=0)}, **AUTO).fit(counted(clicks))
    assert_as_locally(learned, local)
    mine, theirs = learned.fit.draws.model, local.fit_.draws.model
    assert mine.sigma_u.tolist() == theirs.sigma_u.tolist()
    assert replace(mine.likelihood, intercept=0.0) == replace(theirs.likelihood, intercept=0.0)


def test_a_scale_that_is_left_open_is_decided_as_by_the_local_fit(table):
    settings = {"rank": 2, "inference": ALS(iterations=4, noise=1.0, sigma_u="auto"), "random_state": 5}
    learned = learned_here(table, settings)
    local = TuckerRecommender(**settings, **AUTO).fit(table)
    assert learned.fit.draws.model.sigma_u.tolist() == local.fit_.draws.model.sigma_u.tolist()
    assert_as_locally(learned, local)


def test_clicks_without_counts_are_not_counted():
    clicks = clicks_of_hot_users()
    clicks["rating"] = [1.0] * len(clicks["rating"])
    settings = {**SHORT, "likelihood": Clicks(0.2, 0.5, activity=0)}
    learned = learned_here(clicks, settings)
    local = TuckerRecommender(**settings, **AUTO).fit({name: clicks[name] for name in ("user_id", "item_id")})
    assert learned.fit.draws.model.likelihood.counting == local.fit_.draws.model.likelihood.counting == "none"


def test_draws_that_come_in_several_steps_are_the_same(table, monkeypatch):
    learned = learned_here(table, SHORT)
    psi = factors_of(learned)
    monkeypatch.setattr(collecting, "PIECE", 1)
    np.testing.assert_array_equal(factors_of(learned), psi)


def test_a_checkpoint_of_other_ratings_or_other_users_is_refused(table, tmp_path):
    """Exchanged values leave all sums of features and of ratings as they are."""
    ids = sorted(set(table["user_id"]))
    users = {"user_id": ids, "sex": np.random.default_rng(0).choice(["f", "m"], len(ids)).tolist()}
    few = {**SHORT, "draws": 1, "warmup": 0}
    learned_here(table, few, users=users, checkpoint=tmp_path / "run")
    with pytest.raises(InputError, match="of other data or settings"):
        learned_here(table, few, users={**users, "sex": exchanged(users["sex"])}, checkpoint=tmp_path / "run")
    with pytest.raises(InputError, match="of other data or settings"):
        learned_here({**table, "rating": exchanged(table["rating"])}, few, users=users, checkpoint=tmp_path / "run")
    learned_here(table, {**few, "draws": 2}, users=users, checkpoint=tmp_path / "run")


def test_ratings_that_change_between_sweeps_are_noticed(table):
    def change(info, shards):
        if info.step == 2:
            shards[1] = replace(shards[1], fingerprint="of others")

    with pytest.raises(InputError, match="ratings changed while they were learned from"):
        learned_here(table, SHORT, callback=change)


def test_sums_end_before_a_shard_of_other_ratings(table):
    learned = learned_here(table, {**SHORT, "draws": 1})
    workers = learned.workers
    (request,) = collecting.requests_of(workers, learned.fit.draws, learned.number)
    shards = [replace(workers.sharded.all[0], fingerprint="of others"), *workers.sharded.all[1:]]
    assert list(sweep(iter(shards), request)) == []


def test_weights_of_users_by_their_activity_are_refused():
    with pytest.raises(InputError, match=r"Clicks\(activity=...\) is for TuckerRecommender without Spark"):
        learned_here(clicks_of_hot_users(), {**SHORT, "likelihood": Clicks(0.2, 0.5, activity=0.25)})


def test_ratings_beyond_the_scale_are_refused(table):
    with pytest.raises(InputError, match=r"The ratings go from 0\.5 to 5, outside the scale from 1 to 5"):
        learned_here(table, {**SHORT, "rating_scale": (1, 5)})
    with pytest.raises(InputError, match="outside the scale from 0 to 4"):
        learned_here(table, {**SHORT, "rating_scale": (0, 4)})


@pytest.mark.parametrize(("stored", "advice"), [(True, r"\(keep=\)\.$"), (False, "with store=folder")])
def test_more_than_the_memory_of_the_driver_is_refused(table, monkeypatch, stored, advice):
    monkeypatch.setattr(collecting, "physical_memory", lambda: 1_000)
    with pytest.raises(InputError, match=f"The driver would need .* GB of memory and has 1e-06; .*{advice}"):
        learned_here(table, SHORT, stored=stored, callback=lambda info, shards: pytest.fail("a sweep"))
