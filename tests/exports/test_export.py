"""Exported vectors, indexes and graphs against what the model itself answers."""

import json

import numpy as np
import pytest
from pyarrow import parquet

from tests.cli.command import refuse, succeed
from tuckergp import TuckerGPRegressor, TuckerRecommender, load
from tuckergp.data.datasets import make_ratings
from tuckergp.errors import InputError
from tuckergp.exports import EXPORTS, export
from tuckergp.exports.formats import Onnx

FAST = {"rank": 3, "draws": 12, "warmup": 8, "time": None, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return TuckerRecommender(**FAST).fit(data.train, data.users, data.items)


@pytest.fixture(scope="module")
def both(data):
    """Without draws, so that the probability is a function of the mean."""
    model = TuckerRecommender(rank=3, inference="als", time=None, objective="value", random_state=0)
    return model.fit(data.train, data.users, data.items)


def tables(folder, part="rating"):
    users, items = (parquet.read_table(folder / f"{side}.parquet") for side in ("users", "items"))
    ids = users["user_id"].to_pylist(), items["item_id"].to_pylist()
    return ids, np.array(users[part].to_pylist()), np.array(items[part].to_pylist())


def predictions(model, users, items):
    return model.scores(users, items, by="rating")


@pytest.mark.parametrize("width", [None, 4])
def test_inner_products_are_posterior_means_with_the_error_that_is_stated(model, tmp_path, width):
    about = export(model, tmp_path / "out", "parquet", width=width)
    assert json.loads((tmp_path / "out" / "about.json").read_text()) == about
    (users, items), U, V = tables(tmp_path / "out")
    part = about["parts"]["rating"]
    assert part["inner_product"] == "posterior mean of the rating"
    error = part["offset"] + U @ V.T - predictions(model, users, items)
    assert part["exact"] == (width is None)
    assert U.shape[1] == part["width"] == (36 if width is None else 4)
    if width is None:
        np.testing.assert_allclose(error, 0, atol=1e-4)
    else:
        assert np.sqrt(np.mean(error**2)) == pytest.approx(part["error"]["rms"], rel=0.1)
        assert part["error"]["rms"] > 1e-4
        assert np.abs(error).max() >= 0.8 * part["error"]["largest"]


def test_vectors_that_are_narrow_already_are_exact(data, tmp_path):
    als = TuckerRecommender(rank=3, inference="als", random_state=0).fit(data.train)
    part = export(als, tmp_path, "parquet")["parts"]["rating"]
    assert part["exact"]
    assert part["width"] == 3
    assert part["error"] == {"rms": 0.0, "largest": 0.0}


def best(model, user, items, n):
    scores = predictions(model, [user], items)[0]
    order = np.argsort(-scores)[:n]
    return order, scores[order]


def test_faiss_finds_the_best_items(model, tmp_path):
    faiss = pytest.importorskip("faiss")
    about = export(model, tmp_path, "faiss", width=None)
    (users, items), U, _ = tables(tmp_path)
    index = faiss.read_index(str(tmp_path / "items.faiss"))
    scores, numbers = index.search(U[:1].astype(np.float32), 5)
    order, expected = best(model, users[0], items, 5)
    assert numbers[0].tolist() == order.tolist()
    np.testing.assert_allclose(about["parts"]["rating"]["offset"] + scores[0], expected, atol=1e-4)


def test_hnswlib_finds_the_best_items(model, tmp_path):
    hnswlib = pytest.importorskip("hnswlib")
    export(model, tmp_path, "hnswlib", width=None)
    (users, items), U, _ = tables(tmp_path)
    index = hnswlib.Index(space="ip", dim=U.shape[1])
    index.load_index(str(tmp_path / "items.hnsw"))
    numbers, _ = index.knn_query(U[:1], k=5)
    assert numbers[0].tolist() == best(model, users[0], items, 5)[0].tolist()
    before = (tmp_path / "items.hnsw").read_bytes()
    export(model, tmp_path, "hnswlib", width=None)
    assert (tmp_path / "items.hnsw").read_bytes() == before


def test_onnx_recommends(model, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    export(model, tmp_path, "onnx", width=None)
    (users, items), _, _ = tables(tmp_path)
    session = runtime.InferenceSession(tmp_path / "recommend.onnx", providers=["CPUExecutionProvider"])
    numbers, scores = session.run(["item", "score"], {"user": np.array([3, 0]), "n": np.array([4])})
    assert numbers.shape == scores.shape == (2, 4)
    for row, user in enumerate((3, 0)):
        order, expected = best(model, users[user], items, 4)
        assert numbers[row].tolist() == order.tolist()
        np.testing.assert_allclose(scores[row], expected, atol=1e-4)


def test_value_is_exported_in_parts(both, tmp_path):
    about = export(both, tmp_path, "parquet", width=None)
    assert set(about["parts"]) == {"rating", "choice"}
    (users, items), U, V = tables(tmp_path, "choice")
    part = about["parts"]["choice"]
    tendency = part["offset"] + U @ V.T
    link = part["probability"]
    probability = 1 / (1 + np.exp(-(link["intercept"] + link["slope"] * tendency)))
    np.testing.assert_allclose(probability, both.scores(users, items, by="choice"), atol=1e-4)
    for to in sorted(set(EXPORTS) - {"parquet"}):
        with pytest.raises(InputError, match=r"by value, a product of two predictions and no inner product"):
            export(both, tmp_path, to)
    assert list(export(both, tmp_path, "faiss", by="rating")["parts"]) == ["rating"]


def test_what_a_refusal_of_value_advises_is_taken(both, tmp_path):
    with pytest.raises(InputError, match=r"export by='rating' .*by='choice' also needs latent=True \(--latent\)"):
        export(both, tmp_path, "faiss")
    pytest.importorskip("faiss")
    export(both, tmp_path, "faiss", by="rating")
    export(both, tmp_path, "faiss", by="choice", latent=True)
    with pytest.raises(InputError, match="latent=True"):
        export(both, tmp_path, "faiss", by="choice")


def test_a_map_estimate_is_called_so(data, tmp_path):
    model = TuckerRecommender(rank=2, time=None, inference="als", random_state=0).fit(data.train)
    part = export(model, tmp_path, "parquet")["parts"]["rating"]
    assert part["inner_product"] == "MAP estimate of the rating"


@pytest.mark.parametrize("likelihood", ["ordinal", "clicks"])
def test_latent_utilities_are_exported_when_that_is_wanted(data, likelihood, tmp_path):
    ratings = data.train if likelihood == "ordinal" else data.train.select(["user_id", "item_id"])
    model = TuckerRecommender(**FAST, likelihood=likelihood).fit(ratings)
    with pytest.raises(InputError, match=r"no inner products, only its .* is: latent=True"):
        export(model, tmp_path, "faiss")
    (part,) = export(model, tmp_path, "faiss", latent=True)["parts"].values()
    assert part["inner_product"] in ("posterior mean of the latent utility", "posterior mean of the tendency to choose")
    export(model, tmp_path, "parquet")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"to": "pickle"}, "to must be"),
        ({"to": "parquet", "width": 0}, "width must be"),
        ({"to": "parquet", "by": "choice"}, "by='choice' is not in this model, which is of ratings"),
        ({"to": "parquet", "by": "fame"}, "by must be"),
        ({"to": "parquet", "path": ""}, "path must be a path"),
    ],
)
def test_bad_settings_are_refused(model, tmp_path, options, sentence):
    with pytest.raises(InputError, match=sentence):
        export(model, **{"path": tmp_path, **options})


def test_regressors_and_missing_packages_are_refused(model, tmp_path, monkeypatch):
    regressor = TuckerGPRegressor(rank=1, draws=2, warmup=1).fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(InputError, match="Only recommenders have vectors to export"):
        export(regressor, tmp_path, "parquet")
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(InputError, match=r"needs Faiss: pip install 'tuckergp\[faiss\]'"):
        export(model, tmp_path / "new", "faiss")
    assert not (tmp_path / "new").exists()


def test_an_index_of_other_vectors_does_not_stay(model, tmp_path, monkeypatch):
    (tmp_path / "items.hnsw").write_bytes(b"of an earlier export")
    (tmp_path / "mine.txt").write_text("")
    export(model, tmp_path, "parquet", width=4)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "about.json",
        "items.parquet",
        "mine.txt",
        "users.parquet",
    ]
    pytest.importorskip("onnx")
    monkeypatch.setattr(Onnx, "most", 1_000)
    with pytest.raises(InputError, match="an ONNX file holds 2; export a smaller width"):
        export(model, tmp_path, "onnx", width=4)


def test_the_command_says_what_it_wrote(model, tmp_path):
    model.save(tmp_path / "model.tgp")
    shown = succeed("export", tmp_path / "model.tgp", "--to", "parquet", "-o", tmp_path / "out", "--width", "4")
    assert "rating: 60 users, 50 items, width 4" in shown
    assert "inner product is the posterior mean of the rating" in shown
    (users, items), U, V = tables(tmp_path / "out")
    about = json.loads((tmp_path / "out" / "about.json").read_text())["parts"]["rating"]
    error = about["offset"] + U @ V.T - predictions(load(tmp_path / "model.tgp"), users, items)
    assert np.sqrt(np.mean(error**2)) < 2 * about["error"]["rms"]
    both = ("--exact", "--width", "5")
    said = refuse("export", tmp_path / "model.tgp", "--to", "parquet", "-o", tmp_path / "x", *both)
    assert "leave out --width, or --exact" in said
    assert "Missing option '--to'" in refuse("export", tmp_path / "model.tgp", "-o", tmp_path / "x", code=2)
