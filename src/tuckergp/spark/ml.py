"""A pair of `pyspark.ml` Estimator and Model that stands in a pipeline where Spark's ALS stood.

Importing this module imports PySpark. Parameters have the names of ALS where they mean the same.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasPredictionCol, HasSeed
from pyspark.ml.util import (
    DefaultParamsReadable,
    DefaultParamsReader,
    DefaultParamsWritable,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)

from tuckergp.checks import check
from tuckergp.errors import InputError
from tuckergp.inference import ALS
from tuckergp.recommender import TuckerRecommender
from tuckergp.spark.answering import COLD, predict, recommend
from tuckergp.spark.fitting import fit
from tuckergp.spark.sessions import column_of
from tuckergp.spark.stored import USERS_FOLDER, StoredRecommender, check_apart, has_users, load_model, save_model

__all__ = ["TuckerEstimator", "TuckerSparkModel"]


def _param(name: str, meaning: str, kind: Any) -> Any:
    return Param(Params._dummy(), name, meaning, typeConverter=kind)


def _cold(value: Any) -> str:
    check("coldStartStrategy", value, COLD)
    return str(value)


class _Columns(HasPredictionCol):
    """Names of columns, and what to do with pairs of users or items without ratings."""

    userCol = _param("userCol", "column of users: whole numbers or texts", TypeConverters.toString)
    itemCol = _param("itemCol", "column of items: whole numbers or texts", TypeConverters.toString)
    coldStartStrategy = _param("coldStartStrategy", "nan, drop or predict", _cold)

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(userCol="user", itemCol="item", predictionCol="prediction", coldStartStrategy="nan")

    def value(self, name: str) -> Any:
        """The value of a parameter, or its default."""
        return self.getOrDefault(name)


class TuckerEstimator(Estimator, _Columns, HasSeed, DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[type-arg]
    """Learn a recommender from a data frame of ratings; see `tuckergp.spark.fit`.

    Parameters
    ----------
    rank, maxIter, seed, userCol, itemCol, ratingCol, predictionCol, coldStartStrategy
        As in `pyspark.ml.recommendation.ALS`; ``maxIter`` is for ``inference="als"``.
    inference : {"gibbs", "als"}
    likelihood : {"auto", "gaussian", "clicks"}
        ``"clicks"`` is for what ALS calls implicit preferences; ``ratingCol`` then holds their strengths.
    draws, warmup : int
        For ``"gibbs"``.
    checkpointDir : str
        A folder of the driver; empty for none.
    partitions : int
        0 for as many as Spark has cores.
    store : str
        A new folder where users stay in Parquet, as in `tuckergp.spark.fit`; empty for a recommender on the driver.
    keep : int
        How many draws of ``"gibbs"`` are kept, 0 for all.
    """

    rank = _param("rank", "length of the vectors of users and items", TypeConverters.toInt)
    maxIter = _param("maxIter", "rounds of als", TypeConverters.toInt)
    ratingCol = _param("ratingCol", "column of ratings", TypeConverters.toString)
    inference = _param("inference", "gibbs or als", TypeConverters.toString)
    likelihood = _param("likelihood", "auto, gaussian or clicks", TypeConverters.toString)
    draws = _param("draws", "draws of gibbs", TypeConverters.toInt)
    warmup = _param("warmup", "sweeps of gibbs before the draws", TypeConverters.toInt)
    checkpointDir = _param("checkpointDir", "folder of the driver, empty for none", TypeConverters.toString)
    partitions = _param("partitions", "tasks of each sweep, 0 for one on each core", TypeConverters.toInt)
    store = _param("store", "new folder where users stay in Parquet, empty for none", TypeConverters.toString)
    keep = _param("keep", "draws of gibbs that are kept, 0 for all", TypeConverters.toInt)

    @keyword_only
    def __init__(self, **given: Any) -> None:
        super().__init__()
        self._setDefault(
            rank=10,
            maxIter=10,
            ratingCol="rating",
            inference="gibbs",
            likelihood="auto",
            draws=100,
            warmup=20,
            checkpointDir="",
            partitions=0,
            store="",
            keep=0,
            seed=0,
        )
        self._set(**given)

    def setParams(self, **given: Any) -> TuckerEstimator:
        """Set parameters by name."""
        self._set(**given)
        return self

    def _fit(self, dataset: Any) -> TuckerSparkModel:
        for name in ("userCol", "itemCol", "ratingCol"):
            if self.isSet(name) and self.value(name) not in dataset.columns:
                raise InputError(
                    f"The data has no column {self.value(name)!r}, which {name} names; its columns are "
                    f"{', '.join(dataset.columns)}."
                )
        columns = {"user_id": self.value("userCol"), "item_id": self.value("itemCol")}
        if self.value("ratingCol") in dataset.columns:
            columns["count" if self.value("likelihood") == "clicks" else "rating"] = self.value("ratingCol")
        by_als = self.value("inference") == "als"
        how: dict[str, Any] = {"draws": self.value("draws"), "warmup": self.value("warmup")}
        learned = fit(
            dataset,
            rank=self.value("rank"),
            inference=ALS(iterations=self.value("maxIter")) if by_als else self.value("inference"),
            likelihood=self.value("likelihood"),
            columns=columns,
            random_state=self.value("seed"),
            checkpoint=self.value("checkpointDir") or None,
            partitions=self.value("partitions") or None,
            store=self.value("store") or None,
            keep=self.value("keep") or None,
            **({} if by_als else how),
        )
        return self._copyValues(TuckerSparkModel(learned))


class TuckerSparkModel(Model, _Columns, MLReadable, MLWritable):  # type: ignore[type-arg]
    """A fitted recommender as a transformer: it adds a column of predictions.

    A saved one holds all that it needs; users that are in Parquet are copied with it.

    Attributes
    ----------
    recommender : TuckerRecommender or StoredRecommender
        The model itself, with `save`, `explain` and the rest; with ``store`` that whose users are in Parquet.
    """

    def __init__(self, recommender: TuckerRecommender | StoredRecommender) -> None:
        super().__init__()
        self.recommender = recommender

    def write(self) -> MLWriter:
        """What `save` writes by."""
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader[TuckerSparkModel]:
        """What `load` reads by."""
        return _Reader()

    def _transform(self, dataset: Any) -> Any:
        return predict(self._named(), dataset, self.value("coldStartStrategy"), self.value("predictionCol"))

    def _named(self) -> TuckerRecommender | StoredRecommender:
        """The recommender with the names of columns that are set here."""
        stored = self.recommender if isinstance(self.recommender, StoredRecommender) else None
        named: Any = copy(self.recommender if stored is None else stored.model)
        named.columns_ = {**named.columns_, "user_id": self.value("userCol"), "item_id": self.value("itemCol")}
        return named if stored is None else replace(stored, model=named)

    def recommendForAllUsers(self, numItems: int) -> Any:
        """The best items of every user: a row per user with an array of items and ratings, as ALS gives it."""
        return self._nested(recommend(self.recommender, n=numItems, exclude_seen=False))

    def recommendForUserSubset(self, dataset: Any, numItems: int) -> Any:
        """The best items of the users of a data frame."""
        users = dataset.select(column_of(dataset, self.value("userCol"), "dataset").alias("user_id"))
        return self._nested(recommend(self.recommender, n=numItems, users=users, exclude_seen=False))

    def _nested(self, lists: Any) -> Any:
        from pyspark.sql import functions as F

        item = F.struct(F.col("rank"), F.col("item_id").alias(self.value("itemCol")), F.col("score").alias("rating"))
        sorted_items = F.array_sort(F.collect_list(item))
        without_rank = F.transform(sorted_items, lambda entry: entry.dropFields("rank"))
        grouped = lists.groupBy("user_id").agg(without_rank.alias("recommendations"))
        return grouped.withColumnRenamed("user_id", self.value("userCol"))


class _Writer(MLWriter):
    """Writes the parameters, the model file, and users in Parquet, into one folder."""

    def __init__(self, instance: TuckerSparkModel) -> None:
        super().__init__()
        self.instance = instance

    def save(self, path: str) -> None:
        """Save, unless that would delete the users before they are read."""
        if isinstance(self.instance.recommender, StoredRecommender):
            check_apart(self.sparkSession, self.instance.recommender, path)
        super().save(path)

    def saveImpl(self, path: str) -> None:
        spark, recommender = self.sparkSession, self.instance.recommender
        DefaultParamsWriter.saveMetadata(self.instance, path, spark)
        if isinstance(recommender, StoredRecommender):
            recommender.users.write.parquet(f"{path}/{USERS_FOLDER}")
            recommender = recommender.model
        save_model(spark, recommender, path)


class _Reader(MLReader[TuckerSparkModel]):
    def load(self, path: str) -> TuckerSparkModel:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        model = load_model(path)
        found = TuckerSparkModel(StoredRecommender(path, model) if has_users(self.sparkSession, path) else model)
        found._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(found, metadata)
        return found
