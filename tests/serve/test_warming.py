"""What first answers need once is there before anybody asks: after the start, and before another file is taken."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.serve.conftest import replace_with, serving, wait_for
from tests.serve.test_processes import SOURCE
from tuckergp.serve import pages, warming

ANSWERS = """
import sys
from fastapi.testclient import TestClient
from tuckergp.compute import compiled
from tuckergp.serve.app import create_app

app = create_app(sys.argv[1], watch=0.0)
app.state.service.warm_up()

def refused(first):
    raise AssertionError("compiled code is loaded by a request")

compiled._load = refused
with TestClient(app, base_url="http://localhost") as client:
    first = client.get("/page/about").json()
    if first["kind"] == "regressor":
        asked = [client.post("/page/surface", json={"along": first["first"]})]
    else:
        rating = {"item_id": first["popular"][0]["id"], **({} if first["clicks"] else {"rating": first["range"][1]})}
        user = client.get("/users").json()["users"][0]["user_id"]
        asked = [
            client.get(f"/users/{user}/recommendations"),
            client.get("/explain", params={"user_id": user, "item_id": rating["item_id"]}),
            client.get("/page/item", params={"item_id": rating["item_id"]}),
            client.post("/recommendations", json={"users": [{"ratings": [rating]}]}),
            client.post("/fold-in", json={"ratings": [{"user_id": "new", **rating}]}),
            client.get("/users/new/recommendations"),
        ]
    for answer in asked:
        assert answer.status_code == 200, answer.text
"""


@pytest.mark.parametrize("kind", ["ratings", "value", "clicks", "regression"])
def test_first_answers_load_no_compiled_code(files, kind):
    command = [sys.executable, "-W", "ignore", "-c", ANSWERS, str(files[kind])]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": SOURCE}, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_server_that_nobody_asks_prepares_its_model(files, monkeypatch):
    found, looked = pages.levels_of, []
    monkeypatch.setattr(pages, "levels_of", lambda fitted: looked.append(fitted) or found(fitted))
    with serving(files["ratings"]) as client:
        wait_for(lambda: looked)
        assert client.get("/page/about").json()["levels"] == [1, 2, 3, 4, 5]
        assert len(looked) == 1


def test_another_model_is_prepared_before_it_is_taken(model, files):
    with serving(model) as client:
        service, known = client.app.state.service, []
        old, prepare = service.of_file(), service.prepare
        service.prepare = lambda new: (known.append((new, service.of_file())), prepare(new))
        replace_with(model, files["another"])
        assert service.reload()
        assert known == [(service.of_file(), old)]
        assert old is not service.of_file()


@pytest.mark.parametrize("kind", ["ratings", "regression"])
def test_a_model_that_cannot_be_prepared_is_served(model, files, monkeypatch, caplog, kind):
    def broken(*_):
        raise ValueError("strange")

    with serving(model) as client:
        monkeypatch.setattr(warming, "about_recommender", broken)
        monkeypatch.setattr(warming, "surface", broken)
        replace_with(model, files[kind])
        assert client.app.state.service.reload()
        assert client.get("/health").json() == {"status": "ok", "fault": False}
    assert "could not be prepared" in caplog.text
