"""What a fitted recommender answers: predictions and their certainty, recommendations, who is like whom.

A base class of `TuckerRecommender`, so that learning and answering are two files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tuckergp.data.frames import as_frame
from tuckergp.data.history import History, standard_names
from tuckergp.data.tables import Table, as_table
from tuckergp.errors import InputError
from tuckergp.model.design import Design
from tuckergp.posterior.export import as_inference_data, block_names
from tuckergp.posterior.fitted import Fit, predict_with
from tuckergp.random import seed_of, stream
from tuckergp.recommender.explain import explain, feature_importance
from tuckergp.recommender.explanation import Explanation, Importance
from tuckergp.recommender.factors import Factors
from tuckergp.recommender.layout import SIDES, Layout
from tuckergp.recommender.neighbours import MOST_DRAWS, Embeddings, embeddings, similarities
from tuckergp.recommender.questions import (
    allowed_items,
    asked_number,
    asking_users,
    cells,
    check_number,
    entity_table,
    first_rows,
    is_table,
)
from tuckergp.recommender.serving import Request, Strategy, recommend, seen_items
from tuckergp.store.model_file import Storable

__all__ = ["Answers", "OnUnknown"]

Floats = npt.NDArray[np.float64]
OnUnknown: TypeAlias = Literal["predict", "nan", "raise"]


class Answers(Storable, BaseEstimator):  # type: ignore[misc]
    """Questions to a fitted recommender."""

    columns: Mapping[str, str] | None
    fit_: Fit
    history_: History
    layout_: Layout
    rating_range_: tuple[float, float]
    backend_: str

    def fold_in(self, ratings: Any, users: Any = None, items: Any = None) -> Self:
        """Take in new ratings without a new fit."""
        raise NotImplementedError

    def predict(
        self,
        pairs: Any,
        return_std: bool = False,
        quantiles: Sequence[float] | None = None,
        include_noise: bool = True,
        clip: bool = True,
        interval: float | None = None,
        on_unknown: OnUnknown = "predict",
    ) -> Any:
        """Predict the rating of every row of ``pairs``.

        Parameters
        ----------
        pairs : table with columns user_id and item_id, or a path to one
            With ``time``, a timestamp column says when; without it, or where it is missing, the user is taken as on
            average. The same goes for context columns. Other columns are ignored; a rating column is never read.
        return_std : bool
            Also return standard deviations; needs ``inference="gibbs"``.
        quantiles : sequence of float or None
            Also return these quantiles, shape (n_pairs, len(quantiles)), instead of standard deviations.
        include_noise : bool
            Standard deviations, quantiles and intervals of a new rating; False for those of its mean.
        clip : bool
            Keep means, quantiles and intervals within the range of the ratings learned from, or the ``rating_scale``.
        interval : float or None
            Also return an interval that holds a new rating with this probability, shape (n_pairs, 2), instead. Between
            levels of an ordinal model: as near to it as whole levels allow, and about right on average.
        on_unknown : {"predict", "nan", "raise"}
            What to do with ids that have neither ratings nor attributes: predict them as the average one, answer NaN,
            or refuse.

        Returns
        -------
        ndarray, shape (n_pairs,), or a pair of it and the standard deviations, quantiles or interval
        """
        check_is_fitted(self)
        table = self._read_pairs(pairs)
        for side in self.layout_.sides:
            side.warn_of_other_types(table)
        unknown = self._unknown(table, on_unknown)
        found = predict_with(self.fit_, self.layout_.pairs(table), return_std, quantiles, interval, include_noise)
        low, high = self.rating_range_ if clip else (-np.inf, np.inf)
        mean, more = found if isinstance(found, tuple) else (found, None)
        mean = np.clip(mean, low, high)
        mean[unknown] = np.nan
        if more is None:
            return mean
        more = more if return_std else np.clip(more, low, high)
        more[unknown] = np.nan
        return mean, more

    def predict_proba(self, pairs: Any) -> Floats:
        """Probability of every rating level (``fit_.levels``) for every row of ``pairs``, shape (n_pairs, K).

        For ordinal and Bernoulli models.
        """
        check_is_fitted(self)
        table = self._read_pairs(pairs)
        for side in self.layout_.sides:
            side.warn_of_other_types(table)
        return self.fit_.probabilities(self.layout_.pairs(table))

    def recommend(
        self,
        users: Any = None,
        n: int = 10,
        exclude_seen: bool = True,
        items: Any = None,
        exclude: Any = None,
        strategy: Strategy = "mean",
        kappa: float = 1.0,
        random_state: int | np.random.Generator | None = None,
        ratings: Any = None,
    ) -> Any:
        """The best items for users.

        Parameters
        ----------
        users : id, sequence of ids, table, or None
            A table has a column user_id, and may have timestamp and context columns: when and where to recommend for.
            It may have attributes, too: those of users never seen are used. None: all users with ratings.
        n : int
            Items a user, at most as many as there are; fewer where the choice has no more.
        exclude_seen : bool
            Leave out what the user has rated.
        items : sequence of ids, or None
            Recommend among these only.
        exclude : sequence of ids, or None
            Never recommend these.
        strategy : {"mean", "ucb", "thompson"}
            What to sort by. ``"mean"``: the predicted rating. ``"ucb"``: that plus ``kappa`` times its standard
            deviation, which gives new items a chance. ``"thompson"``: the rating in one draw from the posterior, a new
            one for every user, which explores as much as is unknown. The last two need ``inference="gibbs"``.
        kappa : float
        random_state : int, Generator or None
            Of ``"thompson"``.
        ratings : table of ratings, or None
            New ones, of users known or new, to take into account here without keeping them; see `fold_in`.

        Returns
        -------
        data frame with columns user_id, item_id, score, std, rank
            Of the kind of the ratings' table. ``score`` is what is sorted by, not clipped to the scale of ratings;
            ``std`` the standard deviation of the predicted rating over the posterior, without the noise of a single
            rating (NaN for a most probable point).

        Examples
        --------
        >>> from tuckergp import TuckerRecommender
        >>> from tuckergp.datasets import make_ratings
        >>> data = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)
        >>> rec = TuckerRecommender(rank=4, draws=50, random_state=0).fit(data.train, data.users, data.items)
        >>> list(rec.recommend(data.train["user_id"][0], n=3)["rank"])
        [1, 2, 3]
        """
        check_is_fitted(self)
        if ratings is not None:
            asked = asking_users(users, self.layout_.sides[0], self.columns) if is_table(users) else None
            folded = copy(self).fold_in(ratings, asked and first_rows(asked, self.layout_.sides[0]))
            return folded.recommend(users, n, exclude_seen, items, exclude, strategy, kappa, random_state)
        users_side, items_side = self.layout_.sides
        table = asking_users(users, users_side, self.columns)
        layout = replace(self.layout_, sides=(users_side.enlarged(table), items_side))
        layout.sides[0].warn_of_other_types(table)
        allowed = allowed_items(items, exclude, items_side)
        if not allowed.any():
            raise InputError("There is nothing to recommend: items and exclude leave no item.")
        check_number("kappa", kappa)
        asking = layout.sides[0].numbers(table["user_id"])
        request = Request(
            asking,
            table,
            min(asked_number(n, len(items_side.number), "items to recommend"), int(allowed.sum())),
            allowed,
            seen_items(layout, self.history_, asking) if exclude_seen else None,
            strategy,
            kappa,
            seed_of(random_state),
        )
        found = recommend(layout, self.fit_, request)
        asked = table["user_id"].tolist()
        return self._frame(
            {
                "user_id": [asked[row] for row in found.request],
                "item_id": items_side.ids_at(found.item),
                "score": found.score,
                "std": found.std,
                "rank": found.rank,
            }
        )

    def scores(self, users: Sequence[Any], items: Sequence[Any]) -> Floats:
        """Predictions, not clipped, of some items for some users, shape (n_users, n_items).

        In circumstances that are not known. One matrix product, for a Gaussian likelihood.
        """
        check_is_fitted(self)
        self.fit_.draws.require_kept()
        if not self.fit_.likelihood.linear:
            pairs = {"user_id": np.repeat(cells(users), len(items)), "item_id": np.tile(cells(items), len(users))}
            return np.asarray(self.predict(Table(pairs, "pairs", len(users) * len(items)))).reshape(
                len(users), len(items)
            )
        numbers = [side.numbers(ids) for side, ids in zip(self.layout_.sides, (users, items), strict=True)]
        factors = Factors(self.layout_, self.fit_)
        vectors, alone = factors.users(numbers[0], Table({}, "users", len(users)))
        V = factors.draws.factors(1, self.layout_.sides[1].table.take(numbers[1])).astype(np.float32)
        f = vectors.reshape(len(users), -1) @ V.reshape(len(items), -1).T
        total = f.astype(np.float64) + alone.sum(axis=1)[:, None]
        return np.asarray(self.fit_.mean + self.fit_.scale * total / len(self.fit_.draws))

    def similar_items(self, item: Any, n: int = 10) -> Any:
        """The items most like one: liked by the same users, beyond what all like.

        Parameters
        ----------
        item : id, or a table of one row with attributes
            A new item is compared by its attributes.
        n : int

        Returns
        -------
        data frame with columns item_id and similarity
            From 1, alike, to -1, the correlation of predictions over users.
        """
        return self._similar(1, item, n)

    def similar_users(self, user: Any, n: int = 10) -> Any:
        """The users most like one: who like the same items, beyond what they rate on average.

        Parameters
        ----------
        user : id, or a table of one row with attributes
            A new user is compared by attributes.
        n : int

        Returns
        -------
        data frame with columns user_id and similarity
            From 1, alike, to -1, the correlation of predictions over items.
        """
        return self._similar(0, user, n)

    def embeddings(self, width: int | None = None) -> Embeddings:
        """Vectors of all users and items known, for nearest-neighbour indexes elsewhere.

        ``offset + users @ items.T`` are the predictions (the latent ones of ordinal and Bernoulli models), in
        circumstances that are not known.

        Parameters
        ----------
        width : int or None
            None puts the draws side by side, and products are exact; a number compresses them to vectors of this width,
            the nearest there are in least squares over all pairs.

        Returns
        -------
        Embeddings
            ``user_ids``, ``users``, ``item_ids``, ``items``, ``offset``.
        """
        check_is_fitted(self)
        self.fit_.draws.require_kept()
        return embeddings(Factors(self.layout_, self.fit_), width)

    def explain(self, user: Any, item: Any, **circumstances: Any) -> Explanation:
        """What moved a prediction: the average, each attribute, who rated what, and what is the id's own.

        Parts are measured from the average user and the average item, and add up to ``predict(..., clip=False)``. What
        a part of the user and a part of the item do together is shared evenly between them (Shapley values). In
        ordinal and Bernoulli models they add up to the mean of the latent utility.

        Parameters
        ----------
        user, item : id
            Known, known by attributes alone, or unknown.
        **circumstances
            The timestamp and context columns, such as ``timestamp="1998-04-22"``; as on average without them.

        Returns
        -------
        Explanation
            ``print`` it, ``plot()`` it (extra ``plot``), or take its ``rows``.

        Examples
        --------
        >>> from tuckergp import TuckerRecommender
        >>> from tuckergp.datasets import make_ratings
        >>> data = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)
        >>> rec = TuckerRecommender(rank=2, draws=20, warmup=10, random_state=0).fit(data.train, data.users, data.items)
        >>> user, item = data.train["user_id"][0], data.train["item_id"][0]
        >>> found = rec.explain(user, item)
        >>> [row.what for row in found.rows if row.side == "user"]
        ['age', 'sex', 'occupation', 'who rated what', 'own']
        >>> bool(abs(found.total - rec.predict({"user_id": [user], "item_id": [item]}, clip=False)[0]) < 1e-9)
        True
        """
        check_is_fitted(self)
        usual = {theirs: name for name, theirs in (self.columns or {}).items()}
        circumstances = {usual.get(name, name): value for name, value in circumstances.items()}
        for name in circumstances:
            if name not in self.history_.moment.columns:
                there = ", ".join(self.history_.moment.columns) or "none"
                raise InputError(f"explain does not know {name!r}; the circumstances of this model are {there}.")
        pair = as_table({"user_id": [user], "item_id": [item], **{k: [v] for k, v in circumstances.items()}}, "pair")
        return explain(self.layout_, self.fit_, self.history_, pair)

    def feature_importance(self) -> Importance:
        """Which share of the variance of f over the training ratings each attribute, and each id's own part, explains.

        The covariance of a part with f, divided by the variance of f, so that shares sum to 1; a share may be slightly
        negative. Parts are those of `explain`. Means and deviations over up to 100 of the draws, at up to 10,000 of the
        ratings.

        Examples
        --------
        >>> from tuckergp import TuckerRecommender
        >>> from tuckergp.datasets import make_ratings
        >>> data = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)
        >>> rec = TuckerRecommender(rank=2, draws=20, warmup=10, random_state=0).fit(data.train, data.users, data.items)
        >>> shares = rec.feature_importance()
        >>> round(sum(row.contribution for row in shares.rows), 9)
        1.0
        """
        check_is_fitted(self)
        return feature_importance(self.layout_, self.fit_, self.history_, stream(0))

    def inference_data(self) -> Any:
        """The draws of what is identified, for ArviZ's plots and summaries (extra ``arviz``).

        Returns
        -------
        arviz.InferenceData, or xarray.DataTree from ArviZ 1.0 on
            Group ``posterior``: ``f`` at up to 100 training observations, ``noise`` (its standard deviation), ``tau``
            (the precision of every feature block), ``cuts`` of ordered levels. Group ``log_likelihood``: ``y`` at the
            same observations. Dimensions chain and draw first; in the units of the targets.
        """
        check_is_fitted(self)
        fit = self.fit_
        return as_inference_data(fit.draws, fit.mean, fit.scale, block_names(self.layout_.modes, self.layout_.names))

    def _read_pairs(self, pairs: Any) -> Table:
        return standard_names(as_table(pairs, "pairs"), self.columns)

    def _pairs(self, pairs: Any) -> Design:
        return self.layout_.pairs(self._read_pairs(pairs))

    def _unknown(self, table: Table, on_unknown: OnUnknown) -> npt.NDArray[np.bool_]:
        """The rows to answer with NaN."""
        if on_unknown not in ("predict", "nan", "raise"):
            raise InputError(f"on_unknown must be 'predict', 'nan' or 'raise', not {on_unknown!r}.")
        unknown = np.zeros(len(table), dtype=bool)
        if on_unknown == "predict":
            return unknown
        for side in self.layout_.sides:
            here = side.numbers(table[side.key]) == len(side.number)
            if on_unknown == "raise" and here.any():
                row = int(np.argmax(here))
                raise InputError(
                    f"{table.name} column {side.key!r} holds {table[side.key][row]!r} at {table.row_label(row)}, which "
                    f"has neither ratings nor attributes; leave it out, or use on_unknown='predict' or 'nan'."
                )
            unknown |= here
        return unknown

    def _similar(self, d: int, entity: Any, n: int) -> Any:
        check_is_fitted(self)
        self.fit_.draws.require_kept()
        layout, side = self.layout_, self.layout_.sides[d]
        known = len(side.number)
        if is_table(entity):
            table = entity_table(entity, SIDES[d], side, self.columns)
            side, entity = side.enlarged(table), table[side.key].tolist()[0]
            layout = replace(layout, sides=(side, layout.sides[1]) if d == 0 else (layout.sides[0], side))
        row = int(side.numbers([entity])[0])
        if row == len(side.number):
            raise InputError(f"{side.key} {entity!r} has neither ratings nor attributes to compare.")
        n = asked_number(n, known - (row < known), "others")
        alike = similarities(Factors(layout, self.fit_).thinned(MOST_DRAWS), d, row)[:known]
        alike[row : row + 1] = -np.inf
        best = np.argsort(-alike, kind="stable")[:n]
        return self._frame({side.key: side.ids_at(best), "similarity": alike[best]})

    def _frame(self, columns: Mapping[str, Any]) -> Any:
        """A data frame of the kind that came, with the names that came."""
        names = self.columns or {}
        return as_frame({names.get(name, name): values for name, values in columns.items()}, self.backend_)
