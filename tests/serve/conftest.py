"""Small models as files, and apps that serve them in this process."""

from __future__ import annotations

import contextlib
import shutil
import time

import numpy as np
import pytest
from fastapi.testclient import TestClient

from tests.serve.models import map_model
from tuckergp import TuckerGPRegressor, TuckerRecommender, load
from tuckergp.data.datasets import make_ratings
from tuckergp.serve.app import create_app

MARKUP = "<script>alert('x')</script>"
SMALL = {"rank": 3, "draws": 12, "warmup": 6, "time": None, "random_state": 0}


def tables():
    """Ratings, users and items; one user, one item, a title and an attribute are markup, and one item nobody rated."""
    data = make_ratings(n_users=30, n_items=40, n_ratings=560, random_state=0)
    ratings, users, items = ({name: values.tolist() for name, values in table.columns.items()}
                             for table in (data.train, data.users, data.items))  # fmt: skip
    ratings["rating"] = np.round(ratings["rating"]).tolist()
    for table in (ratings, users):
        table["user_id"] = [MARKUP if value == "u0001" else value for value in table["user_id"]]
    for table in (ratings, items):
        table["item_id"] = [MARKUP if value == "i0001" else value for value in table["item_id"]]
    items["title"][0], items["genres"][1] = MARKUP, [MARKUP, "Drama"]
    new = {"item_id": "unrated", "title": "Nobody Saw It", "year": 2001.0, "genres": ["Drama"]}
    items = {name: [*values, new[name]] for name, values in items.items()}
    cold = {"user_id": "cold", "age": 30, "sex": "F", "occupation": users["occupation"][0]}
    return ratings, {name: [*values, cold[name]] for name, values in users.items()}, items


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Paths of model files by name, each made when it is first asked for."""
    return Files(tmp_path_factory.mktemp("models"))


class Files(dict):
    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def __missing__(self, name):
        path = self.folder / f"{name}.tgp"
        getattr(self, f"_{name}")().save(path)
        self[name] = path
        return path

    def _ratings(self):
        return TuckerRecommender(**SMALL, implicit=True).fit(*tables())

    def _another(self):
        return TuckerRecommender(**{**SMALL, "rank": 2, "random_state": 1}).fit(*tables())

    def _value(self):
        return TuckerRecommender(**SMALL, objective="value").fit(*tables())

    def _clicks(self):
        ratings, users, items = tables()
        return TuckerRecommender(**SMALL).fit({k: ratings[k] for k in ("user_id", "item_id")}, users, items)

    def _numbered(self):
        """Integer ids, no titles, a MAP estimate."""
        ratings, _, _ = tables()
        names = {name: sorted(set(ratings[name])) for name in ("user_id", "item_id")}
        for name, known in names.items():
            ratings[name] = [known.index(value) for value in ratings[name]]
        return TuckerRecommender(rank=3, inference="als", random_state=0).fit(ratings)

    def _timed(self):
        ratings, users, items = tables()
        rng = np.random.default_rng(0)
        days = np.datetime64("2024-01-01") + rng.integers(0, 30, size=len(ratings["rating"]))
        return TuckerRecommender(**{**SMALL, "time": "week"}).fit({**ratings, "timestamp": days.tolist()}, users, items)

    def _contexts(self):
        """Ratings with a device, which is text, and a number of people."""
        ratings, users, items = tables()
        rng, n = np.random.default_rng(0), len(ratings["rating"])
        device, people = rng.choice(["tv", "phone"], size=n).tolist(), rng.integers(1, 4, size=n).tolist()
        ratings["rating"] = [r + (d == "tv") for r, d in zip(ratings["rating"], device, strict=True)]
        rec = TuckerRecommender(**SMALL, context=["device", "people"])
        return rec.fit({**ratings, "device": device, "people": people}, users, items)

    def _synthetic(self):
        """The data of the demo as they are, which examples in OpenAPI speak of."""
        made = make_ratings(random_state=0)
        return TuckerRecommender(**SMALL).fit(made.train, made.users, made.items)

    def _synthetic_clicks(self):
        made = make_ratings(random_state=0)
        return TuckerRecommender(**SMALL).fit({key: made.train[key] for key in ("user_id", "item_id")})

    def _many_items(self):
        """More items than one request rates."""
        rng, n = np.random.default_rng(0), 10_500
        items = np.concatenate([np.arange(n), rng.integers(0, n, n)])
        ratings = {"user_id": np.arange(2 * n) % 300, "item_id": items, "rating": rng.integers(1, 6, 2 * n)}
        cheap = {"rank": 2, "draws": 4, "warmup": 2, "objective": "rating", "noise": "shared", "duplicates": "last"}
        return TuckerRecommender(**{**SMALL, **cheap}).fit(ratings)

    def _map(self):
        return map_model()

    def _outputs(self):
        """A regression model with two outputs, of a number, a text and a date."""
        rng = np.random.default_rng(0)
        day = np.datetime64("2024-01-01") + rng.integers(0, 90, size=80)
        table = {"x": rng.random(80), "kind": rng.choice(["a", "b"], size=80).tolist(), "day": day}
        y = np.column_stack([np.sin(3 * table["x"]), np.cos(3 * table["x"])])
        return TuckerGPRegressor(rank=2, draws=10, warmup=5, random_state=0).fit(table, y)

    def _regression(self):
        rng = np.random.default_rng(0)
        table = {"x": rng.random(80), "y": rng.random(80), "kind": rng.choice(["a", "b"], size=80).tolist()}
        return TuckerGPRegressor(rank=2, draws=10, warmup=5, random_state=0).fit(table, np.sin(3 * table["x"]))


@pytest.fixture
def model(files, tmp_path):
    """A file of its own, which a test may replace."""
    path = tmp_path / "model.tgp"
    shutil.copy(files["ratings"], path)
    return path


def replace_with(path, source):
    other = path.with_suffix(".new")
    shutil.copy(source, other)
    other.replace(path)


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


@contextlib.contextmanager
def serving(path, **settings):
    """A client of an app that serves a file."""
    with TestClient(create_app(path, **{"watch": 0.0, **settings}), base_url="http://localhost") as client:
        yield client


@pytest.fixture(scope="module")
def client(files):
    """A client of the ratings model, to which nothing is added."""
    with serving(files["ratings"]) as client:
        yield client


@pytest.fixture(scope="module")
def rec(files):
    """The same model, asked directly."""
    return load(files["ratings"])
