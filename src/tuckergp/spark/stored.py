"""Recommenders whose users stay in Parquet: what the workers write, and recommenders of some of the users made of it.

A folder holds ``users``, a row per user with factors of all draws and the items rated, and ``model``, the recommender
without users, as a model file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import tuckergp
from tuckergp.data.history import KEYS, History, SortedHistory
from tuckergp.data.ids import Ids
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.model.design import Design
from tuckergp.posterior.fitted import Fit
from tuckergp.random import stream
from tuckergp.recommender import TuckerRecommender
from tuckergp.recommender.choice_trial import NEGATIVES, recentred
from tuckergp.recommender.entities import as_objects
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.spark.blobs import blob_of, table_in
from tuckergp.spark.collecting import requests_of, without_requests
from tuckergp.spark.encoding import Plan
from tuckergp.spark.problem import Workers
from tuckergp.spark.reading import SparkRatings, kind_of
from tuckergp.spark.sessions import reason, returned, session
from tuckergp.spark.shards import Request, Shard, factors
from tuckergp.statistics.evidence import Number

__all__ = [
    "USERS_FOLDER",
    "Learned",
    "StoredRecommender",
    "check_apart",
    "check_unused",
    "has_users",
    "load",
    "load_model",
    "of_users",
    "save_model",
    "written",
]

# Users of one batch of Arrow, and bytes of the model file in one row.
USERS, PIECE = 4_096, 2**26
USERS_FOLDER, MODEL_FOLDER = "users", "model"


class Learned(NamedTuple):
    """What was learned, without the factors of users, where the ratings are, and what factors are rounded to."""

    fit: Fit
    workers: Workers
    number: type[Number]


@dataclass(frozen=True)
class StoredRecommender:
    """A recommender whose users stay in Parquet; `tuckergp.spark.recommend` and `tuckergp.spark.predict` take it.

    Attributes
    ----------
    path : str
        The folder.
    model : TuckerRecommender
        Items, attributes and all that users share. Of the users it knows the first one, without ratings, and those with
        attributes alone; to anybody else it answers as to a newcomer.
    """

    path: str
    model: TuckerRecommender

    @property
    def users(self) -> Any:
        """The users as a Spark data frame.

        Columns: user_id, factors (draws times rank numbers), items (their places in the list of items of the model) and
        ratings.
        """
        return session().read.parquet(f"{self.path}/{USERS_FOLDER}")


def load(path: str | Path) -> StoredRecommender:
    """The recommender in a folder that `tuckergp.spark.fit` wrote with ``store``."""
    return StoredRecommender(str(path), load_model(str(path)))


def load_model(path: str) -> TuckerRecommender:
    """The model file in a folder."""
    spark, folder = session(), f"{path}/{MODEL_FOLDER}"
    if not _exists(spark, folder):
        raise InputError(f"There is no recommender in {path}; a fit with store={path!r} writes one.")
    rows = spark.read.parquet(folder)
    with returned():
        parts = sorted((row["part"], bytes(row["content"])) for row in rows.toLocalIterator())
    with tempfile.TemporaryDirectory() as here:
        file = Path(here) / "model.tgp"
        file.write_bytes(b"".join(content for _, content in parts))
        model: Any = tuckergp.load(file)
    return model  # type: ignore[no-any-return]


def save_model(spark: Any, model: TuckerRecommender, path: str) -> None:
    """Write a model file into a folder of any file system that Spark writes to."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.tgp"
        model.save(file)
        content = file.read_bytes()
    parts = [(k, content[first : first + PIECE]) for k, first in enumerate(range(0, len(content), PIECE))]
    spark.createDataFrame(parts, "part int, content binary").write.parquet(f"{path}/{MODEL_FOLDER}")


def has_users(spark: Any, path: str) -> bool:
    """Whether the folder of a model holds users, too."""
    return _exists(spark, f"{path}/{USERS_FOLDER}")


def check_unused(spark: Any, path: str) -> None:
    """Refuse a folder that holds something, or that cannot be made, before there is anything to lose."""
    if _exists(spark, path):
        raise InputError(f"There is something at {path} already; name another folder, or remove it.")
    place, files = _place(spark, path)
    try:
        made = files.mkdirs(place) and files.delete(place, False)
    except Exception as error:  # Java's errors come as several kinds
        raise InputError(f"The folder {path} cannot be made: {reason(error)}.") from error
    if not made:
        raise InputError(f"The folder {path} cannot be made; name one where you may write.")


def check_apart(spark: Any, recommender: StoredRecommender, path: str) -> None:
    """Refuse a folder that is, holds or is inside that of the users: overwriting it would delete them."""
    users, target = (_resolved(spark, each) for each in (f"{recommender.path}/{USERS_FOLDER}", path))
    if users == target or users.startswith(f"{target}/") or target.startswith(f"{users}/"):
        raise InputError(
            f"The users of this recommender are in {recommender.path} and are read from there, so it cannot be saved "
            f"to {path}; name another folder."
        )


def _resolved(spark: Any, path: str) -> str:
    """The whole address of a folder, without links where it exists."""
    place, files = _place(spark, path)
    whole = files.resolvePath(place) if _exists(spark, path) else files.makeQualified(place)
    return str(whole.toString()).rstrip("/")


def _place(spark: Any, path: str) -> tuple[Any, Any]:
    """A path, and the file system that it is of."""
    try:
        place = spark._jvm.org.apache.hadoop.fs.Path(path)
        return place, place.getFileSystem(spark._jsc.hadoopConfiguration())
    except Exception as error:  # Java's errors come as several kinds
        raise InputError(f"{path!r} is no path that Spark knows: {reason(error)}.") from error


def _exists(spark: Any, path: str) -> bool:
    place, files = _place(spark, path)
    try:
        return bool(files.exists(place))
    except Exception as error:  # Java's errors come as several kinds
        raise InputError(f"Spark cannot look at {path}: {reason(error)}.") from error


def of_users(
    fitted: FittedRecommender,
    ids: Sequence[Any],
    psi: npt.NDArray[Any],
    items: Sequence[npt.NDArray[Any]],
    ratings: Sequence[npt.NDArray[Any]],
) -> FittedRecommender:
    """The recommender with these rated users alone.

    Parameters
    ----------
    fitted : FittedRecommender
        With any users.
    ids : sequence, length b
    psi : ndarray, shape (b, S, r)
    items, ratings : sequence of ndarray, length b
        Numbers of the items that each rated, and the ratings.
    """
    users, count = fitted.layout.sides[0], len(ids)
    # rated users are known by their factors, so any features do; then those with attributes alone, and the unknown one
    rows = np.concatenate([np.zeros(count, np.intp), np.arange(users.n_rated, users.unknown + 1)])
    table = users.table.take(rows)
    mark: Any = users.mode.residual
    keys = Table({users.key: as_objects(np.array(ids, dtype=object))}, users.key, count)
    side = replace(
        users,
        base=Ids([*ids, *users.base.values[users.n_rated :]]),
        table=table.with_residual(table.residual.renumbered(count)),
        mode=replace(users.mode, residual=mark.of_rows(keys)),
        n_rated=count,
    )
    sizes = [len(each) for each in items]
    codes = np.repeat(np.arange(count, dtype=np.int32), sizes), np.concatenate([np.zeros(0, np.int32), *items])
    known, n = fitted.history, sum(sizes)
    rating = np.concatenate([np.zeros(0), *ratings])
    history = History((list(ids), known.ids[1]), codes, rating, Table({}, "ratings", n), known.clicks)
    history.__dict__["ratings_per_item"] = known.ratings_per_item
    fit = replace(fitted.fit, draws=without_requests(fitted.fit.draws, psi))
    return replace(
        fitted, layout=replace(fitted.layout, sides=(side, fitted.layout.sides[1])), fit=fit, history=history
    )


def written(
    model: TuckerRecommender, whole: FittedRecommender, learned: Learned, data: SparkRatings, store: str, seed: int
) -> StoredRecommender:
    """Write the users, by the workers, and the rest; ``model`` becomes the rest."""
    spark = data.frame.sparkSession
    requests = requests_of(learned.workers, learned.fit.draws, learned.number)
    _write_users(spark, learned.workers, requests, data, f"{store}/{USERS_FOLDER}")
    counts = SortedHistory(
        (data.ids[0][:1], data.ids[1]),
        np.zeros(2, dtype=np.intp),
        np.zeros(0, dtype=np.int32),
        np.zeros(0),
        Table({}, "ratings", 0),
        np.zeros(0, dtype=np.int32),
        whole.history.clicks,
        counts=data.per_item,
    )
    whole = replace(whole, history=counts)
    if counts.clicks:
        whole = _recentred(whole, spark.read.parquet(f"{store}/{USERS_FOLDER}"), seed)
    core = int(whole.fit.draws.model.core.ranks[0])
    nobody = np.zeros((1, len(whole.fit.draws), core), dtype=np.float32)
    none = [np.zeros(0, dtype=np.int32)]
    fitted = replace(of_users(whole, data.ids[0][:1], nobody, none, none), history=counts)
    model._keep(replace(fitted, tables=(_unrated(whole, data), whole.tables[1])))
    save_model(spark, model, store)
    return StoredRecommender(store, model)


def _unrated(whole: FittedRecommender, data: SparkRatings) -> Table | None:
    """Attributes of users without ratings; the others are known by their factors."""
    table = whole.tables[0]
    if table is None:
        return None
    rated = set(data.ids[0][1:])
    return table.take(np.array([k for k, user in enumerate(table[KEYS[0]].tolist()) if user not in rated], dtype=int))


def _recentred(whole: FittedRecommender, users: Any, seed: int) -> FittedRecommender:
    """The probabilities of clicks set right, as `recentred` does, by some of the users."""
    share = min(1.0, 2.0 * NEGATIVES / max(users.count(), 1))
    some = users if share == 1.0 else users.sample(False, share, seed=int(stream(seed, 8).integers(2**31)))
    with returned():
        table = some.toArrow().sort_by(KEYS[0])
    few = of_users(whole, *columns_of(table, whole))
    modes = tuple(side.table.take(np.arange(side.n_rated)) for side in few.layout.sides)
    design = Design(modes, np.stack(few.history.codes, axis=1))
    fit = recentred(few.fit, design, seed)
    model = replace(whole.fit.draws.model, likelihood=fit.draws.model.likelihood)
    return replace(whole, fit=replace(whole.fit, draws=replace(whole.fit.draws, model=model)))


def columns_of(table: Any, fitted: FittedRecommender) -> tuple[list[Any], npt.NDArray[Any], list[Any], list[Any]]:
    """Ids, factors (b, S, r), items and ratings of a table of users, as `of_users` takes them."""
    draws = fitted.fit.draws
    shape = (len(table), len(draws), int(draws.model.core.ranks[0]))
    lists = [[np.asarray(each.values) for each in table[name]] for name in ("factors", "items", "ratings")]
    psi = np.concatenate([np.zeros(0, np.float32), *lists[0]]).reshape(shape)
    return table[KEYS[0]].to_pylist(), psi, lists[1], lists[2]


def _write_users(spark: Any, workers: Workers, requests: list[Request], data: SparkRatings, path: str) -> None:
    """Write a row per user, by the workers."""
    sharded, plan = workers.sharded, workers.sharded.plan

    def rows(frame: Any, which: str, key: str) -> Any:
        schema = f"{key}, factors array<float>, items array<int>, ratings array<double>"
        return frame.filter(which).select("data").mapInArrow(_decoded, schema)

    with sharded.sending((requests, plan.hot)) as sent:
        blobs = sharded.all.mapPartitions(lambda shards: _blobs(shards, *sent.value), True)
        frame = spark.createDataFrame(blobs, "hot boolean, data binary")
        users = rows(frame, "not hot", f"{KEYS[0]} {kind_of(data.ids[0])}")
        if len(plan.hot):
            users = users.unionByName(_hot(rows(frame, "hot", "number bigint"), requests, data, plan))
        users.write.parquet(path)


def _hot(pieces: Any, requests: list[Request], data: SparkRatings, plan: Plan) -> Any:
    """The users whose ratings are in several shards."""
    from pyspark.sql import functions as F

    lists = [F.flatten(F.collect_list(name)).alias(name) for name in ("items", "ratings")]
    known = [
        (user, name, [float(value) for request in requests for value in request.hot[user]])
        for user, name in zip(plan.hot.tolist(), plan.hot_ids, strict=True)
    ]
    schema = f"number bigint, {KEYS[0]} {kind_of(data.ids[0])}, factors array<float>"
    ids = pieces.sparkSession.createDataFrame(known, schema)
    return ids.join(pieces.groupBy("number").agg(*lists), "number").drop("number")


# In the workers


def _blobs(shards: Iterable[Shard], requests: list[Request], hot: npt.NDArray[Any]) -> Iterator[tuple[bool, bytes]]:
    """Batches of Arrow as bytes: users with factors and ratings; hot users with their number and some ratings."""
    import pyarrow as pa

    for shard in shards:
        if shard.piece:
            yield True, _users_blob("number", pa.array([shard.first]), None, shard, np.array([0, len(shard.user)]))
            continue
        ((_, psi),) = factors([shard], requests, "f4")
        begin = np.searchsorted(shard.user, np.arange(shard.first, shard.last + 1))
        usual = np.flatnonzero(~np.isin(np.arange(shard.first, shard.last), hot))
        for first in range(0, len(usual), USERS):
            some = usual[first : first + USERS]
            bounds = begin[np.append(some, some[-1] + 1)]
            yield False, _users_blob(KEYS[0], shard.ids.take(pa.array(some)), psi[some], shard, bounds)


def _users_blob(name: str, ids: Any, psi: Any, shard: Shard, begin: npt.NDArray[Any]) -> bytes:
    """A batch of users whose ratings begin at these places of the shard, as bytes."""
    import pyarrow as pa

    ids = ids.cast(pa.int64()) if pa.types.is_integer(ids.type) else ids.cast(pa.string())
    place, offsets = slice(int(begin[0]), int(begin[-1])), pa.array((begin - begin[0]).astype(np.int32))
    items = pa.ListArray.from_arrays(offsets, pa.array(shard.item[place]))
    ratings = pa.ListArray.from_arrays(offsets, pa.array(shard.rating[place].astype(np.float64)))
    if psi is None:
        vectors = pa.nulls(len(ids), pa.list_(pa.float32()))
    else:
        ends = np.arange(len(ids) + 1, dtype=np.int32) * (psi.shape[1] * psi.shape[2])
        vectors = pa.ListArray.from_arrays(pa.array(ends), pa.array(psi.ravel()))
    names = [name, "factors", "items", "ratings"]
    return blob_of(pa.RecordBatch.from_arrays([ids, vectors, items, ratings], names=names))


def _decoded(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        for blob in batch.column(0):
            yield from table_in(blob.as_buffer()).to_batches()
