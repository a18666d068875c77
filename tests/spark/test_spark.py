"""Fits by Spark against fits on this machine and against each other, and what is answered from them.

One file, so that one worker starts Java for all of it.
"""

import datetime
import decimal

import numpy as np
import pytest

from tests.spark.conftest import frame
from tuckergp import TuckerRecommender, load
from tuckergp.errors import InputError
from tuckergp.inference import ALS, Gibbs
from tuckergp.likelihoods import Clicks
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.spark import fit, predict, recommend, session
from tuckergp.spark import load as load_stored
from tuckergp.spark.answering import _in_kind
from tuckergp.spark.collecting import _most_returned
from tuckergp.spark.frames import read_frame
from tuckergp.spark.reading import _usual_names

# what "auto" means for Spark
HERE = {"implicit": False, "time": None, "objective": "rating"}
SHORT = {"rank": 3, "draws": 3, "warmup": 2, "random_state": 5}


def assert_same(ours, local, tolerance):
    assert ours.history_.ids == local.history_.ids
    for mine, theirs in zip(ours.fit_.draws.modes, local.fit_.draws.modes, strict=True):
        np.testing.assert_allclose(mine.rows["psi"], theirs.rows["psi"], atol=tolerance, rtol=tolerance)
        np.testing.assert_allclose(mine.B, theirs.B, atol=tolerance, rtol=tolerance)
        np.testing.assert_allclose(mine.covariance, theirs.covariance, atol=tolerance, rtol=tolerance)
    for name, values in local.fit_.draws.unknowns.items():
        np.testing.assert_allclose(ours.fit_.draws.unknowns[name], values, rtol=tolerance)


def assert_same_ratings(ours, local):
    user, item = local.history_.codes
    order = np.lexsort((item, user))
    np.testing.assert_array_equal(ours.history_.codes, (user[order], item[order]))
    np.testing.assert_allclose(ours.history_.rating, local.history_.rating[order], rtol=1e-12)


def sorted_lists(lists):
    return lists.sort_values(["user_id", "rank"], ignore_index=True)


@pytest.fixture(scope="module")
def shuffled(spark, table):
    return frame(spark, table, np.random.default_rng(1).permutation(len(table["rating"]))).cache()


@pytest.fixture(scope="module")
def learned(shuffled):
    return fit(shuffled, partitions=2, **SHORT)


@pytest.fixture(scope="module")
def stored(shuffled, tmp_path_factory):
    path = tmp_path_factory.mktemp("spark") / "stored"
    return fit(shuffled.repartition(3), partitions=3, store=path, **SHORT)


def test_it_is_the_local_fit_after_five_sweeps(learned, table):
    local = TuckerRecommender(**SHORT, **HERE, noise="shared").fit(table)
    assert_same(learned, local, 1e-6)
    np.testing.assert_allclose(learned.predict(table), local.predict(table), atol=1e-6)
    assert learned.rating_range_ == local.rating_range_
    steps = [[info.figures["train_rmse"] for info in model.fit_.steps] for model in (learned, local)]
    np.testing.assert_allclose(*steps, rtol=1e-9)
    lists = [model.recommend(["u003", "u100"], n=4) for model in (learned, local)]
    assert list(lists[0]["item_id"]) == list(lists[1]["item_id"])
    assert_same_ratings(learned, local)


def test_f_is_watched_at_single_ratings(learned):
    draws, history = learned.fit_.draws, learned.history_
    user, item = (code[draws.observations] for code in history.codes)
    psi = [mode.rows["psi"] for mode in draws.modes]
    f = np.einsum("nsr,nsr->sn", psi[0][user], psi[1][item])
    np.testing.assert_allclose(draws.traces[0], f, atol=1e-5)


def test_neither_partitions_nor_a_store_change_a_bit(stored, learned):
    users = stored.users.toPandas().sort_values("user_id", ignore_index=True)
    assert users["user_id"].tolist() == learned.history_.ids[0]
    psi = np.stack(users["factors"]).reshape(len(users), 3, 3)
    np.testing.assert_array_equal(psi, learned.fit_.draws.modes[0].rows["psi"])
    np.testing.assert_array_equal(np.concatenate(users["items"]), learned.history_.codes[1])
    np.testing.assert_array_equal(np.concatenate(users["ratings"]), learned.history_.rating)
    mine, theirs = stored.model.fit_.draws, learned.fit_.draws
    np.testing.assert_array_equal(mine.modes[1].rows["psi"], theirs.modes[1].rows["psi"])
    np.testing.assert_array_equal(mine.modes[0].B, theirs.modes[0].B)
    np.testing.assert_array_equal(mine.unknowns["alpha"], theirs.unknowns["alpha"])


def test_users_in_parquet_are_answered_as_those_in_memory(spark, stored, learned, tmp_path):
    again = load_stored(stored.path)
    lists = sorted_lists(recommend(again, str(tmp_path / "lists"), n=3, min_ratings=46).toPandas())
    expected = sorted_lists(learned.recommend(learned.history_.ids[0], n=3, min_ratings=46))
    assert 0 < expected["item_id"].nunique() < 40
    assert lists["item_id"].tolist() == expected["item_id"].tolist()
    np.testing.assert_allclose(lists[["score", "std"]], expected[["score", "std"]], rtol=1e-6)
    some = sorted_lists(recommend(again, users=["u004", "nobody"], n=2, partitions=1).toPandas())
    expected = sorted_lists(learned.recommend(["u004", "nobody"], n=2))
    assert some["item_id"].tolist() == expected["item_id"].tolist()
    pairs = {"user_id": ["u001", "nobody", "u002", "u001"], "item_id": [3, 3, 999, 4], "more": [0, 1, 2, 3]}
    found = predict(again, frame(spark, pairs)).toPandas().sort_values("more")
    assert list(found.columns) == [*pairs, "prediction"]
    np.testing.assert_allclose(found["prediction"], learned.predict(pairs), rtol=1e-6)
    np.testing.assert_allclose(again.model.predict(pairs)[1], learned.predict(pairs)[1], rtol=1e-6)  # of nobody
    with pytest.raises(InputError, match="something at"):
        fit(frame(spark, pairs), store=stored.path, **SHORT)
    with pytest.raises(InputError, match="There is no recommender in"):
        load_stored(str(tmp_path / "nothing"))


def test_lists_in_parquet_are_those_of_the_model(spark, learned, table, tmp_path):
    items = {"item_id": list(range(40)), "name": [f"item {k}" for k in range(40)]}
    model = TuckerRecommender(rank=2, draws=2, warmup=0, random_state=0, **HERE).fit(pl_table(table), items=items)
    some = spark.createDataFrame([("u001",), (None,), ("u002",)], "user_id string")
    lists = recommend(model, str(tmp_path / "lists"), n=3, users=some, titles="name", partitions=1).toPandas()
    expected = model.recommend(["u001", "u002"], n=3, titles="name").to_pandas()
    assert lists["title"].tolist() == expected["name"].tolist()
    np.testing.assert_allclose(lists["score"], expected["score"], rtol=1e-6)
    with pytest.raises(InputError, match="something at"):
        recommend(model, str(tmp_path / "lists"), n=3, partitions=1)
    rated = frame(spark, table).select("user_id").distinct()
    everything = recommend(model, users=rated, items=[0], n=1, partitions=1).toPandas()  # some have rated it
    assert 0 < len(everything) < 150
    seen = [user for user, item in zip(table["user_id"], table["item_id"], strict=True) if item == 0]
    assert not recommend(model, users=seen, items=[0], partitions=1).collect()  # no list at all


def pl_table(table):
    import polars

    return polars.DataFrame(table)


def test_predictions_are_those_of_the_model(spark, learned):
    pairs = {"user_id": ["u001", "nobody", "u002"], "item_id": [3, 3, 999], "more": [7, 8, 9]}
    asked = frame(spark, pairs)
    found = {row["more"]: row["prediction"] for row in predict(learned, asked, "nan").collect()}
    assert found[7] == pytest.approx(learned.predict({"user_id": ["u001"], "item_id": [3]})[0])
    assert np.isnan(found[8])
    assert np.isnan(found[9])
    assert [row["more"] for row in predict(learned, asked, "drop").collect()] == [7]
    assert all(np.isfinite(row["prediction"]) for row in predict(learned, asked).collect())
    with pytest.raises(InputError, match="no column 'item_id'"):
        predict(learned, asked.drop("item_id"))
    with pytest.raises(InputError, match="cold must be"):
        predict(learned, asked, "Nan")


def test_attributes_and_users_with_very_many_ratings(spark, table, tmp_path):
    """One user with a fifth of the ratings, one item that everybody rated; users and items have attributes."""
    extra, rng = 450, np.random.default_rng(2)
    everybody = sorted(set(table["user_id"]))
    skewed = {
        "user_id": [*["u000"] * extra, *table["user_id"], *everybody],
        "item_id": [*range(100, 100 + extra), *table["item_id"], *[99] * len(everybody)],
        "rating": [*[1.0, 4.0, 5.0] * (extra // 3), *table["rating"], *[3.0] * len(everybody)],
    }
    order = np.lexsort((skewed["item_id"], skewed["user_id"]))
    arranged = {name: [values[k] for k in order] for name, values in skewed.items()}
    sex = rng.choice(["f", "m"], len(everybody) + 1).tolist()
    ages = rng.integers(18, 70, len(everybody) + 1).tolist()
    users = {"user_id": [*everybody, "later"], "age": ages, "sex": sex}
    items = {"item_id": list(range(40)), "kind": rng.choice(["a", "b", "c"], 40).tolist()}
    few = {**SHORT, "draws": 2, "warmup": 1, "rating_scale": (0.0, 6.0)}
    ours = fit(frame(spark, skewed), frame(spark, users), items, partitions=2, store=str(tmp_path / "stored"), **few)
    local = TuckerRecommender(**few, **HERE, noise="shared").fit(arranged, users, items)
    found = ours.users.toPandas().sort_values("user_id", ignore_index=True)
    psi = np.stack(found["factors"]).reshape(len(found), 2, 3)
    np.testing.assert_allclose(psi, local.fit_.draws.modes[0].rows["psi"], atol=1e-6)
    mine, theirs = ours.model.fit_.draws.modes, local.fit_.draws.modes
    np.testing.assert_allclose(mine[1].rows["psi"], theirs[1].rows["psi"], atol=1e-6)
    for d in range(2):
        np.testing.assert_allclose(mine[d].B, theirs[d].B, atol=1e-6)
        np.testing.assert_allclose(mine[d].values["tau"], theirs[d].values["tau"], rtol=1e-6)
    mine = local.history_.codes[0] == 0
    rated = zip(local.history_.codes[1][mine].tolist(), local.history_.rating[mine].tolist(), strict=True)
    assert sorted(zip(found["items"][0], found["ratings"][0], strict=True)) == sorted(rated)
    assert ours.model.rating_range_ == local.rating_range_ == (0.0, 6.0)
    lists = sorted_lists(recommend(ours, users=["u000", "later"], n=3, partitions=1).toPandas())
    assert lists["item_id"].tolist() == sorted_lists(local.recommend(["u000", "later"], n=3))["item_id"].tolist()


def test_the_estimator_stands_where_als_stood(spark, table):
    """Clicks with strengths that are no whole numbers, some pairs twice, in any order."""
    from pyspark.ml import Pipeline

    from tuckergp.spark import TuckerEstimator

    rng = np.random.default_rng(3)
    twice = np.concatenate([np.arange(1800), rng.integers(1800, size=300)])
    hours = rng.choice([0.1, 0.2, 0.3, 0.7], len(twice)).tolist()
    clicks = {
        "user": [table["user_id"][k] for k in twice],
        "item": [table["item_id"][k] for k in twice],
        "hours": hours,
    }
    renamed = frame(spark, clicks, rng.permutation(len(twice)))
    how = {"rank": 2, "inference": "als", "maxIter": 3, "implicitPrefs": True, "ratingCol": "hours", "seed": 1}
    fitted = Pipeline(stages=[TuckerEstimator(**how, coldStartStrategy="drop")]).fit(renamed)
    (inner,) = fitted.stages
    ours = inner.recommender
    order = np.lexsort((clicks["item"], clicks["user"]))
    arranged = {name: [values[k] for k in order] for name, values in clicks.items()}
    als = ALS(iterations=3, noise=1.0, sigma_u="auto")
    local = TuckerRecommender(
        rank=2, inference=als, likelihood=Clicks(activity=0), columns={"count": "hours"}, random_state=1, **HERE
    ).fit(arranged)
    assert_same(ours, local, 1e-6)
    assert ours.history_.clicks
    assert ours.fit_.draws.model.likelihood.typical == local.fit_.draws.model.likelihood.typical != 1.0
    assert_same_ratings(ours, local)
    joint = [model.fit_.steps[-1].figures["log_joint"] for model in (ours, local)]
    np.testing.assert_allclose(*joint, rtol=1e-9)
    predicted = fitted.transform(renamed.filter("user = 'u004'")).toPandas()
    np.testing.assert_allclose(predicted["prediction"], ours.predict(predicted[["user", "item"]]), atol=1e-6)
    lists = inner.recommendForUserSubset(renamed.filter("user = 'u004'").select("user"), 3).collect()
    assert [row["user"] for row in lists] == ["u004"]
    best = [(entry["item"], entry["rating"]) for entry in lists[0]["recommendations"]]
    expected = inner.recommender.recommend(["u004"], n=3, exclude_seen=False)
    assert [item for item, _ in best] == expected["item"].tolist()
    np.testing.assert_allclose([score for _, score in best], expected["score"], rtol=1e-6)
    other = inner.copy({inner.userCol: "who"}).transform(renamed.limit(1).withColumnRenamed("user", "who"))
    assert np.isfinite(other.first()["prediction"])


def pipeline_of(ALS):
    """A pipeline as it was written for Spark's ALS."""
    from pyspark.ml import Pipeline

    als = ALS(rank=2, maxIter=4, regParam=0.1, userCol="user", itemCol="item", ratingCol="stars", seed=1)
    als.setColdStartStrategy("drop").setImplicitPrefs(False).setNumUserBlocks(2)
    return als, Pipeline(stages=[als])


def test_a_pipeline_of_als_runs_with_the_class_changed(spark, table, tmp_path):
    from pyspark.ml import PipelineModel
    from pyspark.ml.evaluation import RegressionEvaluator
    from pyspark.ml.recommendation import ALS as SparkALS

    from tuckergp.spark import TuckerEstimator

    users = [int(user[1:]) for user in table["user_id"]]
    stars = frame(spark, {"user": users, "item": table["item_id"], "stars": table["rating"]}).cache()
    train, test = stars.randomSplit([0.8, 0.2], seed=1)
    evaluator = RegressionEvaluator(metricName="rmse", labelCol="stars", predictionCol="prediction")
    errors, schemas = [], []
    for kind in (SparkALS, TuckerEstimator):
        _, pipeline = pipeline_of(kind)
        fitted = pipeline.fit(train.cache())
        errors.append(evaluator.evaluate(fitted.transform(test)))
        (model,) = fitted.stages
        assert (model.rank, model.getUserCol(), model.getColdStartStrategy()) == (2, "user", "drop")
        subset = [model.recommendForUserSubset(test.limit(2), 3), model.recommendForItemSubset(test.limit(2), 3)]
        frames = [model.recommendForAllUsers(3), model.recommendForAllItems(3), *subset]
        schemas.append([(each.columns, each.schema["recommendations"].dataType.elementType.names) for each in frames])
        by_item = {row["item"]: [tuple(each) for each in row["recommendations"]] for row in frames[1].collect()}
        vectors = [dict(each.collect()) for each in (model.userFactors, model.itemFactors)]
        assert (len(by_item), len(vectors[0]), len(vectors[1])) == (40, 150, 40)
        products = {user: float(np.dot(vector, vectors[1][7])) for user, vector in vectors[0].items()}
        best = sorted(products, key=products.get, reverse=True)[:3]
        assert [user for user, _ in by_item[7]] == best
        np.testing.assert_allclose([score for _, score in by_item[7]], [products[user] for user in best], rtol=1e-5)
    assert schemas[0] == schemas[1]
    assert errors[1] < errors[0]
    fitted.save(str(tmp_path / "pipeline"))
    again = PipelineModel.load(str(tmp_path / "pipeline"))
    assert evaluator.evaluate(again.transform(test)) == pytest.approx(errors[1])
    assert again.stages[0].rank == 2


@pytest.mark.slow
def test_a_penalty_is_chosen_by_cross_validation(spark, table):
    from pyspark.ml.evaluation import RegressionEvaluator
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

    from tuckergp.spark import TuckerEstimator

    users = [int(user[1:]) for user in table["user_id"]]
    stars = frame(spark, {"user": users, "item": table["item_id"], "stars": table["rating"]}).cache()
    evaluator = RegressionEvaluator(metricName="rmse", labelCol="stars", predictionCol="prediction")
    als, pipeline = pipeline_of(TuckerEstimator)
    grid = ParamGridBuilder().addGrid(als.regParam, [0.001, 0.3]).build()
    search = CrossValidator(estimator=pipeline, estimatorParamMaps=grid, evaluator=evaluator, numFolds=2, seed=1)
    found = search.fit(stars)
    assert found.avgMetrics[1] < found.avgMetrics[0]
    sigma_u = found.bestModel.stages[0].recommender.fit_.draws.model.sigma_u
    np.testing.assert_allclose(sigma_u, (0.3 * 1800 / np.sqrt(150 * 40) / np.std(table["rating"])) ** -0.5)


def test_the_penalty_of_als_becomes_a_prior_scale_and_attributes_are_used(spark, table):
    """The penalty of an average row, by hand; where it is not set, the scale of the local trials."""
    from tuckergp.spark import TuckerEstimator

    columns = {"userCol": "user_id", "itemCol": "item_id"}
    items = {"item_id": list(range(40)), "kind": ["a", "b"] * 20}
    model = TuckerEstimator(rank=2, maxIter=2, regParam=0.2, seed=5, **columns).fit(frame(spark, table)).recommender
    penalty = 0.2 * 1800 / np.sqrt(150 * 40) / np.std(table["rating"])
    np.testing.assert_allclose(model.fit_.draws.model.sigma_u, penalty**-0.5)
    named = TuckerEstimator(rank=2, inference="als", maxIter=30, seed=5, items=items, **columns)
    model = named.fit(frame(spark, table)).recommender
    local = TuckerRecommender(rank=2, inference="als", random_state=5, **HERE).fit(table, items=items)
    np.testing.assert_array_equal(model.fit_.draws.model.sigma_u, local.fit_.draws.model.sigma_u)
    assert_same(model, local, 1e-6)
    assert model.predict({"user_id": ["u001"], "item_id": [3]}) == pytest.approx(
        local.predict({"user_id": ["u001"], "item_id": [3]})
    )


def test_the_estimator_finds_columns_that_are_not_named(spark, table):
    """As `fit` does: users and items for the model, too, and ratings for the meaning of the penalty."""
    from tuckergp.spark import TuckerEstimator

    found = frame(spark, {"userId": table["user_id"], "item_id": table["item_id"], "stars": table["rating"]})
    model = TuckerEstimator(rank=2, maxIter=2, regParam=0.2, seed=5).fit(found)
    penalty = 0.2 * 1800 / np.sqrt(150 * 40) / np.std(table["rating"])
    np.testing.assert_allclose(model.recommender.fit_.draws.model.sigma_u, penalty**-0.5)
    assert np.isfinite(model.transform(found.limit(1)).first()["prediction"])
    assert model.recommendForUserSubset(found.limit(1), 1).columns == ["userId", "recommendations"]


def test_a_pair_with_users_in_parquet_is_saved_and_loaded(spark, stored, learned, tmp_path, monkeypatch):
    from pyspark.ml import Pipeline, PipelineModel

    from tuckergp.spark import TuckerEstimator, ml

    names = {"userCol": "user_id", "itemCol": "item_id"}
    estimator = TuckerEstimator(rank=3, store=str(tmp_path / "users"), keep=2, **names)
    Pipeline(stages=[estimator]).save(str(tmp_path / "estimator"))
    (again,) = Pipeline.load(str(tmp_path / "estimator")).getStages()
    asked = {}
    monkeypatch.setattr(ml, "fit", lambda frame, users, items, **settings: asked.update(settings) or stored)
    pairs = frame(spark, {"user_id": ["u001", "u002"], "item_id": [3, 4]})
    fitted = again.fit(pairs)
    assert (asked["store"], asked["keep"], asked["rank"]) == (str(tmp_path / "users"), 2, 3)
    PipelineModel([fitted]).save(str(tmp_path / "model"))
    (loaded,) = PipelineModel.load(str(tmp_path / "model")).stages
    assert loaded.recommender.path.startswith(str(tmp_path / "model"))
    predicted = loaded.transform(pairs).toPandas().sort_values("user_id")
    np.testing.assert_allclose(predicted["prediction"], learned.predict(predicted), rtol=1e-6)
    lists = {row["user_id"]: row["recommendations"] for row in loaded.recommendForAllUsers(2).collect()}
    assert sorted(lists) == learned.history_.ids[0]
    expected = learned.recommend(["u009"], n=2, exclude_seen=False)
    assert [entry["item_id"] for entry in lists["u009"]] == expected["item_id"].tolist()
    scores, ids = learned.scores(learned.history_.ids[0], [3, 7]), learned.history_.ids[0]
    asked = frame(spark, {"user_id": ["x", "y", "z"], "item_id": [7, 3, 777]})
    lists = {row["item_id"]: row["recommendations"] for row in loaded.recommendForItemSubset(asked, 4).collect()}
    assert sorted(lists) == [3, 7]
    for column, item in enumerate((3, 7)):
        best = np.argsort(-scores[:, column], kind="stable")[:4]
        assert [entry["user_id"] for entry in lists[item]] == [ids[k] for k in best]
        np.testing.assert_allclose([entry["rating"] for entry in lists[item]], scores[best, column], rtol=1e-6)
    vectors = [dict(each.collect()) for each in (loaded.userFactors, loaded.itemFactors)]
    assert np.dot(vectors[0]["u009"], vectors[1][7]) == pytest.approx(scores[ids.index("u009"), 1], rel=1e-5)
    assert (len(vectors[0]), loaded.rank) == (150, 3)
    for place in (loaded.recommender.path, f"{loaded.recommender.path}/users", str(tmp_path)):
        with pytest.raises(InputError, match="The users of this recommender are in"):
            loaded.write().overwrite().save(place)
    assert loaded.recommender.users.count() == 150
    ml.TuckerSparkModel(learned).save(str(tmp_path / "here"))
    here = ml.TuckerSparkModel.load(str(tmp_path / "here")).recommender
    np.testing.assert_array_equal(here.predict(predicted), learned.predict(predicted))


def test_the_command_line_fits_by_spark_and_a_run_goes_on(spark, table, shuffled, learned, tmp_path):
    from tests.cli.command import refuse, succeed

    path, run = str(tmp_path / "ratings.parquet"), str(tmp_path / "run")
    shuffled.write.parquet(path)
    options = ["--rank", "3", "--draws", "1", "--warmup", "2", "--seed", "5", "--quiet", "--engine", "spark"]
    model = str(tmp_path / "model.tgp")
    succeed("fit", f"file://{path}", "-o", model, *options, "--master", "local[1]", "--checkpoint", run)
    again = load(model)
    np.testing.assert_array_equal(again.fit_.draws.modes[0].rows["psi"], learned.fit_.draws.modes[0].rows["psi"][:, :1])
    assert again.recommend("u001", n=2)["rank"].tolist() == [1, 2]
    assert "There is no file or folder file:///nothing" in refuse("fit", "file:///nothing", "-o", model, *options)
    assert "already" in refuse("fit", path, "-o", model, *options, "--master", "local[7]")
    folder, lists = str(tmp_path / "stored"), str(tmp_path / "lists.parquet")
    told = succeed("fit", path, "--store", folder, *options, "--checkpoint", run)
    assert "1,800 ratings of 40 items by 150 users in" in told
    assert f"Saved as {folder}." in told
    asked = ("--user", "u001", "--user", "u007", "-n", "2")
    for source in (folder, model):
        shown = [float(line.split(",")[2]) for line in succeed("recommend", source, *asked).splitlines()[1:]]
        expected = load(model).recommend(["u001", "u007"], n=2)["score"]
        np.testing.assert_allclose(shown, expected, rtol=1e-5)
    succeed("recommend", folder, "--all", "-n", "2", "-o", lists)
    assert spark.read.parquet(lists).count() == 300
    assert "--ratings is for a model file" in refuse("recommend", folder, "--ratings", "x.csv")
    assert "--master is for a folder" in refuse("recommend", model, *asked, "--master", "local[1]")
    seen = []
    again = fit(shuffled, checkpoint=run, callback=lambda info: seen.append(info.step), **{**SHORT, "draws": 2})
    assert seen == [4]
    np.testing.assert_array_equal(again.fit_.draws.modes[1].rows["psi"], learned.fit_.draws.modes[1].rows["psi"][:, :2])
    other = {**table, "rating": [5.0, *table["rating"][1:-1], 0.5]}
    with pytest.raises(InputError, match="of other data or settings"):
        fit(frame(spark, other), checkpoint=run, **SHORT)


def test_ids_of_text_files_keep_their_spelling(spark, tmp_path):
    (tmp_path / "ratings.csv").write_text("user_id,item_id,rating\n007,1,3\n12,2,4\n")
    found = read_frame(spark, str(tmp_path / "ratings.csv"))
    assert [tuple(row) for row in found.collect()] == [("007", 1, 3), ("12", 2, 4)]


def test_ids_of_text_files_are_whole_numbers_or_texts(spark, tmp_path):
    """What looks like a date, a decimal, a truth or a number of more than 64 bits is a text; ratings are numbers."""
    rows = ["2020-01-01,true,05", "2020-01-02,false,4.5"], ["12345678901234567890,1.0,3", "7,2.0,4"]
    for k, lines in enumerate(rows):
        (tmp_path / f"{k}.csv").write_text("\n".join(["who,item_id,rating", *lines]) + "\n")
        found = read_frame(spark, str(tmp_path / f"{k}.csv"), {"user_id": "who"}).collect()
        expected = [line.split(",") for line in lines]
        assert [tuple(row) for row in found] == [(user, item, float(rating)) for user, item, rating in expected]


def test_what_cannot_be_read_is_one_sentence(spark, tmp_path):
    from tests.cli.command import refuse

    spark.sparkContext._jsc.hadoopConfiguration().set("ipc.client.connect.max.retries", "0")
    (tmp_path / "text.parquet").write_text("this is no Parquet\n" * 20)
    for name in ("empty", "empty.csv"):
        (tmp_path / name).mkdir()
    for path, words in (
        (f"{tmp_path}/text.parquet", "text.parquet is no Parquet file, or broken"),
        (f"{tmp_path}/empty", "There is nothing to read in the folder"),
        (f"{tmp_path}/empty.csv", "There is nothing to read in the folder"),
        ("foo://x/y", 'Spark cannot read foo://x/y: No FileSystem for scheme "foo".'),
        ("foo://x/y.csv", 'Spark cannot read foo://x/y.csv: No FileSystem for scheme "foo".'),
        ("hdfs://127.0.0.1:1/x", r"Spark cannot read hdfs://127.0.0.1:1/x: Call From .* Connection refused"),
        ("a:b:c", "Spark cannot read a:b:c: .*Relative path in absolute URI"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            read_frame(spark, path)
        assert "\n" not in str(caught.value)
    told = refuse("fit", f"{tmp_path}/text.parquet", "-o", str(tmp_path / "m.tgp"), "--engine", "spark")
    assert "is no Parquet file" in told
    assert "Traceback" not in told


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 8])
def test_partitions_change_no_bit(shuffled, learned, partitions):
    again = fit(shuffled.repartition(partitions), partitions=partitions, **{**SHORT, "draws": 1})
    for mine, theirs in zip(again.fit_.draws.modes, learned.fit_.draws.modes, strict=True):
        np.testing.assert_array_equal(mine.rows["psi"], theirs.rows["psi"][:, :1])
        np.testing.assert_array_equal(mine.B, theirs.B[:, :1])
    assert again.fit_.draws.unknowns["alpha"][0] == learned.fit_.draws.unknowns["alpha"][0]


@pytest.mark.slow
def test_partitions_change_no_bit_of_users_in_several_shards(spark):
    """One user has most of the ratings, which all partitions share."""
    rows = [(0, item, float(item % 5)) for item in range(60)]
    rows += [(user, item, float((user + item) % 4)) for user in range(1, 12) for item in range(user % 3, 60, 17)]
    few = spark.createDataFrame(rows, "user_id int, item_id int, rating double")
    one, *others = (fit(few.repartition(p), partitions=p, **{**SHORT, "draws": 1}) for p in (1, 3, 8))
    for other in others:
        assert_same(other, one, 0.0)


@pytest.mark.slow
def test_als_is_the_local_estimate(shuffled, table):
    als = ALS(iterations=3, sigma_u=0.5)
    ours = fit(shuffled, rank=3, inference=als, random_state=5)
    local = TuckerRecommender(rank=3, inference=als, random_state=5, **HERE).fit(table)
    assert_same(ours, local, 1e-6)
    np.testing.assert_allclose(ours.fit_.steps[-1].figures["log_joint"], local.fit_.steps[-1].figures["log_joint"])


@pytest.mark.slow
def test_clicks_have_their_background(spark, table, tmp_path):
    rng = np.random.default_rng(3)
    clicks = {"user_id": table["user_id"], "item_id": table["item_id"], "count": rng.integers(1, 9, 1800).tolist()}
    few = {**SHORT, "draws": 2, "warmup": 1, "likelihood": Clicks(0.2, 0.5, "log", 0.5, 0)}
    ours = fit(frame(spark, clicks), **few)
    local = TuckerRecommender(**few, **HERE).fit(clicks)
    assert_same(ours, local, 1e-6)
    stored = fit(frame(spark, clicks), store=str(tmp_path / "stored"), **few)
    links = [model.fit_.draws.model.likelihood.intercept for model in (ours, stored.model)]
    np.testing.assert_allclose(links, links[0], rtol=1e-5)


@pytest.mark.slow
def test_a_name_finds_the_prior_scale_by_the_local_trials(shuffled, table):
    ours = fit(shuffled, rank=2, inference="als", random_state=5)
    local = TuckerRecommender(rank=2, inference="als", random_state=5, **HERE).fit(table)
    np.testing.assert_array_equal(ours.fit_.draws.model.sigma_u, local.fit_.draws.model.sigma_u)


@pytest.mark.slow
def test_single_precision_is_close(shuffled, learned):
    how = Gibbs(draws=3, warmup=2, precision="float32")
    again = fit(shuffled, rank=3, inference=how, random_state=5, keep=1)
    assert len(again.fit_.draws) == 1
    (mine,), (theirs,) = ([model.fit_.draws.modes[0].rows["psi"][:, -1]] for model in (again, learned))
    np.testing.assert_allclose(mine, theirs, atol=1e-3)


def test_the_model_file_is_read_as_any_other(learned, table, tmp_path):
    learned.save(tmp_path / "model.tgp")
    again = load(tmp_path / "model.tgp")
    np.testing.assert_array_equal(again.predict(table), learned.predict(table))


@pytest.mark.slow
def test_movielens_has_the_local_error(spark, movielens):
    """The same draws have the same error on real ratings, those of u1."""
    train, test = movielens.split(1)
    table = {name: np.asarray(train[name]) for name in ("user_id", "item_id", "rating")}
    order = np.lexsort((table["item_id"], table["user_id"]))
    table = {name: values[order].tolist() for name, values in table.items()}
    settings = {"rank": 8, "draws": 20, "warmup": 10, "random_state": 0}
    models = fit(frame(spark, table), **settings), TuckerRecommender(**settings, **HERE, noise="shared").fit(table)
    errors = [np.sqrt(np.mean((model.predict(test) - test.numeric("rating")) ** 2)) for model in models]
    assert errors[0] == pytest.approx(errors[1], abs=1e-5)
    assert errors[0] < 0.94


# Bad input: one clear sentence for what Spark cannot do.


def test_a_table_of_another_library_is_refused(spark, table):
    with pytest.raises(InputError, match="must be a Spark data frame, not dict"):
        fit(table)


def test_a_table_of_a_session_that_was_stopped_is_refused(spark, shuffled, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "_jsc", None)
    with pytest.raises(InputError, match="The Spark session of ratings was stopped; read them again in a new one"):
        fit(shuffled, **SHORT)


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
        ({"keep": 0}, "keeps draws, .* and no moments of predictions; say by keep how many, from 1 on"),
        ({"moments_of": {"user_id": ["u001"], "item_id": [3]}}, "leave moments_of and keep_draws out"),
        ({"keep_draws": False}, "leave moments_of and keep_draws out"),
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
    texts = spark.createDataFrame([("a", 1, 4.0), ("A", 1, 2.0)], "user_id string, item_id int, rating double")
    with pytest.raises(InputError, match=r"user_id' is of type string collate UTF8_LCASE, .* cast it to"):
        fit(texts.selectExpr("user_id collate UTF8_LCASE as user_id", "item_id", "rating"))
    stream = spark.readStream.format("rate").load()
    with pytest.raises(InputError, match="ratings is a stream, which has no end"):
        fit(stream.selectExpr("value as user_id", "value as item_id", "1.0 as rating"))
    clicks = spark.createDataFrame([(1, 1, 2.0)], "user_id int, item_id int, plays double")
    with pytest.raises(InputError, match=r"Clicks have counts and no ratings; name their column by columns=\{'count'"):
        fit(clicks, likelihood="clicks", columns={"rating": "plays"})


@pytest.mark.parametrize(("row", "words"), [((1, 2, None), "count' has no value in 1 rows"), ((1, 2, -1.0), "-1")])
def test_counts_are_looked_at_one_by_one(spark, row, words):
    """Their sum would be fine."""
    bad = spark.createDataFrame([(1, 2, 3.0), row], "user_id int, item_id int, count double")
    with pytest.raises(InputError, match=words):
        fit(bad, likelihood="clicks")


def test_too_much_for_the_driver_is_refused_before_the_first_sweep(spark, shuffled, monkeypatch):
    conf = {"spark.driver.maxResultSize": "12k"}
    monkeypatch.setattr(spark.sparkContext, "_conf", conf, raising=False)
    monkeypatch.setattr(type(spark.sparkContext), "getConf", lambda self: conf)
    with pytest.raises(InputError, match=r"Spark would return .*, and spark.driver.maxResultSize allows 1.2e-05 GB"):
        fit(shuffled, callback=lambda info: pytest.fail("a sweep"), **SHORT)
    for text, size in (("1g", 2**30), ("0", 0), ("512mb", 2**29), ("7", 7)):
        conf["spark.driver.maxResultSize"] = text
        assert _most_returned(spark.sparkContext) == size


@pytest.mark.parametrize(
    ("row", "column"), [((None, 1, 1.0), "user_id"), ((1, None, 1.0), "item_id"), ((1, 1, float("nan")), "rating")]
)
def test_missing_values_are_counted(spark, row, column):
    bad = spark.createDataFrame([(1, 2, 3.0), row], "user_id int, item_id int, rating double")
    with pytest.raises(InputError, match=f"{column}' has no value in 1 rows"):
        fit(bad)


def test_infinite_ratings_and_the_names_of_columns_are_told(spark):
    names = {"user_id": "who", "item_id": "what", "rating": "stars"}
    schema = "who int, what int, stars double"
    with pytest.raises(InputError, match=r"'stars' is infinite, or beyond 1e150, in 1 rows; correct them"):
        fit(spark.createDataFrame([(1, 2, 3.0), (1, 1, float("inf"))], schema), columns=names)
    with pytest.raises(InputError, match="'who' has no value in 1 rows"):
        fit(spark.createDataFrame([(1, 2, 3.0), (None, 1, 1.0)], schema), columns=names)
    with pytest.raises(InputError, match="'what' is of type double"):
        fit(spark.createDataFrame([(1, 2.0, 3.0)], "who int, what double, stars double"), columns=names)


def test_columns_of_any_name_are_read_unless_there_are_two(spark, shuffled, stored, learned):
    from tuckergp.spark.ml import TuckerSparkModel

    odd = shuffled.limit(3).toDF("who.id", "what`s", "a.b")
    asked = RecommenderSettings(columns={"user_id": "who.id", "item_id": "what`s", "rating": "a.b"})
    read, names, _ = _usual_names(odd, asked)
    assert [tuple(row) for row in read.collect()] == [tuple(row) for row in odd.collect()]
    assert names == asked.columns
    for double in (shuffled.selectExpr("*", "2 * rating as Rating"), shuffled.selectExpr("*", "item_id")):
        with pytest.raises(
            InputError, match=r"ratings has several columns that Spark does not tell apart, '(rating|item)"
        ):
            fit(double)
    model = TuckerSparkModel(stored)._set(userCol="who.id", itemCol="what`s", predictionCol="p.q")
    found = model.transform(odd).toPandas()
    assert list(found.columns) == ["who.id", "what`s", "a.b", "p.q"]
    pairs = {"user_id": found["who.id"].tolist(), "item_id": found["what`s"].tolist()}
    np.testing.assert_allclose(found["p.q"], learned.predict(pairs), rtol=1e-6)
    with pytest.raises(InputError, match=r"pairs has a column 'a\.b' already"):
        model.copy({model.predictionCol: "a.b"}).transform(odd)
    with pytest.raises(InputError, match="pairs must be a Spark data frame, not DataFrame"):
        predict(stored, found)


def test_ids_of_another_type_are_those_with_an_equal_spelling(spark, stored):
    """As the recommender takes them: text that Python would write for a whole number, and whole floats."""
    schema = "text string, real double, exact decimal(20, 1), short short, day date"
    day, one = datetime.date(2020, 1, 1), decimal.Decimal("7.5")
    rows = [("7", 7.0, decimal.Decimal(7), 7, day), ("007", 7.5, one, 8, day), ("x", float("nan"), None, None, None)]
    given = spark.createDataFrame(rows, schema)
    columns = [_in_kind(given, name, "users", "bigint").alias(name) for name in given.columns]
    found = [tuple(row) for row in given.select(columns).coalesce(1).collect()]
    assert found == [(7, 7, 7, 7, None), (None, None, None, 8, None), (None,) * 5]
    columns = [_in_kind(given, name, "users", "string").alias(name) for name in given.columns]
    assert tuple(given.select(columns).first()) == ("7", None, None, "7", None)
    with pytest.raises(InputError, match="pairs column 'user_id' is of type array"):
        predict(stored, spark.createDataFrame([([1], 1)], "user_id array<int>, item_id int"))
    pairs = given.selectExpr("short as user_id", "text as item_id", "day")
    assert predict(stored, pairs).toPandas()["prediction"].notna().all()


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("foo://x/y", 'foo://x/y\' is no path that Spark knows: No FileSystem for scheme "foo"'),
        ("", "store must be a folder, not ''"),
        ("{file}/folder", "The folder .*/folder cannot be made"),
    ],
)
def test_a_store_that_cannot_be_made_is_refused_before_anything_is_learned(spark, shuffled, tmp_path, place, words):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=words):
        fit(shuffled, store=place.format(file=tmp_path / "file"), **SHORT)
    with pytest.raises(InputError, match="no path that Spark knows"):
        load_stored("foo://x")


def test_no_ratings_are_refused(spark):
    with pytest.raises(InputError, match="empty"):
        fit(spark.createDataFrame([], "user_id int, item_id int, rating double"))


@pytest.mark.slow
def test_empty_partitions_do_no_harm(spark):
    few = spark.createDataFrame(
        [(u, i, float(u + i)) for u in range(4) for i in range(3)], "user_id int, item_id int, rating double"
    )
    spread, one = (fit(few.repartition(p), partitions=p, **SHORT) for p in (16, 1))
    assert_same(spread, one, 0.0)


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


def test_a_session_at_another_master_is_not_taken(spark):
    assert session() is spark
    assert session("local[1]") is spark
    with pytest.raises(InputError, match=r"There is a Spark session at local\[1\] already"):
        session("local[3]")
