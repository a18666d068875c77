"""What is folded in is seen by all workers and after a restart; who is forgotten is gone, in the journal too."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

from tests.serve.conftest import serving
from tuckergp import load
from tuckergp.errors import InputError
from tuckergp.serve.journal import Journal, forgotten_in, ratings_in

RATINGS = [{"user_id": "anna", "item_id": "i0003", "rating": 5}, {"user_id": "anna", "item_id": "i0004", "rating": 1}]


def post(client, *ratings, **more):
    answer = client.post("/fold-in", json={"ratings": list(ratings), **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def items(client, user, **query):
    answer = client.get(f"/users/{user}/recommendations", params={"n": 8, **query})
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


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


def test_many_entries_are_replayed_together(files, journal):
    with serving(files["ratings"], journal=journal) as client:
        for k in range(60):
            post(client, {"user_id": f"new {k % 7}", "item_id": f"i00{10 + k % 20}", "rating": 1 + k % 5})
        known = {user: client.get(f"/users/{user}").json()["ratings"] for user in ("new 0", "new 6")}
    with serving(files["ratings"], journal=journal) as client:
        for user, ratings in known.items():
            again = client.get(f"/users/{user}").json()["ratings"]
            assert sorted(map(str, again)) == sorted(map(str, ratings))


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
    kept = items(second, "bea")
    assert first.delete("/users/anna").json() == {"forgotten": "anna"}
    for client in two:
        assert client.get("/users/anna").status_code == 404
        assert client.get("/users", params={"search": "anna"}).json()["total"] == 0
        assert items(client, "bea") == kept
    lines = [json.loads(line) for line in journal.read_text().splitlines() if line.strip()]
    assert [sorted(line) for line in lines] == [["at", "ratings", "users"], ["at", "forget"]]
    assert [row["user_id"] for row in lines[0]["ratings"]] == ["bea"]
    assert lines[0]["users"] == []
    assert first.delete("/users/anna").status_code == 404


def test_who_was_forgotten_may_come_back(two):
    two[0].delete("/users/u0002")
    post(two[1], {"user_id": "u0002", "item_id": "i0003", "rating": 4})
    for client in two:
        ratings = client.get("/users/u0002").json()["ratings"]
        assert [(line["item_id"], line["rating"]) for line in ratings] == [("i0003", 4.0)]


# The file itself


def test_lines_that_are_damaged_are_passed_over(files, journal):
    with serving(files["ratings"], journal=journal) as client:
        post(client, *RATINGS)
    whole = journal.read_bytes()
    journal.write_bytes(b'{"nonsense": 1}\n[]\n' + whole + b'{"ratings": [{"user_id": "ha')
    with serving(files["ratings"], journal=journal) as client:
        assert len(client.get("/users/anna").json()["ratings"]) == 2
        post(client, {"user_id": "bea", "item_id": "i0003", "rating": 2})
        assert client.get("/users/bea").status_code == 200
    with serving(files["ratings"], journal=journal) as client:
        assert client.get("/users/bea").status_code == 200


def test_entries_that_a_model_cannot_take_are_passed_over(files, journal):
    wrong = [{"user_id": "bea", "item_id": "i0003", "rating": "five"}], [{"item_id": "i0003"}]
    lines = [*({"ratings": rows} for rows in wrong), {"ratings": RATINGS}, {"forget": "nobody"}]
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with serving(files["ratings"], journal=journal) as client:
        assert client.get("/users/bea").status_code == 404
        assert client.get("/users/anna").status_code == 200


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
            patch.setattr("tuckergp.serve.journal.os.fsync", full)
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


def test_a_nightly_refit_takes_over_what_the_journal_has(files, journal, tmp_path):
    """The recipe of docs/production.md: afterwards the journal can go, and nothing changes."""
    with serving(files["ratings"], journal=journal) as client:
        post(client, *RATINGS)
        client.delete("/users/u0002")
    rec = load(files["ratings"])
    for user in forgotten_in(journal):
        rec.forget(user)
    rec.partial_fit(ratings_in(journal), warmup=1)
    rec.save(tmp_path / "new.tgp")
    with serving(tmp_path / "new.tgp") as client:
        assert client.get("/users/u0002").status_code == 404
        assert {line["item_id"] for line in client.get("/users/anna").json()["ratings"]} == {"i0003", "i0004"}
