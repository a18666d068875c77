"""`tune`: compare settings of a model on the same folds and keep the best."""

from tuckergp.evaluation.tuning.search import default_grid, tune
from tuckergp.evaluation.tuning.trials import Tuning

__all__ = ["Tuning", "default_grid", "tune"]
