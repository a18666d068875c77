"""Past one machine: the same recommender learned by Apache Spark, from data frames that stay in its workers.

Needs the extra ``spark`` and Java 17 or 21. Names are imported when they are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuckergp.spark.answering import predict, recommend
    from tuckergp.spark.fitting import fit
    from tuckergp.spark.ml import TuckerEstimator, TuckerSparkModel
    from tuckergp.spark.sessions import session
    from tuckergp.spark.stored import StoredRecommender, load

__all__ = ["StoredRecommender", "TuckerEstimator", "TuckerSparkModel", "fit", "load", "predict", "recommend", "session"]

PLACES = {
    "StoredRecommender": "stored",
    "TuckerEstimator": "ml",
    "TuckerSparkModel": "ml",
    "fit": "fitting",
    "load": "stored",
    "predict": "answering",
    "recommend": "answering",
    "session": "sessions",
}


def __getattr__(name: str) -> Any:
    if name in PLACES:
        return getattr(import_module(f"tuckergp.spark.{PLACES[name]}"), name)
    raise AttributeError(f"module 'tuckergp.spark' has no attribute {name!r}")
