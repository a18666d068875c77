"""`TuckerGPRegressor` and its parts: columns and targets in, predictions and components out."""

from tuckergp.regressor.estimator import TuckerGPRegressor

__all__ = ["TuckerGPRegressor"]
