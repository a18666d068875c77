"""Data frames of Spark: read from files, and their columns by name, whatever signs names have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuckergp.data.names import KEYS, taken_names
from tuckergp.errors import InputError
from tuckergp.spark.sessions import reason, require_pyspark

__all__ = ["column_of", "read_frame", "require_dataframe"]

# Whole numbers as Python writes them; ids with another spelling, such as 007, are texts.
CANONICAL = r"^(0|-?[1-9]\d*)$"


def read_frame(spark: Any, path: str, names: Mapping[str, str] | None = None) -> Any:
    """A data frame of a file or folder of any file system that Spark reads: CSV or TSV by the ending, else Parquet.

    In text files ids are whole numbers or texts, as `tuckergp.data.id_types` has it: 007 keeps its spelling, and what
    looks like a date is none. ``names`` are those of columns where they are not the usual ones.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    ending = path.rpartition(".")[2]
    try:
        if ending not in ("csv", "tsv"):
            return spark.read.parquet(path)
        return _read_csv(spark, path, "\t" if ending == "tsv" else ",", names)
    except (Py4JJavaError, PySparkException) as error:
        said = str(error)
        if "PATH_NOT_FOUND" in said:
            raise InputError(f"There is no file or folder {path}.") from None
        if "UNABLE_TO_INFER_SCHEMA" in said:
            raise InputError(f"There is nothing to read in the folder {path}; it has no file with a table.") from None
        if "CANNOT_READ_FILE_FOOTER" in said:
            raise InputError(f"{path} is no Parquet file, or broken; tables of text end in .csv or .tsv.") from None
        raise InputError(f"Spark cannot read {path}: {reason(error)}.") from error


def _read_csv(spark: Any, path: str, separator: str, names: Mapping[str, str] | None) -> Any:
    from pyspark.sql import functions as F
    from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

    texts = spark.read.csv(path, header=True, sep=separator)
    fields = spark.read.csv(path, header=True, sep=separator, inferSchema=True).schema.fields
    taken = taken_names(texts.columns, path, names)
    ids = {taken.get(key, key) for key in KEYS}
    whole = [field.name for field in fields if field.name in ids and isinstance(field.dataType, IntegerType | LongType)]
    canonical = texts.agg(F.lit(0), *(F.min(column(name).rlike(CANONICAL)) for name in whole)).first()[1:]
    numbers = {name for name, all_are in zip(whole, canonical, strict=True) if all_are}
    schema = [StructField(f.name, StringType()) if f.name in ids - numbers else f for f in fields]
    return spark.read.csv(path, header=True, sep=separator, schema=StructType(schema))


def column(name: str) -> Any:
    """The column of this name, whatever signs it is of."""
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def column_of(frame: Any, name: str, what: str) -> Any:
    """A column of a data frame that messages call ``what``; refuses a name that several columns have."""
    exact = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    same = [each for each in frame.columns if each == name or (not exact and each.lower() == name.lower())]
    if len(same) > 1:
        raise InputError(
            f"{what} has several columns that Spark does not tell apart, {', '.join(map(repr, same))}; rename or drop "
            f"all but one."
        )
    return column(name)


def require_dataframe(
    frame: Any, name: str = "ratings", instead: str = "fit a TuckerRecommender on this machine"
) -> None:
    """Refuse what is no Spark data frame of a classic session that runs; ``instead`` is what other tables are for."""
    require_pyspark()
    from pyspark.sql import DataFrame

    if not isinstance(frame, DataFrame):
        raise InputError(
            f"{name} must be a Spark data frame, not {type(frame).__name__}; read one with spark.read, or {instead}."
        )
    if not hasattr(frame, "_jdf"):
        raise InputError(f"Spark Connect cannot keep {name} in its workers; use a classic Spark session.")
    if frame.sparkSession.sparkContext._jsc is None:
        raise InputError(f"The Spark session of {name} was stopped; read them again in a new one.")
