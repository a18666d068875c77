"""Predictions and lists for many users as Spark jobs: the model is sent to the workers, the answers stay there."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.ids import Ids
from tuckergp.data.names import KEYS
from tuckergp.errors import InputError
from tuckergp.recommender import TuckerRecommender
from tuckergp.spark.sessions import require_dataframe, session

__all__ = ["predict", "recommend"]

# Users whose lists a worker makes at a time.
USERS = 1_024
PREDICTION = "prediction"


def recommend(
    model: TuckerRecommender,
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
    model : TuckerRecommender
        Fitted, here or by Spark. Every worker holds all of it.
    path : str or None
        Where to write the lists as Parquet; None returns them without computing them yet.
    n : int
    users : pyspark.sql.DataFrame with user_id, sequence of ids, or None
        None for all users with ratings.
    exclude_seen : bool
        Leave out the items that a user has rated.
    partitions : int or None
        Tasks; None for four on each core.
    **options
        Further arguments of `TuckerRecommender.recommend`.

    Returns
    -------
    pyspark.sql.DataFrame
        With columns user_id, item_id, score, std and rank; read from ``path`` where it is given.
    """
    spark = users.sparkSession if hasattr(users, "sparkSession") else session()
    context = spark.sparkContext
    given = None if users is None else _listed(users)
    count = len(model.history_.ids[0]) if given is None else len(given)
    arguments = {"n": n, "exclude_seen": exclude_seen, **options}
    sent = context.broadcast((model, given, arguments))
    numbers = spark.range(0, count, 1, partitions or 4 * context.defaultParallelism)
    kinds = [_kind(ids) for ids in model.history_.ids]
    schema = f"user_id {kinds[0]}, item_id {kinds[1]}, score double, std double, rank int"
    lists = numbers.mapInArrow(lambda batches: _lists(batches, sent.value), schema)
    if path is None:
        return lists
    try:
        lists.write.parquet(path)
    except Exception as error:
        if "PATH_ALREADY_EXISTS" in str(error):
            raise InputError(f"There is something at {path} already; name another folder, or remove it.") from error
        raise
    return spark.read.parquet(path)


def predict(model: TuckerRecommender, pairs: Any, cold: str = "predict", column: str = PREDICTION) -> Any:
    """Add a column of expected ratings to a data frame of pairs, by Spark's workers.

    Parameters
    ----------
    model : TuckerRecommender
    pairs : pyspark.sql.DataFrame
        With columns user_id and item_id, or the names that the ratings had.
    cold : {"predict", "nan", "drop"}
        Pairs of a user or an item without ratings: predict them from attributes and averages, leave them open, or leave
        them out.
    column : str
        The name of the new column.
    """
    require_dataframe(pairs)
    names = {key: model.columns_.get(key, key) for key in KEYS}
    for key, name in names.items():
        if name not in pairs.columns:
            raise InputError(f"pairs has no column {name!r} for {key}; its columns are {', '.join(pairs.columns)}.")
    from pyspark.sql.types import DoubleType, StructField, StructType

    schema = StructType([*(f for f in pairs.schema.fields if f.name != column), StructField(column, DoubleType())])
    sent = pairs.sparkSession.sparkContext.broadcast((model, names, cold, column))
    return pairs.drop(column).mapInArrow(lambda batches: _predictions(batches, sent.value), schema)


def _listed(users: Any) -> list[Any]:
    if not hasattr(users, "sparkSession"):
        return list(users)
    if KEYS[0] not in users.columns:
        raise InputError(f"users has no column {KEYS[0]!r}; its columns are {', '.join(users.columns)}.")
    listed: list[Any] = users.select(KEYS[0]).distinct().toArrow()[KEYS[0]].to_pylist()
    return sorted(listed)


def _kind(ids: list[Any]) -> str:
    """The type of ids in Spark."""
    return "bigint" if isinstance(ids[0], int) else "string"


# In the workers


def _lists(batches: Iterable[Any], sent: tuple[Any, Any, Any]) -> Iterator[Any]:
    import pyarrow as pa

    model, given, arguments = sent
    ids = model.history_.ids[0] if given is None else given
    for batch in batches:
        numbers = batch.column(0).to_numpy()
        for first in range(0, len(numbers), USERS):
            users = [ids[k] for k in numbers[first : first + USERS].tolist()]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of unknown users, in every worker again
                found = model.recommend(users, **arguments)
            columns = [pa.array(found[name].tolist()) for name in list(found.columns)[:4]]  # ids have the user's names
            ranks = pa.array(found["rank"].tolist(), pa.int32())
            yield pa.RecordBatch.from_arrays([*columns, ranks], names=["user_id", "item_id", "score", "std", "rank"])


def _predictions(batches: Iterable[Any], sent: tuple[Any, Any, str, str]) -> Iterator[Any]:
    import pyarrow as pa

    model, names, cold, column = sent
    known = [Ids(ids) for ids in model.history_.ids]
    for batch in batches:
        pairs = {key: batch.column(name).to_pylist() for key, name in names.items()}
        seen = np.logical_and(*(ids.number(values) >= 0 for ids, values in zip(known, pairs.values(), strict=True)))
        rows = np.arange(len(seen)) if cold == "predict" else np.flatnonzero(seen)
        mean = np.full(len(seen), np.nan)
        mean[rows] = _means(model, {key: [values[k] for k in rows.tolist()] for key, values in pairs.items()})
        answered = batch.append_column(column, pa.array(mean))
        yield answered.filter(pa.array(seen)) if cold == "drop" else answered


def _means(model: Any, pairs: dict[str, list[Any]]) -> npt.NDArray[np.float64]:
    if not pairs[KEYS[0]]:
        return np.zeros(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(model.predict(pairs))
