"""Predictions and lists by Spark against those of the same model here; the pair of Estimator and Model."""

import numpy as np
import pytest

from tests.spark.conftest import frame
from tuckergp import TuckerRecommender, load
from tuckergp.errors import InputError
from tuckergp.spark import predict, recommend

SHORT = {"rank": 2, "draws": 4, "warmup": 2, "random_state": 0}


@pytest.fixture(scope="module")
def model(table):
    settings = {"implicit": False, "time": None, "noise": "shared", "objective": "rating"}
    return TuckerRecommender(**SHORT, **settings).fit(table)


def test_lists_in_parquet_are_those_of_the_model(spark, model, tmp_path):
    lists = recommend(model, str(tmp_path / "lists"), n=3, partitions=2).toArrow().to_pandas()
    lists = lists.sort_values(["user_id", "rank"], ignore_index=True)
    expected = model.recommend(model.history_.ids[0], n=3).sort_values(["user_id", "rank"], ignore_index=True)
    assert lists["item_id"].tolist() == expected["item_id"].tolist()
    np.testing.assert_allclose(lists["score"], expected["score"], rtol=1e-6)
    with pytest.raises(InputError, match="something at"):
        recommend(model, str(tmp_path / "lists"), n=3, partitions=1)


def test_predictions_are_those_of_the_model(spark, model, table):
    pairs = {"user_id": ["u001", "nobody", "u002"], "item_id": [3, 3, 999], "more": [7, 8, 9]}
    asked = frame(spark, pairs)
    found = {row["more"]: row["prediction"] for row in predict(model, asked, "nan").collect()}
    assert found[7] == pytest.approx(model.predict({"user_id": ["u001"], "item_id": [3]})[0])
    assert np.isnan(found[8])
    assert np.isnan(found[9])
    assert [row["more"] for row in predict(model, asked, "drop").collect()] == [7]
    assert all(np.isfinite(row["prediction"]) for row in predict(model, asked).collect())
    with pytest.raises(InputError, match="no column 'item_id'"):
        predict(model, asked.drop("item_id"))


def test_the_estimator_stands_where_als_stood(spark, table):
    from pyspark.ml import Pipeline
    from pyspark.ml.evaluation import RegressionEvaluator

    from tuckergp.spark import TuckerEstimator

    renamed = frame(spark, table).withColumnsRenamed({"user_id": "user", "item_id": "item"})
    estimator = TuckerEstimator(rank=2, inference="als", maxIter=4, coldStartStrategy="drop", seed=1)
    fitted = Pipeline(stages=[estimator]).fit(renamed)
    predicted = fitted.transform(renamed)
    rmse = RegressionEvaluator(metricName="rmse", labelCol="rating").evaluate(predicted)
    assert rmse < 0.9 * np.std(table["rating"])
    (inner,) = fitted.stages
    lists = inner.recommendForUserSubset(renamed.filter("user = 'u004'").select("user"), 3).collect()
    assert [row["user"] for row in lists] == ["u004"]
    best = [(entry["item"], entry["rating"]) for entry in lists[0]["recommendations"]]
    expected = inner.recommender.recommend(["u004"], n=3, exclude_seen=False)
    assert [item for item, _ in best] == expected["item"].tolist()
    np.testing.assert_allclose([score for _, score in best], expected["score"], rtol=1e-6)
    assert inner.getOrDefault("coldStartStrategy") == "drop"


def test_the_command_line_fits_by_spark(spark, table, tmp_path):
    from tests.cli.command import succeed

    path = str(tmp_path / "ratings.parquet")
    frame(spark, table).write.parquet(path)
    options = ["--rank", "2", "--draws", "3", "--warmup", "1", "--quiet", "--engine", "spark", "--master", "local[2]"]
    succeed("fit", path, "-o", str(tmp_path / "model.tgp"), *options)
    assert load(tmp_path / "model.tgp").recommend("u001", n=2)["rank"].tolist() == [1, 2]
