"""One clear sentence for what Spark cannot do."""

import os

import numpy as np
import pytest

from tests.spark.conftest import frame
from tuckergp.errors import InputError
from tuckergp.inference import Gibbs
from tuckergp.spark import fit, session
from tuckergp.spark.sessions import require_java

SHORT = {"rank": 2, "draws": 1, "warmup": 0, "random_state": 0}


def test_a_table_of_another_library_is_refused(spark, table):
    with pytest.raises(InputError, match="must be a Spark data frame, not dict"):
        fit(table)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"implicit": True}, "Co-rating .* use implicit=False"),
        ({"time": "week"}, "Drift .* use time=None"),
        ({"noise": "rows"}, "Noise factors .* use noise='shared'"),
        ({"inference": Gibbs(noise="rows")}, "Noise factors"),
        ({"objective": "value"}, "second fit"),
        ({"core": "full"}, "takes core='identity' alone"),
        ({"context": "device"}, "takes context"),
        ({"chains": 2}, "takes chains=1 alone"),
        ({"duplicates": "mean"}, "takes duplicates='keep' alone"),
        ({"likelihood": "ordinal"}, "not 'ordinal'; fit locally"),
        ({"inference": "sgd"}, "not 'sgd'; fit locally"),
        ({"ranks": 3}, "no setting 'ranks'"),
        ({"partitions": 0}, "partitions must be"),
    ],
)
def test_settings_that_need_more_than_sums_are_refused(spark, table, settings, words):
    with pytest.raises(InputError, match=words):
        fit(frame(spark, {name: values[:5] for name, values in table.items()}), **settings)


def test_bad_columns_are_named(spark):
    with pytest.raises(InputError, match="no column 'item_id'"):
        fit(spark.createDataFrame([(1, 4.0)], "user_id int, rating double"))
    with pytest.raises(InputError, match=r"user_id.*type double"):
        fit(spark.createDataFrame([(1.5, 1, 4.0)], "user_id double, item_id int, rating double"))
    with pytest.raises(InputError, match=r"rating.*type string"):
        fit(spark.createDataFrame([(1, 1, "good")], "user_id int, item_id int, rating string"))


@pytest.mark.parametrize(
    ("row", "column"), [((None, 1, 1.0), "user_id"), ((1, None, 1.0), "item_id"), ((1, 1, float("nan")), "rating")]
)
def test_missing_values_are_counted(spark, row, column):
    bad = spark.createDataFrame([(1, 2, 3.0), row], "user_id int, item_id int, rating double")
    with pytest.raises(InputError, match=f"{column}' has no value in 1 rows"):
        fit(bad)


def test_no_ratings_are_refused(spark):
    with pytest.raises(InputError, match="empty"):
        fit(spark.createDataFrame([], "user_id int, item_id int, rating double"))


@pytest.mark.slow
def test_empty_partitions_do_no_harm(spark):
    few = spark.createDataFrame(
        [(u, i, float(u + i)) for u in range(4) for i in range(3)], "user_id int, item_id int, rating double"
    )
    model = fit(few.repartition(4), partitions=3, **SHORT)
    assert np.isfinite(model.predict({"user_id": [0], "item_id": [2]})).all()


@pytest.mark.slow
def test_a_frame_that_changes_is_noticed(spark):
    def other_each_time(batches):
        import os

        import pyarrow as pa

        for batch in batches:
            shift = int.from_bytes(os.urandom(6), "big")
            users = pa.array([value + shift for value in batch.column(0).to_pylist()], pa.int64())
            yield pa.RecordBatch.from_arrays([users, *batch.columns[1:]], names=batch.schema.names)

    schema = "user_id bigint, item_id bigint, rating double"
    steady = spark.createDataFrame([(u, i, float(u + i)) for u in range(9) for i in range(3)], schema)
    with pytest.raises(InputError, match="not the same each time"):
        fit(steady.mapInArrow(other_each_time, schema), **SHORT)


def test_no_java_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(InputError, match="needs Java 17 or 21"):
        require_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match="needs Java 17 or 21"):
        session("local[1]")


def test_a_master_that_makes_no_sense_is_one_sentence(spark, monkeypatch):
    from pyspark.sql import SparkSession

    def fail(self):
        raise RuntimeError("Could not parse Master URL: 'nowhere'\nand a long trace")

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", fail)
    with pytest.raises(InputError, match=r"no Spark at the master nowhere \(Could not parse") as refused:
        session("nowhere")
    assert os.linesep not in str(refused.value)
