"""Average errors of predictions: RMSE and MAE."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError

__all__ = ["column_of", "mae", "rmse"]


def rmse(y: npt.ArrayLike, prediction: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
    """Root mean squared error.

    Parameters
    ----------
    y : array-like, shape (n,)
        What was observed.
    prediction : array-like, shape (n,)
    sample_weight : array-like, shape (n,), optional
        How much each row counts; not negative, and not all 0.

    Examples
    --------
    >>> rmse([4.0, 2.0], [3.0, 2.0])
    0.7071067811865476
    """
    errors, weights = _errors(y, prediction, sample_weight)
    return math.sqrt(np.average(errors**2, weights=weights))


def mae(y: npt.ArrayLike, prediction: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
    """Mean absolute error.

    Parameters
    ----------
    y : array-like, shape (n,)
        What was observed.
    prediction : array-like, shape (n,)
    sample_weight : array-like, shape (n,), optional
        How much each row counts; not negative, and not all 0.

    Examples
    --------
    >>> mae([4.0, 2.0], [3.0, 2.0])
    0.5
    """
    errors, weights = _errors(y, prediction, sample_weight)
    return float(np.average(np.abs(errors), weights=weights))


def _errors(
    y: npt.ArrayLike, prediction: npt.ArrayLike, sample_weight: npt.ArrayLike | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64] | None]:
    observed, predicted = column_of(y, "y"), column_of(prediction, "prediction")
    if len(observed) != len(predicted):
        raise InputError(f"y has {len(observed)} values and prediction {len(predicted)}; their lengths must agree.")
    if len(observed) == 0:
        raise InputError("y and prediction are empty, so there is no error to average.")
    if sample_weight is None:
        return predicted - observed, None
    weights = column_of(sample_weight, "sample_weight")
    if len(weights) != len(observed):
        raise InputError(f"y has {len(observed)} values and sample_weight {len(weights)}; their lengths must agree.")
    if weights.min() < 0 or weights.max() == 0:
        raise InputError("sample_weight must hold no negative number, and not only zeros.")
    return predicted - observed, weights


def column_of(values: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    """One column of finite numbers, or an error that names it."""
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must hold numbers only.") from None
    if column.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, but its shape is {column.shape}.")
    bad = ~np.isfinite(column)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{name} is {column[row]} at row {row}; errors can be averaged over finite values only.")
    return column
