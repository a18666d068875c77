"""The benchmarks run on small data, with whatever peers there are."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


SCRIPTS = sorted(path.stem for path in BENCHMARKS.glob("*.py") if path.stem != "nuts_stan")  # which needs Stan


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_is_there_to_run_and_says_what_it_does(name, monkeypatch):
    """What it needs of the package and of other scripts exists; only `make test-all` runs it, at a small size."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    assert len(importlib.import_module(name).__doc__) > 40


@pytest.mark.slow
@pytest.mark.parametrize(("options", "first_fits"), [(["--no-first-fit"], set()), ([], {"cold", "warm"})])
def test_the_benchmark_of_gibbs_sweeps_runs(tmp_path, options, first_fits):
    output = tmp_path / "gibbs.json"
    environment = {name: value for name, value in os.environ.items() if name != "TUCKERGP_DATA"}
    command = [
        sys.executable,
        str(BENCHMARKS / "gibbs.py"),
        "--quick",
        "--rounds",
        "1",
        "--ranks",
        "4",
        "-o",
        str(output),
        *options,
    ]
    subprocess.run(command, check=True, env=environment, capture_output=True)
    report = json.loads(output.read_text())
    (rows,) = report["results"].values()
    assert rows["ours"]["wall_seconds"] > 0
    assert rows["statistics"]["sgemm_gigaflops"] > 0
    assert set(rows) | set(report["missing"]) == {"ours", "ours, float32", "statistics", "myfm", "implicit", "cmfrec"}
    assert set(report["first_fit_seconds"]) == first_fits


@pytest.mark.slow
def test_the_benchmark_of_fields_runs(tmp_path):
    output = tmp_path / "fields.json"
    command = [sys.executable, str(BENCHMARKS / "fields.py"), "--quick", "--parts", "neighbours", "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True)
    cells = json.loads(output.read_text())["cells"]["neighbours"]
    assert all(found["5"]["error"] > found["10"]["error"] > 0 for found in cells.values())


def test_orders_of_places_are_those_that_they_say_and_a_field_of_all_neighbours_is_the_process(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    fields = importlib.import_module("fields")
    X = np.random.default_rng(0).random((40, 2))
    X[7] = X[3]  # equal places
    order = fields.maximin(X)
    np.testing.assert_array_equal(np.sort(order), np.arange(40))
    for i in range(1, 39):
        gaps = np.linalg.norm(X[order[i:], None] - X[order[:i]], axis=2).min(axis=1)
        assert gaps[0] == gaps.max()
    for name in fields.ORDERS:
        assert fields.divergence("square", name, "3/2", count=5, n=30)["noise of a tenth"] > 1e-3
        assert abs(fields.divergence("square", name, "3/2", count=29, n=30)["noise of a tenth"]) < 1e-8


def test_names_of_candidates_tell_them_apart(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    fields = importlib.import_module("fields")
    cells = json.loads((BENCHMARKS / "results" / "fields.json").read_text())["cells"]
    for data, candidates in fields.CANDIDATES.items():
        names = [each.name for each in candidates]
        assert len(set(names)) == len(names)
        assert set(cells[data]["held out"]) <= set(names)
        errors = {name: cell["rmse"] for name, cell in cells[data]["held out"].items() if "predicting" not in name}
        assert fields.CHOSEN[data].name == min(errors, key=errors.get)


def test_sets_of_statsmodels_are_left_out_without_it(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    defaults = importlib.import_module("defaults")
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    monkeypatch.setattr(sys, "argv", ["defaults.py", "--sets", "sea"])
    defaults.main()
    assert "sea is left out: " in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("models", [["forest", "ridge"], ["gp", "ours"]])
def test_the_benchmark_of_defaults_runs(tmp_path, models):
    output = tmp_path / "defaults.json"
    command = [sys.executable, str(BENCHMARKS / "defaults.py"), "--sets", "diabetes", "--models", *models]
    subprocess.run([*command, "-o", str(output)], check=True, capture_output=True)
    cell = json.loads(output.read_text())["cells"]["diabetes"]
    assert cell["size"] == [300, 10]
    assert all(40 < cell[name]["parts"]["range"]["rmse"] < 70 for name in models)


@pytest.mark.slow
def test_the_benchmark_of_recommendations_runs(tmp_path):
    output = tmp_path / "recommend.json"
    command = [sys.executable, str(BENCHMARKS / "recommend.py"), "--quick", "--rounds", "1", "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True)
    report = json.loads(output.read_text())
    assert report["results"]["ours"]["wall_seconds"] > 0
    assert set(report["results"]) | set(report["missing"]) == {"ours", "implicit", "product"}


@pytest.mark.slow
def test_the_benchmark_of_single_answers_runs(tmp_path):
    output = tmp_path / "latency.json"
    command = [sys.executable, str(BENCHMARKS / "latency.py"), "--quick", "--users", "300", "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True)
    report = json.loads(output.read_text())
    assert set(report["users"]["300"]["ratios"]) == {"list", "fold_in", "everyone"}


@pytest.mark.slow
def test_the_benchmark_of_a_server_runs(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    output = tmp_path / "serve.json"
    command = [sys.executable, str(BENCHMARKS / "serve.py"), "--quick", "--seconds", "0.5", "--minutes", "0.05"]
    subprocess.run([*command, "--port", "8951", "-o", str(output)], check=True, capture_output=True)
    report = json.loads(output.read_text())
    assert report["served"]["failed"] == report["bare"]["failed"] == 0
    assert report["served"]["requests"] > 0
    assert len(report["memory"]) == report["workers"]
    assert all(worker["private"] > 1e7 for worker in report["memory"])
    pieces = report["sustained"]["pieces"]
    assert [piece["took"] for piece in pieces] == [1.0] * 3
    assert not sum(piece["failed"] for piece in pieces)
    for name in ("serve_load", "serve_memory", "serve_sustained"):
        head, *rows = importlib.import_module("tables").TABLES["serve.json"][name](report)
        assert {len(row) for row in rows} == {len(head)}


@pytest.mark.slow
def test_the_benchmark_of_kept_draws_runs(data_dir, tmp_path):
    output = tmp_path / "keep.json"
    command = [sys.executable, str(BENCHMARKS / "keep.py"), "--quick", "-o", str(output)]
    environment = {**os.environ, "TUCKERGP_DATA": str(data_dir)}
    subprocess.run(command, check=True, env=environment, capture_output=True)
    assert set(json.loads(output.read_text())["kept"]) == {"25", "50", "100", "250"}


@pytest.mark.slow
def test_the_benchmark_of_diverse_lists_runs(data_dir, tmp_path):
    output = tmp_path / "diversity.json"
    command = [sys.executable, str(BENCHMARKS / "diversity.py"), "--quick", "-o", str(output)]
    subprocess.run(command, check=True, env={**os.environ, "TUCKERGP_DATA": str(data_dir)}, capture_output=True)
    report = json.loads(output.read_text())
    assert set(report["choice"]) == set(report["lists"]) == {"ratings, gibbs", "ratings, als"}
    # without diversity the similarity does not matter
    for model, kind in (("ratings, gibbs", "correlation over draws"), ("ratings, als", "cosine of factors")):
        assert report["choice"][model][kind]["0.0"] == report["choice"][model]["correlation over users"]["0.0"]


@pytest.mark.slow
def test_the_benchmark_of_traffic_runs(data_dir, tmp_path):
    if not (data_dir / "traffic").is_dir():
        pytest.skip("no traffic here")
    output = tmp_path / "traffic.json"
    command = [sys.executable, str(BENCHMARKS / "traffic.py"), "--quick", "-o", str(output)]
    subprocess.run(command, check=True, env={**os.environ, "TUCKERGP_DATA": str(data_dir)}, capture_output=True)
    cells = json.loads(output.read_text())["cells"]
    assert set(cells["sets"]["birmingham"]) == {"random 40 %", "random 60 %", "days 40 %"}
    assert all(0 < found["rmse"] < 700 for found in cells["sets"]["birmingham"].values())


@pytest.mark.slow
def test_the_benchmark_of_stations_runs(data_dir, tmp_path):
    output = tmp_path / "stations.json"
    command = [sys.executable, str(BENCHMARKS / "stations.py"), "--quick", "-o", str(output)]
    subprocess.run(command, check=True, env={**os.environ, "TUCKERGP_DATA": str(data_dir)}, capture_output=True)
    cells = json.loads(output.read_text())["cells"]
    assert set(cells) == {"Matern12", "Matern32"}
    assert all(found["field"] < 2 * found["sd"] for stations in cells.values() for found in stations.values())


@pytest.mark.slow
def test_the_benchmark_of_newcomers_runs(data_dir, tmp_path):
    output = tmp_path / "cold.json"
    command = [sys.executable, str(BENCHMARKS / "cold.py"), "--quick", "-o", str(output)]
    subprocess.run(command, check=True, env={**os.environ, "TUCKERGP_DATA": str(data_dir)}, capture_output=True)
    ((split, models),) = json.loads(output.read_text())["splits"].items()
    assert split == "0"
    assert len(models) == 4
    for scores in models.values():
        assert set(scores) == {"user_id", "item_id"}
        assert all(0.8 < found["rmse"] < 1.4 for found in scores.values())


@pytest.mark.slow
def test_the_benchmark_of_plays_runs_without_its_peer(data_dir, tmp_path):
    if not (data_dir / "lastfm-2k").is_dir():
        pytest.skip("no Last.fm here")
    output = tmp_path / "lastfm.json"
    command = [sys.executable, str(BENCHMARKS / "lastfm.py"), "--quick", "-o", str(output)]
    subprocess.run(command, check=True, env={**os.environ, "TUCKERGP_DATA": str(data_dir)}, capture_output=True)
    ((seed, models),) = json.loads(output.read_text())["cells"].items()
    assert seed == "seed 0"
    assert len(models) == 8
    cold = {name: cells["cold_recall_50"] for name, cells in models.items()}
    assert cold["popularity"] == cold["als, no attributes"] == cold["gibbs, no attributes"]  # a random order
    assert cold["gibbs"] > cold["popularity"]


@pytest.mark.slow
def test_the_benchmark_of_lists_for_new_rows_runs_without_its_peers(data_dir, tmp_path):
    output = tmp_path / "cold_lists.json"
    command = [sys.executable, str(BENCHMARKS / "cold_lists.py"), "--quick", "-o", str(output)]
    subprocess.run(command, check=True, env={**os.environ, "TUCKERGP_DATA": str(data_dir)}, capture_output=True)
    cells = json.loads(output.read_text())["cells"]
    assert [len(cells[f"movielens, new {side}"]["seed 0"]) for side in ("items", "users")] == [8, 12]
    items = cells["synthetic, new items"]["seed 0"]
    assert set(items) == {"nearest rows", "ridge", "oracle", "oracle of attributes", "random", "gibbs", "als"}
    for models in (cells[f"synthetic, {task}"]["seed 0"] for task in ("new items", "new users", "known")):
        assert max(models, key=lambda name: models[name]["ndcg_10"]) == "oracle"


@pytest.mark.slow
def test_the_choice_of_the_prior_scale_runs_and_goes_on_from_its_file(data_dir, tmp_path):
    output = tmp_path / "prior_scale.json"
    command = [sys.executable, str(BENCHMARKS / "prior_scale.py"), "--quick", "-o", str(output)]
    environment = {**os.environ, "TUCKERGP_DATA": str(data_dir)}
    subprocess.run([*command, "--only", "third mode"], check=True, env=environment, capture_output=True)
    (first,) = json.loads(output.read_text())["results"].values()
    subprocess.run(command, check=True, env=environment, capture_output=True)
    report = json.loads(output.read_text())
    assert first in report["results"].values()
    for scales in report["results"].values():
        assert set(scales) == {"0.02", "0.04", "0.08", "0.15", "0.25", "0.4"}
        assert all(0.8 < found["u1, seed 0"]["rmse"] < 1.3 for found in scales.values())


@pytest.mark.slow
def test_the_simulation_of_the_prior_runs(tmp_path):
    output = tmp_path / "prior_f.json"
    command = [sys.executable, str(BENCHMARKS / "prior_f.py"), "--quick", "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True)
    assert all(0.3 < case["sd"] < 3 for case in json.loads(output.read_text())["cases"])


@pytest.mark.slow
def test_the_benchmark_of_mixing_runs_and_goes_on(tmp_path):
    output = tmp_path / "mixing.json"
    command = [sys.executable, str(BENCHMARKS / "mixing.py"), "--quick", "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True)
    report = json.loads(output.read_text())
    assert set(report["results"]) == {"surface, default | 0 | 0", "surface, default | 0.8 | 0"}
    subprocess.run(command, check=True, capture_output=True)
    assert json.loads(output.read_text())["results"] == report["results"]


@pytest.mark.slow
def test_the_benchmark_of_sparse_cores_runs(tmp_path):
    output = tmp_path / "sparse_core.json"
    command = [sys.executable, str(BENCHMARKS / "sparse_core.py"), "--quick", "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True)
    report = json.loads(output.read_text())
    assert set(report["by_entries"]["slopes"]) == {"gradient", "rows of one mode", "core", "learned core", "sweep"}
    assert report["large"]["cpu_seconds_a_sweep"] > 0


@pytest.mark.slow
def test_peers_are_put_beside_our_cells_or_left_out(data_dir, tmp_path):
    (tmp_path / "columns.json").write_text(json.dumps(results_of("columns", {"made/ARD GP": {"share": 0.2}})))
    command = [sys.executable, str(BENCHMARKS / "peers.py"), "california", "columns", "ranking", "-o", str(tmp_path)]
    nothing = ["--quick", "--data", str(data_dir), "--python", "/bin/false"]  # a Python without implicit
    done = subprocess.run([*command, *nothing], check=True, capture_output=True, text=True)
    assert "/bin/false does not have implicit; its part of ranking is left out." in done.stderr
    (forest,) = json.loads((tmp_path / "california.json").read_text())["cells"].values()
    assert 0.1 < forest["test_rmse"] < 0.5
    cells = json.loads((tmp_path / "columns.json").read_text())["cells"]
    assert set(cells) == {
        "made/ARD GP",
        *(f"{d}/{m}" for d in ("made", "diabetes") for m in ("gradient boosting", "ridge")),
    }
    lists = json.loads((tmp_path / "ranking.json").read_text())
    assert set(lists["cells"]) == {"user/ials/seed 0", "user/ials_liked/seed 0", "time/ials/seed 0"}
    assert "implicit" not in lists["versions"]


def test_implicit_als_solves_its_equations(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    ials = importlib.import_module("ials")
    rng = np.random.default_rng(0)
    weight = rng.random((5, 4)) * (rng.random((5, 4)) < 0.6)
    others, w0, penalty, nu = rng.standard_normal((4, 2)), 0.3, 0.2, 0.5
    found = ials.solved(sparse.csr_array(weight), others, w0, penalty, nu)
    for u, row in enumerate(weight):  # all pairs listed
        own = penalty * ((row > 0).sum() + w0 * 4) ** nu
        A = sum(((row[i] + w0) * np.outer(others[i], others[i]) for i in range(4)), own * np.eye(2))
        np.testing.assert_allclose(found[u], np.linalg.solve(A, row @ others))
    factors = ials.factorised(sparse.csr_array(weight), 2, w0, penalty, seed=1)
    assert [part.shape for part in factors] == [(5, 2), (4, 2)]


def results_of(name, cells):
    from tuckergp.paper.experiments import find

    (experiment,) = find([name])
    return {"experiment": name, "protocol": experiment.protocol, "quick": True, "versions": {}, "cells": cells}


def test_forecasts_are_of_what_comes_after_the_known_rows(tmp_path):
    output = tmp_path / "seasons.json"
    command = [sys.executable, str(BENCHMARKS / "seasons.py"), "--quick", "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    cells = json.loads(output.read_text())["cells"]["months"]
    assert cells["defaults"]["0"]["seasons"]["t"][-1] == 12.0
    assert 3 * cells["defaults"]["0"]["rmse"] < cells["lines without seasons"]["0"]["rmse"]


def test_implicit_is_given_numbers_and_newcomers_get_popularity(data_dir, monkeypatch):
    from tuckergp.paper import ranking
    from tuckergp.paper.run import Run

    monkeypatch.syspath_prepend(str(BENCHMARKS))
    peers = importlib.import_module("peers")

    def scores_of(python, kind, options, user, item, shape, seed):
        assert (python, kind, options, seed) == ("python", "als", {"factors": 2}, 5)
        assert user.max() == shape[0] - 1
        assert item.max() < shape[1] == 1_682
        return np.full(shape, -1.0)

    monkeypatch.setattr(peers, "scores_of", scores_of)
    monkeypatch.setattr(ranking, "lists", lambda contest, scores: {"scores": scores})
    contest = ranking.contest_of(Run(ranking.RANKING, data=data_dir, quick=True), "time", 0)
    some = contest.train["rating"] >= 4
    for name, learned in (("als", contest.train["user_id"]), ("als_liked", contest.train["user_id"][some])):
        scores = peers.lists_of(contest, name, {"factors": 2}, 5, "python")["scores"]
        known = np.isin(contest.rated.users, learned)
        assert (scores[known] == -1).all()
        assert (scores[~known] == contest.popularity).all()


def test_items_without_a_dense_matrix_have_the_scores_of_the_baselines(monkeypatch):
    from tuckergp.evaluation.baselines import EASE, NearestItems

    monkeypatch.syspath_prepend(str(BENCHMARKS))
    models = importlib.import_module("item_models")
    chosen = np.random.default_rng(0).random((12, 30)) < 0.3
    chosen[0, ~chosen.any(axis=0)] = True
    clicks, rows, items = sparse.csr_array(chosen.astype(np.float64)), [3, 5, 0], list(range(30))
    table = dict(zip(("user_id", "item_id"), np.nonzero(chosen), strict=True))
    for found, baseline in (
        (models.ease(clicks, rows, l2=2.0), EASE(l2=2.0)),
        (models.nearest_items(clicks, rows, neighbours=4, shrinkage=1.0), NearestItems(neighbours=4, shrinkage=1.0)),
    ):
        np.testing.assert_allclose(found, baseline.fit(table).scores(rows, items), atol=1e-12)


def test_hybrids_have_ids_of_what_was_clicked_beside_attributes(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    hybrids = importlib.import_module("hybrids")
    attributes = hybrids.flags([["b", "a"], [], ["b", "b"]])
    np.testing.assert_array_equal(attributes.toarray(), [[1, 1], [0, 0], [0, 1]])
    found = hybrids.features(attributes, np.array([2, 0, 1])).toarray()
    np.testing.assert_array_equal(found, [[1, 0, 0, 1, 1], [0, 0, 0, 0, 0], [0, 0, 1, 0, 1]])
    np.testing.assert_allclose(hybrids.shares(sparse.csr_matrix(found)).sum(axis=1), [[1], [0], [1]])


def test_rows_without_clicks_are_scored_by_their_words(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    content = importlib.import_module("content")
    hybrids = importlib.import_module("hybrids")
    words = hybrids.flags([["a"], ["a", "b"], ["b"], ["a"], ["b"]])
    clicks = sparse.csr_array([[1.0, 1, 0], [0, 1, 1], [0, 0, 1], [0, 0, 0], [0, 0, 0]])
    near = content.nearest(clicks, words, neighbours=2)
    np.testing.assert_array_equal(near[:3], clicks.toarray()[:3])
    half = 2**-0.5
    np.testing.assert_allclose(near[3:], np.array([[1, 1 + half, half], [0, half, 1 + half]]) / (1 + half))
    np.testing.assert_allclose(content.nearest(clicks, words, neighbours=1)[3:], clicks.toarray()[[0, 2]])
    options = {"factors": 2, "unobserved": 0.3, "regularization": 0.1}
    learned = content.regressed(clicks[:3], words[:3], penalty=1.0, seed=0, **options)
    found = content.regressed(clicks, words, penalty=1e-9, seed=0, **options)
    np.testing.assert_allclose(found[:3], learned)
    np.testing.assert_allclose(found[3:], learned[[0, 2]], atol=1e-6)  # three points determine intercept and words
    far = content.regressed(clicks, words, penalty=1e9, seed=0, **options)
    np.testing.assert_allclose(far[3:], np.tile(learned.mean(axis=0), (2, 1)), atol=1e-6)


def test_choices_are_made_with_the_weights_that_oracles_know(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    made = importlib.import_module("made_clicks").made
    one, again = made(80, 50, 3), made(80, 50, 3)
    np.testing.assert_array_equal(one.clicks["item_id"], again.clicks["item_id"])
    place = [{key: row for row, key in enumerate(ids)} for ids in (one.users["user_id"], one.items["item_id"])]
    chosen = np.zeros((80, 50), dtype=bool)
    pairs = zip(one.clicks["user_id"], one.clicks["item_id"], strict=True)
    rows, columns = zip(*((place[0][user], place[1][item]) for user, item in pairs), strict=True)
    chosen[rows, columns] = True
    assert chosen.sum() == len(one.clicks)  # no pair twice
    assert chosen.sum(axis=1).min() >= 8
    gap = [weight[chosen].mean() - weight[~chosen].mean() for weight in (one.weight, one.new_users, one.new_items)]
    assert gap[0] > max(gap[1:])
    assert min(gap[1:]) > 0.1


def test_validation_parts_know_nothing_of_what_the_test_part_alone_has(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    lists = importlib.import_module("cold_lists")
    contest = lists.contest_of("synthetic, new items", 0, 10)
    inner = lists.contest_of("synthetic, new items", 0, 10, validation=1)
    held = set(contest.candidates.items) - set(contest.train["item_id"])
    assert len(held) >= 8
    assert not held & set(inner.candidates.items)
    random = inner.figures(lists.simple(inner, "random", 0))
    assert random["candidates"] < len(held)
    perfect = contest.figures(contest.candidates.relevant.toarray().astype(float))
    assert {perfect[name] for name in ("ndcg_10", "ndcg_100", "recall_50")} == {1.0}
    assert contest.figures(lists.simple(contest, "oracle", 0))["ndcg_10"] < 1


def test_settings_of_peers_are_among_those_compared(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    peers, machines = importlib.import_module("peers"), importlib.import_module("machines")
    assert peers.CHOSEN_FOREST in peers.FORESTS
    assert set(machines.CHOSEN.values()) <= set(machines.RANKS)
    cells = json.loads((BENCHMARKS / "results" / "california_choice.json").read_text())["cells"]
    errors = {name: cell["test_rmse"] for name, cell in cells.items() if name.startswith("forest/")}
    assert len(errors) == len(peers.FORESTS)
    assert min(errors, key=errors.get) == f"forest/{json.dumps(peers.CHOSEN_FOREST)}"
    cells = json.loads((BENCHMARKS / "results" / "ranking_choice.json").read_text())["cells"]
    for by_split in (peers.SCALED_CHOSEN, peers.CHOSEN, peers.HYBRID_CHOSEN):
        for split, name, options in ((split, *each) for split, chosen in by_split.items() for each in chosen.items()):
            scores = {key: cell["ndcg"] for key, cell in cells.items() if key.startswith(f"{split}/{name}/")}
            assert len(scores) == len(peers.GRIDS[name.removesuffix("_liked")])
            assert max(scores, key=scores.get) == f"{split}/{name}/{json.dumps(options)}"


def test_machines_have_the_features_of_our_settings(data_dir, monkeypatch):
    from tuckergp.paper.movielens_data import entities_of, ratings_of
    from tuckergp.paper.sources import load

    monkeypatch.syspath_prepend(str(BENCHMARKS))
    machines = importlib.import_module("machines")
    movielens = load("ml-100k", data_dir)
    entities, (train, held) = entities_of(movielens), movielens.split(1)
    index = ratings_of(entities, train).index
    users, items = machines.features(movielens, entities, index, "implicit")
    assert [block.shape[1] for block in users] == [943, 5, 2, 21, 1_682]
    assert [block.shape[1] for block in items[:2]] == [1_682, 18]
    rated = train["item_id"][train["user_id"] == entities.users["user_id"][0]]
    assert users[-1][0].max() == pytest.approx(len(rated) ** -0.5)
    assert set(entities.items["item_id"][users[-1][0] > 0]) == set(rated)  # of the training part alone
    assert [len(blocks) for blocks in machines.features(movielens, entities, index, "ratings")] == [1, 1]
    monkeypatch.setattr(machines, "answer", lambda python, arrays: np.full(len(arrays["test"]), 9.0))
    figures = machines.figures(movielens, "ratings", train, held, 0, 8, "python", draws=2, warmup=1)
    assert figures["rmse"] == pytest.approx(np.sqrt(np.mean((5 - held.numeric("rating")) ** 2)), abs=1e-5)


def test_a_report_goes_on_from_its_file(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    reports = importlib.import_module("reports")
    monkeypatch.setattr("tuckergp.paper.run.commit", lambda: "first")
    output, runs = tmp_path / "new" / "report.json", []

    def cell(value):
        return lambda: runs.append(value) or value

    first = reports.Resumed({"command": "one"}, "cells", output)
    assert first.cell(("a", "b"), cell(1)) == 1
    assert first.cell(("a", "b"), cell(2)) is None
    monkeypatch.setattr("tuckergp.paper.run.commit", lambda: "second")
    second = reports.Resumed({"command": "two"}, "cells", output)
    assert second.cell(("a", "b"), cell(3)) is None
    assert second.cell(("a", "c"), cell(4)) == 4
    assert runs == [1, 4]
    assert json.loads(output.read_text()) == {
        "command": "two",
        "cells": {"a": {"b": 1, "c": 4}},
        "commits": {"a/b": "first", "a/c": "second"},
        "commit": "second",
    }
    assert [path.name for path in output.parent.iterdir()] == ["report.json"]
    reports.put({"a": 1}, None)
    assert json.loads(capsys.readouterr().out) == {"a": 1, "commit": "second"}


def test_reports_of_benchmarks_are_written_in_one_place():
    """Which has the commit that made them."""
    own = {name for name in SCRIPTS if re.search(r"options\.output\.write|json\.dump\(", source(name))}
    assert own == set()


def source(name):
    return (BENCHMARKS / f"{name}.py").read_text()


def test_stored_results_have_the_cells_of_peers_and_their_versions(monkeypatch):
    """Pages speak of them, and who writes results anew in another folder and copies them loses them."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    peers = importlib.import_module("peers")
    assert peers.CELLS.keys() == peers.PEERS.keys()
    for experiment, packages in peers.CELLS.items():
        assert packages.keys() == peers.PEERS[experiment].keys()
        found = json.loads((BENCHMARKS / "results" / f"{experiment}.json").read_text())
        assert packages.keys() <= found["versions"].keys(), experiment
        for beginning, count in ((b, n) for counts in packages.values() for b, n in counts.items()):
            assert sum(name.startswith(beginning) for name in found["cells"]) >= count, (experiment, beginning)


@pytest.fixture
def faults(monkeypatch):
    """The benchmark of faults as a module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("mutants")


def test_every_fault_of_the_list_still_has_its_place(faults):
    listed = faults.mutants()
    assert len({mutant.name for mutant in listed}) == len(listed)
    assert [mutant.name for mutant in listed if mutant.occurrences() != 1 or mutant.old == mutant.new] == []
    tests = {test.split("::")[0] for mutant in listed for test in mutant.tests}
    assert [test for test in sorted(tests) if not (faults.ROOT / test).exists()] == []


@pytest.mark.slow
def test_a_fault_is_noticed_and_a_change_of_words_is_not(faults, tmp_path):
    """End to end, with a test that compiles nothing; what was found is not run again."""
    tests = ("tests/test_random.py::test_slice_steps_keep_a_normal",)
    words = faults.Mutant("words", "random.py", "One slice-sampling step", "A slice-sampling step", tests)
    fault = faults.Mutant("fault", "random.py", "- rng.exponential()", "- 0.1 * rng.exponential()", tests)
    gone = faults.Mutant("gone", "random.py", "no such text", "", tests)
    runner = faults.Runner(tmp_path / "mutants.json", "a test")
    assert [runner.run(mutant, tests)["outcome"] for mutant in (words, fault, gone)] == ["survived", "noticed", "stale"]
    again = faults.Runner(tmp_path / "mutants.json", "a test")
    assert again.report["mutants"]["fault"]["failed"] == list(tests)
    assert not any(again.due(mutant, all_tests=False) for mutant in (words, fault))


@pytest.mark.parametrize(
    ("without", "outcome"), [((0, 70.0), "noticed"), ((0, 80.0), "timed out"), ((1, 5.0), "timed out")]
)
def test_a_time_limit_is_a_notice_only_where_the_tests_are_far_quicker_without_the_fault(
    faults, monkeypatch, without, outcome
):
    monkeypatch.setattr(faults, "run_tests", lambda place, tests: dict(zip(("code", "seconds"), without, strict=True)))
    assert faults.outcome_of({"code": None, "seconds": 300.0}, ["some tests"]) == outcome


def test_a_test_that_fails_without_a_fault_has_noticed_nothing(faults, monkeypatch):
    runner = faults.Runner(None, "a test")
    runner.report["mutants"] = {test: {"outcome": "noticed", "failed": [test]} for test in ("good", "bad")}
    monkeypatch.setattr(faults, "run_tests", lambda *_, **__: {"code": 1, "seconds": 1.0, "failed": ["bad"]})
    runner.verify()
    assert {name: found["outcome"] for name, found in runner.report["mutants"].items()} == {
        "good": "noticed",
        "bad": "error",
    }
    assert set(runner.report["unmutated"]) == {"good"}


@pytest.mark.slow
def test_the_benchmark_of_spark_runs(tmp_path):
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("there is no Java")
    output = tmp_path / "spark.json"
    command = [sys.executable, str(BENCHMARKS / "spark.py"), "--quick", "--no-partitions", "-o", str(output)]
    subprocess.run(command, check=True, capture_output=True)
    found = json.loads(output.read_text())["results"]
    assert set(found) == {"ours", "penalties", "als", "skewed"}
    assert found["ours"]["commit"]
    assert found["skewed"]["returned_mb"] > 0
