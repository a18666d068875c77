"""`TuckerRecommender` and its parts: tables of ratings in, predictions, recommendations and reasons out."""

from tuckergp.recommender.estimator import TuckerRecommender

__all__ = ["TuckerRecommender"]
