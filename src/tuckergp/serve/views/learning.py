"""What a model learned from, how much each attribute counts, and whether its chains agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.posterior.diagnostics import summarise
from tuckergp.posterior.fitted import Fit
from tuckergp.random import stream
from tuckergp.recommender import TuckerRecommender
from tuckergp.recommender.explain import feature_importance
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.serve.views.cells import numbers
from tuckergp.serve.views.people import MOST_PEOPLE, distribution, some_ratings

__all__ = ["convergence", "data_summary", "weights"]

Floats = npt.NDArray[np.float64]

MOST_POINTS = 200
"""The points of a trace that are shown, evenly spread."""

MOST_DRAWS = 20
"""The draws from which shares of the variance come; more take longer and change little."""

WORST = 2
"""How many predictions are shown, those with the largest R-hat."""

NO_UNKNOWNS = ("f", "lengthscale", "log_likelihood", "replicate", "share", "step", "tau")
"""What is watched beside the likelihood's own unknowns."""


def data_summary(fitted: FittedRecommender, levels: list[float]) -> dict[str, Any]:
    """How many ratings, people and items there are, how ratings are distributed, and how columns are used."""
    base = fitted.history.base
    users, items = (len(ids) for ids in base.ids)
    rating = some_ratings(base)
    columns = [
        {"table": side, "column": column, "use": use, "note": note}
        for side, column, use, note in fitted.features.rows()
    ]
    return {
        "ratings": len(base),
        "users": users,
        "items": items,
        "added": len(fitted.history) - len(base),
        "known_users": len(fitted.layout.sides[0].ids),
        "known_items": len(fitted.layout.sides[1].ids),
        "filled": len(base) / max(users * items, 1),
        "mean": None if base.clicks or not len(rating) else float(rating.mean()),
        "distribution_of": min(users, MOST_PEOPLE),
        "distribution": [] if base.clicks else distribution(rating, levels),
        "columns": columns,
    }


def weights(model: TuckerRecommender) -> list[dict[str, Any]]:
    """The share of the variance of predictions that each attribute explains, largest first; none without ratings."""
    fitted = model._fitted
    if not len(fitted.history.base):
        return []
    few = replace(fitted.fit, draws=fitted.fit.draws.thinned(MOST_DRAWS))
    rows = feature_importance(fitted.layout, few, fitted.history, stream(0)).rows
    return [
        {"side": row.side, "label": row.label, "what": row.what, "share": row.contribution, "std": row.std}
        for row in rows
    ]


def convergence(fit: Fit) -> dict[str, Any]:
    """Traces of what was watched while sampling with R-hat and effective sample size; the curve of other methods."""
    draws = fit.draws
    if not draws.sampled or not draws.traces:
        return {"traces": [], "curve": _curve(fit), "worst_rhat": None, "lowest_ess": None, "warning": None}
    shortest = min(map(len, draws.traces))
    f = fit.mean + fit.scale * np.stack([trace[:shortest] for trace in draws.traces])
    summary = summarise(f)
    worst = np.argsort(-np.nan_to_num(summary.rhat))[:WORST]
    traces = [_trace(f"prediction of training observation {draws.observations[k] + 1}", f[:, :, k]) for k in worst]
    return {
        "traces": [*_of_likelihood(fit, shortest), *traces],
        "curve": [],
        "chains": len(draws.traces),
        "draws": shortest,
        "worst_rhat": float(summary.worst_rhat),
        "lowest_ess": float(summary.lowest_ess),
        "watched": int(summary.rhat.size),
        "warning": summary.warning(),
    }


def _of_likelihood(fit: Fit, shortest: int) -> list[dict[str, Any]]:
    """Traces of the likelihood's own unknowns, such as the noise, in the units of the targets."""
    watched = fit.draws.watched
    if not watched:
        return []
    names = [name for name in watched[0] if name not in NO_UNKNOWNS]
    stacked = {name: np.stack([chain[name][:shortest] for chain in watched]) for name in names}
    units = fit.likelihood.in_units(stacked)
    single = {name: values for name, values in units.items() if values.ndim == 2}
    return [_trace(name, values) for name, values in single.items()]


def _trace(label: str, values: Floats) -> dict[str, Any]:
    """A trace (chains, draws) thinned for a picture, with R-hat and effective sample size of all of it."""
    summary = summarise(values[:, :, None])
    some = np.unique(np.linspace(0, values.shape[1] - 1, MOST_POINTS).round().astype(int))
    return {
        "label": label,
        "rhat": float(summary.worst_rhat),
        "ess": float(float(summary.ess_bulk[0])),
        "chains": [numbers(chain[some]) for chain in values],
    }


def _curve(fit: Fit) -> list[dict[str, Any]]:
    """The figures of each step of a method without chains."""
    names = [name for name, value in (fit.steps[-1].figures if fit.steps else {}).items() if np.ndim(value) == 0]
    return [
        {"label": name, "values": numbers([float(step.figures.get(name, np.nan)) for step in fit.steps])}
        for name in names
    ]
