"""Answers over HTTP are those of the model, with titles, and errors are sentences with the right status."""

from __future__ import annotations

import datetime
import json
import re
import uuid
from pathlib import Path

import numpy as np
import pytest

from tests.serve.conftest import MARKUP, serving
from tuckergp import TuckerRecommender, load

USER = "u0002"
FEW = ["i0003", "i0004", "i0005"]


def listed(answer):
    assert answer.status_code == 200, answer.text
    return [line["item_id"] for line in answer.json()["items"]]


def refused(answer, status, text):
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"detail"}
    assert text in answer.json()["detail"]


# Status


def test_says_what_it_serves(client, rec):
    assert client.get("/health").json() == {"status": "ok", "fault": False}
    assert (client.head("/health").status_code, client.head("/health").content) == (200, b"")
    model = client.get("/version").json()["model"]
    assert (model["kind"], model["of"], model["by"]) == ("recommender", "ratings", ["rating"])
    assert (model["users"], model["items"], model["ratings"]) == (31, 41, len(rec.history_))
    assert model["attributes"]["items"] == ["title", "year", "genres"]


def test_a_group_takes_the_options_that_the_page_says(client):
    text = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
    said = re.search(r"such a list takes no ([^.]+)\. All lists", text)[1]
    changed = {"strategy": "ucb", "kappa": 2, "seed": 3, "diversity": 0.5, "reasons": 2, "min_ratings": 1, "n": 3,
               "boosts": [{"item_id": "i0003", "boost": 1}], "exclude": ["i0003"], "items": FEW, "by": "rating",
               "exclude_seen": False, "where": {"year": {"low": 1900}},
               "stock": [{"item_id": "i0003", "left": 0}]}  # fmt: skip
    group = {"users": [{"user_id": USER}, {"user_id": "u0003"}], "together": "mean"}
    statuses = {name: client.post("/recommendations", json={**group, name: value}).status_code
                for name, value in changed.items()}  # fmt: skip
    refusing = set(re.findall(r"`(\w+)`", said))
    assert statuses == {name: 422 if name in refusing else 200 for name in changed}


# Users and items


def test_finds_items_by_id_and_title_in_pages(client, rec):
    everything = client.get("/items", params={"limit": 1000}).json()
    assert everything["total"] == len(everything["items"]) == 41
    second = client.get("/items", params={"limit": 10, "offset": 10}).json()
    assert second["items"] == everything["items"][10:20]
    title = next(line["title"] for line in everything["items"] if line["title"] and line["title"] != MARKUP)
    found = client.get("/items", params={"search": title.upper()}).json()
    assert title in [line["title"] for line in found["items"]]
    assert found["total"] < 41
    by_id = client.get("/items", params={"search": "i002"}).json()
    assert {line["item_id"] for line in by_id["items"]} == {f"i002{k}" for k in range(10)}
    assert client.get("/items", params={"search": "no such thing"}).json() == {"total": 0, "offset": 0, "items": []}


def test_tables_are_looked_through_once_per_file(files, monkeypatch):
    """Not for each list, nor for each rating that is folded in."""
    from tuckergp.serve import entities

    looked, look = [], entities.rows_by_id
    monkeypatch.setattr(entities, "rows_by_id", lambda table, key: (looked.append(key), look(table, key))[1])
    with serving(files["ratings"]) as client:
        for _ in range(3):
            rating = {"user_id": USER, "item_id": "i0003", "rating": 5}
            assert client.post("/fold-in", json={"ratings": [rating]}).status_code == 200
            for path in (f"/users/{USER}", f"/users/{USER}/recommendations", f"/page/person?user_id={USER}"):
                assert client.get(path).status_code == 200
    assert sorted(looked) == ["item_id", "user_id"]


def test_a_user_has_attributes_and_ratings(client, rec):
    user = client.get(f"/users/{USER}").json()
    assert set(user["attributes"]) == {"age", "sex", "occupation"}
    flat, number = rec.history_.flat, rec.history_.users[USER]
    own = flat.codes[0] == number
    expected = {flat.ids[1][k]: y for k, y in zip(flat.codes[1][own].tolist(), flat.rating[own], strict=True)}
    assert {line["item_id"]: line["rating"] for line in user["ratings"]} == expected
    assert client.get("/users/cold").json()["ratings"] == []


# Predictions


def test_predicts_as_the_model_does(client, rec):
    pairs = {"user_id": [USER, "cold", MARKUP], "item_id": ["i0003", "unrated", MARKUP]}
    rows = [dict(zip(pairs, row, strict=True)) for row in zip(*pairs.values(), strict=True)]
    got = client.post("/predict", json={"rows": rows, "interval": 0.8}).json()["predictions"]
    mean, std, interval = rec.predict(pairs, return_std=True, interval=0.8)
    np.testing.assert_allclose([line["mean"] for line in got], mean)
    np.testing.assert_allclose([line["std"] for line in got], std)
    np.testing.assert_allclose([[line["low"], line["high"]] for line in got], interval)


def test_unknown_ids_are_refused_unless_the_average_will_do(client, rec):
    row = {"user_id": "nobody", "item_id": "i0003"}
    refused(client.post("/predict", json={"rows": [row]}), 404, "knows no user 'nobody'")
    refused(client.post("/predict", json={"rows": [{"user_id": USER}]}), 422, "rows, row 1: item_id is missing")
    refused(
        client.post("/predict", json={"rows": [row, {**row, "typo": 1}]}),
        422,
        "row 2: there is no column 'typo' in this model; it takes item_id",
    )
    got = client.post("/predict", json={"rows": [row], "unknown": "average"}).json()["predictions"][0]["mean"]
    assert got == pytest.approx(rec.predict({"user_id": ["nobody"], "item_id": ["i0003"]})[0])


def test_explains_as_the_model_does(client, rec):
    got = client.get("/explain", params={"user_id": USER, "item_id": "i0003"}).json()
    expected = rec.explain(USER, "i0003")
    assert got["base"] + sum(part["contribution"] for part in got["parts"]) == pytest.approx(expected.total)
    assert got["total"] == pytest.approx(expected.total)
    assert [part["label"] for part in got["parts"]] == [row.label for row in expected.rows[1:]]
    refused(client.get("/explain", params={"user_id": USER, "item_id": "x"}), 404, "knows no item 'x'")
    refused(client.get("/explain", params={"user_id": USER}), 422, "parameter item_id: is missing")


# Lists


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ({"n": 3}, {"n": 3}),
        ({"strategy": "ucb", "kappa": 2}, {"strategy": "ucb", "kappa": 2.0}),
        ({"strategy": "thompson", "seed": 5}, {"strategy": "thompson", "random_state": 5}),
        ({"diversity": 0.8}, {"diversity": 0.8}),
        ({"where": ["genres=Drama", "year=1990..2010"]}, {"where": {"genres": "Drama", "year": (1990, 2010)}}),
        ({"min_ratings": 14}, {"min_ratings": 14}),
        ({"exclude_seen": False}, {"exclude_seen": False}),
        ({"items": FEW, "exclude_seen": False}, {"items": FEW, "exclude_seen": False}),
        ({"exclude": ["i0003", "no such item"]}, {"exclude": ["i0003"]}),
        ({"boost": ["i0009:2.5", "i0008:-3"]}, {"boosts": {"i0009": 2.5, "i0008": -3.0}}),
    ],
)  # fmt: skip
def test_lists_are_those_of_the_model(client, rec, query, asked):
    got = client.get(f"/users/{USER}/recommendations", params=query)
    expected = rec.recommend(USER, **asked)
    assert listed(got) == expected["item_id"].tolist()
    np.testing.assert_allclose([line["score"] for line in got.json()["items"]], expected["score"])
    np.testing.assert_allclose([line["std"] for line in got.json()["items"]], expected["std"])


def test_business_rules_in_a_body(client, rec):
    plain = rec.recommend(USER, n=5)["item_id"].tolist()
    rules = {"exclude": plain[:1], "stock": [{"item_id": plain[1], "left": 0}, {"item_id": plain[2], "left": 3}],
             "boosts": [{"item_id": plain[4], "boost": 10.0}], "where": {"year": {"low": 1900}}}  # fmt: skip
    answer = client.post("/recommendations", json={"users": [{"user_id": USER}], "n": 3, **rules})
    (got,) = answer.json()["lists"]
    assert [line["item_id"] for line in got["items"]][:2] == [plain[4], plain[2]]
    assert not set(plain[:2]) & {line["item_id"] for line in got["items"]}


def test_reasons_are_the_largest_parts(client):
    lines = client.get(f"/users/{USER}/recommendations", params={"n": 2, "reasons": 2}).json()["items"]
    for line in lines:
        parts = client.get("/explain", params={"user_id": USER, "item_id": line["item_id"]}).json()["parts"]
        expected = sorted(parts, key=lambda part: -abs(part["contribution"]))[:2]
        assert line["reasons"] == expected


def test_new_people_are_those_of_a_fold_in(client, files):
    ratings = [{"item_id": "i0003", "rating": 5}, {"item_id": "i0004", "rating": 1}]
    asked = {"users": [{"user_id": "newcomer", "ratings": ratings, "attributes": {"age": 40}}], "n": 4}
    got = client.post("/recommendations", json=asked).json()["lists"][0]
    table = {"user_id": ["newcomer"] * 2, "item_id": ["i0003", "i0004"], "rating": [5.0, 1.0]}
    expected = load(files["ratings"]).fold_in(table, {"user_id": ["newcomer"], "age": [40]}).recommend("newcomer", n=4)
    assert [line["item_id"] for line in got["items"]] == expected["item_id"].tolist()
    np.testing.assert_allclose([line["score"] for line in got["items"]], expected["score"])
    refused(client.get("/users/newcomer/recommendations"), 404, "knows no user 'newcomer'")  # for one answer alone


def test_attributes_alone_describe_somebody(client, rec):
    asked = {"users": [{"attributes": {"age": 25, "sex": "F"}}, {"attributes": {"age": 60}}], "n": 3, "reasons": 1}
    lists = client.post("/recommendations", json=asked).json()["lists"]
    table = {"user_id": ["a", "b"], "age": [25, 60], "sex": ["F", None]}
    expected = rec.recommend(table, n=3)
    assert [line["score"] for each in lists for line in each["items"]] == pytest.approx(expected["score"].tolist())
    assert [each["user_id"] for each in lists] == [None, None]
    refused(client.post("/recommendations", json={"users": [{"attributes": {"height": 1}}]}), 422, "it uses age, sex")


def test_attributes_of_known_people_count_for_one_answer(client, rec, files):
    known = client.get("/users/u0003").json()["attributes"]
    older, same = ({"user_id": "u0003", "attributes": {"age": age}} for age in (70, known["age"]))
    asked = {"users": [older, {"user_id": "cold", "attributes": {"age": 70}}], "n": 3}
    lists = [each["items"] for each in client.post("/recommendations", json=asked).json()["lists"]]
    with serving(files["ratings"]) as other:
        other.post("/fold-in", json={"users": [{"user_id": person["user_id"], "age": 70} for person in asked["users"]]})
        for user, got in zip(("u0003", "cold"), lists, strict=True):
            assert got == other.get(f"/users/{user}/recommendations", params={"n": 3}).json()["items"]
            assert got != client.get(f"/users/{user}/recommendations", params={"n": 3}).json()["items"]
    assert client.get("/users/u0003").json()["attributes"] == known
    assert client.post("/recommendations", json={"users": [same]}).status_code == 200


@pytest.mark.parametrize("kind", [datetime.date, datetime.datetime, uuid.UUID, tuple, bytes])
def test_new_people_have_an_id_of_the_type_of_the_others(kind, tmp_path):
    make = {
        datetime.date: lambda k: datetime.date(2020, 1, k + 1),
        datetime.datetime: lambda k: datetime.datetime(2020, 1, k + 1),
        uuid.UUID: lambda k: uuid.UUID(int=k),
        tuple: lambda k: (k, "x"),
        bytes: lambda k: bytes([k]),
    }[kind]
    rows = [{"user_id": make(k), "item_id": k * j % 5, "rating": 1 + (k + j) % 5} for k in range(6) for j in range(3)]
    model = TuckerRecommender(rank=2, inference="als", random_state=0).fit(rows)
    model.save(tmp_path / "model.tgp")
    with serving(tmp_path / "model.tgp") as client:
        people = [{"ratings": [{"item_id": k, "rating": 5}]} for k in range(2)]
        assert len(client.post("/recommendations", json={"users": people}).json()["lists"]) == 2


def test_somebody_new_is_nobody_else(files):
    """An id that a client makes up is not the one that new people get."""
    asked = {"users": [{"attributes": {"age": 30}}, {"ratings": [{"item_id": "i0003", "rating": 5}]}]}
    with serving(files["ratings"]) as client:
        before = client.post("/recommendations", json=asked).json()
        rows = [
            {"user_id": f"\0new person {k}", "item_id": f"i00{10 + j}", "rating": 1} for j in range(3) for k in range(2)
        ]
        assert client.post("/fold-in", json={"ratings": rows}).status_code == 200
        after = client.post("/recommendations", json=asked).json()
        assert [line["item_id"] for line in after["lists"][0]["items"]] == [
            line["item_id"] for line in before["lists"][0]["items"]
        ]
        taken = {"user_id": "\0new person 2", "ratings": [{"item_id": "i0010", "rating": 1}]}
        both = client.post("/recommendations", json={"users": [taken, *asked["users"]], "n": 41}).json()["lists"]
        assert ["i0010" in [line["item_id"] for line in each["items"]] for each in both] == [False, True, True]
        assert [each["user_id"] for each in both] == [taken["user_id"], None, None]


def test_a_user_id_inside_a_person_is_refused(client):
    rating = {"item_id": "i0003", "rating": 5, "user_id": "u0003"}
    for person in ({"ratings": [rating]}, {"attributes": {"user_id": "u0003", "age": 3}}):
        refused(client.post("/recommendations", json={"users": [person]}), 422, "no user_id of their own")


def test_the_same_user_twice_has_the_same_list_twice(client):
    asked = {"users": [{"user_id": USER}, {"user_id": "u0003"}, {"user_id": USER}], "n": 2}
    first, _, third = client.post("/recommendations", json=asked).json()["lists"]
    assert first == third
    assert [line["rank"] for line in first["items"]] == [1, 2]


def test_work_has_a_bound(client):
    asked = {"users": [{"user_id": USER}] * 30, "n": 1000}
    refused(client.post("/recommendations", json=asked), 422, "Lists have at most 20,000 items")
    asked = {"users": [{"user_id": USER}] * 10, "n": 500, "diversity": 0.5}
    refused(client.post("/recommendations", json=asked), 422, "Diverse lists have at most")


@pytest.mark.parametrize("how", ["mean", "least"])
def test_groups(client, rec, how):
    people = [USER, "u0003", "cold"]
    asked = {"users": [{"user_id": user} for user in people], "together": how, "n": 5}
    (got,) = client.post("/recommendations", json=asked).json()["lists"]
    expected = rec.recommend_together(people, n=5, how=how)
    assert [line["item_id"] for line in got["items"]] == expected["item_id"].tolist()
    np.testing.assert_allclose([line["score"] for line in got["items"]], expected["score"])
    for option, value in {"diversity": 0.5, "seed": 3, "kappa": 2.0}.items():
        refused(client.post("/recommendations", json={**asked, option: value}), 422, f"takes no {option!r}")


def test_similar_items_and_users(client, rec):
    got = client.get("/items/i0003/similar", params={"n": 3}).json()["items"]
    expected = rec.similar_items("i0003", n=3)
    assert [line["item_id"] for line in got] == expected["item_id"].tolist()
    np.testing.assert_allclose([line["similarity"] for line in got], expected["similarity"])
    got = client.get(f"/users/{USER}/similar", params={"n": 3}).json()["users"]
    assert [line["user_id"] for line in got] == rec.similar_users(USER, n=3)["user_id"].tolist()


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/users/U0002/recommendations", 404, "Did you mean 'u0002'?"),
        ("/users/u0002/recommendations?n=0", 422, "parameter n: must be at least 1."),
        ("/users/u0002/recommendations?colour=red", 422, "parameter colour: there is no such parameter."),
        ("/users/u0002/recommendations?where=height=3", 422, "no such column"),
        ("/users/u0002/recommendations?where=3", 422, "where takes a column and a value"),
        ("/users/u0002/recommendations?boost=i0003", 422, "boost takes an id and points"),
        ("/users/u0002/recommendations?boost=i0003:nan", 422, "a boost must be"),
        ("/users/u0002/recommendations?boost=nope:1", 404, "knows no item 'nope'"),
        ("/users/u0002/recommendations?where=year=1999..1990", 422, "'year' to be from 1999 to 1990, but the first"),
        ("/users/u0002/recommendations?by=value", 422, "by='value' needs"),
        ("/users/u0002/recommendations?reasons=3&n=500", 422, "Reasons are given for at most"),
        ("/users/u0002/recommendations?items=x", 404, "knows no item 'x'"),
        ("/items/x/similar", 404, "knows no item 'x'"),
        ("/nowhere", 404, "nothing at this address"),
    ],
)
def test_mistakes_get_a_sentence(client, path, status, text):
    refused(client.get(path), status, text)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"rows": NaN}', b'{"rows": [' + b"9" * 5000 + b"]}", b"\xff",
                                  b'{"rows": [{"user_id": "\\ud800", "item_id": "i"}]}', b"[" * 100_000])  # fmt: skip
def test_bodies_that_are_none(client, body):
    answer = client.post("/predict", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert isinstance(answer.json()["detail"], str)


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("/predict", "{", "The body is broken JSON: Expecting property name enclosed in double quotes at character 1."),
        ("/predict", "[" * 100_000, "The body is broken JSON, or no UTF-8 text."),
        ("/predict", "", "The body is missing; send JSON, with the header Content-Type: application/json."),
        ("/predict", [], "body: must be an object."),
        ("/predict", {"rows": []}, "rows: must be a list of at least 1."),
        ("/predict", {"rows": [{}] * 100_001}, "rows: must be a list of at most 100,000."),
        ("/predict", {"rows": [{}], "interval": 1, "st": 1}, "interval: must be below 1. st: there is no such field."),
        ("/fold-in", {"users": [{"user_id": "a"}, {"user_id": [1]}]},
         "users, row 2, user_id: must be a whole number, a number or text of at most 2,000 characters."),
        ("/fold-in", {"users": [{"age": 3}]}, "users, row 1, user_id: is missing."),
        ("/fold-in", {"ratings": [{"user_id": 1, "item_id": 2, "rating": "x"}]},
         "ratings, row 1, rating: must be a whole number or a number."),
        ("/fold-in", {"ratings": [{"user_id": "a", "item_id": "i0003", "rating": 3}, {"user_id": "a", "item_id": "x"}]},
         "ratings, row 2: rating is missing; a model of ratings needs one in each row."),
        ("/fold-in", {"users": [{"user_id": 1, **dict.fromkeys(map(str, range(100)))}]},
         "users, row 1: a row has at most 100 names."),
        ("/recommendations", {"users": [{"user_id": USER}], "together": "x", "stock": [{"item_id": 1, "left": -1}]},
         "stock, row 1, left: must be at least 0. together: must be 'mean' or 'least'."),
        ("/recommendations", {"users": [{"user_id": USER}], "where": {"year": [1990, {"lo": 1}]}},
         "where, year, element 2, lo: there is no such field."),
        ("/recommendations", {"users": [{"user_id": USER}], "where": {"year": {"low": {}}}},
         "where, year, low: must be a whole number, a number or text of at most 2,000 characters."),
        ("/recommendations", {"users": [{"ratings": [{"item_id": "i0003"}]}]},
         "ratings, row 1: rating is missing; a model of ratings needs one in each row."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_body_is_a_plain_sentence(client, path, body, sentence):
    content = body if isinstance(body, str) else json.dumps(body)
    answer = client.post(path, content=content, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["detail"]) == (422, sentence)


def test_the_header_that_is_missing_is_named(client):
    body = b'{"rows": [{"user_id": "u0002", "item_id": "i0003"}]}'
    refused(client.post("/predict", content=body), 422, "The header Content-Type: application/json is missing")
    other = client.post("/predict", content=body, headers={"content-type": "text/plain"})
    refused(other, 422, "The header Content-Type must be application/json")
    boosted = {"users": [{"user_id": USER}], "boosts": [{"item_id": "nope", "boost": 1}]}
    refused(client.post("/recommendations", json=boosted), 404, "knows no item 'nope'")


def test_other_methods_are_refused(client):
    refused(client.put("/predict"), 405, "no such method")


# Other kinds of models


def test_lists_by_value_have_both_parts(files):
    with serving(files["value"]) as client:
        assert client.get("/version").json()["model"]["by"] == ["value", "rating", "choice"]
        rec = load(files["value"])
        for by in ("value", "rating", "choice"):
            got = client.get(f"/users/{USER}/recommendations", params={"by": by, "n": 4})
            assert listed(got) == rec.recommend(USER, by=by, n=4)["item_id"].tolist()
        line = client.get(f"/users/{USER}/recommendations").json()["items"][0]
        assert 0 <= line["choice"] <= 1 <= line["rating"] <= 5
        new = {"users": [{"ratings": [{"item_id": "i0003", "rating": 5}], "attributes": {"age": 30}}], "n": 2}
        assert len(client.post("/recommendations", json=new).json()["lists"][0]["items"]) == 2
        group = {"users": [{"user_id": USER}, {"user_id": "u0003"}], "together": "least", "n": 3}
        for by in ("value", "choice"):
            (got,) = client.post("/recommendations", json={**group, "by": by}).json()["lists"]
            expected = rec.recommend_together([USER, "u0003"], how="least", n=3, by=by)
            assert [line["item_id"] for line in got["items"]] == expected["item_id"].tolist()


def test_choices_are_explained_beside_ratings(files):
    with serving(files["value"]) as client:
        got = client.get("/explain", params={"user_id": USER, "item_id": "i0003"}).json()
        expected = load(files["value"]).explain(USER, "i0003")
        assert (got["words"], got["choice"]["words"]) == (expected.words, expected.choice.words)
        assert got["value"] == pytest.approx(expected.value)
        assert got["choice"]["total"] == pytest.approx(expected.choice.total)
        wanted = {"n": 1, "reasons": 2}
        ask = f"/users/{USER}/recommendations"
        for by, of in {"value": ["rating"] * 2 + ["probability of a choice"] * 2, "rating": ["rating"] * 2,
                       "choice": ["probability of a choice"] * 2}.items():  # fmt: skip
            (line,) = client.get(ask, params={**wanted, "by": by}).json()["items"]
            assert [part["of"] for part in line["reasons"]] == of


def test_clicks(files):
    with serving(files["clicks"]) as client:
        assert client.get("/version").json()["model"]["of"] == "choices"
        assert (
            listed(client.get(f"/users/{USER}/recommendations"))
            == load(files["clicks"]).recommend(USER)["item_id"].tolist()
        )
        new = {"users": [{"ratings": [{"item_id": "i0003"}, {"item_id": "i0004"}]}], "n": 2}
        assert len(client.post("/recommendations", json=new).json()["lists"][0]["items"]) == 2
        rated = {"ratings": [{"user_id": USER, "item_id": "i0003", "rating": 3}]}
        refused(client.post("/fold-in", json=rated), 422, "it takes count, item_id")
        assert client.post("/fold-in", json={"ratings": [{"user_id": "new", "item_id": "i0003"}]}).status_code == 200
        assert client.get("/users/new").json()["ratings"][0]["item_id"] == "i0003"


def test_integer_ids_without_titles_and_without_uncertainty(files):
    with serving(files["numbered"]) as client:
        answer = client.get("/users/3/recommendations").json()
        assert answer["user_id"] == 3
        assert all(type(line["item_id"]) is int and line["title"] is None and line["std"] is None
                   for line in answer["items"])  # fmt: skip
        refused(client.get("/users/03/recommendations"), 404, "Did you mean 3?")
        got = client.post("/predict", json={"rows": [{"user_id": 3, "item_id": 5}]}).json()["predictions"][0]
        assert set(got) == {"mean"}
        refused(client.get("/users/3/recommendations?strategy=ucb"), 422, "needs standard deviations")
        people = {"users": [{"user_id": 3}, {"ratings": [{"item_id": 5, "rating": 4}]}], "together": "mean"}
        assert client.post("/recommendations", json=people).status_code == 200


def test_times_are_circumstances(files):
    with serving(files["timed"]) as client:
        rec = load(files["timed"])
        assert client.get("/version").json()["model"]["circumstances"] == ["timestamp"]
        row = {"user_id": USER, "item_id": "i0003", "timestamp": "2024-01-10"}
        got = client.post("/predict", json={"rows": [row]}).json()["predictions"][0]["mean"]
        assert got == pytest.approx(rec.predict({name: [value] for name, value in row.items()})[0])
        why = client.get("/explain", params=row).json()
        assert why["total"] == pytest.approx(rec.explain(USER, "i0003", timestamp="2024-01-10").total)
        refused(client.get("/explain", params={**row, "timestamp": "soon"}), 422, "timestamp")


def test_contexts_are_circumstances_of_explanations(files):
    with serving(files["contexts"]) as client:
        rec = load(files["contexts"])
        assert client.get("/version").json()["model"]["circumstances"] == ["device", "people"]
        pair = {"user_id": USER, "item_id": "i0003"}
        why = client.get("/explain", params={**pair, "device": "tv", "people": "2"}).json()
        assert why["total"] == pytest.approx(rec.explain(USER, "i0003", device="tv", people=2).total)
        assert {"context device=tv", "context people=2"} <= {part["label"] for part in why["parts"]}
        assert why["total"] != pytest.approx(client.get("/explain", params=pair).json()["total"])
        refused(client.get("/explain", params={**pair, "people": "two"}), 422, "people must be a number")
        refused(client.get("/explain", params={**pair, "devise": "tv"}), 422, "no parameter 'devise'")
        refused(client.get("/explain", params={**pair, "timestamp": "2024-01-10"}), 422, "no parameter 'timestamp'")
        refused(client.get("/explain", params={**pair, "device": ["tv", "phone"]}), 422, "given twice")


def test_regression_models_predict(files):
    with serving(files["regression"]) as client:
        reg = load(files["regression"])
        rows = [{"x": 0.1, "y": 0.5, "kind": "a"}, {"x": 0.9, "y": 0.2, "kind": "c"}]
        got = client.post("/predict", json={"rows": rows, "interval": 0.9}).json()["predictions"]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        mean, std = reg.predict(columns, return_std=True)
        np.testing.assert_allclose([line["mean"] for line in got], mean)
        np.testing.assert_allclose([line["std"] for line in got], std)
        assert client.get("/version").json()["model"]["columns"] == ["x", "y", "kind"]
        refused(client.post("/predict", json={"rows": [{"x": 1}]}), 422, "rows, row 1: y is missing")
        bad = {**rows[0], "bogus": 1}
        refused(client.post("/predict", json={"rows": [rows[0], bad]}), 422, "row 2: 'bogus' is no input of this model")
        wrong = [rows[0], {**rows[0], "x": "far"}]
        refused(client.post("/predict", json={"rows": wrong}), 422, "rows column 'x' must be numeric, but row 2")
        refused(client.post("/predict", json={"rows": rows, "unknown": "refuse"}), 422, "leave out unknown")
        refused(client.get("/users"), 404, "has no users and items")
        refused(client.post("/fold-in", json={"ratings": [{"user_id": 1, "item_id": 2, "rating": 3}]}), 404, "no users")
