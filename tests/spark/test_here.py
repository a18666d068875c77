"""What a fit by Spark learns, with the shards of its workers in this process: no Java is needed."""

from types import SimpleNamespace

import numpy as np

from tests.spark.pieces import counted_of, rows_of
from tuckergp import TuckerRecommender
from tuckergp.data.history import History
from tuckergp.data.tables import Table
from tuckergp.inference import Gibbs
from tuckergp.random import stream
from tuckergp.recommender.layout import Layout
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.running.control import Control
from tuckergp.spark.collecting import requests_of
from tuckergp.spark.encoding import Plan, gathered
from tuckergp.spark.fitting import _learn, _settings
from tuckergp.spark.reading import Sharded, SparkRatings
from tuckergp.spark.shards import Features, factors


class Here:
    """A Spark context whose only partition is this process."""

    def broadcast(self, value):
        return SimpleNamespace(value=value, destroy=lambda: None)

    def runJob(self, shards, task, partitions):
        return list(task(iter(shards)))

    def getConf(self):
        return {}


class Shards(list):
    def getNumPartitions(self):
        return 1


def learned_here(table, settings, seed):
    """Draws of users and of items, and what is learned beside them."""
    users, user = np.unique(table["user_id"], return_inverse=True)
    first = list(dict.fromkeys(table["item_id"]))
    item = np.array([first.index(value) for value in table["item_id"]])
    none = np.zeros(0, dtype=np.int32)
    history = History((users.tolist(), first), (none, none), np.zeros(0), Table({}, "ratings", 0))
    _, design = Layout.fit(history, (None, None), rng=stream(seed, 1, 1))
    counted = counted_of(users.tolist(), np.bincount(user))
    plan = Plan.of(counted, 4)
    features = Features(len(users), design.modes[0].features[:1])
    shards = Shards(gathered(rows_of(table, plan), range(plan.n_shards), plan, features.alike))
    sharded = Sharded(Here(), shards, range(0), plan, None)
    asked = RecommenderSettings.of(TuckerRecommender(**_settings(settings))).decided(True)
    data = SparkRatings(None, counted, first, np.bincount(item), 1.0, {})
    control = Control(None, 5.0, None, None, False, None)
    learned = _learn(asked, asked.inference, data, design, features, sharded, seed, control, True)
    requests = requests_of(learned.workers, learned.fit.draws, learned.number)
    psi = np.concatenate([rows for _, rows in factors(shards, requests, "f4")])
    return psi, learned.fit.draws


def test_sizes_of_components_are_learned_as_by_the_local_fit(table):
    """Sums over users say what Lambda of all modes needs."""
    how = Gibbs(draws=3, warmup=2, shrinkage=True)
    psi, draws = learned_here(table, {"rank": 3, "inference": how, "random_state": 5}, 5)
    auto = {"implicit": False, "time": None, "objective": "rating"}
    local = TuckerRecommender(rank=3, inference=how, random_state=5, **auto).fit(table).fit_.draws
    np.testing.assert_allclose(psi, local.modes[0].rows["psi"], atol=1e-6)
    np.testing.assert_allclose(draws.modes[1].rows["psi"], local.modes[1].rows["psi"], atol=1e-6)
    for mine, theirs in zip(draws.modes, local.modes, strict=True):
        np.testing.assert_allclose(mine.covariance, theirs.covariance, rtol=1e-6)
        assert np.ptp(theirs.covariance[0].diagonal()) > 0.01
    np.testing.assert_allclose(draws.unknowns["alpha"], local.unknowns["alpha"], rtol=1e-6)
