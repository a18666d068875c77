"""A fitted recommender as one immutable object, which all functions that answer take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tuckergp.data.history import History
from tuckergp.data.periods import Unit
from tuckergp.data.tables import Table
from tuckergp.posterior.moments import Moments
from tuckergp.recommender.feature_report import FeatureReport
from tuckergp.recommender.layout import SIDES, Layout
from tuckergp.running.fit import Fit

__all__ = ["FittedRecommender"]


@dataclass(frozen=True)
class FittedRecommender:
    """A fitted recommender: all that it needs to predict and to learn more.

    Attributes
    ----------
    layout : Layout
        Users, items and circumstances as modes.
    fit : Fit
        Model and draws.
    history : History
        The ratings learned from.
    time : {"week", "month"} or None
        The unit of drift.
    tables : tuple of Table or None
        Attributes of users and of items.
    rating_range : tuple of float
        The range to which predictions are clipped.
    backend : str
        The kind of data frame to answer with.
    names : mapping or None
        Names of columns in the user's tables, where they differ from the usual ones.
    moments : Moments or None
        Moments of chosen predictions, computed while sampling.
    choice : FittedRecommender or None
        A model of the choices alone, beside one of ratings.
    """

    layout: Layout
    fit: Fit
    history: History
    time: Unit | None
    tables: tuple[Table | None, Table | None]
    rating_range: tuple[float, float]
    backend: str
    names: Mapping[str, str] | None = None
    moments: Moments | None = None
    choice: FittedRecommender | None = None

    @property
    def features(self) -> FeatureReport:
        """How each column of the attribute tables is used, or why not."""
        sides = zip(SIDES, self.layout.sides, strict=True)
        return FeatureReport({name: side.attributes.columns for name, side in sides})
