"""evaluate, tune, data describe and doctor, as a user would run them."""

import io
import json
import subprocess
import sys

import pytest

from tests.cli.command import COMMAND, refuse, run, run_process, succeed
from tests.cli.conftest import SMALL
from tuckergp.cli.splits import read_split
from tuckergp.cli.tune import read_grid
from tuckergp.data.splits import ColdItems, ColdUsers, FoldColumn, Holdout, KFold, LastN, TimeSplit, UserHoldout
from tuckergp.errors import InputError

TABLES = ("ratings.csv", "--users", "users.csv", "--items", "items.csv")
MODELS = ["with side information", "without side information", "biases", "global mean"]


def test_evaluate_compares_four_models_in_one_table(folder, tmp_path):
    command = ("evaluate", *TABLES, "--split", "cold-users", "--metrics", "rmse", *SMALL)
    board = json.loads(succeed(*command, "--json", "-o", tmp_path / "board.csv", cwd=folder))
    assert list(board["scores"]) == MODELS
    assert board["scores"]["biases"]["rmse"]["value"] < 2
    lines = (tmp_path / "board.csv").read_text().splitlines()
    assert len(lines) == 1 + len(MODELS)


def test_evaluate_prints_a_table_of_what_is_given(folder):
    out = succeed("evaluate", "ratings.csv", "--test", "test.csv", "--metrics", "rmse,recall", *SMALL, cwd=folder)
    assert "recall@10" in out
    assert "biases" in out
    assert "with side" not in out


@pytest.mark.parametrize(
    ("text", "folds", "splitter"),
    [
        ("random", None, Holdout(0.2, seed=3)),
        ("random:0.1", None, Holdout(0.1, seed=3)),
        ("random", 4, KFold(4, 3)),
        ("folds", None, KFold(5, 3)),
        ("folds:part", None, FoldColumn("part")),
        ("user", None, UserHoldout(share=0.2, seed=3)),
        ("user:5", None, UserHoldout(n=5, seed=3)),
        ("last", None, LastN(1)),
        ("last:3", None, LastN(3)),
        ("time", None, TimeSplit()),
        ("time:0.1", None, TimeSplit(share=0.1)),
        ("time:1998-03-01", None, TimeSplit(at="1998-03-01")),
        ("time:881250949", None, TimeSplit(at=881250949.0)),
        ("cold-users", None, ColdUsers(0.2, 3)),
        ("cold-items:0.5", None, ColdItems(0.5, 3)),
    ],
)
def test_splits_are_one_word(text, folds, splitter):
    assert read_split(text, folds, seed=3) == splitter


@pytest.mark.parametrize(("text", "folds"), [("half", None), ("last", 5), ("last:x", None), ("random:2", None)])
def test_a_split_that_is_none_is_refused(text, folds):
    with pytest.raises(InputError, match="split"):
        read_split(text, folds, seed=0)


def test_tune_shows_what_it_tried_and_saves_the_best(folder, tmp_path):
    grid = ("--grid", "inference__sigma_u=0.3,0.6", "--folds", "2", "--inference", "als", "--rank", "2")
    out = json.loads(succeed("tune", "ratings.csv", *grid, "-o", tmp_path / "best.tgp", "--json", cwd=folder))
    assert {row["inference__sigma_u"] for row in out["table"]} == {0.3, 0.6}
    assert out["best_params"]["inference__sigma_u"] in (0.3, 0.6)
    assert out["n_folds"] == 2
    assert (tmp_path / "best.tgp").is_file()


@pytest.mark.parametrize("text", ["rank", "rank=", "=3"])
def test_a_grid_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="rank=8,16,32"):
        read_grid([text])


def test_describe_lists_all_faults_with_their_lines(tmp_path):
    sound = [f"{user},{item},3" for user in (3, 4) for item in (5, 6, 7)]
    lines = ["user_id,item_id,rating", "1,2,3", ",2,4", "1,3,bad", "2,3,", *sound]
    (tmp_path / "ratings.csv").write_text("\n".join(lines) + "\n")
    out = succeed("data", "describe", "ratings.csv", cwd=tmp_path)
    for fault in ("1 row without user_id: line 3", "such as 'bad': line 4", "1 row without a rating: line 5"):
        assert fault in out
    found = json.loads(succeed("data", "describe", "ratings.csv", "--json", "-o", "found.json", cwd=tmp_path))
    assert found["refused"]
    assert found["n_ratings"] == 7
    assert json.loads((tmp_path / "found.json").read_text()) == found


def test_files_of_other_kinds_and_standard_input(tmp_path, monkeypatch):
    text = "userId;movieId;rating\n1;10;4,5\n2;10;3\n"
    (tmp_path / "r.CSV").write_text(text)
    assert "2 ratings of 1 items by 2 users" in succeed("data", "describe", "r.CSV", cwd=tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert "standard input: 2 ratings" in succeed("data", "describe", "-")
    assert "header names 1 columns" in refuse("--sep", ",", "data", "describe", "r.CSV", cwd=tmp_path)
    assert "encoding 'x' is not known" in refuse("--encoding", "x", "data", "describe", "r.CSV", cwd=tmp_path)
    assert "2 ratings" in succeed("data", "describe", "r.CSV", cwd=tmp_path)


def test_describe_shows_how_attributes_would_be_used(folder):
    out = succeed("data", "describe", *TABLES, cwd=folder)
    assert "occupation" in out
    assert "####" in out


def test_a_reader_who_has_seen_enough_is_no_error(folder):
    command = [COMMAND, "data", "describe", str(folder / "ratings.csv")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        running.stdout.close()
        assert running.stderr.read() == ""


def test_describe_refuses_what_is_no_table_in_one_line(folder, tmp_path):
    assert "has no column 'who'" in refuse("data", "describe", "ratings.csv", "--user-column", "who", cwd=folder)
    (tmp_path / "ratings.xyz").write_text("x")
    assert "must end in .csv" in refuse("data", "describe", "ratings.xyz", cwd=tmp_path)


def test_doctor_finds_this_installation_well():
    done = run_process("doctor", "--json")
    result = json.loads(done.stdout)
    assert done.returncode == 0, [check for check in result["checks"] if not check["ok"]]
    found = {(check["group"], check["name"]): check["found"] for check in result["checks"]}
    assert found["self test", "save and load"] == "the same predictions"
    assert ("versions", "numpy") in found


def test_doctor_says_what_is_broken(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("TUCKERGP_CACHE", str(tmp_path / "file"))
    done = run("doctor")
    assert done.returncode == 1
    assert "BROKEN data cache" in done.stdout
    assert "Set TUCKERGP_CACHE" in done.stdout
