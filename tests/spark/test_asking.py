"""What is asked of recommenders through Spark, read and refused on the driver, and answered for batches: no Java."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from tests.spark.conftest import why_not
from tuckergp import TuckerRecommender
from tuckergp.errors import InputError
from tuckergp.spark import audience
from tuckergp.spark.answering import FACTORS, USER, _asked, _predictions, recommend
from tuckergp.spark.fitting import _collected, _settings

needs_pyspark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def fitted(name, items=None):
    rng = np.random.default_rng(0)
    user, item = np.divmod(np.sort(rng.choice(12 * 9, 60, replace=False)), 9)
    table = {"user_id": [name(int(u)) for u in user], "item_id": item.tolist(), "rating": rng.random(60).tolist()}
    return TuckerRecommender(rank=2, draws=2, warmup=0, implicit=False, random_state=0).fit(table, items=items)


@pytest.fixture(scope="module")
def numbers():
    """Neighbours among these are one float."""
    return fitted(lambda u: 2**53 + u)


@pytest.fixture(scope="module")
def texts():
    return fitted(lambda u: "None" if u == 3 else f"u{u}")


@pytest.mark.parametrize("which", ["numbers", "texts"])
def test_users_in_parquet_are_known_beside_a_pair_without_user(which, request):
    model = request.getfixturevalue(which)
    users, psi = model.history_.ids[0], np.asarray(model.fit_.draws.modes[0].rows["psi"])
    asked, kind = [None, *users, *users[:2]], pa.int64() if which == "numbers" else pa.string()
    vectors = dict(zip(users, psi.reshape(len(users), -1).tolist(), strict=True))
    columns = {
        "c0": pa.array(asked, kind),
        "c1": pa.array([1] * len(asked), pa.int64()),
        USER: pa.array(asked, kind),
        FACTORS: pa.array([vectors.get(user) for user in asked], pa.list_(pa.float32())),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    (found,) = _predictions([batch], model, {"user_id": "c0", "item_id": "c1"}, "nan")
    assert found.schema.names == ["c0", "c1", "prediction"]
    first, *others = found["prediction"].to_pylist()
    assert np.isnan(first)
    np.testing.assert_allclose(others, model.predict({"user_id": asked[1:], "item_id": [1] * len(others)}), rtol=1e-5)


def test_ids_of_another_type_are_known_in_every_way_of_answering(numbers):
    users = numbers.history_.ids[0][:2]
    batch = pa.RecordBatch.from_pydict({"c0": [str(user) for user in users] + ["x"], "c1": ["1", "1", "1"]})
    for cold in ("nan", "predict"):
        (found,) = _predictions([batch], numbers, {"user_id": "c0", "item_id": "c1"}, cold)
        expected = numbers.predict({"user_id": users, "item_id": [1, 1]})
        np.testing.assert_allclose(found["prediction"].to_pylist()[:2], expected)
        assert np.isnan(found["prediction"][2].as_py()) == (cold == "nan")


def test_users_are_asked_for_as_of_the_recommender(numbers, texts):
    assert _asked(texts, "u7") == ["u7"]
    assert _asked(texts, ["u7", "u5", "u7", 8]) == ["u7", "u5", "8"]
    assert _asked(numbers, 7) == _asked(numbers, "7") == _asked(numbers, 7.0) == [7]
    assert _asked(numbers, np.array([7, 3, 7])) == _asked(numbers, {"user_id": [7, 3]}) == [7, 3]
    for wrong in (None, 7.5, "x", "007"):
        with pytest.raises(InputError, match=r"is no id of a user of this recommender, where ids are of type bigint"):
            _asked(numbers, [7, wrong])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n": 0}, "n must be a whole number from 1 on"),
        ({"n": -1, "path": "lists"}, "n must be"),
        ({"foo": 3}, "recommend has no argument 'foo'"),
        ({"items": [999]}, "items holds 999"),
        ({"titles": "name"}, "titles='name'"),
        ({"partitions": 0}, "partitions must be a whole number from 1 on or None, not 0"),
    ],
)
def test_arguments_of_lists_are_refused_before_any_job(numbers, arguments, words):
    with pytest.raises(InputError, match=words):
        recommend(numbers, **arguments)


def test_what_is_no_fitted_recommender_is_refused(numbers):
    with pytest.raises(NotFittedError, match="not fitted yet; call fit"):
        recommend(TuckerRecommender())
    with pytest.raises(InputError, match="model must be a TuckerRecommender or a StoredRecommender"):
        recommend("model.tgp")
    with pytest.raises(InputError, match=r"need whole numbers or texts as user_id, not ids like 0\.5"):
        recommend(fitted(lambda u: u + 0.5))


@pytest.mark.parametrize("inference", [3, TuckerRecommender])
def test_an_inference_that_is_none_is_left_to_the_settings(inference):
    assert _settings({"inference": inference})["inference"] is inference


def test_attributes_that_are_more_than_spark_returns_are_one_sentence():
    def more():
        raise RuntimeError("Total size of serialized results is bigger than spark.driver.maxResultSize")

    with pytest.raises(InputError, match=r"returned more to the driver than spark.driver.maxResultSize allows; raise"):
        _collected(SimpleNamespace(toPandas=more))


def test_context_as_an_array_is_refused():
    with pytest.raises(InputError, match="takes context"):
        _settings({"context": np.array(["device", "place"])})


@needs_pyspark
def test_the_estimator_needs_the_columns_that_it_names():
    from tuckergp.spark import TuckerEstimator

    data = SimpleNamespace(columns=["user", "item", "note"])
    for name in ("userCol", "itemCol", "ratingCol"):
        with pytest.raises(
            InputError, match=f"The data has no column 'nota', which {name} names; its columns are user"
        ):
            TuckerEstimator(**{name: "nota"})._fit(data)
    with pytest.raises(InputError, match="coldStartStrategy must be 'predict', 'nan' or 'drop', not 'Nan'"):
        TuckerEstimator(coldStartStrategy="Nan")


@needs_pyspark
def test_the_estimator_has_the_setters_and_getters_of_als():
    from pyspark.ml.recommendation import ALS, ALSModel

    from tuckergp.spark import TuckerEstimator, TuckerSparkModel

    estimator = TuckerEstimator(rank=3)
    for name in dir(ALS):
        if name.startswith("set"):
            assert hasattr(estimator, name), name
    for name in {name for name in dir(ALSModel) if not name.startswith("_") and "call" not in name}:
        assert hasattr(TuckerSparkModel, name), name
    assert estimator.getRank() == 3
    assert estimator.setRank(4).setMaxIter(7).setUserCol("who").setColdStartStrategy("drop") is estimator
    assert (estimator.getRank(), estimator.getMaxIter(), estimator.getUserCol()) == (4, 7, "who")
    assert estimator.setNumBlocks(5).getNumUserBlocks() == 5
    assert estimator.setParams(seed=3).getSeed() == 3
    assert TuckerSparkModel(None).setPredictionCol("p").getPredictionCol() == "p"


@needs_pyspark
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("alpha", 40.0, "leave alpha out, or give tuckergp.spark.fit a likelihood=Clicks"),
        ("blockSize", 4096, "leave blockSize out"),
        ("checkpointInterval", 10, "where checkpointDir names a folder; leave checkpointInterval out"),
        ("finalStorageLevel", "DISK_ONLY", "leave finalStorageLevel out"),
        ("intermediateStorageLevel", "DISK_ONLY", "leave intermediateStorageLevel out"),
        ("nonnegative", True, "Factors have both signs here; leave nonnegative out, or fit Spark's own ALS"),
        ("numItemBlocks", 10, "leave numItemBlocks out, numUserBlocks says how many tasks"),
    ],
)
def test_what_als_alone_has_is_refused_in_a_sentence(name, value, words):
    from tuckergp.spark import TuckerEstimator

    data = SimpleNamespace(columns=["user", "item", "rating"])
    with pytest.raises(InputError, match=f"^{name}={value!r} of Spark's ALS has no meaning here. .*{words}"):
        TuckerEstimator(**{name: value})
    estimator = TuckerEstimator()
    with pytest.raises(InputError, match=words):
        getattr(estimator, f"set{name[0].upper()}{name[1:]}")(value)
    with pytest.raises(InputError, match=words):  # a map of parameters is not looked at before
        estimator.copy({estimator.getParam(name): value})._fit(data)


@needs_pyspark
def test_what_means_the_same_here_is_taken():
    from tuckergp.spark import TuckerEstimator

    same = {"nonnegative": False, "checkpointInterval": -1, "intermediateStorageLevel": "MEMORY_AND_DISK"}
    estimator = TuckerEstimator(**same, finalStorageLevel="MEMORY_AND_DISK", implicitPrefs=True)
    estimator.check_settings()
    assert estimator.kind == "clicks"
    assert TuckerEstimator(implicitPrefs=False).kind == "gaussian"


@needs_pyspark
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"regParam": 0.1, "draws": 5}, "draws is for inference='gibbs' and this is 'als'"),
        ({"inference": "gibbs", "maxIter": 5}, "maxIter is for inference='als' and this is 'gibbs'"),
        ({"inference": "gibbs", "regParam": 0.1}, "regParam is for inference='als'"),
        ({"partitions": 2, "numUserBlocks": 2}, "partitions and numUserBlocks say the same thing"),
        ({"implicitPrefs": True, "likelihood": "gaussian"}, "implicitPrefs and likelihood say the same thing"),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(given, words):
    from tuckergp.spark import TuckerEstimator

    with pytest.raises(InputError, match=words):
        TuckerEstimator(**given)._fit(SimpleNamespace(columns=["user", "item", "rating"]))
    with pytest.raises(InputError, match="regParam must be positive, not 0"):
        TuckerEstimator(regParam=0.0)


@needs_pyspark
def test_tables_of_attributes_are_not_saved_with_the_estimator():
    from tuckergp.spark import TuckerEstimator

    estimator = TuckerEstimator(items={"item_id": [1], "kind": ["a"]})
    assert estimator.copy().items is estimator.items
    with pytest.raises(InputError, match="Tables of attributes are not saved with an estimator"):
        estimator.write()


def test_the_best_users_of_items_are_kept_from_batch_to_batch(numbers, monkeypatch):
    users, items = numbers.history_.ids
    monkeypatch.setattr(audience, "CELLS", 3 * len(items))
    batches = pa.table({"id": list(range(len(users)))}).to_batches(5)
    (found,) = audience._best(batches, numbers, items, 2)
    expected = numbers.scores(users, items)
    best = np.argsort(-expected, axis=0, kind="stable")[:2]
    assert found["user_id"].to_pylist() == [users[k] for k in best.T.ravel()]
    assert found["item_id"].to_pylist() == [item for item in items for _ in range(2)]
    np.testing.assert_allclose(found["score"], np.take_along_axis(expected, best, axis=0).T.ravel(), rtol=1e-6)
