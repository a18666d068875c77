"""`TuckerRecommender` and its parts: predictions, recommendations and explanations from tables of ratings."""

from tuckergp.recommender.estimator import TuckerRecommender

__all__ = ["TuckerRecommender"]
