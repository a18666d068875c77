"""Who may ask, how much and how often; and what every answer says to a browser."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest
from fastapi import HTTPException

from tests.cli.command import refuse
from tests.serve.conftest import MARKUP, serving
from tuckergp.cli.serve import is_loopback, token_of
from tuckergp.errors import InputError
from tuckergp.serve.settings import ServeSettings

TOKEN = "sesame-0123456789"
PREDICT = {"rows": [{"user_id": "u0002", "item_id": "i0003"}]}


def refused(answer, status, text):
    assert answer.status_code == status, answer.text
    assert text in answer.json()["detail"]
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/health", "/users", "/users/nobody", "/nowhere", "/", "/openapi.json", "/metrics"])
def test_every_answer_has_the_headers(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"


def test_errors_inside_have_them_too_and_tell_nothing(files, monkeypatch):
    with serving(files["ratings"]) as client:
        monkeypatch.setattr(type(client.app.state.service), "recommender", lambda self: 1 / 0)
        answer = client.get("/users")
        refused(answer, 500, "Something went wrong here")
        assert "zero" not in answer.text
        assert 'status="500"' in client.get("/metrics").text


# Tokens


@pytest.fixture(scope="module")
def locked(files):
    with serving(files["ratings"], token=TOKEN) as client:
        yield client


@pytest.mark.parametrize(
    "header", [None, TOKEN, "Bearer", f"Bearer {TOKEN.upper()}", f"Bearer {TOKEN}2", f"Basic {TOKEN}", "Bearer \xe9"]
)
def test_without_the_token_nothing_is_told(locked, header):
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    for path in ("/users", "/version", "/metrics", "/openapi.json", "/nowhere"):
        answer = locked.get(path, headers=headers)
        refused(answer, 401, "needs a token")
        assert answer.headers["www-authenticate"] == "Bearer"


def test_the_token_opens_and_health_needs_none(locked):
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert locked.get("/users", headers={"Authorization": f"{scheme} {TOKEN}"}).status_code == 200
    assert locked.get("/health").status_code == 200
    assert locked.get("/").status_code == 200


def test_a_token_makes_names_and_origins_free(locked):
    headers = {"Authorization": f"Bearer {TOKEN}", "Host": "shop.example", "Origin": "https://shop.example"}
    assert locked.get("/users", headers=headers).status_code == 200


def test_tokens_come_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("TUCKERGP_TOKEN", raising=False)
    assert token_of(None) is None
    (tmp_path / "token").write_text("sesame\n")
    assert token_of(tmp_path / "token") == "sesame"
    monkeypatch.setenv("TUCKERGP_TOKEN", "other")
    assert token_of(None) == "other"


@pytest.mark.parametrize("token", ["", "short", "two words with spaces", "é" * 20, "0123456789\n0123456"])
def test_tokens_that_can_be_guessed_or_not_be_sent_are_refused(tmp_path, token):
    with pytest.raises(InputError, match="16 or more letters, digits and signs") as refusal:
        ServeSettings(tmp_path, token=token)
    assert not token or token not in str(refusal.value)


def test_without_a_token_others_are_let_in_only_if_that_is_said(files, monkeypatch):
    monkeypatch.delenv("TUCKERGP_TOKEN", raising=False)
    assert "say --no-token" in refuse("serve", files["ratings"], "--host", "0.0.0.0", "--port", 0)
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "shop.example")] == [
        *[True] * 3,
        *[False] * 2,
    ]


# Names and origins


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:8000", "192.168.1.7", "[::1]:8000"])
def test_addresses_and_localhost_are_names_of_the_server(client, host):
    assert client.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[", "localhost@evil"]
)
def test_other_names_are_refused(client, host):
    refused(client.get("/users", headers={"Host": host}), 403, "--allow-host")


def test_names_can_be_allowed(files):
    with serving(files["ratings"], hosts=("Shop.example",)) as client:
        assert client.get("/users", headers={"Host": "shop.example:443"}).status_code == 200
        assert client.get("/users", headers={"Host": "evil.example"}).status_code == 403


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:9999", "localhost"])
def test_pages_of_others_are_refused(client, origin):
    refused(client.post("/predict", json=PREDICT, headers={"Origin": origin}), 403, "Other sites")


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_images_and_links_of_other_pages_compute_nothing(client, site):
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
    refused(client.get("/page/model/weights", headers=headers), 403, "Other sites")
    headers["Sec-Fetch-Mode"] = "navigate"
    refused(client.get("/users", headers=headers), 403, "Other sites")
    assert client.get("/", headers=headers).status_code == 200
    assert client.get("/users", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_its_own_page_may_ask(client):
    assert client.post("/predict", json=PREDICT, headers={"Origin": "http://localhost"}).status_code == 200


# How much, how often


def test_long_bodies_are_refused_announced_or_not(files):
    with serving(files["ratings"], most_bytes=2000) as client:
        refused(client.post("/predict", content=b"x" * 2001), 413, "2,000 bytes")
        refused(client.post("/predict", content=(b"x" * 500 for _ in range(5))), 413, "2,000 bytes")
        refused(client.post("/predict", content=b"", headers={"Content-Length": "-1"}), 413, "2,000 bytes")
        assert client.post("/predict", json=PREDICT).status_code == 200


def test_too_many_requests_are_told_to_come_back(files):
    with serving(files["ratings"], rate=1.0) as client:
        answers = [client.get("/health") for _ in range(4)]
        assert [answer.status_code for answer in answers[:2]] == [200, 200]
        refused(answers[-1], 429, "Too many requests")
        assert int(answers[-1].headers["retry-after"]) >= 1


def test_guesses_are_limited_too(files):
    with serving(files["ratings"], rate=1.0, token=TOKEN) as client:
        answers = [client.get("/users", headers={"Authorization": f"Bearer {k}"}) for k in range(4)]
        assert [answer.status_code for answer in answers] == [401, 401, 429, 429]


def test_too_many_at_once_are_told_to_come_back(files):
    """Addresses that need no token neither take places nor need one."""
    with serving(files["ratings"], at_once=1) as client:
        assert client.get("/users").status_code == 200
        guard = client.app.middleware_stack
        assert guard.let_in == 0
        guard.let_in = 1
        refused(client.get("/users"), 503, "at once")
        assert client.get("/health").status_code == 200
        assert client.get("/assets/style.css").status_code == 200
        assert guard.let_in == 1


def test_a_body_that_does_not_come_to_its_end_is_ended(files):
    """However its parts dribble in: all of it must come in time."""

    async def dribbling():
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def receive_all(receive):
        while True:
            await receive()

    with serving(files["ratings"], patience=0.1) as client:
        guard = client.app.build_middleware_stack()
        with pytest.raises(HTTPException) as error:
            asyncio.run(asyncio.wait_for(receive_all(guard._patient(dribbling)), 5))
        assert error.value.status_code == 408


def test_ten_thousand_items_are_rated_in_one_request(files):
    """By somebody new for one answer, and to be kept; what is rated is in no list, and in the details of the user."""
    ratings = [{"item_id": k, "rating": 1 + k % 5} for k in range(10_000)]
    with serving(files["many_items"]) as client:
        answer = client.post("/recommendations", json={"users": [{"ratings": ratings}], "n": 1000})
        assert answer.status_code == 200, answer.text
        assert {line["item_id"] for line in answer.json()["lists"][0]["items"]} == set(range(10_000, 10_500))
        kept = [{"user_id": 1000, **rating} for rating in ratings]
        folded = client.post("/fold-in", json={"ratings": kept})
        assert (folded.status_code, folded.json()) == (200, {"ratings": 10_000, "users": [1000]})
        left = client.get("/users/1000/recommendations", params={"n": 1000}).json()["items"]
        assert {line["item_id"] for line in left} == set(range(10_000, 10_500))
        known = client.get("/users/1000").json()["ratings"]
        assert {line["item_id"]: line["rating"] for line in known} == {k: 1 + k % 5 for k in range(10_000)}
        listed = client.get("/page/person", params={"user_id": "1000"}).json()
        assert (listed["count"], len(listed["ratings"])) == (10_000, 500)


def test_too_many_ids_in_one_request_are_refused(client):
    asked = {"users": [{"user_id": "u0002"}], "exclude": [0] * 100_001}
    assert client.post("/recommendations", json=asked).status_code == 422


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/predict", {"rows": [{str(k): [] for k in range(20_000)}]}),
        ("/predict", {"rows": [{"user_id": []}] * 20_000}),
        ("/predict", {"rows": [{"user_id": "u0002", "item_id": "i0003"}] * 20_000 + [{}]}),
        ("/fold-in", {"ratings": [{"item_id": 1, "user_id": 1, **{str(k): [] for k in range(20_000)}}]}),
        ("/fold-in", {"ratings": [{}] * 20_000}),
        ("/fold-in", {"ratings": [], "users": [{"user_id": 1, "age": [{}] * 20_000}]}),
        ("/recommendations", {"users": [{"attributes": {str(k): {} for k in range(20_000)}}]}),
        ("/recommendations", {"users": [{"user_id": {}}] * 900, "exclude": [{}] * 20_000}),
        ("/recommendations", {"users": [{"user_id": 1}], "where": {"year": [[]] * 9999}}),
    ],
)  # fmt: skip
def test_of_large_wrong_bodies_few_faults_are_looked_at(client, monkeypatch, path, body):
    from tuckergp.serve import errors

    seen = []

    async def counted(request, error):
        seen.append(len(error.errors()))
        return await invalid(request, error)

    invalid = client.app.exception_handlers[errors.RequestValidationError]
    monkeypatch.setitem(client.app.exception_handlers, errors.RequestValidationError, counted)
    client.app.middleware_stack = None  # made anew, with the handler
    answer = client.post(path, json=body)
    client.app.middleware_stack = None
    assert answer.status_code == 422
    assert len(answer.text) < 1000
    assert max(seen, default=0) <= 500


# The page, and markup


def test_no_path_of_a_request_touches_the_disk(client, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("a file was opened")

    monkeypatch.setattr("builtins.open", forbidden)
    for path in ("/", "/index.html", "/../app.py", "/%2e%2e/app.py", "/page/../../settings.py", "/etc/passwd"):
        assert client.get(path).status_code in (200, 404)


def test_ids_and_titles_with_markup_are_text_in_json(client):
    """The type says JSON and nosniff keeps browsers to it; the page shows texts alone."""
    markup = quote(MARKUP, safe="")
    paths = (f"/users/{markup}/recommendations", f"/items/{markup}/similar", "/items", "/users", "/users/<script>")
    asked = (f"/explain?user_id={MARKUP}&item_id={MARKUP}", f"/users/u0002/recommendations?where={MARKUP}=1")
    for path in (*paths, *asked):
        answer = client.get(path)
        assert answer.headers["content-type"] == "application/json", path
        assert answer.status_code in (200, 404, 422)
    assert client.get(f"/users/{markup}").json()["user_id"] == MARKUP


def test_ids_may_hold_any_letters(files):
    names = ["a/b", "a b", "a?b", "a%2Fb", "ä\u2028", "recommendations", "u0002/similar", "a/recommendations"]
    tilded = ["", ".", "..", "~", "~~.."]
    names += [*tilded, "~a", "..."]
    with serving(files["ratings"]) as client:
        rows = [{"user_id": name, "item_id": "i0003", "rating": 3} for name in names]
        assert client.post("/fold-in", json={"ratings": rows}).status_code == 200
        for name in names:
            tilde = "~" if name in tilded else ""
            for what in ("", "/recommendations", "/similar"):
                answer = client.get(f"/users/{tilde}{quote(name, safe='')}{what}")
                assert (answer.status_code, answer.json().get("user_id")) == (200, name)
        assert client.delete("/users/~..").json() == {"forgotten": ".."}
        assert client.delete("/users/a%2Fb").json() == {"forgotten": "a/b"}
        refused(client.get("/users/a/b"), 404, "nothing at this address")
