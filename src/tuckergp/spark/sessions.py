"""Spark sessions, and one clear sentence where there can be none."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tuckergp.errors import InputError

__all__ = ["column", "column_of", "read_frame", "reason", "require_dataframe", "require_pyspark", "returned", "session"]

# What a master may be, and the oldest Java that Spark 4 runs on.
MASTERS = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|spark://.+|k8s://.+|yarn")
JAVA = 17
# Seconds to wait for a master to answer at all.
PATIENCE = 5.0
# Texts that are whole numbers with another spelling, such as 007.
SPELLED = r"^[+-]?0\d|^\+|^-0$"


def require_pyspark() -> None:
    """Refuse to go on without PySpark and the packages that it needs to take functions of Arrow."""
    try:
        from pyspark.sql.pandas.utils import require_minimum_pandas_version, require_minimum_pyarrow_version

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # PySpark's of new versions of pandas
            require_minimum_pandas_version()
            require_minimum_pyarrow_version()
    except ImportError as error:
        raise InputError(f"Spark needs pyspark, pandas and pyarrow: {error} Install tuckergp[spark].") from None


def java() -> str:
    """The path of Java; refuses to go on without."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if found is None:
        raise InputError("Spark needs Java 17 or 21, and there is none; install it, or set JAVA_HOME to its folder.")
    return found


def session(master: str | None = None, name: str = "tuckergp") -> Any:
    """The Spark session that is there, or a new one at a master such as ``local[4]`` or ``spark://host:7077``.

    Parameters
    ----------
    master : str or None
        None leaves it to Spark's own configuration, which is all cores of this machine without any.
    name : str
        What the application is called in Spark's pages.
    """
    require_pyspark()
    from pyspark.sql import SparkSession

    there = SparkSession.getActiveSession()
    if there is not None:
        if master not in (None, there.sparkContext.master):
            raise InputError(
                f"There is a Spark session at {there.sparkContext.master} already; leave master={master!r} out, or "
                f"end that session with its stop()."
            )
        return there
    found = java()
    _check_master(master)
    builder = SparkSession.builder.appName(name)
    try:
        return (builder if master is None else builder.master(master)).getOrCreate()
    except Exception as error:  # Java's errors come as several kinds
        _check_java(found)
        first = str(error).strip().partition("\n")[0]
        reason = "" if not first or first.startswith("An error occurred while calling") else f" ({first})"
        raise InputError(
            f"Spark did not start at the master {master or 'of its configuration'}{reason}; its log says more."
        ) from error


def _check_master(master: str | None) -> None:
    """Refuse a master that is none, and one where nobody answers."""
    if master is None:
        return
    if not MASTERS.fullmatch(master):
        raise InputError(f"{master!r} is no master of Spark; it is local[4], spark://host:7077, yarn or k8s://host.")
    if not master.startswith("spark://"):
        return
    for host, port in [_address(place, master) for place in master.removeprefix("spark://").split(",")]:
        try:
            socket.create_connection((host, port), PATIENCE).close()
            return
        except (OSError, UnicodeError):
            continue
    raise InputError(
        f"There is no Spark at the master {master}: nobody answers. Is it running, and can this machine reach it? "
        f"local[2] needs none."
    )


def _address(place: str, master: str) -> tuple[str, int]:
    """Host and port of one place of a master."""
    host, _, port = place.rpartition(":")
    if not host or not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 2**16:
        raise InputError(
            f"{place!r} of the master {master} is no address; write a host and a port, a whole number up to 65535, as "
            f"in spark://host:7077."
        )
    return host.strip("[]"), int(port)


def _check_java(path: str) -> None:
    """Refuse a Java that is too old."""
    shown = subprocess.run([path, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', shown)
    if version is not None and int(version[1]) < JAVA:
        raise InputError(f"Spark needs Java 17 or 21, and {path} is Java {version[1]}; set JAVA_HOME to a newer one.")


def read_frame(spark: Any, path: str) -> Any:
    """A data frame of a file or folder of any file system that Spark reads: CSV or TSV by the ending, else Parquet.

    Whole numbers with another spelling, such as 007, stay texts.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    ending = path.rpartition(".")[2]
    try:
        if ending not in ("csv", "tsv"):
            return spark.read.parquet(path)
        return _read_csv(spark, path, "\t" if ending == "tsv" else ",")
    except (Py4JJavaError, PySparkException) as error:
        said = str(error)
        if "PATH_NOT_FOUND" in said:
            raise InputError(f"There is no file or folder {path}.") from None
        if "UNABLE_TO_INFER_SCHEMA" in said:
            raise InputError(f"There is nothing to read in the folder {path}; it has no file with a table.") from None
        if "CANNOT_READ_FILE_FOOTER" in said:
            raise InputError(f"{path} is no Parquet file, or broken; tables of text end in .csv or .tsv.") from None
        raise InputError(f"Spark cannot read {path}: {reason(error)}.") from error


def reason(error: Exception) -> str:
    """The first line of what Java says."""
    java = getattr(error, "java_exception", None)
    said = str(error) if java is None else str(java.getMessage() or java.toString())
    return said.strip().partition("\n")[0].rstrip(".")


def _read_csv(spark: Any, path: str, separator: str) -> Any:
    from pyspark.sql import functions as F
    from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

    texts = spark.read.csv(path, header=True, sep=separator)
    fields = spark.read.csv(path, header=True, sep=separator, inferSchema=True).schema.fields
    whole = [field.name for field in fields if isinstance(field.dataType, IntegerType | LongType)]
    spelled = texts.agg(F.lit(0), *(F.max(column(name).rlike(SPELLED)) for name in whole)).first()[1:]
    kept = {name for name, wrong in zip(whole, spelled, strict=True) if wrong}
    schema = [StructField(f.name, StringType()) if f.name in kept else f for f in fields]
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
    """Refuse what is no Spark data frame of a classic session; ``instead`` says what another table is for."""
    require_pyspark()
    from pyspark.sql import DataFrame

    if not isinstance(frame, DataFrame):
        raise InputError(
            f"{name} must be a Spark data frame, not {type(frame).__name__}; read one with spark.read, or {instead}."
        )
    if not hasattr(frame, "_jdf"):
        raise InputError(f"Spark Connect cannot keep {name} in its workers; use a classic Spark session.")


@contextmanager
def returned() -> Iterator[None]:
    """Around what brings results to the driver: a sentence where they are larger than Spark allows."""
    try:
        yield
    except Exception as error:  # Java's errors come as several kinds
        if "spark.driver.maxResultSize" not in str(error):
            raise
        raise InputError(
            "A job returned more to the driver than spark.driver.maxResultSize allows; raise that setting, or take "
            "more partitions."
        ) from error
