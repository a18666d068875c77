"""Parameters of the pair in `tuckergp.spark.ml`: those that Spark's ALS has, too, with its names, setters and getters.

What has no meaning here is refused where it is set, in a sentence that says what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasPredictionCol, HasSeed

from tuckergp.checks import check, positive
from tuckergp.errors import InputError
from tuckergp.spark.answering import COLD

__all__ = ["Columns", "Settings", "with_accessors"]

# What ALS has and a fit here has not: the value that means the same here, if there is one, and what to do.
WITHOUT: dict[str, tuple[Any, str]] = {
    "alpha": (
        None,
        "How much clicks weigh is chosen on held-out ones; leave alpha out, or give tuckergp.spark.fit a "
        "likelihood=Clicks(...).",
    ),
    "blockSize": (None, "Lists are made for as many users at a time as fit; leave blockSize out."),
    "checkpointInterval": (
        -1,
        "A run is saved every five minutes where checkpointDir names a folder; leave checkpointInterval out.",
    ),
    "finalStorageLevel": ("MEMORY_AND_DISK", "store names a folder where users stay; leave finalStorageLevel out."),
    "intermediateStorageLevel": (
        "MEMORY_AND_DISK",
        "Ratings are kept in memory or on disk, as MEMORY_AND_DISK has it; leave intermediateStorageLevel out.",
    ),
    "nonnegative": (False, "Factors have both signs here; leave nonnegative out, or fit Spark's own ALS."),
    "numItemBlocks": (None, "Items are in no blocks here; leave numItemBlocks out, numUserBlocks says how many tasks."),
}

C = TypeVar("C", bound=type)


def _param(name: str, meaning: str, kind: Callable[[Any], Any]) -> Any:
    return Param(Params._dummy(), name, meaning, typeConverter=kind)


def _without(name: str) -> Any:
    """A parameter of ALS that takes the value alone that means the same here."""

    def refuse(value: Any) -> Any:
        same, advice = WITHOUT[name]
        if value != same:
            raise InputError(f"{name}={value!r} of Spark's ALS has no meaning here. {advice}")
        return value

    return _param(name, "of Spark's ALS, without a meaning here", refuse)


def _cold(value: Any) -> str:
    check("coldStartStrategy", value, COLD)
    return str(value)


def _penalty(value: Any) -> float:
    check("regParam", value, positive())
    return float(value)


def with_accessors(owner: C) -> C:
    """Give a class ``setX`` and ``getX`` for each of its parameters x, as those of `pyspark.ml` have."""
    for name in dir(owner):
        if isinstance(getattr(owner, name), Param):
            for verb, method in (("set", _setter(name)), ("get", _getter(name))):
                method.__name__ = f"{verb}{name[0].upper()}{name[1:]}"
                setattr(owner, method.__name__, method)
    return owner


def _setter(name: str) -> Callable[..., Any]:
    def setter(self: Any, value: Any) -> Any:
        return self._set(**{name: value})

    setter.__doc__ = f"Set {name}."
    return setter


def _getter(name: str) -> Callable[..., Any]:
    def getter(self: Any) -> Any:
        return self.getOrDefault(name)

    getter.__doc__ = f"The value of {name}, or its default."
    return getter


class Columns(HasPredictionCol):
    """Names of columns, and what to do with pairs of users or items without ratings."""

    userCol = _param("userCol", "column of users: whole numbers or texts", TypeConverters.toString)
    itemCol = _param("itemCol", "column of items: whole numbers or texts", TypeConverters.toString)
    coldStartStrategy = _param("coldStartStrategy", "nan, drop or predict", _cold)
    blockSize = _without("blockSize")

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(userCol="user", itemCol="item", predictionCol="prediction", coldStartStrategy="nan")
        self._setDefault(**{name: same for name, (same, _) in WITHOUT.items() if self.hasParam(name)})

    def value(self, name: str) -> Any:
        """The value of a parameter, or its default."""
        return self.getOrDefault(name)

    def given(self, name: str) -> bool:
        """Whether a parameter is set, and not to None."""
        return bool(self.isSet(name)) and self.value(name) is not None


class Settings(Columns, HasSeed):
    """What is learned, and how."""

    rank = _param("rank", "length of the vectors of users and items", TypeConverters.toInt)
    maxIter = _param("maxIter", "rounds of als", TypeConverters.toInt)
    regParam = _param("regParam", "penalty of als, found by trials where it is not set", _penalty)
    implicitPrefs = _param("implicitPrefs", "whether ratings are strengths of clicks", TypeConverters.toBoolean)
    ratingCol = _param("ratingCol", "column of ratings", TypeConverters.toString)
    numUserBlocks = _param("numUserBlocks", "as partitions", TypeConverters.toInt)
    inference = _param("inference", "auto, gibbs or als", TypeConverters.toString)
    likelihood = _param("likelihood", "auto, gaussian or clicks", TypeConverters.toString)
    draws = _param("draws", "draws of gibbs", TypeConverters.toInt)
    warmup = _param("warmup", "sweeps of gibbs before the draws", TypeConverters.toInt)
    checkpointDir = _param("checkpointDir", "folder of the driver, empty for none", TypeConverters.toString)
    partitions = _param("partitions", "tasks of each sweep, 0 for one on each core", TypeConverters.toInt)
    store = _param("store", "new folder where users stay in Parquet, empty for none", TypeConverters.toString)
    keep = _param("keep", "draws of gibbs that are kept, 0 for all", TypeConverters.toInt)
    alpha = _without("alpha")
    checkpointInterval = _without("checkpointInterval")
    finalStorageLevel = _without("finalStorageLevel")
    intermediateStorageLevel = _without("intermediateStorageLevel")
    nonnegative = _without("nonnegative")
    numItemBlocks = _without("numItemBlocks")

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(
            rank=10,
            maxIter=10,
            regParam=None,
            implicitPrefs=False,
            ratingCol="rating",
            numUserBlocks=0,
            inference="auto",
            likelihood="auto",
            draws=100,
            warmup=20,
            checkpointDir="",
            partitions=0,
            store="",
            keep=0,
            seed=0,
        )

    def check_settings(self) -> None:
        """Refuse what has no meaning here, or none together, also where a map of parameters was given to `fit`."""
        for name in WITHOUT:
            if self.given(name):
                self.getParam(name).typeConverter(self.value(name))
        mine, others = ("als", ("draws", "warmup")) if self.by_als else ("gibbs", ("maxIter", "regParam"))
        for name in others:
            if self.given(name):
                other = "gibbs" if self.by_als else "als"
                raise InputError(f"{name} is for inference='{other}' and this is '{mine}'; leave one of them out.")
        for first, second in (("partitions", "numUserBlocks"), ("implicitPrefs", "likelihood")):
            if self.given(first) and self.given(second):
                raise InputError(f"{first} and {second} say the same thing; leave one of them out.")

    @property
    def by_als(self) -> bool:
        """Whether to learn by alternating least squares: where that is said, or something that it alone has."""
        if self.value("inference") == "auto":
            return bool(self.given("maxIter") or self.given("regParam"))
        return bool(self.value("inference") == "als")

    @property
    def kind(self) -> str:
        """The likelihood."""
        if self.given("implicitPrefs"):
            return "clicks" if self.value("implicitPrefs") else "gaussian"
        return str(self.value("likelihood"))
