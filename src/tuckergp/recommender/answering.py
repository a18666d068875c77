"""The answers of a fitted recommender: predictions, lists of items, similar users and items, explanations.

Requests are read in `tuckergp.recommender.questions`; the numbers come from `tuckergp.recommender.serving`,
`neighbours` and `explain`. Here ids, including unknown ones, become rows of the model, and results become data frames.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from tuckergp.checks import check, number, one_of, whole
from tuckergp.data.frames import Frame, as_frame
from tuckergp.data.history import RATING
from tuckergp.data.names import shown_names
from tuckergp.data.tables import Table, as_table, show_cell
from tuckergp.errors import InputError
from tuckergp.posterior.fitted import predict_with
from tuckergp.random import seed_of
from tuckergp.recommender.entities import Side
from tuckergp.recommender.explain import explain
from tuckergp.recommender.explanation import Explanation
from tuckergp.recommender.factors import Factors
from tuckergp.recommender.filters import eligible_items
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.layout import SIDES, Layout
from tuckergp.recommender.matrices import expected_matrix
from tuckergp.recommender.neighbours import MOST_DRAWS, similarities
from tuckergp.recommender.questions import (
    asking_users,
    entity_table,
    is_table,
    item_boosts,
    known_type,
)
from tuckergp.recommender.reading import pairs_table
from tuckergp.recommender.serving import Request, Strategy, recommend, seen_items
from tuckergp.recommender.titles import by_title, titles_of
from tuckergp.recommender.together import COMBINED, Expected, Group, How, Values
from tuckergp.recommender.value import parts_of, recommend_by_value, utility, value_of_pair

__all__ = [
    "OnUnknown",
    "best_items",
    "best_together",
    "explain_pair",
    "most_alike",
    "predict",
    "predict_proba",
    "scores",
    "usually_ranked_by",
]

Floats = npt.NDArray[np.float64]
By: TypeAlias = Literal["value", "rating", "choice"]
OnUnknown: TypeAlias = Literal["predict", "nan", "raise"]


def predict(
    fitted: FittedRecommender,
    pairs: Any,
    return_std: bool = False,
    quantiles: Sequence[float] | None = None,
    include_noise: bool = True,
    clip: bool = True,
    interval: float | None = None,
    on_unknown: OnUnknown = "predict",
) -> Any:
    """Predictions for pairs and their uncertainty, as `TuckerRecommender.predict` describes."""
    check("clip", clip, one_of(True, False))
    table = pairs_table(pairs, fitted.names, fitted.layout, warn=on_unknown == "predict")
    unknown = _unknown(table, fitted.layout, on_unknown)
    predicted = predict_with(fitted.fit, fitted.layout.pairs(table), return_std, quantiles, interval, include_noise)
    low, high = fitted.rating_range if clip else (-np.inf, np.inf)
    parts = list(predicted) if isinstance(predicted, tuple) else [predicted]
    for k, part in enumerate(parts):
        if not (k == 1 and return_std):
            parts[k] = np.clip(part, low, high)
        parts[k][unknown] = np.nan
    return tuple(parts) if len(parts) > 1 else parts[0]


def _unknown(table: Table, layout: Layout, on_unknown: OnUnknown) -> npt.NDArray[np.bool_]:
    """The pairs with an unknown id, which are answered with NaN; an error for them with ``on_unknown="raise"``."""
    check("on_unknown", on_unknown, one_of("predict", "nan", "raise"))
    unknown = np.zeros(len(table), dtype=bool)
    if on_unknown == "predict":
        return unknown
    for side in layout.sides:
        of_side = side.numbers(table[side.key]) == side.unknown
        if on_unknown == "raise" and of_side.any():
            row = int(np.argmax(of_side))
            raise InputError(
                f"{table.name} column {side.key!r} holds {show_cell(table[side.key][row])} at {table.row_label(row)}, "
                f"which has neither ratings nor attributes; leave it out, or use on_unknown='predict' or 'nan'."
            )
        unknown |= of_side
    return unknown


def predict_proba(fitted: FittedRecommender, pairs: Any) -> Floats:
    """Probability of each rating level for each pair, shape (n_pairs, K)."""
    return fitted.fit.probabilities(fitted.layout.pairs(pairs_table(pairs, fitted.names, fitted.layout)))


def log_density(fitted: FittedRecommender, ratings: Any) -> Floats:
    """Log predictive density, or probability, of the ratings of a table, shape (n_ratings,)."""
    table = pairs_table(ratings, fitted.names, fitted.layout)
    return fitted.fit.log_density(fitted.layout.pairs(table), table.numeric(RATING))


def score(fitted: FittedRecommender, ratings: Any) -> float:
    """R^2 of the predictions of a table of ratings."""
    table = pairs_table(ratings, fitted.names, fitted.layout, warn=False)  # `predict` does
    y = table.numeric(RATING)
    left, whole_variance = float(((y - predict(fitted, table)) ** 2).mean()), float(y.var())
    if not whole_variance > 0:
        raise InputError(f"R^2 needs ratings that differ, and those of {table.name} do not; use evaluate.")
    return 1.0 - left / whole_variance


def crps(fitted: FittedRecommender, ratings: Any) -> Floats:
    """Continuous ranked probability score of the ratings of a table, shape (n_ratings,)."""
    table = pairs_table(ratings, fitted.names, fitted.layout)
    return fitted.fit.crps(fitted.layout.pairs(table), table.numeric(RATING))


def scores(fitted: FittedRecommender, users: Sequence[Any], items: Sequence[Any], by: By | None = None) -> Floats:
    """What each of some users' items are sorted by, shape (n_users, n_items), as `TuckerRecommender.scores` says."""
    by = _ranked_by(fitted, by)
    if by == "value":
        liked = _matrix(fitted, users, items, lambda rating: np.asarray(utility(fitted, rating)))
        return np.asarray(liked * scores(fitted, users, items, "choice"))
    return _matrix(_ranking_part(fitted, by), users, items)


def _matrix(
    fitted: FittedRecommender,
    users: Sequence[Any],
    items: Sequence[Any],
    worth: Callable[[Floats], Floats] | None = None,
) -> Floats:
    """The posterior mean of what each pair is worth, by default of its expected rating, (n_users, n_items)."""
    fitted.fit.draws.require_kept()
    asked = zip((users, items), fitted.layout.sides, strict=True)
    who, what = (side.numbers(known_type(given, side)) for given, side in asked)
    return expected_matrix(fitted.layout, fitted.fit, who, what, worth)


def best_items(
    fitted: FittedRecommender,
    users: Any,
    n: int,
    exclude_seen: bool,
    items: Any,
    exclude: Any,
    strategy: Strategy,
    kappa: float,
    random_state: int | np.random.Generator | None,
    titles: str | None,
    by: By | None = None,
    where: Mapping[str, Any] | None = None,
    min_ratings: int = 0,
    diversity: float = 0.0,
    boosts: Mapping[Any, float] | None = None,
) -> Frame:
    """A data frame with the best items for users, as `TuckerRecommender.recommend` describes."""
    check("exclude_seen", exclude_seen, one_of(True, False))
    by = _ranked_by(fitted, by)
    fitted = _ranking_part(fitted, by)
    table, layout = _asking(fitted, users)
    allowed = eligible_items(fitted, items, exclude, where, min_ratings)
    check("kappa", kappa, number())
    check("n", n, whole(1))
    check("diversity", diversity, number("a number from 0 to 1", lambda value: 0 <= value <= 1))
    asking = layout.sides[0].numbers(table["user_id"])
    request = Request(
        asking,
        table,
        min(int(n), int(allowed.sum())),
        allowed,
        seen_items(layout, fitted.history, asking) if exclude_seen else None,
        strategy,
        kappa,
        seed_of(random_state),
        float(diversity),
        item_boosts(boosts, layout.sides[1]),
    )
    parts: dict[str, Floats] = {}
    if by == "value":
        lists, rating, choice = recommend_by_value(fitted, layout, request)
        parts = {"rating": rating, "choice": choice}
    else:
        lists = recommend(layout, fitted.fit, request)
    asked = table["user_id"].tolist()
    columns = {
        "user_id": [asked[row] for row in lists.request],
        **_listed(fitted, 1, lists.item, titles),
        "score": lists.score,
        "std": lists.std,
        **parts,
        "rank": lists.rank,
    }
    return _frame(fitted, columns)


def usually_ranked_by(fitted: FittedRecommender) -> By:
    """What lists are sorted by where nobody says."""
    return "choice" if fitted.history.clicks else "rating" if fitted.choice is None else "value"


def _ranked_by(fitted: FittedRecommender, by: By | None) -> By:
    """What lists are sorted by; an error for what the model does not know."""
    check("by", by, one_of("value", "rating", "choice", None))
    clicks = fitted.history.clicks
    if by is None:
        return usually_ranked_by(fitted)
    if (clicks and by != "choice") or (not clicks and by != "rating" and fitted.choice is None):
        known = "choices" if clicks else "ratings"
        raise InputError(
            f"by={by!r} needs a model of ratings and of choices, and this one is of {known} alone; fit "
            "ratings with objective='value'."
        )
    return by


def _ranking_part(fitted: FittedRecommender, by: By) -> FittedRecommender:
    """The model of choices where these are asked for and beside a model of ratings, else the model itself."""
    return replace(fitted.choice, tables=fitted.tables) if by == "choice" and fitted.choice is not None else fitted


def _asking(fitted: FittedRecommender, users: Any) -> tuple[Table, Layout]:
    """The users of a request, one in each row, and the layout with those of them that are new."""
    users_side, items_side = fitted.layout.sides
    table = asking_users(users, users_side, fitted.names)
    layout = replace(fitted.layout, sides=(users_side.enlarged(table), items_side))
    layout.sides[0].warn_of_unknown(table)
    return table, layout


def best_together(
    fitted: FittedRecommender,
    users: Any,
    n: int,
    how: How,
    exclude_seen: bool,
    items: Any,
    exclude: Any,
    where: Mapping[str, Any] | None,
    min_ratings: int,
    titles: str | None,
    by: By | None = None,
) -> Frame:
    """A data frame with the best items for a group, as `TuckerRecommender.recommend_together` describes."""
    check("how", how, one_of(*COMBINED))
    check("exclude_seen", exclude_seen, one_of(True, False))
    check("n", n, whole(1))
    if users is None:
        raise InputError("recommend_together needs a group: give the ids of its members.")
    by = _ranked_by(fitted, by)
    fitted = _ranking_part(fitted, by)
    fitted.fit.draws.require_kept()
    table, layout = _asking(fitted, users)
    if not len(table):
        raise InputError("recommend_together needs a group, and this one is empty; give the ids of its members.")
    allowed = eligible_items(fitted, items, exclude, where, min_ratings)
    members = layout.sides[0].numbers(table["user_id"])
    if exclude_seen:
        allowed[seen_items(layout, fitted.history, members).indices] = False
    opinions: dict[str, Expected | Values] = {"score": Expected(layout, fitted.fit, members, table)}
    if by == "value":
        values = Values.of(parts_of(fitted, layout, table, allowed), table)
        opinions = {"score": values, "rating": values.rating, "choice": values.choice}
    groups = {name: Group(of, len(members), how) for name, of in opinions.items()}
    best, score, std = groups.pop("score").best(np.flatnonzero(allowed), int(n))
    columns = {
        **_listed(fitted, 1, best, titles),
        "score": score,
        "std": std,
        **{name: group.scores(best) for name, group in groups.items()},
        "rank": np.arange(1, len(best) + 1),
    }
    return _frame(fitted, columns)


def _listed(fitted: FittedRecommender, d: int, rows: npt.NDArray[np.integer], titles: str | None) -> dict[str, Any]:
    """The ids of some rows, and their titles if a column of them is named."""
    side = fitted.layout.sides[d]
    ids = side.ids_at(rows)
    more = {} if titles is None else {titles: titles_of(ids, fitted.tables[d], side, titles)}
    return {side.key: ids, **more}


def most_alike(fitted: FittedRecommender, d: int, entity: Any, n: int, titles: str | None = None) -> Frame:
    """A data frame with the users (d = 0) or items (d = 1) most similar to one, which may be new."""
    fitted.fit.draws.require_kept()
    layout, side = fitted.layout, fitted.layout.sides[d]
    others = side.current.copy()
    if is_table(entity):
        table = entity_table(entity, SIDES[d], side, fitted.names)
        side, entity = side.enlarged(table), table[side.key].tolist()[0]
        layout = replace(layout, sides=(side, layout.sides[1]) if d == 0 else (layout.sides[0], side))
    entity = by_title(entity, fitted.tables[d], side)
    row = int(side.numbers(_one(entity, side))[0])
    if row == side.unknown:
        raise InputError(f"{side.key} {entity!r} has neither ratings nor attributes to compare.")
    others[row : row + 1] = False
    check("n", n, whole(1))
    alike = similarities(Factors(layout, fitted.fit).thinned(MOST_DRAWS), d, row)
    known = np.flatnonzero(others)
    best = known[np.argsort(-alike[known], kind="stable")[:n]]
    return _frame(fitted, {**_listed(fitted, d, best, titles), "similarity": alike[best]})


def explain_pair(
    fitted: FittedRecommender, user: Any, item: Any, by: By | None, circumstances: Mapping[str, Any]
) -> Explanation:
    """The contributions to the prediction of one pair; circumstances may have the column names of the tables."""
    by = _ranked_by(fitted, by)
    part = _ranking_part(fitted, by)
    pair = _asked_pair(part, user, item, circumstances)
    explained = explain(part.layout, part.fit, pair, part.tables)
    if by != "value":
        return explained
    value, std = value_of_pair(fitted, pair)
    return replace(explained, choice=explain_pair(fitted, user, item, "choice", {}), value=value, value_std=std)


def _asked_pair(fitted: FittedRecommender, user: Any, item: Any, circumstances: Mapping[str, Any]) -> Table:
    """A table of one pair of ids, in the types that were decided at the fit, and its circumstances."""
    usual = {theirs: name for name, theirs in (fitted.names or {}).items()}
    named = {usual.get(name, name): [value] for name, value in circumstances.items()}
    known = fitted.history.base.occasion_columns
    for name in named:
        if name not in known:
            listed = ", ".join(known) or "none"
            raise InputError(f"explain does not know {name!r}; the circumstances of this model are {listed}.")
    for name, value in (("user", user), ("item", item)):
        if is_table(value):
            raise InputError(f"explain takes the id of one {name}, not a table; give new ones to fold_in first.")
    item = by_title(item, fitted.tables[1], fitted.layout.sides[1])
    for value, side in zip((user, item), fitted.layout.sides, strict=True):
        _one(value, side)
    return fitted.layout.aligned(as_table({"user_id": [user], "item_id": [item], **named}, "pair"))


def _one(entity: Any, side: Side) -> list[Any]:
    """One id in the type that was decided at the fit."""
    if isinstance(entity, list | dict | set | np.ndarray):
        raise InputError(f"{show_cell(entity)} is no {side.key}; give one id.")
    return known_type([entity], side)


def _frame(fitted: FittedRecommender, columns: Mapping[str, Any]) -> Frame:
    """A data frame of the same library and with the same column names as the training tables."""
    names = shown_names(fitted.names)
    return as_frame({names.get(name, name): values for name, values in columns.items()}, fitted.backend)
