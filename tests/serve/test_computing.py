"""Answers that take too long: they are refused, their work ends, and it does not pile up."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from anyio import to_thread
from fastapi import Request, routing

from tests.serve.conftest import serving
from tuckergp import load
from tuckergp.serve.computing import computed
from tuckergp.serve.pages import PageState
from tuckergp.serve.refusals import Unavailable
from tuckergp.stopping import Stopped, Work, commit, doing, stop_if_unwanted

SOON, LONG = 0.05, 10.0


def until(condition):
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.005)


class Endless:
    """Work without end that stops only when nobody wants it."""

    def __init__(self):
        self.begun = self.stopped = 0

    def __call__(self):
        self.begun += 1
        try:
            until(stop_if_unwanted)
        except Stopped:
            self.stopped += 1
            raise


def test_what_takes_too_long_is_refused_and_ends():
    work = Endless()
    with pytest.raises(Unavailable, match=r"longer than 0.05 seconds and was given up"):
        asyncio.run(computed(work, SOON))
    until(lambda: (work.begun, work.stopped) == (1, 1))


def test_given_up_work_keeps_its_thread_and_those_who_wait_for_one_never_begin():
    """However many ask: one computation, for there is one thread, and nobody waits in memory for it."""
    release, begun = threading.Event(), []

    def hanging():
        begun.append(1)
        release.wait(LONG)

    async def ask():
        to_thread.current_default_thread_limiter().total_tokens = 1
        answers = await asyncio.gather(*(computed(hanging, SOON) for _ in range(5)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [Unavailable] * 5
        await asyncio.sleep(0)
        facts = to_thread.current_default_thread_limiter().statistics()
        assert (facts.borrowed_tokens, facts.tasks_waiting, len(begun)) == (1, 0, 1)
        release.set()
        assert await computed(lambda: "next", LONG) == "next"

    asyncio.run(ask())
    assert len(begun) == 1


def test_a_change_is_made_and_told_or_neither():
    given_up = Work()
    assert given_up.give_up()
    with doing(given_up), pytest.raises(Stopped):
        commit()

    def changing():
        commit()
        time.sleep(2 * SOON)
        stop_if_unwanted()
        return "changed"

    assert asyncio.run(computed(changing, SOON)) == "changed"


def test_a_fold_in_that_is_given_up_is_in_no_journal(files):
    with serving(files["ratings"]) as client:
        service, given_up = client.app.state.service, Work()
        before = service.current()
        given_up.give_up()
        with doing(given_up), pytest.raises(Stopped):
            service.fold_in([{"user_id": "late", "item_id": "i0003", "rating": 3}], [])
        with doing(given_up), pytest.raises(Stopped):
            service.forget("u0002")
        assert service.current() is before
        assert client.get("/users/u0002").status_code == 200


@pytest.mark.parametrize(
    "ask",
    [
        lambda rec: rec.recommend(["u0002"], n=3),
        lambda rec: rec.predict({"user_id": ["u0002"], "item_id": ["i0003"]}),
        lambda rec: rec.similar_items("i0003"),
        lambda rec: rec.fold_in({"user_id": ["new"], "item_id": ["i0003"], "rating": [3.0]}),
    ],
    ids=["lists", "predictions", "neighbours", "fold-ins"],
)
def test_long_answers_of_a_model_stop(files, ask):
    work = Work()
    work.give_up()
    with doing(work), pytest.raises(Stopped):
        ask(load(files["ratings"]))


def test_over_http_it_is_a_sentence_and_the_server_goes_on(files, monkeypatch):
    with serving(files["ratings"], answer_within=SOON, threads=1) as client:
        work = Endless()
        with monkeypatch.context() as patched:
            patched.setattr(client.app.state.service, "recommender", work)
            answer = client.get("/users")
        assert answer.status_code == 503
        assert answer.json()["detail"].startswith("This took longer than")
        until(lambda: work.stopped)
        assert client.get("/health").status_code == 200
    with serving(files["ratings"], answer_within=0) as client:
        assert client.get("/users").status_code == 200


def test_bodies_are_parsed_and_checked_off_the_loop(files, monkeypatch):
    with serving(files["ratings"]) as client:
        loop, seen = client.portal.call(threading.get_ident), {}

        def watched(place, name):
            function = getattr(place, name)

            def watching(*given, **named):
                seen[name] = threading.get_ident()
                return function(*given, **named)

            monkeypatch.setattr(place, name, watching)

        watched(Request, "json")
        watched(routing, "solve_dependencies")  # which checks the body
        assert client.post("/predict", json={"rows": [{"user_id": "u0002", "item_id": "i0003"}]}).status_code == 200
    assert seen.keys() == {"json", "solve_dependencies"}
    assert loop not in seen.values()


def test_what_the_page_computes_once_goes_on_for_who_asks_again(files):
    page, served = PageState(), type("Served", (), {"kind": "regressor", "model": Work()})
    given_up = Work()

    def long():
        given_up.give_up()
        stop_if_unwanted()
        return 42

    with doing(given_up):
        assert page.once(served, "figure", long) == 42
    assert page.once(served, "figure", lambda: 1 / 0) == 42
