"""What every experiment must satisfy, and the list of them: names, settings, tables, stored results."""

import json
from pathlib import Path

import pytest

from tuckergp.errors import InputError
from tuckergp.paper import report
from tuckergp.paper.experiments import EXPERIMENTS, GROUPS, find
from tuckergp.paper.pictures import figure_style
from tuckergp.paper.run import Run
from tuckergp.paper.sources import SOURCES

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
every_experiment = pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)


@every_experiment
def test_it_says_what_it_needs_to_be_run_and_shown(experiment):
    assert experiment.group in GROUPS
    assert set(experiment.data) <= set(SOURCES)
    assert set(experiment.quick) <= set(experiment.settings)
    assert json.loads(json.dumps(experiment.settings))
    assert {"seed", "seeds"} & set(experiment.settings) or experiment.group == "choices"
    assert set(experiment.beside) < {one.name for one in EXPERIMENTS}
    assert experiment.tables or experiment.pictures


def test_names_are_unique():
    for names in (
        [one.name for one in EXPERIMENTS],
        [table.name for one in EXPERIMENTS for table in one.tables],
        [picture.name for one in EXPERIMENTS for picture in one.pictures],
    ):
        assert len(names) == len(set(names))


@every_experiment
def test_stored_results_are_those_of_a_full_run_of_it(experiment):
    run = Run(experiment, RESULTS)  # refuses results of another protocol
    assert run.done
    head = report.stored(RESULTS)[experiment.name]
    assert head["command"] == f"tuckergp reproduce {experiment.name}"
    assert head["settings"] == json.loads(json.dumps(experiment.settings))
    assert set(head["data"]) == set(experiment.data)


@every_experiment
def test_tables_of_stored_results_are_rectangles_with_something_in_them(experiment):
    cells = report.cells_of(experiment, report.stored(RESULTS))
    for table in experiment.tables:
        rows = table.rows(cells)
        assert len(rows) > 1
        assert {len(row) for row in rows} == {len(rows[0])}
        assert not any("|" in cell or "\n" in cell for row in rows for cell in row)


@every_experiment
def test_tables_can_be_made_before_anything_was_run(experiment):
    assert all(len({len(row) for row in table.rows({})}) == 1 for table in experiment.tables)


@pytest.mark.filterwarnings("ignore:No artists with labels")
@every_experiment
def test_pictures_can_be_drawn_before_anything_was_run(experiment):
    """Or after some cells of others: a report is written then, too."""
    with figure_style():
        for picture in experiment.pictures:
            if picture.draw is not None:
                picture.draw({})


def test_experiments_are_found_by_name_by_group_and_all_together():
    assert [one.name for one in find(["wind", "california_choice"])] == ["wind", "california_choice"]
    assert {one.group for one in find(["movielens"])} == {"movielens"}
    assert len(find(["movielens"])) > 3
    assert find(["all"]) == list(EXPERIMENTS)
    for group in ("movielens", "california", "wind", "theory", "future"):
        assert find([group])
    with pytest.raises(InputError, match="There is no experiment 'mars'; there are all, movielens, "):
        find(["wind", "mars"])
