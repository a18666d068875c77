"""A pair of `pyspark.ml` Estimator and Model that stands in a pipeline where Spark's ALS stood.

Importing this module imports PySpark. Parameters are in `tuckergp.spark.als_params`.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from pyspark import keyword_only
from pyspark.ml import Estimator, Model
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

from tuckergp.data.names import COUNT, KEYS, RATING, taken_names
from tuckergp.errors import InputError
from tuckergp.recommender import TuckerRecommender
from tuckergp.recommender.choosing import inference_of
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.spark.als_params import Columns, Settings, with_accessors
from tuckergp.spark.answering import predict, recommend
from tuckergp.spark.audience import best_users
from tuckergp.spark.fitting import fit
from tuckergp.spark.frames import column_of
from tuckergp.spark.sessions import session
from tuckergp.spark.stored import USERS_FOLDER, StoredRecommender, check_apart, has_users, load_model, save_model

__all__ = ["TuckerEstimator", "TuckerSparkModel"]


@with_accessors
class TuckerEstimator(Estimator, Settings, DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[type-arg]
    """Learn a recommender from a data frame of ratings; see `tuckergp.spark.fit`.

    Each parameter has a setter and a getter, as in `pyspark.ml`. What ALS alone has is refused in a sentence.

    Parameters
    ----------
    rank, seed, userCol, itemCol, ratingCol, predictionCol, coldStartStrategy
        As in `pyspark.ml.recommendation.ALS`.
    inference : {"auto", "gibbs", "als"}
        ``"auto"`` is ``"als"`` where ``maxIter`` or ``regParam`` is set, else ``"gibbs"``, which needs neither.
    maxIter : int
        The most rounds of ``"als"``.
    regParam : float
        For ``"als"``: the penalty of rows with an average number of ratings is that of Spark's ALS, ``regParam`` times
        that number. Where it is not set, trials on held-out ratings find it, as for `TuckerRecommender`.
    implicitPrefs : bool
        True for ``likelihood="clicks"``; ``ratingCol`` then holds the strengths of clicks.
    likelihood : {"auto", "gaussian", "clicks"}
    draws, warmup : int
        For ``"gibbs"``.
    checkpointDir : str
        A folder of the driver; empty for none.
    partitions, numUserBlocks : int
        Tasks of each sweep, 0 for as many as Spark has cores; two names for the same.
    store : str
        A new folder where users stay in Parquet, as in `tuckergp.spark.fit`; empty for a recommender on the driver.
    keep : int
        How many draws of ``"gibbs"`` are kept, 0 for all.
    users, items : table with ``userCol`` (``itemCol``) and attributes, or None
        As in `tuckergp.spark.fit`. They are no parameters of `pyspark.ml`, and not saved with the estimator.
    """

    @keyword_only
    def __init__(self, **given: Any) -> None:
        super().__init__()
        self.users: Any = None
        self.items: Any = None
        self.setParams(**given)

    def setParams(self, **given: Any) -> TuckerEstimator:
        """Set parameters by name."""
        self.users, self.items = given.pop("users", self.users), given.pop("items", self.items)
        self._set(**given)
        return self

    def setUsers(self, table: Any) -> TuckerEstimator:
        """Set the attributes of users."""
        return self.setParams(users=table)

    def setItems(self, table: Any) -> TuckerEstimator:
        """Set the attributes of items."""
        return self.setParams(items=table)

    def setNumBlocks(self, value: int) -> TuckerEstimator:
        """Set numUserBlocks; items are in no blocks."""
        return self.setParams(numUserBlocks=value)

    def write(self) -> MLWriter:
        """What `save` writes by."""
        if self.users is not None or self.items is not None:
            raise InputError(
                "Tables of attributes are not saved with an estimator; save it without, by setUsers(None) and "
                "setItems(None), and set them again where it is loaded."
            )
        return super().write()

    def _fit(self, dataset: Any) -> TuckerSparkModel:
        self.check_settings()
        columns = self._columns(dataset)
        if self.by_als:
            how = {"inference": self._als(dataset, columns)}
        else:
            how = {name: self.value(name) for name in ("draws", "warmup")}
            how["inference"] = "gibbs" if self.value("inference") == "auto" else self.value("inference")
        learned = fit(
            dataset,
            self.users,
            self.items,
            rank=self.value("rank"),
            likelihood=self.kind,
            columns=columns,
            random_state=self.value("seed"),
            checkpoint=self.value("checkpointDir") or None,
            partitions=self.value("partitions") or self.value("numUserBlocks") or None,
            store=self.value("store") or None,
            keep=self.value("keep") or None,
            **how,
        )
        model = self._copyValues(TuckerSparkModel(learned))
        return model._set(userCol=columns["user_id"], itemCol=columns["item_id"])

    def _columns(self, dataset: Any) -> dict[str, str]:
        """The columns by what they hold: those that parameters name, or that `fit` would find where one is not set."""
        roles = {KEYS[0]: "userCol", KEYS[1]: "itemCol", COUNT if self.kind == "clicks" else RATING: "ratingCol"}
        named = {role: self.value(name) for role, name in roles.items() if self.value(name) in dataset.columns}
        usual = {role: role for role in roles if role in dataset.columns}
        found = {**usual, **taken_names(dataset.columns, "ratings", named, tuple(roles))}
        for role, name in roles.items():
            if role not in named if self.given(name) else role in KEYS and role not in found:
                raise InputError(
                    f"The data has no column {self.value(name)!r}, which {name} names; its columns are "
                    f"{', '.join(dataset.columns)}."
                )
        return found

    def _als(self, dataset: Any, columns: dict[str, str]) -> Any:
        """What the name stands for in `TuckerRecommender`, with the rounds and the prior scale of the parameters."""
        named: Any = inference_of(RecommenderSettings(inference="als"))
        scale = {"sigma_u": named.noise**0.5 * self._scale(dataset, columns)} if self.given("regParam") else {}
        return replace(named, iterations=self.value("maxIter"), **scale)

    def _scale(self, dataset: Any, columns: dict[str, str]) -> float:
        """The prior scale that ``regParam`` stands for, with noise of variance 1.

        With penalties p n and p m of users and items, n = N / M_u and m = N / M_i their average numbers of ratings,
        f is the same as with the penalty p (n m)^1/2 of both, for the factors of one may be scaled by a number and
        those of the other by its inverse. In the units of standardised ratings that is 1 / sigma_u^2.
        """
        from pyspark.sql import functions as F

        of = {role: column_of(dataset, name, "ratings") for role, name in columns.items()}
        user, item = (of[key] for key in KEYS)
        if RATING in of:
            number, spread = F.count("*"), F.stddev_pop(of[RATING].try_cast("double"))
        else:
            number, spread = F.count_distinct(user, item), F.lit(1.0)
        n, users, items, std = dataset.agg(number, F.count_distinct(user), F.count_distinct(item), spread).first()
        std = std if std and np.isfinite(std) else 1.0  # what is no rating is refused later
        return float((std * (users * items) ** 0.5 / (self.value("regParam") * max(n, 1))) ** 0.5) or 1.0


@with_accessors
class TuckerSparkModel(Model, Columns, MLReadable, MLWritable):  # type: ignore[type-arg]
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

    def recommendForAllItems(self, numUsers: int) -> Any:
        """The users who like each item best: a row per item with an array of users and ratings, as ALS gives it."""
        return self._nested(best_users(self.recommender, numUsers), *KEYS[::-1])

    def recommendForItemSubset(self, dataset: Any, numUsers: int) -> Any:
        """The users who like the items of a data frame best."""
        items = dataset.select(column_of(dataset, self.value("itemCol"), "dataset").alias("item_id"))
        return self._nested(best_users(self.recommender, numUsers, items), *KEYS[::-1])

    @property
    def rank(self) -> int:
        """The length of the vectors of one draw."""
        return int(self._rest.fit_.draws.model.core.ranks[0])

    @property
    def userFactors(self) -> Any:
        """Users as a data frame of id and features: the vectors of all draws, one after the other.

        Inner products with those of `itemFactors` are predictions, not clipped; of clicks f, which decides their order.
        """
        from pyspark.sql import functions as F

        if not isinstance(self.recommender, StoredRecommender):
            vectors = self.recommender.embeddings()
            return _vectors(vectors.user_ids, vectors.users, vectors.offset)
        fit = self._rest.fit_
        share, offset = fit.scale / len(fit.draws), F.array(F.lit(fit.mean).cast("float"))
        features = F.concat(F.transform("factors", lambda value: (share * value).cast("float")), offset)
        return self.recommender.users.select(F.col(KEYS[0]).alias("id"), features.alias("features"))

    @property
    def itemFactors(self) -> Any:
        """Items as a data frame of id and features; see `userFactors`."""
        vectors = self._rest.embeddings()
        return _vectors(vectors.item_ids, vectors.items, 1.0)

    @property
    def _rest(self) -> TuckerRecommender:
        """The recommender, without users that are in Parquet."""
        return self.recommender.model if isinstance(self.recommender, StoredRecommender) else self.recommender

    def _nested(self, lists: Any, of: str = KEYS[0], what: str = KEYS[1]) -> Any:
        from pyspark.sql import functions as F

        shown = {KEYS[0]: self.value("userCol"), KEYS[1]: self.value("itemCol")}
        entry = F.struct(F.col("rank"), F.col(what).alias(shown[what]), F.col("score").alias("rating"))
        sorted_entries = F.array_sort(F.collect_list(entry))
        without_rank = F.transform(sorted_entries, lambda entry: entry.dropFields("rank"))
        return lists.groupBy(of).agg(without_rank.alias("recommendations")).withColumnRenamed(of, shown[of])


def _vectors(ids: list[Any], vectors: Any, last: float) -> Any:
    """Ids and vectors, each with one more number, as a data frame."""
    import pyarrow as pa

    whole = np.column_stack([vectors, np.full(len(vectors), last, dtype=np.float32)])
    ends = np.arange(len(whole) + 1, dtype=np.int32) * whole.shape[1]
    lists = pa.ListArray.from_arrays(pa.array(ends), pa.array(whole.ravel()))
    return session().createDataFrame(pa.table({"id": pa.array(ids), "features": lists}))


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
