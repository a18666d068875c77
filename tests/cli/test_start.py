"""The command as such: its demo, its exit codes, how little it loads."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.cli.command import refuse, run, run_process
from tests.helpers import quick_and_long
from tuckergp.recommender import value

DEMO = importlib.import_module("tuckergp.cli.demo")  # tuckergp.cli.demo is also the command


def check_figures(result):
    for row in ("global_mean", "without_side_information", "with_side_information"):
        assert set(result[row]) == {"all", "known", "new"}
    assert (
        result["with_side_information"]["all"]
        < result["without_side_information"]["all"]
        < result["global_mean"]["all"]
    )
    assert result["with_side_information"]["new"] < result["without_side_information"]["new"]


def test_demo_prints_one_json_object_with_everything_in_it(tmp_path):
    done = run_process("demo", "--json", "-o", str(tmp_path / "demo.json"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    result = json.loads(done.stdout)
    check_figures(result)
    for part, floor in result["noise_floor"].items():
        assert floor < result["with_side_information"][part]
    assert len(result["recommendations"]["items"]) == 5
    assert all(item["title"] for item in result["recommendations"]["items"])
    assert all(1 <= item["predicted_rating"] <= 5 for item in result["recommendations"]["items"])
    assert json.loads((tmp_path / "demo.json").read_text()) == result


def test_demo_shows_the_figures_that_json_has(tmp_path, monkeypatch):
    monkeypatch.setattr(DEMO, "DRAWS", 3)  # whatever the figures are
    shown = run("demo", "--seed", "1", "-o", tmp_path / "demo.json")
    assert shown.returncode == 0
    result = json.loads((tmp_path / "demo.json").read_text())
    for row in ("noise_floor", "global_mean", "without_side_information", "with_side_information"):
        for figure in result[row].values():
            assert f"{figure:.4f}" in shown.stdout
    assert shown.stdout.endswith(" explore --demo --seed 1\n")


def test_make_demo_ends_with_the_line_to_type(monkeypatch):
    """The command is the one of the Makefile, and the line shows the model that was printed."""
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    (command,) = re.findall(r"^demo: .*\n\t\$\(BIN\)/(.+)\n", makefile, re.MULTILINE)
    assert command == "tuckergp demo"
    monkeypatch.setattr(DEMO, "DRAWS", 3)
    shown = run(*command.split()[1:])
    assert shown.stdout.splitlines()[-1] == "See this model in a browser: tuckergp explore --demo"
    monkeypatch.setattr(sys, "argv", [".venv/bin/tuckergp", "demo"])  # as make types it
    assert DEMO.program() == ".venv/bin/tuckergp"


@quick_and_long(("draws", "enough"), (8, 10**9), (50, value.ENOUGH))
def test_demo_runs_on_movielens(data_dir, monkeypatch, draws, enough):
    monkeypatch.setattr(DEMO, "DRAWS", draws)
    monkeypatch.setattr(value, "ENOUGH", enough)  # ratings for a model of choices
    done = run("demo", "--json", "--data", str(data_dir))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["data"]["name"] == "MovieLens 100K"
    assert result["noise_floor"] is None
    check_figures(result)


@pytest.mark.parametrize(
    ("how", "arguments", "message"),
    [
        (run_process, ("demo", "--data", "no/such/folder"), "tuckergp: The data directory"),
        (run, ("demo", "-o", "no/such/folder/out.json"), "tuckergp: There is no folder"),
        (run, ("fit", "ratings.csv"), "tuckergp: Say where the model goes"),
        (run, ("fit", "ratings.csv", "--store", "x"), "tuckergp: --store is for --engine spark"),
    ],
)
def test_bad_input_ends_with_one_line_and_exit_code_1(how, arguments, message):
    assert refuse(*arguments, how=how).startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "ratings.csv", "-o", "model.tgp", "--rank", "0"), "'--rank'"),
        (("nonsense",), "No such command 'nonsense'"),
    ],
)
def test_wrong_options_end_with_one_line_and_exit_code_2(arguments, message):
    assert message in refuse(*arguments, code=2, how=run_process)


def test_help_and_version_load_nothing_heavy():
    code = (
        "import sys; sys.argv = ['tuckergp', '--help']\n"
        "from tuckergp.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = {'numba', 'scipy', 'numpy', 'sklearn', 'pyarrow', 'pandas'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    for command in ("demo", "fit", "predict", "recommend", "similar", "evaluate", "tune", "data", "doctor"):
        assert command in done.stdout
    assert run_process("--version").stdout.strip()


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, tuckergp; sys.exit(bool({'numba', 'scipy', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_one_list_of_a_saved_model_loads_little_and_compiles_nothing(tmp_path):
    from tuckergp import TuckerRecommender

    ratings = pl.DataFrame({"user_id": [0, 0, 1, 1], "item_id": [0, 1, 1, 2], "rating": [1.0, 2.0, 3.0, 4.0]})
    items = {"item_id": [0, 1, 2, 3], "year": [1990.0, 1991.0, 1992.0, 1993.0], "old": [True, False, True, False]}
    items["genres"] = [["Drama"], ["Comedy", "Drama"], [], ["Comedy"]]
    file = tmp_path / "model.tgp"
    model = TuckerRecommender(rank=2, draws=5, warmup=2, random_state=0)
    model.fit(ratings, items=items, progress=False).save(file)  # answers of polars need no pandas
    lists = (
        f"import tuckergp; tuckergp.load({str(file)!r}).recommend(0)",
        f"sys.argv = ['tuckergp', 'recommend', {str(file)!r}, '--user', '0']; from tuckergp.cli import main; main()",
    )
    for code in lists:
        names = ["numba", "llvmlite", "sklearn", "joblib", "threadpoolctl", "pandas", "pyarrow.compute"]
        names += ["scipy.stats", "scipy.optimize", "scipy.fft", "scipy.spatial"]
        names += ["polars", "narwhals"] if "argv" in code else []  # a command makes no data frame
        heavy = f"set({names!r}) & set(sys.modules)"
        code = f"import sys\ntry: exec({code!r})\nexcept SystemExit: pass\nsys.exit(str({heavy}) if {heavy} else 0)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "tuckergp", "--version"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, run_process("--version").stdout)
