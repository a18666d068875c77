"""Another model file is taken while requests go on; a damaged one is not."""

from __future__ import annotations

import json
import threading
import zipfile

import pytest

from tests.serve.conftest import replace_with, serving, wait_for
from tuckergp import load
from tuckergp.errors import InputError
from tuckergp.serve import service, watching
from tuckergp.serve.app import create_app


def scores(client, user="u0003"):
    return [line["score"] for line in client.get(f"/users/{user}/recommendations").json()["items"]]


def expected(path, user="u0003"):
    return load(path).recommend(user)["score"].tolist()


def newer(path, source):
    """A file of a version that is not there yet."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "model.json":
                content = json.dumps({**json.loads(content), "version": "99.0"}).encode()
            new.writestr(name, content)


def test_a_changed_file_is_taken_by_itself(model, files):
    with serving(model, watch=0.05) as client:
        assert scores(client) == pytest.approx(expected(files["ratings"]))
        taken = []
        client.app.state.service.taken = lambda: taken.append(True)
        replace_with(model, files["another"])
        wait_for(lambda: client.app.state.service.reloads)
        assert scores(client) == pytest.approx(expected(files["another"]))
        assert taken == [True]
        assert "tuckergp_reloads_total 1" in client.get("/metrics").text


def test_what_was_folded_in_stays(model, files):
    with serving(model) as client:
        rating = {"user_id": "anna", "item_id": "i0003", "rating": 5}
        assert client.post("/fold-in", json={"ratings": [rating]}).status_code == 200
        client.delete("/users/u0002")
        replace_with(model, files["another"])
        assert client.app.state.service.reload()
        assert client.get("/users/anna").json()["ratings"][0]["rating"] == 5
        assert client.get("/users/u0002").status_code == 404
        rec = load(files["another"]).fold_in({name: [value] for name, value in rating.items()})
        assert scores(client, "anna") == pytest.approx(rec.recommend("anna")["score"].tolist())


def test_a_new_file_that_has_the_ratings_already_does_not_count_them_twice(model, files):
    with serving(model) as client:
        rating = {"user_id": "anna", "item_id": "i0003", "rating": 5}
        assert client.post("/fold-in", json={"ratings": [rating]}).status_code == 200
        n = client.get("/version").json()["model"]["ratings"]
        rec = load(files["ratings"]).fold_in({name: [value] for name, value in rating.items()})
        rec.save(model)
        assert client.app.state.service.reload()
        assert client.get("/version").json()["model"]["ratings"] == n


@pytest.mark.parametrize("damage", ["cut", "other", "gone", "newer", "folder"])
def test_a_damaged_file_keeps_the_old_model_and_says_so(model, files, damage):
    with serving(model, watch=0.05) as client:
        before, served = scores(client), client.app.state.service
        content = model.read_bytes()
        other = model.with_suffix(".new")
        if damage == "newer":
            newer(other, files["ratings"])
        else:
            other.write_bytes(content[: len(content) // 2] if damage == "cut" else b"something else")
        if damage in ("gone", "folder"):
            model.unlink()
            if damage == "folder":
                model.mkdir()
        else:
            other.replace(model)
        wait_for(lambda: served.fault)
        assert scores(client) == before
        assert client.get("/health").json() == {"status": "ok", "fault": True}
        fault = client.get("/version").json()["model"]["fault"]
        assert ("update tuckergp" in fault) == (damage == "newer")
        assert "tuckergp_model_fault 1" in client.get("/metrics").text
        if damage == "folder":
            model.rmdir()
        replace_with(model, files["another"])
        wait_for(lambda: served.fault is None)
        assert scores(client) == pytest.approx(expected(files["another"]))


def test_a_file_that_was_away_for_a_moment_is_no_fault(model):
    with serving(model) as client:
        served = client.app.state.service
        model.rename(model.with_suffix(".away"))
        assert not served.reload(always=False)
        assert client.get("/health").json()["fault"]
        assert client.get("/version").json()["model"]["fault"] == f"There is no file {model.name}."
        model.with_suffix(".away").rename(model)
        assert not served.reload(always=False)
        assert not client.get("/health").json()["fault"]


def test_whatever_goes_wrong_with_a_new_file_is_a_fault_that_tells_no_path(model, files, monkeypatch):
    def broken(path):
        raise ValueError(f"{path} is strange")

    with serving(model, watch=0.02) as client:
        monkeypatch.setattr(service, "load", broken)
        replace_with(model, files["another"])
        wait_for(lambda: client.app.state.service.fault)
        assert str(model) not in client.get("/version").text
        assert client.get("/users").status_code == 200


def test_a_worker_without_requests_reads_the_journal(model, files, monkeypatch, tmp_path):
    monkeypatch.setattr(watching, "TURN", 0.02)
    with serving(model, journal=tmp_path / "journal") as first, serving(model, journal=tmp_path / "journal") as idle:
        rating = {"user_id": "anna", "item_id": "i0003", "rating": 5}
        assert first.post("/fold-in", json={"ratings": [rating]}).status_code == 200
        wait_for(lambda: idle.app.state.service.figures.added > 0)


def test_a_reload_during_a_hundred_requests(model, files):
    old, new = expected(files["ratings"]), expected(files["another"])
    with serving(model) as client:
        answers = []

        def ask():
            for _ in range(25):
                answers.append(client.get("/users/u0003/recommendations"))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(answers) > 10)
        replace_with(model, files["another"])
        assert client.app.state.service.reload()
        for thread in threads:
            thread.join()
        got = [[line["score"] for line in answer.json()["items"]] for answer in answers if answer.status_code == 200]
        assert len(got) == 100
        assert all(each == pytest.approx(old) or each == pytest.approx(new) for each in got)
        assert scores(client) == pytest.approx(new)


def test_a_model_becomes_one_of_another_kind(model, files):
    with serving(model) as client:
        replace_with(model, files["regression"])
        assert client.app.state.service.reload()
        assert client.get("/users").status_code == 404
        assert client.get("/version").json()["model"]["kind"] == "regressor"


@pytest.mark.parametrize(("content", "text"), [(None, "There is no model file"), (b"nonsense", "damaged")])
def test_nothing_is_served_without_a_model(tmp_path, content, text):
    path = tmp_path / "model.tgp"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=text):
        create_app(path)
