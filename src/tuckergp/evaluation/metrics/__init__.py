"""Metrics: errors of predictions, scores of predicted distributions, and quality of lists of recommendations.

`errors` are averages over ratings; functions of `distributions` give one number per rating, those of `ranking` one
number per user, and `confidence_interval` gives the uncertainty of their means.
"""

from __future__ import annotations

from tuckergp.evaluation.metrics.distributions import (
    interval_coverage,
    levels_crps,
    levels_nll,
    normal_crps,
    normal_nll,
)
from tuckergp.evaluation.metrics.errors import mae, rmse
from tuckergp.evaluation.metrics.intervals import confidence_interval
from tuckergp.evaluation.metrics.ranking import (
    auc,
    average_precision,
    catalogue_coverage,
    diversity,
    hit_rate,
    ndcg,
    novelty,
    precision,
    recall,
    reciprocal_rank,
    top_k,
)

__all__ = [
    "auc",
    "average_precision",
    "catalogue_coverage",
    "confidence_interval",
    "diversity",
    "hit_rate",
    "interval_coverage",
    "levels_crps",
    "levels_nll",
    "mae",
    "ndcg",
    "normal_crps",
    "normal_nll",
    "novelty",
    "precision",
    "recall",
    "reciprocal_rank",
    "rmse",
    "top_k",
]
