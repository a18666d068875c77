"""The addresses of the page over HTTP: what they answer, and what they refuse."""

import numpy as np
import pytest
from fastapi.testclient import TestClient

from tuckergp import TuckerRecommender
from tuckergp.serve.app import create_app
from tuckergp.serve.pages import PageState
from tuckergp.serve.static import page_files


def client_of(model, folder, **page):
    model.save(folder / "model.tgp")
    app = create_app(folder / "model.tgp", watch=0.0)
    app.state.page = PageState(**page)
    return TestClient(app, base_url="http://localhost")


@pytest.fixture(scope="module")
def client(recommender, tmp_path_factory):
    with client_of(recommender, tmp_path_factory.mktemp("routes")) as client:
        yield client


@pytest.fixture(scope="module")
def regression(regressor, tmp_path_factory):
    rng = np.random.default_rng(1)
    rows = {"longitude": rng.uniform(-2, 2, 30), "latitude": rng.uniform(0, 3, 30), "season": ["dry"] * 30}
    test = {**rows, "height": np.sin(rows["longitude"]) * rows["latitude"]}
    with client_of(regressor, tmp_path_factory.mktemp("routes"), test=test, target="height") as client:
        yield client


def test_people_and_items_are_known_new_or_refused(client, ratings):
    person = ratings.train["user_id"][0]
    assert client.get("/page/person", params={"user_id": person}).json()["id"] == person
    assert client.get("/page/person", params={"user_id": "nobody", "new": True}).json() is None
    assert client.get("/page/person", params={"user_id": "nobody"}).status_code == 404
    assert client.get("/page/item", params={"item_id": "nothing"}).status_code == 404
    assert client.get("/page/item").status_code == 422


def test_expected_ratings_are_those_of_predict_without_noise(client, recommender, ratings):
    person, items = ratings.train["user_id"][0], ratings.items["item_id"][:4].tolist()
    found = client.post("/page/expected", json={"user_id": person, "items": items}).json()
    pairs = {"user_id": [person] * 4, "item_id": items}
    mean, std = recommender.predict(pairs, return_std=True, include_noise=False, clip=False)
    np.testing.assert_allclose(found["mean"], mean)
    np.testing.assert_allclose(found["std"], std)
    assert client.post("/page/expected", json={"user_id": person, "items": ["nothing"]}).status_code == 404
    assert client.post("/page/expected", json={"user_id": "nobody", "items": items}).status_code == 404
    new = client.post("/page/expected", json={"attributes": {"age": 40, "sex": "F"}, "items": items}).json()
    asked = {"users": [{"attributes": {"age": 40, "sex": "F"}}], "by": "rating", "n": 1000}
    (listed,) = client.post("/recommendations", json=asked).json()["lists"]
    by_item = {line["item_id"]: (line["score"], line["std"]) for line in listed["items"]}
    got = list(zip(new["mean"], new["std"], strict=True))
    np.testing.assert_allclose(got, [by_item[item] for item in items], rtol=1e-4)


def test_figures_that_take_a_while_are_computed_once_whatever_is_folded_in(client, monkeypatch):
    from tuckergp.serve import pages
    from tuckergp.serve.routes import page

    first = client.get("/page/model/weights").json()
    rating = {"user_id": "visitor", "item_id": client.get("/page/about").json()["popular"][0]["id"], "rating": 4}
    assert client.post("/fold-in", json={"ratings": [rating]}).status_code == 200
    levels = client.get("/page/about").json()["levels"]
    for module, name in ((page, "weights"), (pages, "levels_of")):
        monkeypatch.setattr(module, name, None)  # would be called again
    assert client.get("/page/model/weights").json() == first
    assert client.get("/page/model/data").json()["added"] == 1
    assert client.get("/page/about").json()["levels"] == levels
    assert len(client.get("/page/item", params={"item_id": rating["item_id"]}).json()["distribution"]) == len(levels)


def test_a_model_of_the_other_kind_is_refused_with_a_sentence(client, regression):
    for path in ("/page/map", "/page/model/data", "/page/model/weights", "/page/person?user_id=x"):
        assert "no users and items" in regression.get(path).json()["detail"]
        assert regression.get(path).status_code == 404
    answer = client.post("/page/surface", json={"along": ["x"]})
    assert (answer.status_code, "recommender" in answer.json()["detail"]) == (404, True)


def test_regression_is_judged_by_the_target_of_the_test_table(regression, regressor):
    found = regression.get("/page/model/accuracy").json()
    rng = np.random.default_rng(1)
    rows = {"longitude": rng.uniform(-2, 2, 30), "latitude": rng.uniform(0, 3, 30), "season": ["dry"] * 30}
    error = np.sin(rows["longitude"]) * rows["latitude"] - regressor.predict(rows)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
    assert (found["source"], found["n"], len(found["coverage"])) == ("held out", 30, 9)
    assert regression.post("/page/surface", json={"along": ["longitude"], "draw": 99}).status_code == 422
    assert regression.post("/page/surface", json={"along": ["longitude"], "fixed": {"season": 9}}).status_code == 422
    regression.app.state.page = PageState({"height": [1.0]}, None)
    assert "--target" in regression.get("/page/model/accuracy").json()["detail"]


def test_a_file_without_ratings_claims_nothing_about_them(recommender, ratings, tmp_path):
    recommender.save(tmp_path / "private.tgp", ratings=False)
    app = create_app(tmp_path / "private.tgp", watch=0.0)
    app.state.page = PageState(copies=True)
    with TestClient(app, base_url="http://localhost") as client:
        about = client.get("/page/about").json()
        assert (about["has_ratings"], about["levels"]) == (False, [1, 2, 3, 4, 5])
        assert client.get("/page/model/weights").json() == {"weights": []}
        assert client.post("/page/model/accuracy").json() == {"source": None, "can_copy": False}
        item = client.get("/page/item", params={"item_id": ratings.items["item_id"][0]}).json()
        assert (item["count"], item["mean"]) == (0, None)
        assert client.get("/page/model/data").json()["mean"] is None
        assert len(client.get("/page/map").json()["ids"]) == len(set(ratings.train["item_id"]))


def test_a_person_who_was_forgotten_says_nothing_about_ids(tmp_path):
    ratings = {"user_id": [0, 0, 1, 1], "item_id": [1, 2, 1, 2], "rating": [1.0, 2.0, 3.0, 4.0]}
    model = TuckerRecommender(rank=1, inference="als", random_state=0).fit(ratings)
    with client_of(model, tmp_path) as client:
        assert client.get("/page/about").json()["whole_ids"]
        for user in (0, 1):
            client.delete(f"/users/{user}")
            assert client.get("/page/about").json()["whole_ids"] == (user == 0)


def test_every_file_of_the_page_is_served_with_its_type(client):
    for address, (content, kind) in page_files().items():
        answer = client.get(address)
        assert answer.content == content
        assert answer.headers["content-type"] == kind
        assert "'unsafe" not in answer.headers["content-security-policy"]
    assert {"/", "/assets/main.js", "/assets/style.css"} <= set(page_files())
