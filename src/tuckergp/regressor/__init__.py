"""`TuckerGPRegressor` and its parts: it learns from columns and targets, and predicts targets and components of f."""

from tuckergp.regressor.estimator import TuckerGPRegressor

__all__ = ["TuckerGPRegressor"]
