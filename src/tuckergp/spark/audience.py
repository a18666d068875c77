"""The best users of items, as a Spark job: a list for each item as `tuckergp.spark.recommend` has one for each user.

A worker goes through its users in small batches and keeps the best so far of every item.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tuckergp.checks import check, whole
from tuckergp.data.ids import Ids
from tuckergp.data.names import KEYS
from tuckergp.recommender import TuckerRecommender
from tuckergp.spark.answering import fitted_of, ids_in, listed, small
from tuckergp.spark.reading import kind_of
from tuckergp.spark.sessions import session
from tuckergp.spark.stored import StoredRecommender

__all__ = ["best_users"]

# Predictions that a worker makes at a time, about.
CELLS = 4_000_000


def best_users(model: TuckerRecommender | StoredRecommender, n: int = 10, items: Any = None) -> Any:
    """The users with ratings who like each item best, those included who have rated it.

    Parameters
    ----------
    model : TuckerRecommender or StoredRecommender
    n : int
        Users per item.
    items : pyspark.sql.DataFrame with item_id, or None
        Those without ratings are left out; None for all.

    Returns
    -------
    pyspark.sql.DataFrame
        With columns item_id, user_id, score and rank; scores are those of `tuckergp.spark.recommend`.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    check("n", n, whole(1))
    rest, spark = fitted_of(model), session()
    users, known = rest.history_.ids
    chosen = known
    if items is not None:
        ids = Ids(known)
        chosen = [item for item in listed(ids_in(items, "items", KEYS[1], kind_of(known))) if item in ids]
    if isinstance(model, StoredRecommender):
        frame = model.users
    else:
        frame = spark.range(0, len(users), 1, 4 * spark.sparkContext.defaultParallelism)
    sent = spark.sparkContext.broadcast((rest, chosen, n))
    schema = f"{KEYS[1]} {kind_of(known)}, {KEYS[0]} {kind_of(users)}, score double"
    found = frame.mapInArrow(lambda batches: _best(batches, *sent.value), schema)
    order = Window.partitionBy(KEYS[1]).orderBy(F.desc("score"), KEYS[0])
    return found.withColumn("rank", F.row_number().over(order)).filter(F.col("rank") <= n)


def _best(batches: Iterable[Any], model: TuckerRecommender, items: list[Any], n: int) -> Iterator[Any]:
    """The best of the users of some batches for each item."""
    import pyarrow as pa

    scores: Any = np.zeros((0, len(items)))
    users: Any = np.zeros((0, len(items)), dtype=np.int64)
    seen: list[Any] = []
    for answering, ids in _some(batches, model, max(1, CELLS // max(len(items), 1))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            more = answering.scores(ids, items)
        numbers = np.arange(len(seen), len(seen) + len(ids))
        seen += ids
        scores = np.concatenate([scores, more])
        users = np.concatenate([users, np.broadcast_to(numbers[:, None], more.shape)])
        best = np.argsort(-scores, axis=0, kind="stable")[:n]
        scores, users = (np.take_along_axis(each, best, axis=0) for each in (scores, users))
    if len(scores) and len(items):
        columns = np.repeat(items, len(scores)).tolist(), [seen[k] for k in users.T.ravel().tolist()], scores.T.ravel()
        yield pa.RecordBatch.from_arrays(list(map(pa.array, columns)), names=[KEYS[1], KEYS[0], "score"])


def _some(batches: Iterable[Any], model: TuckerRecommender, size: int) -> Iterator[tuple[TuckerRecommender, list[Any]]]:
    """Recommenders with the ids of a few users whom each knows."""
    import pyarrow as pa

    for batch in batches:
        for first in range(0, len(batch), size):
            table = pa.Table.from_batches([batch.slice(first, size)])
            if KEYS[0] in table.column_names:
                yield small(model, table), table[KEYS[0]].to_pylist()
            else:
                yield model, [model.history_.ids[0][k] for k in table.column(0).to_pylist()]
