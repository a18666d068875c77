"""One Spark session on one core, so one Python worker, for all tests; skipped without Java or PySpark."""

import os
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

# the workers import the package from where it is tested
SOURCE = str(Path(__file__).parents[2] / "src")


def why_not() -> str | None:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "PySpark is not installed"
    return None if shutil.which("java") else "there is no Java"


def environment() -> None:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")])


def build(master):
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.driver.memory": "1g",
        # short tests do not pay for optimised code
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


@pytest.fixture(scope="session")
def spark():
    if why_not():
        pytest.skip(why_not())
    environment()
    warnings.simplefilter("ignore", FutureWarning)  # PySpark's of new versions of pandas
    session = build("local[1]")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def table():
    """Ratings of 150 users and 40 items, sorted by user and item, with texts as ids of users."""
    rng = np.random.default_rng(0)
    cells = np.sort(rng.choice(150 * 40, 1800, replace=False))
    user, item = np.divmod(cells, 40)
    psi, phi = rng.standard_normal((150, 2)), rng.standard_normal((40, 2))
    y = np.round(2 * (3 + (psi[user] * phi[item]).sum(axis=1) + 0.5 * rng.standard_normal(len(cells)))) / 2
    return {"user_id": [f"u{u:03d}" for u in user], "item_id": item.tolist(), "rating": np.clip(y, 0.5, 5).tolist()}


def frame(spark, table, order=None):
    """A data frame of a table, in any order of rows."""
    rows = np.arange(len(next(iter(table.values())))) if order is None else order
    columns = {name: [values[k] for k in rows] for name, values in table.items()}
    return spark.createDataFrame(list(zip(*columns.values(), strict=True)), list(columns))
