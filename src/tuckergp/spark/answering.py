"""Predictions and lists for many users as Spark jobs: the model is sent to the workers, the answers stay there.

Of a recommender whose users stay in Parquet, a worker makes a small one of each batch of users, which answers for them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.checks import check, one_of
from tuckergp.data.frames import COLUMNS
from tuckergp.data.ids import Ids
from tuckergp.data.names import KEYS, shown_names
from tuckergp.errors import InputError
from tuckergp.recommender import TuckerRecommender
from tuckergp.recommender.questions import known_type
from tuckergp.spark.reading import kind_of
from tuckergp.spark.sessions import require_dataframe, returned, session
from tuckergp.spark.stored import StoredRecommender, columns_of, of_users

__all__ = ["predict", "recommend"]

# Users whose lists a worker makes at a time.
USERS = 1_024
PREDICTION = "prediction"
COLD = one_of("predict", "nan", "drop")
# The columns of users in Parquet, besides their ids.
STORED = ("factors", "items", "ratings")
# Their factors beside pairs to predict.
FACTORS = "__factors"


def recommend(
    model: TuckerRecommender | StoredRecommender,
    path: str | None = None,
    *,
    n: int = 10,
    users: Any = None,
    exclude_seen: bool = True,
    partitions: int | None = None,
    **options: Any,
) -> Any:
    """Make the lists of all users, or of some, in Spark's workers.

    Parameters
    ----------
    model : TuckerRecommender or StoredRecommender
        Fitted, here or by Spark. Every worker holds all of it, but for users in Parquet.
    path : str or None
        Where to write the lists as Parquet; None returns them without computing them yet.
    n : int
    users : pyspark.sql.DataFrame with user_id, sequence of ids, or None
        None for all users with ratings.
    exclude_seen : bool
        Leave out the items that a user has rated.
    partitions : int or None
        Tasks; None for four on each core, or for those of the Parquet files.
    **options
        Further arguments of `TuckerRecommender.recommend`.

    Returns
    -------
    pyspark.sql.DataFrame
        With columns user_id, item_id, score, std and rank, and title where ``titles`` asks for it; read from ``path``
        where it is given.
    """
    spark = users.sparkSession if hasattr(users, "sparkSession") else session()
    arguments = {"n": n, "exclude_seen": exclude_seen, **options}
    if isinstance(model, StoredRecommender):
        asked, rest = _stored_users(spark, model, users), model.model
        asked = asked if partitions is None else asked.repartition(partitions)
        given = None
    else:
        given, rest = None if users is None else _listed(users), model
        count = len(rest.history_.ids[0]) if given is None else len(given)
        asked = spark.range(0, count, 1, partitions or 4 * spark.sparkContext.defaultParallelism)
    make = _lists_of_stored if isinstance(model, StoredRecommender) else _lists
    sent = spark.sparkContext.broadcast((rest, given, arguments))
    lists = asked.mapInArrow(lambda batches: make(batches, *sent.value), _schema(rest, arguments))
    if path is None:
        return lists
    try:
        lists.write.parquet(path)
    except Exception as error:
        if "PATH_ALREADY_EXISTS" in str(error):
            raise InputError(f"There is something at {path} already; name another folder, or remove it.") from error
        raise
    return spark.read.parquet(path)


def predict(
    model: TuckerRecommender | StoredRecommender, pairs: Any, cold: str = "predict", column: str = PREDICTION
) -> Any:
    """Add a column of expected ratings to a data frame of pairs, by Spark's workers.

    Parameters
    ----------
    model : TuckerRecommender or StoredRecommender
    pairs : pyspark.sql.DataFrame
        With columns user_id and item_id, or the names that the ratings had.
    cold : {"predict", "nan", "drop"}
        Pairs of a user or an item without ratings: predict them from attributes and averages, leave them open, or leave
        them out.
    column : str
        The name of the new column.
    """
    require_dataframe(pairs)
    check("cold", cold, COLD)
    rest = model.model if isinstance(model, StoredRecommender) else model
    names = {key: rest.columns_.get(key, key) for key in KEYS}
    for key, name in names.items():
        if name not in pairs.columns:
            raise InputError(f"pairs has no column {name!r} for {key}; its columns are {', '.join(pairs.columns)}.")
    from pyspark.sql.types import DoubleType, StructField, StructType

    pairs = pairs.drop(column)
    schema = StructType([*pairs.schema.fields, StructField(column, DoubleType())])
    sent = pairs.sparkSession.sparkContext.broadcast((rest, names, cold, column))
    if isinstance(model, StoredRecommender):
        pairs = _with_factors(pairs, model, names[KEYS[0]])
    return pairs.mapInArrow(lambda batches: _predictions(batches, *sent.value), schema)


def _stored_users(spark: Any, model: StoredRecommender, users: Any) -> Any:
    """All users in Parquet, or those asked for; those that are not there have neither factors nor items."""
    if users is None:
        return model.users
    kind, listed = kind_of(model.model.history_.ids[0]), users
    if not hasattr(users, "sparkSession"):
        ids = known_type(users, model.model.layout_.sides[0])
        wrong = [user for user in ids if isinstance(user, int) != (kind == "bigint")]
        if wrong:
            raise InputError(f"{wrong[0]!r} is no id of a user of {model.path}, where ids are of type {kind}.")
        listed = spark.createDataFrame([(user,) for user in ids], f"{KEYS[0]} {kind}")
    _check_users(listed)
    return listed.select(listed[KEYS[0]].cast(kind)).dropna().distinct().join(model.users, KEYS[0], "left")


def _with_factors(pairs: Any, model: StoredRecommender, name: str) -> Any:
    """The pairs with the factors of their users, under a name that they do not have."""
    from pyspark.sql import functions as F

    users = model.users.select(F.col(KEYS[0]).alias("__user"), F.col("factors").alias(FACTORS))
    return pairs.join(users, pairs[name] == users["__user"], "left").drop("__user")


def _listed(users: Any) -> list[Any]:
    if not hasattr(users, "sparkSession"):
        return list(users)
    _check_users(users)
    with returned():
        listed: list[Any] = users.select(KEYS[0]).dropna().distinct().toArrow()[KEYS[0]].to_pylist()
    return sorted(listed)


def _check_users(users: Any) -> None:
    if KEYS[0] not in users.columns:
        raise InputError(f"users has no column {KEYS[0]!r}; its columns are {', '.join(users.columns)}.")


def _schema(model: TuckerRecommender, arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in _kinds(model, arguments).items())


def _kinds(model: TuckerRecommender, arguments: dict[str, Any]) -> dict[str, str]:
    """The columns of lists and their types in Spark."""
    user, item = (kind_of(ids) for ids in model.history_.ids)
    title = {} if arguments.get("titles") is None else {"title": "string"}
    return {KEYS[0]: user, KEYS[1]: item, **title, "score": "double", "std": "double", "rank": "int"}


# In the workers


def _lists(batches: Iterable[Any], model: Any, given: Any, arguments: dict[str, Any]) -> Iterator[Any]:
    ids = model.history_.ids[0] if given is None else given
    for batch in batches:
        numbers = batch.column(0).to_pylist()
        for first in range(0, len(numbers), USERS):
            yield _batch(model, [ids[k] for k in numbers[first : first + USERS]], arguments)


def _lists_of_stored(batches: Iterable[Any], model: Any, given: Any, arguments: dict[str, Any]) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        for first in range(0, len(batch), USERS):
            table = pa.Table.from_batches([batch.slice(first, USERS)])
            yield _batch(_small(model, table), table[KEYS[0]].to_pylist(), arguments)


def _small(model: TuckerRecommender, table: Any) -> TuckerRecommender:
    """The recommender of the users of a table who have factors."""
    known, fitted = table.filter(table["factors"].is_valid()), model._fitted
    if not len(known):
        return model
    return type(model)(**model.get_params(deep=False))._keep(of_users(fitted, *columns_of(known, fitted)))


def _batch(model: TuckerRecommender, users: list[Any], arguments: dict[str, Any]) -> Any:
    """The lists of some users as a batch of Arrow."""
    import pyarrow as pa

    plain = copy(model)
    plain.backend_ = COLUMNS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unknown users, in every worker again
        found = plain.recommend(users, **arguments)
    names = {**shown_names(model.columns_), "title": str(arguments.get("titles"))}
    types = {"bigint": pa.int64(), "string": pa.string(), "double": pa.float64(), "int": pa.int32()}
    kinds = _kinds(model, arguments)
    arrays = [pa.array(list(found[names.get(name, name)]), types[kind]) for name, kind in kinds.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(kinds))


def _predictions(
    batches: Iterable[Any], model: TuckerRecommender, names: dict[str, str], cold: str, column: str
) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        answering, batch = _answering(model, batch, names[KEYS[0]])
        pairs = {key: batch.column(name).to_pylist() for key, name in names.items()}
        known = [Ids(ids).number(pairs[key]) >= 0 for ids, key in zip(answering.history_.ids, KEYS, strict=True)]
        seen = np.logical_and(*known)
        rows = np.arange(len(seen)) if cold == "predict" else np.flatnonzero(seen)
        mean = np.full(len(seen), np.nan)
        mean[rows] = _means(answering, {key: [values[k] for k in rows.tolist()] for key, values in pairs.items()})
        answered = batch.append_column(column, pa.array(mean))
        yield answered.filter(pa.array(seen)) if cold == "drop" else answered


def _answering(model: TuckerRecommender, batch: Any, name: str) -> tuple[TuckerRecommender, Any]:
    """The recommender that answers for the users of a batch, which may have their factors, and the batch without."""
    import pyarrow as pa

    if FACTORS not in batch.schema.names:
        return model, batch
    users, first = np.unique(batch.column(name).to_numpy(zero_copy_only=False).astype(str), return_index=True)
    some = batch.take(pa.array(first))
    none = [pa.array([[]] * len(users), pa.list_(kind)) for kind in (pa.int32(), pa.float64())]
    table = pa.table([some.column(name), some.column(FACTORS), *none], names=[KEYS[0], *STORED])
    return _small(model, table), batch.drop_columns([FACTORS])


def _means(model: Any, pairs: dict[str, list[Any]]) -> npt.NDArray[np.float64]:
    if not pairs[KEYS[0]]:
        return np.zeros(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.predict(pairs))
