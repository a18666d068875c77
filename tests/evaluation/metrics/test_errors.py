from __future__ import annotations

import doctest
import math

import numpy as np
import pandas as pd
import pytest

import tuckergp.evaluation.metrics.errors
from tuckergp.errors import InputError
from tuckergp.evaluation.metrics import mae, rmse


@pytest.fixture
def pairs() -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(0)
    return rng.normal(size=50).tolist(), rng.normal(size=50).tolist()


def test_errors_agree_with_sums_written_out(pairs):
    y, prediction = pairs
    squares = sum((a - b) ** 2 for a, b in zip(y, prediction, strict=True))
    assert rmse(y, prediction) == pytest.approx(math.sqrt(squares / 50))
    assert mae(y, prediction) == pytest.approx(sum(abs(a - b) for a, b in zip(y, prediction, strict=True)) / 50)


@pytest.mark.parametrize("metric", [rmse, mae])
def test_a_whole_weight_counts_like_repeated_rows(metric, pairs):
    y, prediction = map(np.array, pairs)
    weights = np.arange(50) % 4
    assert metric(y, prediction, weights) == pytest.approx(metric(y.repeat(weights), prediction.repeat(weights)))


@pytest.mark.parametrize("metric", [rmse, mae])
def test_series_with_other_indices_are_compared_by_position(metric):
    assert metric(pd.Series([1, 2], index=[5, 6]), pd.Series([1.0, 2.0], index=[6, 5])) == 0.0


@pytest.mark.parametrize("metric", [rmse, mae])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1]), "y has 2 values and prediction 1"),
        (([], []), "empty"),
        (([1, math.nan], [1, 2]), "y is nan at row 1"),
        (([1, 2], [math.inf, 2]), "prediction is inf at row 0"),
        (([[1, 2]], [[1, 2]]), r"shape is \(1, 2\)"),
        ((["a"], [1]), "y must hold numbers"),
        (([1, 2], [1, 2], [1]), "sample_weight 1"),
        (([1, 2], [1, 2], [1, -1]), "no negative"),
        (([1, 2], [1, 2], [0, 0]), "only zeros"),
        (([1, 2], [1, 2], [1, math.nan]), "sample_weight is nan at row 1"),
    ],
)
def test_bad_input_is_named(metric, arguments, message):
    with pytest.raises(InputError, match=message):
        metric(*arguments)


def test_examples_in_the_docstrings_run():
    assert doctest.testmod(tuckergp.metrics.errors).failed == 0
