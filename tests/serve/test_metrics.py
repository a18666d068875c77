"""The figures of all workers, in the format that Prometheus reads."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

from tests.serve.conftest import serving
from tuckergp import load
from tuckergp.serve.metrics import PER_WORKER, SUM, WEIGHT, Drift, Figures, Metrics

LINE = re.compile(r'(?P<name>[a-z_]+)(\{(?P<labels>([a-z]+="[^"]*",?)+)\})? (?P<value>[-+.e\dInfa]+)')


def figures(text):
    """Values by name and labels; each line must be a comment or a figure."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = LINE.fullmatch(line)
            assert match, line
            found[match["name"], match["labels"] or ""] = float(match["value"])
    return found


def test_requests_are_counted_by_address_and_status(files):
    with serving(files["ratings"]) as client:
        for path in ("/users/u0002", "/users/u0003", "/users/nobody", "/nowhere", "/"):
            client.get(path)
        client.post("/predict", json={})
        answer = client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        found = figures(answer.text)
        counted = {labels: value for (name, labels), value in found.items() if name == "tuckergp_requests_total"}
        assert counted == {
            'route="GET /users/{user_id}",status="200"': 2,
            'route="GET /users/{user_id}",status="404"': 1,
            'route="POST /predict",status="422"': 1,
            'route="other",status="200"': 1,
            'route="other",status="404"': 1,
        }
        route = 'route="GET /users/{user_id}"'
        assert found["tuckergp_request_seconds_count", route] == 3
        assert found["tuckergp_request_seconds_bucket", f'{route},le="+Inf"'] == 3
        assert 0 < found["tuckergp_request_seconds_sum", route] < 10
        assert found["tuckergp_requests_active", ""] == 1
        assert found["tuckergp_memory_bytes", 'worker="0"'] > 1e7
        assert 0 <= found["tuckergp_model_loaded_seconds", ""] <= found["tuckergp_model_age_seconds", ""]


def test_buckets_count_what_is_not_longer(tmp_path):
    metrics = Metrics(["GET /a"])
    for seconds in (0.0005, 0.001, 0.0011, 30.0):
        metrics.begin()
        metrics.end("GET /a", 200, seconds)
    found = figures(metrics.text())
    route, bounds = 'route="GET /a"', ("0.001", "0.002", "10.0", "+Inf")
    counts = {bound: found["tuckergp_request_seconds_bucket", f'{route},le="{bound}"'] for bound in bounds}
    assert counts == {"0.001": 2, "0.002": 3, "10.0": 3, "+Inf": 4}


def test_any_worker_answers_for_all(tmp_path):
    workers = [Metrics(["GET /a"], tmp_path / "metrics", 2, k) for k in range(2)]
    for k, worker in enumerate(workers):
        for _ in range(k + 1):
            worker.begin()
            worker.end("GET /a", 200, 0.1)
        worker.drift.count(np.array([1.0, -1.0]) * (k + 1))
        worker.note(Figures(k, time.time() - 100 * (k + 1), time.time() - 10, k == 0, 500, 7 * k))
    for worker in workers:
        found = figures(worker.text())
        assert found["tuckergp_requests_total", 'route="GET /a",status="200"'] == 3
        assert found["tuckergp_model_age_seconds", ""] == pytest.approx(200, abs=5)
        assert found["tuckergp_model_fault", ""] == 1  # of the other worker, too
        assert (found["tuckergp_reloads_total", ""], found["tuckergp_added", ""]) == (1, 7)
        assert found["tuckergp_drift_ratings", ""] == pytest.approx(4, rel=0.01)
        assert found["tuckergp_drift_rms_z", ""] == pytest.approx(np.sqrt(2.5), rel=0.01)


def test_drift_is_how_far_ratings_are_from_what_was_predicted(files):
    rec = load(files["ratings"])
    rows = [{"user_id": "u0002", "item_id": "i0007", "rating": 5}, {"user_id": "new", "item_id": "i0003", "rating": 1}]
    mean, std = rec.predict({name: [row[name] for row in rows] for name in rows[0]}, return_std=True, clip=False)
    z = (np.array([5.0, 1.0]) - mean) / std
    with serving(files["ratings"]) as client:
        assert client.post("/fold-in", json={"ratings": rows}).status_code == 200
        found = figures(client.get("/metrics").text)
        assert found["tuckergp_drift_mean_z", ""] == pytest.approx(z.mean(), rel=0.01)
        assert found["tuckergp_drift_rms_z", ""] == pytest.approx(np.sqrt((z**2).mean()), rel=0.01)


def test_drift_forgets():
    """Standard normal deviations, then ones that are shifted by 2: five memories later only these count."""
    cells, rng = np.zeros(PER_WORKER), np.random.default_rng(0)
    drift = Drift(cells)
    drift.count(rng.standard_normal(3000))
    assert cells[SUM] / cells[WEIGHT] == pytest.approx(0, abs=4 / np.sqrt(2000))
    for z in 2 + rng.standard_normal((50, 100)):
        drift.count(z)
    assert cells[WEIGHT] == pytest.approx(Drift.MEMORY_OF, rel=0.01)
    assert cells[SUM] / cells[WEIGHT] == pytest.approx(2, abs=4 / np.sqrt(2000) + 2 * np.exp(-5))


def test_drift_knows_when_and_a_failure_of_it_is_no_failure_of_the_request(files, monkeypatch):
    rec = load(files["timed"])
    row = {"user_id": "u0003", "item_id": "i0007", "rating": 5, "timestamp": "2024-01-11"}
    mean, std = rec.predict({name: [value] for name, value in row.items()}, return_std=True, clip=False)
    with serving(files["timed"]) as client:
        assert client.post("/fold-in", json={"ratings": [row]}).status_code == 200
        found = figures(client.get("/metrics").text)
        assert found["tuckergp_drift_mean_z", ""] == pytest.approx((5 - mean[0]) / std[0], rel=0.01)
        assert found["tuckergp_journal_bytes", ""] > 50
        assert found["tuckergp_added", ""] == 1
        monkeypatch.setattr(type(client.app.state.service.recommender()), "predict", None)
        assert client.post("/fold-in", json={"ratings": [row]}).status_code == 200
