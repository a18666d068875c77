"""What is folded in is seen by all workers and after a restart; who is forgotten is gone, in the journal too."""

from __future__ import annotations

import json
import threading
import warnings

import numpy as np
import pytest

from tests.cli.command import run
from tests.serve.conftest import serving
from tuckergp import load
from tuckergp.errors import DataWarning, InputError
from tuckergp.recommender import growth
from tuckergp.serve.journal import forgotten_in, learn, ratings_in, rotate
from tuckergp.serve.recommending import ServedRecommender
from tuckergp.store.journal import Journal

RATINGS = [{"user_id": "anna", "item_id": "i0003", "rating": 5}, {"user_id": "anna", "item_id": "i0004", "rating": 1}]


def post(client, *ratings, **more):
    answer = client.post("/fold-in", json={"ratings": list(ratings), **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def items(client, user, **query):
    answer = client.get(f"/users/{user}/recommendations", params={"n": 8, **query})
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def scores(client, user):
    return [line["score"] for line in items(client, user)]


def refused(answer, status, text):
    assert answer.status_code == status, answer.text
    assert text in answer.json()["detail"]


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "journal.jsonl"


@pytest.fixture
def two(files, journal):
    """Two workers with one journal."""
    with serving(files["ratings"], journal=journal) as first, serving(files["ratings"], journal=journal) as second:
        yield first, second


def test_a_rating_is_seen_by_the_next_request_to_any_worker(two, files):
    first, second = two
    assert post(first, *RATINGS) == {"ratings": 2, "users": ["anna"]}
    assert items(second, "anna") == items(first, "anna")
    post(second, {"user_id": "anna", "item_id": "i0005", "rating": 2})
    assert items(first, "anna") == items(second, "anna")
    rec = load(files["ratings"])
    rec.fold_in({name: [row[name] for row in RATINGS] for name in RATINGS[0]})
    rec.fold_in({"user_id": ["anna"], "item_id": ["i0005"], "rating": [2.0]})
    expected = rec.recommend("anna", n=8)
    assert [line["item_id"] for line in items(first, "anna")] == expected["item_id"].tolist()
    np.testing.assert_allclose([line["score"] for line in items(first, "anna")], expected["score"])


def test_the_model_file_never_changes(two, files):
    before = files["ratings"].read_bytes()
    post(two[0], *RATINGS)
    two[0].delete("/users/u0002")
    assert files["ratings"].read_bytes() == before


def test_a_restart_replays_a_journal_that_has_a_name(files, journal):
    with serving(files["ratings"], journal=journal) as client:
        post(client, *RATINGS)
        client.delete("/users/u0002")
        before = items(client, "anna"), items(client, "u0003")
    with serving(files["ratings"], journal=journal) as client:
        assert (items(client, "anna"), items(client, "u0003")) == before
        assert client.get("/users/u0002").status_code == 404
    with serving(files["ratings"]) as client:
        assert client.get("/users/anna").status_code == 404


def test_a_restart_folds_all_in_at_once_but_for_what_is_at_fault(files, journal, monkeypatch):
    """Each line has attributes of its user, as those of the page have, and one cannot be taken."""
    rows = [{"user_id": f"new {k % 7}", "item_id": f"i00{10 + k % 20}", "rating": 1 + k % 5} for k in range(300)]
    lines = [
        {"ratings": [row], "users": [{"user_id": row["user_id"], "age": 20 + k % 3}]} for k, row in enumerate(rows)
    ]
    lines[77]["ratings"][0]["rating"] = 99
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    folds, fold = [], ServedRecommender.with_ratings
    monkeypatch.setattr(ServedRecommender, "with_ratings", lambda *given: (folds.append(1), fold(*given))[1])
    with serving(files["ratings"], journal=journal) as client:
        for user in ("new 0", "new 6"):
            expected = {row["item_id"]: row["rating"] for row in rows if row["user_id"] == user and row["rating"] < 99}
            described = client.get(f"/users/{user}").json()
            assert {line["item_id"]: line["rating"] for line in described["ratings"]} == expected
            assert described["attributes"]["age"] == 20 + max(k for k in range(300) if k % 7 == int(user[-1])) % 3
    assert len(folds) < 20


def test_a_worker_that_was_idle_gives_the_same_answers_to_the_last_digit(two):
    first, second = two
    for k in range(60):
        post(first, {"user_id": f"new {k % 7}", "item_id": f"i00{10 + k % 20}", "rating": 1 + k % 5})
    assert [items(first, f"new {k}") for k in range(7)] == [items(second, f"new {k}") for k in range(7)]


def test_the_page_shows_the_same_map_whichever_worker_is_asked_when(two):
    first, second = two
    paths = ("/page/map", "/page/model/weights")
    before = [first.get(path).json() for path in paths]
    post(first, *RATINGS, {"user_id": "anna", "item_id": "brand new", "rating": 3})
    first.delete("/users/u0003")
    assert [second.get(path).json() for path in paths] == before
    assert "brand new" not in before[0]["ids"]


def test_rows_of_one_person_do_not_pile_up(files, monkeypatch):
    """Stars of one person and of others: the rows in use are kept, and answers are what they would be anyway."""
    served, other = (ServedRecommender(load(files["value"])) for _ in range(2))
    rows = [{"user_id": "u0002" if k % 3 else f"new {k % 2}", "item_id": "fresh" if k == 4 else f"i00{10 + k}",
             "rating": 1 + k % 5} for k in range(14)]  # fmt: skip
    for row in rows:
        served = served.with_ratings([row])
    monkeypatch.setattr(growth, "MOST_UNUSED", 2)
    for row in rows:
        other = other.with_ratings([row])
    users = other.model.layout_.sides[0]
    assert (len(users.more), len(users.added)) <= (3, 6)
    assert len(served.model.layout_.sides[0].added) == 14
    for user in ("u0002", "new 0", "u0003"):
        assert other.recommend([user], n=41, exclude_seen=False) == served.recommend([user], n=41, exclude_seen=False)
    assert other.without("new 0").recommend(["u0002"]) == served.without("new 0").recommend(["u0002"])
    assert other.similar(0, "u0002", 5) == served.similar(0, "u0002", 5)


def test_rating_again_takes_the_place_of_the_first_rating(files):
    with serving(files["ratings"]) as client, serving(files["ratings"]) as other:
        post(client, *RATINGS)
        post(client, {"user_id": "anna", "item_id": "i0003", "rating": 2})
        post(
            client,
            {"user_id": "anna", "item_id": "i0003", "rating": 1},
            {"user_id": "anna", "item_id": "i0003", "rating": 4},
        )
        ratings = {line["item_id"]: line["rating"] for line in client.get("/users/anna").json()["ratings"]}
        assert ratings == {"i0003": 4.0, "i0004": 1.0}
        post(
            other,
            {"user_id": "anna", "item_id": "i0004", "rating": 1},
            {"user_id": "anna", "item_id": "i0003", "rating": 4},
        )
        mean = [each.post("/predict", json={"rows": [{"user_id": "anna", "item_id": "i0007"}]}).json()
                ["predictions"][0] for each in (client, other)]  # fmt: skip
        assert abs(mean[0]["mean"] - mean[1]["mean"]) < 1.5 * mean[0]["std"] / np.sqrt(12) * 3


def test_rating_again_what_the_file_has(files):
    with serving(files["ratings"]) as client:
        before = client.get("/users/u0002").json()["ratings"]
        n, changed = client.get("/version").json()["model"]["ratings"], before[0]["item_id"]
        for rating in (5, 1):
            post(client, {"user_id": "u0002", "item_id": changed, "rating": rating})
            after = {line["item_id"]: line["rating"] for line in client.get("/users/u0002").json()["ratings"]}
            assert after == {**{line["item_id"]: line["rating"] for line in before}, changed: rating}
            assert client.get("/version").json()["model"]["ratings"] == n
            assert changed not in [line["item_id"] for line in items(client, "u0002", n=40)]
        post(
            client,
            {"user_id": "u0003", "item_id": client.get("/users/u0003").json()["ratings"][0]["item_id"], "rating": 1},
        )
        assert client.get("/version").json()["model"]["ratings"] == n


def test_a_refused_fold_in_changes_nothing(files, journal):
    with serving(files["ratings"], journal=journal) as client:
        before = client.get("/version").json()["model"]
        for ratings in ([{"user_id": "anna", "item_id": "i0003"}], [{**RATINGS[0], "mood": "good"}], []):
            answer = client.post("/fold-in", json={"ratings": ratings})
            assert answer.status_code == 422, answer.text
        answer = client.post("/fold-in", json={"ratings": RATINGS, "users": [{"user_id": "anna", "height": 3}]})
        assert answer.status_code == 422
        assert client.get("/version").json()["model"] == before
        assert journal.read_bytes() == b""


def test_a_rating_off_the_scale_is_refused(files, journal):
    with serving(files["ratings"], journal=journal) as client:
        before = client.get("/version").json()["model"]["rating_range"]
        answer = client.post("/fold-in", json={"ratings": [{**RATINGS[0], "rating": 1e300}]})
        assert (answer.status_code, "from 1 to 5" in answer.json()["detail"]) == (422, True)
        journal.write_text(json.dumps({"ratings": [{**RATINGS[0], "rating": 99}]}) + "\n")
        assert client.get("/version").json()["model"]["rating_range"] == before


@pytest.mark.parametrize("time", [1705000000, 1705000000.0, 1705000000000, "1705000000", "2024-01-11 19:06:40"])
def test_an_opinion_is_changed_in_any_way_to_write_times(files, time):
    when = {"user_id": "u0003", "timestamp": time}
    with serving(files["timed"]) as client:
        rated = client.get("/users/u0003").json()["ratings"][0]["item_id"]
        post(client, {**when, "item_id": rated, "rating": 2}, {**when, "item_id": "unrated", "rating": 4})
        history = client.app.state.service.recommender().model.history_.flat
        own = [row for row in range(len(history)) if history.ids[0][history.codes[0][row]] == "u0003"]
        times = {history.ids[1][history.codes[1][row]]: str(history.occasion["timestamp"][row]) for row in own}
        assert {times[rated], times["unrated"]} == {"2024-01-11T19:06:40"}


def test_attributes_alone_can_change(files):
    for kind in ("clicks", "ratings"):
        with serving(files[kind]) as client:
            before, n = items(client, "u0003"), client.get("/version").json()["model"]["ratings"]
            assert post(client, users=[{"user_id": "u0003", "age": 90}]) == {"ratings": 0, "users": ["u0003"]}
            assert client.get("/users/u0003").json()["attributes"]["age"] == 90
            assert items(client, "u0003") != before
            assert client.get("/version").json()["model"]["ratings"] == n
            post(client, users=[{"user_id": "anna", "age": 33}])
            assert client.get("/users/anna").json()["ratings"] == []
    assert client.post("/fold-in", json={"ratings": []}).status_code == 422


def test_attributes_that_are_not_named_stay_as_they_were(files, journal, tmp_path):
    """In the answers, after a restart, and after the model has learned from the journal."""
    model = tmp_path / "model.tgp"
    load(files["ratings"]).save(model)
    with serving(model, journal=journal) as client:
        before = {user: client.get(f"/users/{user}").json()["attributes"] for user in ("u0003", "u0004")}
        post(client, users=[{"user_id": "u0003", "age": 41}, {"user_id": "u0004", "sex": "F", "age": None}])
        post(client, {"user_id": "u0003", "item_id": "i0003", "rating": 5},
             users=[{"user_id": "u0003", "occupation": "doctor"}])  # fmt: skip
        expected = {
            "u0003": {**before["u0003"], "age": 41, "occupation": "doctor"},
            "u0004": {**before["u0004"], "sex": "F"},
        }
        assert {user: client.get(f"/users/{user}").json()["attributes"] for user in before} == expected
    with serving(model, journal=journal) as client:
        assert {user: client.get(f"/users/{user}").json()["attributes"] for user in before} == expected
    learn(model, journal, warmup=1, progress=False)
    with serving(model) as client:
        assert {user: client.get(f"/users/{user}").json()["attributes"] for user in before} == expected


def test_a_changed_attribute_changes_what_it_says_alone(files):
    """With all attributes as they were, but for one, the row is that of a table with all of them."""
    for kind in ("ratings", "value"):
        with serving(files[kind]) as one, serving(files[kind]) as other:
            for user in ("u0003", "cold"):
                known = one.get(f"/users/{user}").json()["attributes"]
                post(one, users=[{"user_id": user, "age": 60}])
                post(other, users=[{**known, "user_id": user, "age": 60}])
                assert items(one, user) == items(other, user)


def test_attributes_of_a_known_user_without_ratings_can_change(files):
    with serving(files["ratings"]) as client:
        before = scores(client, "cold")
        assert client.post("/fold-in", json={"users": [{"user_id": "cold", "age": 70}]}).status_code == 200
        assert scores(client, "cold") != before
        post(client, users=[{"user_id": "cold", "age": 30}])
        assert scores(client, "cold") == pytest.approx(before)


def test_an_implausible_attribute_is_refused_and_nobody_notices(files):
    asked = ("/users/u0004/similar", "/items/i0003/similar", "/page/map", "/users/u0004/recommendations")
    with serving(files["ratings"]) as client:
        before = [client.get(path).json() for path in asked]
        for age in (1.7e9, 1e25, 1e308, -(10**18)):
            for users in ([{"user_id": "bad", "age": age}], [{"user_id": "u0003", "age": age}]):
                ratings = [{"user_id": users[0]["user_id"], "item_id": "i0003", "rating": 5}]
                for body in ({"users": users}, {"users": users, "ratings": ratings}):
                    refused(client.post("/fold-in", json=body), 422, "users column 'age' holds")
            person = {"attributes": {"age": age}}
            refused(client.post("/recommendations", json={"users": [person]}), 422, "far from the training values")
        assert [client.get(path).json() for path in asked] == before
        assert client.get("/users/bad").status_code == 404


def test_ids_of_another_type_than_those_of_the_model_are_refused(files, journal, tmp_path):
    model = tmp_path / "model.tgp"
    load(files["numbered"]).save(model)
    with serving(model, journal=journal) as client:
        for user, item, text in (("ann", 3, "'user_id' holds 'ann' at row 1"), (77, "x", "'item_id' holds 'x' at row")):
            body = {"ratings": [{"user_id": user, "item_id": item, "rating": 5}]}
            refused(client.post("/fold-in", json=body), 422, text)
        post(client, {"user_id": 77, "item_id": 3, "rating": 5}, {"user_id": 9.5, "item_id": 3, "rating": 5})
        assert client.get("/users/9.5").json()["user_id"] == 9.5
        assert client.delete("/users/9.5").status_code == 200
    assert learn(model, journal, warmup=1, progress=False).ratings == 1
    with serving(files["ratings"]) as client:
        refused(client.post("/fold-in", json={"users": [{"user_id": 9.5, "age": 30}]}), 422, "'user_id' holds 9.5 at")
        post(client, users=[{"user_id": 9, "age": 30}])
        assert client.get("/users/9").json()["user_id"] == "9"


def test_an_id_alone_adds_nobody_and_is_refused(files):
    with serving(files["ratings"]) as client:
        for user in ({"user_id": "alone"}, {"user_id": "alone", "age": None}, {"user_id": "u0003"}):
            answer = client.post("/fold-in", json={"users": [{"user_id": "anna", "age": 30}, user]})
            refused(answer, 422, "users, row 2: neither attributes nor ratings are given")
        assert client.get("/users/anna").status_code == 404
        post(client, *RATINGS, users=[{"user_id": "anna"}])
        assert client.get("/users/anna").status_code == 200


def test_attributes_of_users_whose_ratings_were_left_out_are_refused(files, tmp_path):
    load(files["ratings"]).save(tmp_path / "model.tgp", ratings=False)
    with serving(tmp_path / "model.tgp") as client:
        answer = client.post("/fold-in", json={"users": [{"user_id": "u0003", "age": 40}]})
        refused(answer, 422, "ratings that were left out of the file")
        post(client, users=[{"user_id": "anna", "age": 40}])


def test_a_full_journal_takes_no_more(files, journal):
    with serving(files["ratings"], journal=journal, most_journal=10) as client:
        post(client, *RATINGS)
        answer = client.post("/fold-in", json={"ratings": RATINGS})
        assert (answer.status_code, "is full" in answer.json()["detail"]) == (503, True)
        assert client.delete("/users/anna").status_code == 200


def test_new_users_have_attributes_and_new_items_are_learned(files):
    with serving(files["ratings"]) as client:
        post(
            client,
            *RATINGS,
            {"user_id": "bea", "item_id": "brand new", "rating": 4},
            users=[{"user_id": "anna", "age": 33}],
        )
        assert client.get("/users/anna").json()["attributes"]["age"] == 33
        assert client.get("/items", params={"search": "brand"}).json()["total"] == 1
        assert client.get("/items/brand new/similar").status_code == 200
        assert client.get("/users", params={"search": "ann"}).json()["users"][0]["user_id"] == "anna"


def test_two_tabs_at_once_lose_nothing(two):
    def rate(client, numbers):
        for k in numbers:
            post(client, {"user_id": "anna", "item_id": f"i00{10 + k}", "rating": 1 + k % 5})

    tabs = [threading.Thread(target=rate, args=(client, range(k, 12, 2))) for k, client in enumerate(two)]
    for tab in tabs:
        tab.start()
    for tab in tabs:
        tab.join()
    for client in two:
        ratings = {line["item_id"]: line["rating"] for line in client.get("/users/anna").json()["ratings"]}
        assert ratings == {f"i00{10 + k}": 1 + k % 5 for k in range(12)}
    assert items(two[0], "anna") == items(two[1], "anna")


# Forgetting


def test_who_is_forgotten_is_gone_everywhere(two, journal):
    first, second = two
    post(first, *RATINGS, {"user_id": "bea", "item_id": "i0003", "rating": 2}, users=[{"user_id": "anna", "age": 33}])
    kept, written = items(second, "bea"), journal.stat().st_size
    assert first.delete("/users/anna").json() == {"forgotten": "anna"}
    for client in two:
        assert client.get("/users/anna").status_code == 404
        assert client.get("/users", params={"search": "anna"}).json()["total"] == 0
        assert items(client, "bea") == kept
    lines = [json.loads(line) for line in journal.read_text().splitlines() if line.strip()]
    assert [sorted(line) for line in lines] == [["at", "ratings", "users"], ["at", "forget"]]
    assert [row["user_id"] for row in lines[0]["ratings"]] == ["bea"]
    assert lines[0]["users"] == []
    assert journal.stat().st_size == written + len(journal.read_text().splitlines()[-1]) + 1
    assert first.delete("/users/anna").status_code == 404


def test_who_was_forgotten_may_come_back(two):
    two[0].delete("/users/u0002")
    post(two[1], {"user_id": "u0002", "item_id": "i0003", "rating": 4})
    for client in two:
        ratings = client.get("/users/u0002").json()["ratings"]
        assert [(line["item_id"], line["rating"]) for line in ratings] == [("i0003", 4.0)]


def test_forgetting_in_python_forgets_in_the_journal_and_in_running_servers(two, journal, files, tmp_path):
    post(two[0], *RATINGS, {"user_id": "u0003", "item_id": "unrated", "rating": 4})
    rec = load(files["ratings"]).forget("u0003", journal=journal)
    assert rec.forget("anna", journal=journal) is rec  # whom the journal alone knows
    rec.save(tmp_path / "new.tgp")
    with serving(tmp_path / "new.tgp", journal=journal) as new:
        for client in (*two, new):
            assert [client.get(f"/users/{user}").status_code for user in ("u0003", "anna")] == [404, 404]
    assert "i0003" not in journal.read_text()
    assert "unrated" not in journal.read_text()
    for wrong in ({}, {"journal": journal}):
        with pytest.raises(InputError, match="nothing to forget"):
            rec.forget("nobody", **wrong)
    with pytest.raises(InputError, match="no journal"):
        rec.forget("u0004", journal=tmp_path / "none")


def test_a_crash_before_a_line_was_erased_is_made_good_at_the_start(files, journal):
    lines = [{"ratings": RATINGS}, {"forget": "anna"}, {"ratings": RATINGS[:1]}]
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with serving(files["ratings"], journal=journal) as client:
        assert "i0004" not in journal.read_text()
        assert [line["item_id"] for line in client.get("/users/anna").json()["ratings"]] == ["i0003"]


def test_erasing_leaves_the_next_line_alone_whoever_wrote_this_one(tmp_path):
    """Escaped as this program writes them, the letters of the line would not fit."""
    line = '{"ratings":[{"user_id":"anna","item_id":1,"rating":1},{"user_id":"bea","item_id":"' + "é" * 30 + '"}]}\n'
    path = tmp_path / "journal"
    path.write_text(line + '{"forget": "cleo"}\n', encoding="utf-8")
    journal = Journal(path)
    end = journal.read().end
    with journal.writing() as writer:
        writer.erase(lambda value: value == "anna")
    reading = journal.read(end)
    assert reading.anew
    assert [list(entry) for entry in reading.entries] == [["ratings", "users"], ["forget"]]
    assert [row["user_id"] for row in reading.entries[0]["ratings"]] == ["bea"]


# The file itself


def test_what_is_written_is_in_the_journal_that_is_there_then(tmp_path, monkeypatch):
    """The file is moved away between the moment it was opened and the moment it was locked."""
    from tuckergp.store import journal as module

    journal, lock = Journal(tmp_path / "journal"), module.fcntl.flock

    def late(file, how):
        monkeypatch.setattr(module.fcntl, "flock", lock)
        (tmp_path / "journal").rename(tmp_path / "moved")
        lock(file, how)

    monkeypatch.setattr(module.fcntl, "flock", late)
    with journal.writing() as writer:
        writer.append({"forget": "anna"})
    assert (tmp_path / "moved").read_bytes() == b""
    assert journal.read().entries[0]["forget"] == "anna"


def test_another_file_is_noticed_whatever_its_number(tmp_path):
    """Of several new files, some would have the number of one that was removed."""
    path = tmp_path / "journal"
    journal = Journal(path)
    with journal.writing() as writer:
        writer.append({"forget": "anna"})
    end = journal.read().end
    for k in range(5):
        path.unlink()
        path.write_text(f'{{"forget": "bea {k}"}}\n' * 9)
        reading = journal.read(end)
        assert (reading.anew, len(reading.entries)) == (True, 9)
        end = reading.end


def test_a_journal_that_is_gone_for_now_is_503(files, tmp_path):
    journal = tmp_path / "journals" / "journal"
    journal.parent.mkdir()
    with serving(files["ratings"], journal=journal) as client:
        journal.unlink()
        journal.mkdir()
        answers = client.get("/users"), client.post("/fold-in", json={"ratings": RATINGS})
        assert [answer.status_code for answer in answers] == [503, 503]
        assert str(tmp_path) not in answers[0].text
        journal.rmdir()
        journal.parent.rmdir()
        assert client.get("/users").status_code == 503
        journal.parent.mkdir()
        assert client.get("/users").status_code == 200


def test_lines_that_are_damaged_are_passed_over(files, journal):
    with serving(files["ratings"], journal=journal) as client:
        post(client, *RATINGS)
    whole = journal.read_bytes()
    journal.write_bytes(b"\n" + whole + b'{"nonsense": 1}\n[]\n' + whole + b'{"ratings": [{"user_id": "ha')
    with serving(files["ratings"], journal=journal) as client:
        assert len(client.get("/users/anna").json()["ratings"]) == 2
        post(client, {"user_id": "bea", "item_id": "i0003", "rating": 2})
        assert client.get("/users/bea").status_code == 200
    with serving(files["ratings"], journal=journal) as client:
        assert client.get("/users/bea").status_code == 200


def test_a_damaged_line_is_said_once_with_its_number(files, journal, caplog):
    with serving(files["ratings"], journal=journal) as client:
        post(client, *RATINGS)
    with open(journal, "ab") as file:
        file.write(b"[]\n\n{\n")
    with serving(files["ratings"], journal=journal) as client:
        assert client.delete("/users/u0003").status_code == 200
        assert client.app.state.service.reload()
        with open(journal, "ab") as file:
            file.write(b"damaged\n" * 7)
        assert client.get("/users").status_code == 200
        assert client.app.state.service.reload()
    said = [record.message for record in caplog.records if "damaged" in record.message]
    assert said == [
        "Lines 2, 4 of the journal are damaged and passed over.",
        "Lines 6, 7, 8, 9, 10 and 2 more of the journal are damaged and passed over.",
    ]


@pytest.mark.parametrize("content", [b"user_id,item_id\n", b'\n{"nonsense": 1}\n', b"[" * 100_000, b"\n[]"])
def test_a_file_that_is_no_journal_is_refused_and_left_alone(files, tmp_path, content):
    other = tmp_path / "other"
    for before in (content, files["another"].read_bytes()):
        other.write_bytes(before)
        with pytest.raises(InputError, match="other is no journal"), serving(files["ratings"], journal=other):
            pass
        with pytest.raises(InputError, match="other is no journal"):
            rotate(other, tmp_path / "to", files["ratings"])
        assert other.read_bytes() == before


def test_a_crash_in_the_first_line_leaves_a_journal(files, journal):
    journal.write_bytes(b'{"at":1.0,"ratings":[{"user')
    with serving(files["ratings"], journal=journal) as client:
        post(client, *RATINGS)
        assert client.get("/users/anna").status_code == 200


def test_entries_that_a_model_cannot_take_are_passed_over(files, journal):
    wrong = [{"user_id": "bea", "item_id": "i0003", "rating": "five"}], [{"item_id": "i0003"}]
    lines = [*({"ratings": rows} for rows in wrong), {"ratings": RATINGS}, {"forget": "nobody"}]
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with serving(files["ratings"], journal=journal) as client:
        assert client.get("/users/bea").status_code == 404
        assert client.get("/users/anna").status_code == 200


def test_entries_that_break_the_model_are_passed_over(files, journal, monkeypatch):
    fold = ServedRecommender.with_ratings

    def broken(self, ratings, users=()):
        if any(row["user_id"] == "bea" for row in ratings):
            raise ValueError("something unforeseen")
        return fold(self, ratings, users)

    monkeypatch.setattr(ServedRecommender, "with_ratings", broken)
    lines = [{"ratings": [{**RATINGS[0], "user_id": "bea"}]}, {"ratings": RATINGS}, {"ratings": [], "users": 3}]
    with serving(files["ratings"], journal=journal) as client:
        journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert client.get("/users/anna").status_code == 200
        assert client.get("/users/bea").status_code == 404


def test_a_journal_that_is_moved_away_is_begun_anew(files, journal):
    with serving(files["ratings"], journal=journal) as client:
        post(client, *RATINGS)
        journal.rename(journal.with_suffix(".old"))
        assert client.get("/users/anna").status_code == 404
        post(client, {"user_id": "bea", "item_id": "i0003", "rating": 2})
        assert client.get("/users/bea").status_code == 200


def test_a_full_disk_is_said_and_changes_nothing(files, journal, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    with serving(files["ratings"], journal=journal) as client:
        with monkeypatch.context() as patch:
            patch.setattr("tuckergp.store.journal.os.fsync", full)
            answer = client.post("/fold-in", json={"ratings": RATINGS})
        assert answer.status_code == 503
        assert "No space left on device" in answer.json()["detail"]
        assert journal.read_bytes() == b""
        assert client.get("/users/anna").status_code == 404
        post(client, *RATINGS)


def test_the_journal_is_for_its_owner_alone(files, journal):
    with serving(files["ratings"], journal=journal):
        assert journal.stat().st_mode & 0o077 == 0


def test_a_journal_that_cannot_be_written_is_refused(files, tmp_path):
    with pytest.raises(InputError, match="cannot be written"), serving(files["ratings"], journal=tmp_path / "no" / "j"):
        pass


def test_the_ratings_of_a_journal_are_a_table_for_the_next_fit(tmp_path):
    journal = Journal(tmp_path / "journal")
    with journal.writing() as writer:
        writer.append({"ratings": RATINGS})
        writer.append({"ratings": [{"user_id": "bea", "item_id": "i0003", "rating": 2, "timestamp": "2024-01-01"}]})
        writer.append({"ratings": [{**RATINGS[0], "rating": 2}]})
        writer.append({"forget": "bea"})
    assert ratings_in(tmp_path / "journal") == {
        "user_id": ["anna"] * 2,
        "item_id": ["i0004", "i0003"],
        "rating": [1, 2],
    }
    with pytest.raises(InputError, match="no journal"):
        ratings_in(tmp_path / "nothing")


def test_all_clicks_of_a_journal_count(tmp_path):
    journal = Journal(tmp_path / "journal")
    with journal.writing() as writer:
        for _ in range(2):
            writer.append({"ratings": [{"user_id": "anna", "item_id": "i0003"}]})
    assert ratings_in(tmp_path / "journal") == {"user_id": ["anna"] * 2, "item_id": ["i0003"] * 2}


def test_nightly_refits_learn_each_rating_once(files, journal, tmp_path):
    """Two nights, with a crash that left the journal as it was: afterwards it can go, and nothing changes."""
    model = tmp_path / "model.tgp"
    load(files["numbered"]).save(model)
    with serving(model, journal=journal) as client:
        n = client.get("/version").json()["model"]["ratings"]
        post(client, {"user_id": "77", "item_id": "3", "rating": 5})  # as the page writes ids
        post(client, {"user_id": 77, "item_id": 3, "rating": 2}, users=[])
        client.delete("/users/2")
        n -= len(load(model).history_.base.of_users(np.array([load(model).history_.users[2]])))
        assert [row["user_id"] for line in Journal(journal).read().entries for row in line.get("ratings", [])] == [
            77
        ] * 2
        before = journal.read_bytes()
        learned = run("journal", "learn", model, journal, "--warmup", 1, "--quiet", "--json")
        assert json.loads(learned.stdout) == {"ratings": 2, "forgotten": 1}
        assert journal.read_bytes() == b""
        assert client.app.state.service.reload()
        assert client.get("/version").json()["model"]["ratings"] == n + 1
        journal.write_bytes(before)
        post(client, {"user_id": 77, "item_id": 4, "rating": 3})
        assert learn(model, journal, warmup=1, progress=False) == (3, 0)
    rec = load(model)
    assert len(rec.history_) == n + 2
    assert 2 not in rec.layout_.sides[0].number
    own = rec.history_.base.of_users(np.array([rec.history_.users[77]]))
    assert dict(zip(own.ids[1], own.rating[np.argsort(own.codes[1])], strict=True)) == {3: 2.0, 4: 3.0}


def test_learning_says_its_warnings_as_fit_does(files, journal, tmp_path, monkeypatch):
    model = tmp_path / "model.tgp"
    load(files["numbered"]).save(model)
    with serving(model, journal=journal) as client:
        post(client, {"user_id": 77, "item_id": 3, "rating": 5})
        client.delete("/users/2")
    fit = type(load(model)).partial_fit

    def doubtful(*given, **more):
        warnings.warn("Something is odd.", DataWarning, stacklevel=2)
        return fit(*given, **more)

    monkeypatch.setattr(type(load(model)), "partial_fit", doubtful)
    learned = run("journal", "learn", model, journal, "--warmup", 1, "--quiet")
    assert learned.stdout.strip() == f"{model} has learned from 1 rating, and forgotten 1 person."
    assert learned.stderr.splitlines()[-1] == "tuckergp: Something is odd."


@pytest.mark.parametrize("kind", ["ratings", "clicks", "value"])
def test_attributes_of_a_journal_without_ratings_are_learned_too(kind, files, journal, tmp_path):
    model = tmp_path / "model.tgp"
    load(files[kind]).save(model)
    with serving(model, journal=journal) as client:
        post(client, users=[{"user_id": "anna", "age": 33}, {"user_id": "u0003", "age": 44}])
    assert learn(model, journal, warmup=1, progress=False) == (0, 0)
    assert journal.read_bytes() == b""
    with serving(model) as client:
        assert client.get("/users/anna").json()["attributes"]["age"] == 33
        assert client.get("/users/u0003").json()["attributes"]["age"] == 44


def test_clicks_are_learned_once_and_what_comes_meanwhile_stays(files, journal, tmp_path, monkeypatch):
    model = tmp_path / "model.tgp"
    load(files["clicks"]).save(model)
    with serving(model, journal=journal) as client:
        post(client, {"user_id": "anna", "item_id": "i0003"}, {"user_id": "anna", "item_id": "i0003"})
        fit = type(load(model)).partial_fit

        def slow(*given, **more):
            post(client, {"user_id": "bea", "item_id": "i0003"})
            client.delete("/users/u0003")
            return fit(*given, **more)

        monkeypatch.setattr(type(load(model)), "partial_fit", slow)
        learn(model, journal, warmup=1, progress=False)
        assert [sorted(entry) for entry in Journal(journal).read().entries] == [
            ["at", "ratings", "users"],
            ["at", "forget"],
        ]
        assert client.app.state.service.reload()
        assert [line["rating"] for line in client.get("/users/anna").json()["ratings"]] == [2.0]
        assert client.get("/users/bea").status_code == 200
        assert client.get("/users/u0003").status_code == 404


def test_a_journal_is_rotated_without_anybody_coming_back(files, journal, tmp_path):
    with serving(files["ratings"], journal=journal) as client:
        post(client, *RATINGS)
        client.delete("/users/anna")
        client.delete("/users/u0003")
        post(client, *RATINGS)
        moved = run("journal", "rotate", journal, "--to", tmp_path / "done", "--model", files["ratings"])
        assert "with 1 line that forgets somebody" in moved.stdout
        assert client.get("/users/u0003").status_code == 404
        assert client.get("/users/anna").status_code == 404
        assert forgotten_in(journal) == ["u0003"]
        assert len(ratings_in(tmp_path / "done")["rating"]) == 2
        assert (tmp_path / "done").stat().st_mode & 0o077 == 0
        with pytest.raises(InputError, match="exists"):
            rotate(journal, tmp_path / "done", files["ratings"])
