"""Lists by value: how probable it is that a user chooses an item, times how much the user would then like it.

People rate what they chose, so that the best predicted rating is often that of an item nobody would choose. A second
model, of the choices alone, is fitted beside that of the ratings. The value of an item is P(choose) u^2, u the expected
rating between the lowest, 0, and the highest, 1; the power was chosen on a part of MovieLens 100K's training data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.inference import INFERENCES
from tuckergp.inference.algorithm import Sampled
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.likelihoods.all_pairs import AllPairs
from tuckergp.likelihoods.given import Predicted
from tuckergp.random import stream
from tuckergp.recommender.choosing import inference_of
from tuckergp.recommender.diversity import diversified
from tuckergp.recommender.factors import Factors
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.layout import Layout
from tuckergp.recommender.serving import (
    MORE,
    SHORTLIST,
    Recommended,
    Request,
    best_allowed,
    blocks,
    check_strategy,
    ranked,
)
from tuckergp.recommender.settings import RecommenderSettings

__all__ = [
    "Part",
    "Valued",
    "choice_settings",
    "parts_of",
    "recommend_by_value",
    "utility",
    "value_of_pair",
    "wants_choices",
]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.integer]

# With fewer ratings, lists are by rating unless value is asked for.
ENOUGH = 10_000
POWER = 2
# The model of choices: its least rank, and the most sweeps.
RANK, DRAWS, WARMUP = 32, 40, 15


def wants_choices(settings: RecommenderSettings, clicks: bool, count: int) -> bool:
    """Whether a model of choices is fitted beside that of so many ratings."""
    if clicks or settings.kind.counts or settings.kind.clicks or settings.objective == "rating":
        return False
    return settings.objective == "value" or count >= ENOUGH


def choice_settings(settings: RecommenderSettings) -> RecommenderSettings:
    """The settings of the model of choices beside one of ratings with these settings."""
    kind = next(kind for kind in LIKELIHOODS.values() if issubclass(kind, AllPairs))
    sampled = isinstance(inference_of(settings), Sampled)
    usual = RecommenderSettings()
    rank = settings.rank if isinstance(settings.rank, int | np.integer) else max(settings.rank)
    return replace(
        settings,
        rank=max(RANK, int(rank)),
        likelihood=kind(activity=0.0),  # a trial of it would take a tenth more of the time of a fit
        inference=next(each for each in kind.inferences if INFERENCES[each].point != sampled),
        core="identity",
        draws=min(settings.draws, DRAWS) if sampled else usual.draws,
        warmup=min(settings.warmup, WARMUP) if sampled else usual.warmup,
        chains=1,
        implicit=False,
        time=None,
        noise="auto",
        context=(),
        rating_scale=None,
        duplicates="last",  # rated twice, an item was still chosen once
        objective="rating",
    )


class Valued(NamedTuple):
    """Lists by value, with the expected rating and the probability of a choice of each item on them."""

    lists: Recommended
    rating: Floats
    choice: Floats


class Part(NamedTuple):
    """A model of ratings or of choices, the rows of a request's users in it, and those of its items (-1: forbidden)."""

    fitted: FittedRecommender
    layout: Layout
    users: Ints
    items: Ints

    def in_draws(self, who: Ints, what: Ints, occasion: Table) -> Floats:
        """The mean of each pair of a request and an item in each draw, (S, n)."""
        fit = self.fitted.fit
        if not len(who):  # nothing is left for anybody
            return np.zeros((len(fit.draws), 0))
        design = self.layout.design(self.users[who], self.items[what], occasion.take(who))
        blocks = fit.blocks(design, unseen=True, noise=False)
        return np.concatenate([fit.likelihood.means(at) for _, at in blocks], axis=1)


def parts_of(
    fitted: FittedRecommender, layout: Layout, asking: Table, allowed: npt.NDArray[np.bool_]
) -> tuple[Part, Part]:
    """The model of ratings and that of choices for the users of a table; ``allowed`` (n_items,) are rows of items.

    ``layout`` is that of the model of ratings, with those of the users who are new.
    """
    choice = fitted.choice
    assert choice is not None
    users, known = choice.layout.sides
    users = users.enlarged(asking)
    items = np.full(len(allowed), known.unknown)
    items[allowed] = known.numbers(layout.sides[1].ids_at(np.flatnonzero(allowed)))
    its_layout = replace(choice.layout, sides=(users, known))
    return (
        Part(fitted, layout, layout.sides[0].numbers(asking["user_id"]), np.arange(len(allowed))),
        Part(choice, its_layout, users.numbers(asking["user_id"]), items),
    )


def value_of_pair(fitted: FittedRecommender, pair: Table) -> tuple[float, float]:
    """The value of the item of a table of one pair for its user, and its standard deviation."""
    choice, draws, first = fitted.choice, [], np.zeros(1, dtype=np.intp)
    assert choice is not None
    for model in (fitted, choice):
        users, items = (side.numbers(pair[side.key]) for side in model.layout.sides)
        draws.append(Part(model, model.layout, users, items).in_draws(first, first, pair))
    mean, std = _value(utility(fitted, draws[0]), draws[1])
    return float(mean[0]), float(std[0])


def recommend_by_value(fitted: FittedRecommender, layout: Layout, request: Request) -> Valued:
    """The items of most value for each request, best first, by the request's strategy."""
    asked = request.occasion
    for model in (fitted, fitted.choice):
        assert model is not None
        check_strategy(request, model.fit)
    none = np.zeros(0, dtype=np.intp)
    if not len(request.users) or not request.allowed.any():
        return Valued(Recommended(none, none, np.zeros(0), np.zeros(0), none), np.zeros(0), np.zeros(0))
    parts = parts_of(fitted, layout, asked, request.allowed)
    lists, ratings, choices, wide = [], [], [], request.widened
    for rows, seed in _turns(parts[0].fitted, parts[1].fitted, request):
        scores = np.ones((len(rows), len(request.allowed)), dtype=np.float32)
        for part, of in zip(parts, (utility, _probability), strict=True):
            scores *= of(fitted, _matrix(part, rows, asked, request, seed))
        k = min(SHORTLIST * wide.n + MORE, int(request.allowed.sum()))
        shortlist, approximate = best_allowed(scores, k, request, rows)
        row, place = np.nonzero(shortlist >= 0)
        who, what = rows[row], shortlist[row, place]
        draws = [part.in_draws(who, what, asked) for part in parts]
        means = [each.mean(axis=0) for each in draws]
        mean, std = _value(utility(fitted, draws[0]), draws[1])
        score = {"mean": mean, "ucb": mean + request.kappa * std, "thompson": approximate[row, place]}[request.strategy]
        kept = ranked(wide, who, what, score, std)
        if request.diversity:
            kept = diversified(layout, fitted.fit, request, kept)
        order, width = np.lexsort((what, who)), len(request.allowed)
        at = order[np.searchsorted(who[order] * width + what[order], kept.request * width + kept.item)]
        lists.append(kept)
        ratings.append(means[0][at])
        choices.append(means[1][at])
    order = np.lexsort([np.concatenate([block[column] for block in lists]) for column in (4, 0)])
    together = Recommended(*(np.concatenate(columns)[order] for columns in zip(*lists, strict=True)))
    return Valued(together, np.concatenate(ratings)[order], np.concatenate(choices)[order])


def _turns(fitted: FittedRecommender, choice: FittedRecommender, request: Request) -> Iterator[tuple[Ints, Any]]:
    """Blocks of requests; with ``"thompson"`` each with a draw of both models, chosen at random, and a seed."""
    width = 4 * len(request.allowed)
    if request.strategy != "thompson":
        for rows in blocks(len(request.users), width):
            yield rows, None
        return
    rng = stream(request.seed, 9)
    draws = [rng.integers(len(each.fit.draws), size=len(request.users)) for each in (fitted, choice)]
    seed = int(rng.integers(2**31))
    for row, chosen in enumerate(zip(*draws, strict=True)):
        yield np.array([row]), (*map(int, chosen), seed + row)


def _matrix(part: Part, rows: Ints, occasion: Table, request: Request, chosen: Any) -> Singles:
    """Expected ratings, or probabilities of a choice, of some requests and all items, roughly: for shortlists.

    Those of the mean of f, or with ``"ucb"`` of that plus kappa standard deviations; exact in one draw.
    """
    fit, is_rating = part.fitted.fit, part.fitted.choice is not None
    unseen = None
    if chosen is not None:
        fit, unseen = fit.only(chosen[0 if is_rating else 1]), chosen[2]
    elif request.strategy == "ucb":
        unseen = request.seed
    factors = Factors(part.layout, fit, unseen=unseen)
    queries = factors.users(part.users[rows], occasion.take(rows))
    draws = len(fit.draws)
    total = np.zeros((len(rows), part.layout.sides[1].table.n_rows), dtype=np.float32)
    squares = np.zeros_like(total) if request.strategy == "ucb" else None
    for numbers, table in factors.items:
        if squares is None:
            flat = queries.vectors.reshape(len(rows), -1)
            total[:, numbers] = flat @ table.reshape(len(table), -1).T / draws
        else:
            for s in range(draws):
                f = queries.vectors[:, s] @ table[:, s].T
                total[:, numbers] += f / draws
                squares[:, numbers] += f * f / draws
    if squares is not None:
        total += np.float32(request.kappa) * np.sqrt(np.maximum(squares - total * total, 0))
    total += queries.alone.mean(axis=1, dtype=np.float64)[:, None].astype(np.float32)
    unknowns = {name: values[:1] for name, values in fit.draws.unknowns.items()}
    flat_f = total[:, part.items].astype(np.float64).reshape(1, -1)
    means = fit.likelihood.means(Predicted(flat_f, unknowns))
    return means.reshape(len(rows), -1).astype(np.float32)


def utility(fitted: FittedRecommender, rating: Any) -> Any:
    """How good ratings are: their place between the lowest and the highest possible one, to the power."""
    low, high = fitted.rating_range
    return np.clip((rating - low) / ((high - low) or 1.0), 0, 1) ** POWER


def _probability(fitted: FittedRecommender, probability: Any) -> Any:
    return probability


def _value(liked: Floats, chosen: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation (NaN for a MAP estimate) of products, from draws (S, n) of their two factors."""
    mean = liked.mean(axis=0) * chosen.mean(axis=0)
    several = len(liked) > 1 and len(chosen) > 1
    return mean, _product_std(liked, chosen) if several else np.full(len(mean), np.nan)


def _product_std(first: Floats, second: Floats) -> Floats:
    """The standard deviation of a product of independent factors, from draws (S, n) of each."""
    means, variances = ([each.mean(axis=0) for each in (first, second)], [each.var(axis=0) for each in (first, second)])
    squares = (variances[0] + means[0] ** 2) * (variances[1] + means[1] ** 2)
    return np.asarray(np.sqrt(np.maximum(squares - (means[0] * means[1]) ** 2, 0)))
