"""Spark sessions and what they return, and one clear sentence where Java would say many."""

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

__all__ = ["reason", "require_pyspark", "returned", "session"]

# What a master may be, and the oldest Java that Spark 4 runs on.
MASTERS = re.compile(r"local(\[.+\])?|local-cluster\[.+\]|spark://.+|k8s://.+|yarn")
JAVA = 17
# Seconds to wait for a master to answer at all.
PATIENCE = 5.0


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
        where = master or "of its configuration"
        raise InputError(f"Spark did not start at the master {where} ({reason(error)}); its log says more.") from error


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


def reason(error: Exception) -> str:
    """The first line of what Java says."""
    java = getattr(error, "java_exception", None)
    said = str(error) if java is None else str(java.getMessage() or java.toString())
    return said.strip().partition("\n")[0].rstrip(".")


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
