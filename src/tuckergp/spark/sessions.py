"""Spark sessions, and one clear sentence where there can be none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from tuckergp.errors import InputError

__all__ = ["require_dataframe", "require_pyspark", "session"]


def require_pyspark() -> None:
    """Refuse to go on without PySpark."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise InputError("Spark needs the package pyspark; install tuckergp[spark].") from None


def require_java() -> None:
    """Refuse to go on without Java."""
    home = os.environ.get("JAVA_HOME")
    found = (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None
    if not found:
        raise InputError("Spark needs Java 17 or 21, and there is none; install it, or set JAVA_HOME to its folder.")


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
    require_java()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    try:
        return (builder if master is None else builder.master(master)).getOrCreate()
    except Exception as error:  # Java's errors come as several kinds
        first = str(error).strip().partition("\n")[0]
        reason = "" if not first or first.startswith("An error occurred while calling") else f" ({first})"
        raise InputError(
            f"There is no Spark at the master {master or 'of its configuration'}{reason}. Is it running, and can this "
            f"machine reach it? local[2] needs none."
        ) from error


def require_dataframe(ratings: Any) -> None:
    """Refuse what is no Spark data frame of a classic session."""
    require_pyspark()
    from pyspark.sql import DataFrame

    if not isinstance(ratings, DataFrame):
        raise InputError(
            f"ratings must be a Spark data frame, not {type(ratings).__name__}; read one with spark.read, or fit a "
            f"TuckerRecommender on this machine."
        )
    if not hasattr(ratings, "_jdf"):
        raise InputError("Spark Connect cannot keep ratings in its workers; use a classic Spark session.")
