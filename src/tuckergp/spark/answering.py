"""Predictions and lists for many users as Spark jobs: the model is sent to the workers, the answers stay there.

Of a recommender whose users stay in Parquet, a worker makes a small one of each batch of users, which answers for them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from copy import copy
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.checks import check, instance, one_of
from tuckergp.data.frames import COLUMNS
from tuckergp.data.ids import Ids
from tuckergp.data.names import KEYS, shown_names
from tuckergp.errors import InputError
from tuckergp.params import check_fitted
from tuckergp.recommender import TuckerRecommender
from tuckergp.recommender.questions import asking_users, known_type
from tuckergp.spark.frames import column_of, require_dataframe
from tuckergp.spark.reading import TASKS, WHOLE, kind_of
from tuckergp.spark.sessions import returned, session
from tuckergp.spark.stored import StoredRecommender, check_unused, columns_of, of_users

__all__ = ["fitted_of", "ids_in", "listed", "predict", "recommend", "small"]

# Users whose lists a worker makes at a time.
USERS = 1_024
PREDICTION = "prediction"
COLD = one_of("predict", "nan", "drop")
# The columns of users in Parquet, besides their ids.
STORED = ("factors", "items", "ratings")
# Their ids and factors beside pairs to predict.
USER, FACTORS = "user", "factors"
# Types of numbers that may be whole, and those that are no ids.
NUMBERS = ("float", "double", "decimal")
NO_IDS = ("array", "map", "struct", "binary", "variant")
MODEL = instance("a TuckerRecommender or a StoredRecommender", TuckerRecommender, StoredRecommender)


def recommend(
    model: TuckerRecommender | StoredRecommender,
    path: str | Path | None = None,
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
    path : str, Path or None
        Where to write the lists as Parquet; None returns them without computing them yet.
    n : int
    users : pyspark.sql.DataFrame with user_id, id, sequence of ids, or None
        None for all users with ratings. Each has one list, however often it is named. In a data frame, what can be no
        id of this recommender, such as letters where ids are whole numbers, is left out.
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
    rest = fitted_of(model)
    arguments = {"n": n, "exclude_seen": exclude_seen, **options}
    check("partitions", partitions, TASKS)
    _check_arguments(rest, arguments)
    spark = users.sparkSession if hasattr(users, "sparkSession") else session()
    if path is not None:
        check_unused(spark, str(path))
    asked = None if users is None else _asked(rest, users)
    make: Any = _lists
    if isinstance(model, StoredRecommender):
        make, given = _lists_of_stored, None
        frame = _stored_users(spark, model, asked)
        frame = frame if partitions is None else frame.repartition(partitions)
    else:
        given = None if asked is None else listed(asked)  # None: workers have all ids in the model
        count = len(rest.history_.ids[0] if given is None else given)
        frame = spark.range(0, count, 1, partitions or 4 * spark.sparkContext.defaultParallelism)
    sent = spark.sparkContext.broadcast((rest, given, arguments))
    lists = frame.mapInArrow(lambda batches: make(batches, *sent.value), _schema(rest, arguments))
    if path is None:
        return lists
    lists.write.parquet(str(path))
    return spark.read.parquet(str(path))


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
        The name of the new column, which the data frame does not have.
    """
    rest = fitted_of(model)
    require_dataframe(pairs, "pairs", "ask the recommender itself, by its predict")
    check("cold", cold, COLD)
    names = {key: rest.columns_.get(key, key) for key in KEYS}
    for key, name in names.items():
        if name not in pairs.columns:
            raise InputError(f"pairs has no column {name!r} for {key}; its columns are {', '.join(pairs.columns)}.")
        _check_ids(pairs, name, "pairs")
    if column in pairs.columns:
        raise InputError(f"pairs has a column {column!r} already; drop it, or give predictions another name.")
    from pyspark.sql.types import DoubleType, StructField, StructType

    # PySpark takes names with dots apart, so the workers have columns by number
    numbered = pairs.toDF(*(f"c{k}" for k in range(len(pairs.columns))))
    places = {key: f"c{pairs.columns.index(name)}" for key, name in names.items()}
    schema = StructType([*numbered.schema.fields, StructField(PREDICTION, DoubleType())])
    sent = pairs.sparkSession.sparkContext.broadcast((rest, places, cold))
    if isinstance(model, StoredRecommender):
        numbered = _with_factors(numbered, model, places[KEYS[0]])
    predicted = numbered.mapInArrow(lambda batches: _predictions(batches, *sent.value), schema)
    return predicted.toDF(*pairs.columns, column)


def fitted_of(model: Any) -> TuckerRecommender:
    """The recommender, without the users that stay in Parquet; refuses what is none, or has not learned yet."""
    check("model", model, MODEL)
    rest: TuckerRecommender = model.model if isinstance(model, StoredRecommender) else model
    check_fitted(rest)
    return rest


def _check_arguments(model: TuckerRecommender, arguments: dict[str, Any]) -> None:
    """Refuse here what every worker would refuse: the list of one user is made."""
    unknown = set(arguments) - set(signature(TuckerRecommender.recommend).parameters)
    if unknown:
        raise InputError(f"recommend has no argument {min(unknown)!r}; it takes those of TuckerRecommender.recommend.")
    for key, ids in zip(KEYS, model.history_.ids, strict=True):
        if set(map(type, ids)) not in ({int}, {str}):
            raise InputError(f"Lists by Spark need whole numbers or texts as {key}, not ids like {ids[0]!r}.")
    _batch(model, model.history_.ids[0][:1], arguments)


def _asked(model: TuckerRecommender, users: Any) -> Any:
    """The users asked for, in the type of known ones, each once: as a list, or as a data frame of user_id."""
    side, kind = model.layout_.sides[0], kind_of(model.history_.ids[0])
    if hasattr(users, "sparkSession"):
        return ids_in(users, "users", KEYS[0], kind)
    ids = asking_users(users, side, model.columns_)[KEYS[0]].tolist()
    ids = [int(user) if isinstance(user, float) and user.is_integer() else user for user in ids]
    for user in ids:
        if type(user) is not (int if kind == "bigint" else str):
            raise InputError(f"{user!r} is no id of a user of this recommender, where ids are of type {kind}.")
    return list(dict.fromkeys(ids))


def ids_in(frame: Any, what: str, key: str, kind: str) -> Any:
    """The ids in a data frame that may be known ones, each once, as a data frame."""
    if key not in frame.columns:
        raise InputError(f"{what} has no column {key!r}; its columns are {', '.join(frame.columns)}.")
    return frame.select(_in_kind(frame, key, what, kind).alias(key)).dropna().distinct()


def listed(asked: Any) -> list[Any]:
    """Ids as a list; they are one already, or in a data frame of nothing else."""
    if isinstance(asked, list):
        return asked
    with returned():
        ids: list[Any] = asked.toArrow().column(0).to_pylist()
    return sorted(ids)


def _stored_users(spark: Any, model: StoredRecommender, asked: Any) -> Any:
    """All users in Parquet, or those asked for; those that are not there have neither factors nor items."""
    if asked is None:
        return model.users
    if isinstance(asked, list):
        kind = kind_of(model.model.history_.ids[0])
        asked = spark.createDataFrame([(user,) for user in asked], f"{KEYS[0]} {kind}")
    return asked.join(model.users, KEYS[0], "left")


def _with_factors(pairs: Any, model: StoredRecommender, name: str) -> Any:
    """The pairs with ids and factors of their users in Parquet."""
    from pyspark.sql import functions as F

    users = model.users.select(F.col(KEYS[0]).alias(USER), F.col("factors").alias(FACTORS))
    return pairs.join(
        users, _in_kind(pairs, name, "pairs", kind_of(model.model.history_.ids[0])) == users[USER], "left"
    )


def _in_kind(frame: Any, name: str, what: str, kind: str) -> Any:
    """A column of ids in the type of known ones, null where it has no equal there, as `id_types.aligned` has it."""
    from pyspark.sql import functions as F

    ids, given = _check_ids(frame, name, what), frame.schema[name].dataType
    whole, text = given.typeName() in WHOLE, given.typeName() == "string"
    if whole or (text and kind == "string"):
        return ids.cast(kind)
    if kind == "string" or not (text or given.typeName() in NUMBERS):
        return F.lit(None).cast(kind)
    number = ids.try_cast(kind)
    return F.when(number.cast(given) == ids, number)


def _check_ids(frame: Any, name: str, what: str) -> Any:
    """The column of ids; refuses one of lists and the like."""
    found, kind = column_of(frame, name, what), frame.schema[name].dataType.typeName()
    if kind in NO_IDS:
        raise InputError(f"{what} column {name!r} is of type {kind}, and ids are whole numbers or texts.")
    return found


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
            yield _batch(small(model, table), table[KEYS[0]].to_pylist(), arguments)


def small(model: TuckerRecommender, table: Any) -> TuckerRecommender:
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


def _predictions(batches: Iterable[Any], model: TuckerRecommender, names: dict[str, str], cold: str) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        answering, batch = _answering(model, batch)
        sides = dict(zip(KEYS, answering.layout_.sides, strict=True))
        pairs = {key: known_type(batch.column(name).to_pylist(), sides[key]) for key, name in names.items()}
        known = [Ids(ids).number(pairs[key]) >= 0 for ids, key in zip(answering.history_.ids, KEYS, strict=True)]
        seen = np.logical_and(*known)
        rows = np.arange(len(seen)) if cold == "predict" else np.flatnonzero(seen)
        mean = np.full(len(seen), np.nan)
        mean[rows] = _means(answering, {key: [values[k] for k in rows.tolist()] for key, values in pairs.items()})
        answered = batch.append_column(PREDICTION, pa.array(mean))
        yield answered.filter(pa.array(seen)) if cold == "drop" else answered


def _answering(model: TuckerRecommender, batch: Any) -> tuple[TuckerRecommender, Any]:
    """The recommender that answers for the users of a batch, which may have their factors, and the batch without."""
    import pyarrow as pa

    if FACTORS not in batch.schema.names:
        return model, batch
    codes = batch.column(USER).dictionary_encode().indices.fill_null(-1).to_numpy()
    users, first = np.unique(codes, return_index=True)
    some = batch.take(pa.array(first[users >= 0]))
    none = [pa.array([[]] * len(some), pa.list_(kind)) for kind in (pa.int32(), pa.float64())]
    table = pa.table([some.column(USER), some.column(FACTORS), *none], names=[KEYS[0], *STORED])
    return small(model, table), batch.drop_columns([USER, FACTORS])


def _means(model: Any, pairs: dict[str, list[Any]]) -> npt.NDArray[np.float64]:
    if not pairs[KEYS[0]]:
        return np.zeros(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.predict(pairs))
