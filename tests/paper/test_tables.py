"""Words of tables: means and standard deviations over seeds."""

import pytest

from tuckergp.paper import tables


def test_figures_are_shown_with_their_sd_over_seeds():
    assert tables.shown([], "rmse") == ""
    assert tables.shown([{"rmse": 0.5}, {"coverage": 0.9}], "rmse", 2) == "0.50"
    assert tables.mean_and_sd([1.0, 3.0]) == (2.0, pytest.approx(2**0.5))
    assert tables.mean_and_sd([1.0]) == (1.0, None)
    assert tables.median([{"seconds": 1.0}, {"seconds": 2.9}, {"seconds": 40.0}], "seconds") == "3"


def test_cells_are_found_by_the_beginning_of_their_names():
    assert tables.starting({"a/1": {"n": 1}, "a/2": {"n": 2}, "b": {"n": 3}}, "a/") == [{"n": 1}, {"n": 2}]
