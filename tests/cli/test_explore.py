"""`tuckergp explore`: what it shows, where, and what it refuses."""

import importlib
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from functools import partial

import pytest

pytest.importorskip("fastapi", reason="needs the extra serve")

from tuckergp.datasets import make_ratings

from tuckergp import TuckerGPRegressor, TuckerRecommender, load

from .command import refuse

DEMO = importlib.import_module("tuckergp.cli.demo")  # tuckergp.cli.demo is also the command
EXPLORE = importlib.import_module("tuckergp.cli.explore")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    data = make_ratings(n_users=20, n_items=20, n_ratings=150, random_state=0)
    path = tmp_path_factory.mktemp("model") / "model.tgp"
    TuckerRecommender(rank=2, draws=5, warmup=5, time=None, random_state=0).fit(data.train).save(path)
    return path


def test_it_says_where_the_page_is_and_ends_with_ctrl_c(model):
    line = [sys.executable, "-m", "tuckergp", "explore", str(model), "--no-browser"]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as running:
        said = running.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", said)[0]
        try:
            page = urllib.request.urlopen(address, timeout=30).read().decode()
            running.send_signal(signal.SIGINT)
            _, errors = running.communicate(timeout=30)
        finally:
            running.kill()
    assert "/assets/main.js" in page
    assert running.returncode in (0, 130)
    assert "Traceback" not in errors


def test_what_it_cannot_show_is_refused_with_a_line(model, tmp_path):
    assert "either a model file" in refuse("explore")
    assert "either a model file" in refuse("explore", model, "--demo")
    assert "held-out ratings of its own" in refuse("explore", "--demo", "--test", model)
    assert "no model file" in refuse("explore", tmp_path / "none.tgp", "--no-browser")
    (tmp_path / "damaged.tgp").write_bytes(model.read_bytes()[:1000])
    refuse("explore", tmp_path / "damaged.tgp", "--no-browser")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert f"Port {port} is in use" in refuse("explore", model, "--port", str(port), "--no-browser")


def test_faults_of_the_test_table_are_said_at_once(model, tmp_path):
    def tested(name, text, *more, of=model):
        (tmp_path / name).write_text(text)
        return refuse("explore", of, "--test", tmp_path / name, "--no-browser", *more)

    assert "nofile.csv" in refuse("explore", model, "--test", tmp_path / "nofile.csv", "--no-browser")
    assert "'rating'" in tested("unrated.csv", "user_id,item_id\nu0001,i0001\n")
    assert "must be numeric" in tested("words.csv", "user_id,item_id,rating\nu0001,i0001,much\n")
    assert "has no rows" in tested("empty.csv", "user_id,item_id,rating\n")
    assert "leave it out" in tested("good.csv", "user_id,item_id,rating\nu0001,x,3\n", "--target", "rating")
    assert "give one with --test" in refuse("explore", model, "--target", "y", "--no-browser")
    history = load(model).history_.flat
    known = f"{history.ids[0][history.codes[0][0]]},{history.ids[1][history.codes[1][0]]},3"
    assert "has learned from all 1 rows" in tested("known.csv", f"user_id,item_id,rating\n{known}\n")
    rows = {"x": [0.1 * k for k in range(40)], "z": [float(k % 7) for k in range(40)]}
    smooth = TuckerGPRegressor(rank=2, draws=5, warmup=5, random_state=0).fit(rows, rows["x"])
    smooth.save(tmp_path / "smooth.tgp")
    held = "x,z,y\n0.5,1,0.5\n"
    assert "--target" in tested("held.csv", held, of=tmp_path / "smooth.tgp")
    assert "no 'q' in held.csv" in tested("held.csv", held, "--target", "q", of=tmp_path / "smooth.tgp")
    assert "'z'" in tested("less.csv", "x,y\n0.5,0.5\n", "--target", "y", of=tmp_path / "smooth.tgp")


def test_the_demo_shows_the_model_of_the_demo(tmp_path, monkeypatch):
    few = partial(make_ratings, n_users=60, n_items=50, n_ratings=1000)
    monkeypatch.setattr(DEMO, "make_ratings", few)
    monkeypatch.setattr(DEMO, "DRAWS", 5)
    test = EXPLORE.demo_model(tmp_path / "demo.tgp", 1)
    data = few(random_state=1)
    assert (test["rating"] == data.test["rating"]).all()
    fitted = TuckerRecommender(**DEMO.settings(1)).fit(data.train, data.users, data.items)
    assert (load(tmp_path / "demo.tgp").predict(data.test) == fitted.predict(data.test)).all()
