"""`TuckerRecommender`: tables of ratings, users and items in, predictions and recommendations out.

A thin layer: ids become row numbers, attributes become kernels, and the Tucker model with a user and an item mode does
the rest. What a fitted recommender answers is in `tuckergp.recommender.answers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tuckergp.data.frames import backend_of
from tuckergp.data.history import KEYS, History, standard_names
from tuckergp.data.periods import Unit
from tuckergp.data.tables import Table, as_table
from tuckergp.inference import Gibbs
from tuckergp.posterior.moments import MomentsOf
from tuckergp.random import seed_of, stream
from tuckergp.recommender.clicks import with_negatives
from tuckergp.recommender.continuation import check_continuation, continued_seed, last_draws, start_from
from tuckergp.recommender.entities import read_attributes
from tuckergp.recommender.feature_report import FeatureReport
from tuckergp.recommender.fold_in import Folded, fold_in
from tuckergp.recommender.growth import merged_tables
from tuckergp.recommender.layout import SIDES, Layout
from tuckergp.recommender.settings import Settings
from tuckergp.running.control import Callback, Control
from tuckergp.running.fit import Inference, fit_model, ranks_of, seed_for

__all__ = ["TuckerRecommender"]

RUN_ARGUMENTS = ("checkpoint", "checkpoint_minutes", "max_time", "callback", "progress")


class TuckerRecommender(Settings):
    """Predict ratings from ratings and from what is known of users and items.

    Parameters
    ----------
    rank : int
    inference : {"gibbs", "als", "sgd", "vi"} or Gibbs, ALS, SGD, VI
        How the factors are learned: sampling, which has nothing to tune and knows how sure it is, the most probable
        point, or a mean-field approximation of the posterior (``"vi"``). A name stands for that method with its
        settings for ratings.
    likelihood : {"gaussian", "ordinal", "bernoulli"}
        Ordinal: the distinct targets are ordered levels with learned distances; Bernoulli: targets are 0 and 1. Both
        are probit models and need ``"gibbs"``; predictions are means of the distribution over levels.
    core : {"identity", "full", "auto", "superdiagonal", "cp", "pairwise"} or one of tuckergp.cores
        ``"identity"`` is matrix factorisation. ``"superdiagonal"`` (or ``"cp"``): a learned weight a component.
        ``"pairwise"``: an intercept, effects of users and of items (and of contexts) alone, and interactions of every
        two, a factorisation machine. `tuckergp.cores.Random` and `tuckergp.cores.Entries`: entries at random or given
        places. `tuckergp.cores.Learned`: which entries are there is learned, by ``"gibbs"``.
    draws, warmup, chains : int
        Draws of each chain and sweeps before them; for ``"gibbs"``.
    side_information : bool
        Whether to use the attribute tables.
    implicit : bool or "auto"
        Whether users resemble each other by the items they rated, and items by their raters (who rated what, whatever
        the ratings). ``"auto"``: with ``"gibbs"``, which learns how much it matters, up to a million ratings.
    time : {"auto", "week", "month"} or None
        Let users drift: in every week or month of the ratings' ``timestamp`` column a user's tastes and mood may
        differ from what they are on average, by as much as the data say. Needs ``"gibbs"`` and an identity core.
        ``"auto"``: weeks where there is a timestamp column, drift is possible, and two short runs on a part of the
        ratings predict the rest of them better with weeks than without.
    noise : {"auto", "shared", "rows"}
        One noise variance, or a factor for every user and item (some rate erratically, some divide opinions).
        ``"auto"``: rows where the inference can, but shared with ``"bernoulli"``, where factors already say how decided
        a user or an item is.
    columns : dict or None
        The names of ``user_id``, ``item_id``, ``rating`` and ``timestamp`` in your tables, where they differ:
        ``{"user_id": "userId"}``.
    attributes : dict or None
        What to do with some columns of the user and item tables instead of what their values suggest:
        ``{"users": {"zip_code": None, "age": SE(1.0)}, "items": {"title": "text"}}``. None leaves a column out;
        ``"number"``, ``"category"``, ``"bag"`` and ``"text"`` say how to read it; a kernel compares its values (numbers
        are standardised first).
    context : str or sequence of str
        Columns of the ratings that say where or how, such as device, place, hour: a further mode. Needs ``"gibbs"`` and
        a core that is ``"identity"``, ``"superdiagonal"`` or ``"pairwise"``.
    rating_scale : pair of float or None
        The lowest and the highest rating there can be. Ratings outside are refused, predictions stay inside.
    duplicates : {"keep", "mean", "refuse"}
        What to do with several ratings of one item by one user: learn from each, from their mean, or refuse them.
    negatives : int
        For clicks, tables without a rating column under ``likelihood="bernoulli"``: how many pairs without a click,
        drawn at random, to learn from for every click; all there are if that is less. More are better and take longer.
    n_jobs : int or None
        Processes among which to share the chains; None is 1 (unless in a `joblib.parallel_config`), -1 all cores.
        Draws do not depend on it.
    random_state : int, Generator or None

    Attributes
    ----------
    features_ : FeatureReport
        How every column of the user and item tables is used, or why not: print it.
    time_ : {"week", "month"} or None
        The unit of drift that is used.
    layout_ : Layout
        Users, items and circumstances as modes.
    history_ : History
        The ratings learned from, as numbers.
    fit_ : Fit
        Model, parameters and learning curve.
    moments_ : Moments
        ``mean`` and ``std`` of predictions, after ``fit(..., moments_of=...)``.

    Examples
    --------
    >>> from tuckergp.datasets import make_ratings
    >>> data = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)
    >>> rec = TuckerRecommender(rank=4, random_state=0).fit(data.train, data.users, data.items)
    >>> rec.predict(data.test).shape == (len(data.test),)
    True

    A run that was stopped goes on from its checkpoint:

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     short = TuckerRecommender(rank=4, random_state=0).fit(data.train, checkpoint=folder, max_time=0.1)
    ...     rec = TuckerRecommender(rank=4, random_state=0).fit(data.train, checkpoint=folder)
    >>> len(rec.fit_.draws)
    250
    """

    def fit(
        self,
        ratings: Any,
        users: Any = None,
        items: Any = None,
        *,
        checkpoint: str | Path | None = None,
        checkpoint_minutes: float = 5.0,
        max_time: float | None = None,
        callback: Callback | None = None,
        progress: bool | None = None,
        moments_of: Any = None,
        keep_draws: bool = True,
    ) -> Self:
        """Learn from a table of ratings.

        Parameters
        ----------
        ratings : table with columns user_id, item_id, rating, or a path to one
        users, items : table with user_id (item_id) and attributes, or None
            May hold users and items without ratings: they are predicted from their attributes.
        checkpoint : path or None
            A folder that sampling writes what it has to every ``checkpoint_minutes``, and at the end. If it holds a
            run of the same data and settings, that run goes on where it stopped.
        checkpoint_minutes : float
        max_time : float or None
            Seconds of learning after which to stop with what there is.
        callback : callable or None
            Called after every step (sweep, round, epoch) with its `Info`: ``step``, ``chain`` and ``figures``.
        progress : bool or None
            Show a progress line; None shows it when standard error is a terminal.
        moments_of : table with columns user_id and item_id, or None
            Where to keep running means and standard deviations of predictions while sampling: ``moments_``.
        keep_draws : bool
            False keeps the moments alone, so that memory does not grow with the draws; `predict` is then refused.
        """
        inference = self._resolve_inference(ranks_of(self.rank, 2)[0])
        table = self._read_ratings(ratings)
        seed = seed_for(self.random_state, checkpoint)
        history = self._read_history(table, inference)
        sources = zip(self._attribute_tables(users, items), SIDES, KEYS, history.ids, strict=True)
        tables = [read_attributes(source, name, key, ids) for source, name, key, ids in sources]
        unit = self._time_unit(inference, table, users, items, history.clicks, seed)
        if unit is None:
            history = replace(history, moment=history.moment.select(self._context))
        control = Control(checkpoint, checkpoint_minutes, max_time, callback, progress, self.n_jobs)
        self._learn(inference, history, tables, unit, seed, control, (moments_of, keep_draws))
        self.backend_ = backend_of(ratings)
        return self

    def _learn(
        self,
        inference: Inference,
        history: History,
        tables: Sequence[Table | None],
        unit: Unit | None,
        seed: int,
        control: Control,
        moments: tuple[Any, bool],
        last: Folded | None = None,
    ) -> Self:
        """Learn from what was read, from the start or from the last draws of a model with the same rows."""
        codes, y, moment = history.codes, history.rating, history.moment
        if history.clicks:
            sample = with_negatives(history, self.negatives, stream(seed, 1, 2))
            codes, y, moment = (sample.user, sample.item), sample.y, history.moment.take(sample.row)
        layout, design = Layout.fit(
            history,
            tables,
            codes=codes,
            moment=moment,
            choices=self._attribute_choices(),
            implicit=self._uses_implicit(inference, len(history), history.clicks),
            unit=unit,
            context=self._context,
            rng=stream(seed, 1, 1),
        )
        moments_of, keep_draws = moments
        if moments_of is not None:
            control = replace(control, moments_of=MomentsOf(layout.pairs(self._read_pairs(moments_of))))
        gibbs = inference if isinstance(inference, Gibbs) else Gibbs()
        fit = fit_model(
            design,
            y,
            None,
            ranks=ranks_of(self.rank, len(design.modes)),
            core=self.core if last is None else last.fit.draws.model.core,
            inference=inference,
            seed=seed,
            likelihood=self.likelihood,
            control=replace(control, keep_draws=keep_draws),
            start=last and start_from(last.layout, last.fit, layout, design, moment, gibbs, seed),
        )
        self.layout_, self.fit_, self.history_, self.time_ = layout, fit, history, unit
        self.tables_ = tuple(tables)
        self.features_ = FeatureReport(
            {name: side.attributes.columns for name, side in zip(SIDES, layout.sides, strict=True)}
        )
        low, high = self.rating_scale if self.rating_scale is not None else (y.min(), y.max())
        self.rating_range_ = (float(low), float(high))
        self.__dict__.pop("moments_", None)
        if moments_of is not None:
            found = fit.moments()
            self.moments_ = replace(found, mean=np.clip(found.mean, *self.rating_range_))
        return self

    def fold_in(self, ratings: Any, users: Any = None, items: Any = None) -> Self:
        """Take in new ratings, of known or new users, without a new fit.

        In every draw the users concerned are drawn anew from their exact conditional, given all their ratings, old and
        new, and everything else in the draw as it is; a most probable point takes their mean. Items never rated before
        follow, given these users; items that had ratings stay as they are. With such items, and in ordinal and
        Bernoulli models, which have latent utilities to draw as well, the draws come from the last of 20 scans in turn
        over all that is unknown, and are exact in the limit of many. Who rated what is brought up to date for the
        users concerned. New users and items have the noise factor 1, users in weeks of which they had no rating no
        drift. Time grows with the ratings of the users concerned; the draws are copied.

        Parameters
        ----------
        ratings : table with columns user_id, item_id, rating, or a path to one
            The timestamp and context columns may be missing. For clicks, pairs without one are drawn for these users.
        users, items : table with user_id (item_id) and attributes, or None
            Of the users and items concerned, or of new ones. Columns that `fit` did not know are left out here, and
            other ids keep what they had, until `partial_fit`.

        Returns
        -------
        TuckerRecommender
            Itself. After an error it is as it was.

        Examples
        --------
        >>> from tuckergp.datasets import make_ratings
        >>> data = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)
        >>> rec = TuckerRecommender(rank=4, draws=50, random_state=0).fit(data.train, data.users, data.items)
        >>> liked = data.items["item_id"][:3]
        >>> new = {"user_id": ["newcomer"] * 3, "item_id": liked, "rating": [5.0, 5.0, 4.5]}
        >>> average = rec.predict({"user_id": ["newcomer"], "item_id": liked[:1]})
        >>> rec = rec.fold_in(new)
        >>> bool(rec.predict({"user_id": ["newcomer"], "item_id": liked[:1]}) > average)
        True
        """
        check_is_fitted(self)
        table = standard_names(as_table(ratings, "ratings"), self.columns)
        tables = self._attribute_tables(users, items)
        seed = int(stream(seed_of(self.random_state), 4, len(self.history_)).integers(2**63))
        for side in self.layout_.sides:
            side.warn_of_other_types(table)
        found = fold_in(self.layout_, self.fit_, self.history_, table, tables, **self._reading, seed=seed)
        self.tables_ = self._merged(tables)
        self.layout_, self.fit_, self.history_ = found
        self.__dict__.pop("moments_", None)
        low, high = self.rating_range_
        if self.rating_scale is None:
            rating = found.history.rating
            self.rating_range_ = (min(low, float(rating.min())), max(high, float(rating.max())))
        return self

    def partial_fit(
        self,
        ratings: Any,
        users: Any = None,
        items: Any = None,
        *,
        warmup: int = 10,
        checkpoint: str | Path | None = None,
        checkpoint_minutes: float = 5.0,
        max_time: float | None = None,
        callback: Callback | None = None,
        progress: bool | None = None,
        moments_of: Any = None,
        keep_draws: bool = True,
    ) -> Self:
        """Go on learning with more ratings: old and new together, from where the last draw is.

        New ratings are folded into the last draw of every chain, columns are read anew from all rows, and the chains
        go on from there. The draws of before are replaced. Of a model that was never fitted it is `fit`. For
        ``inference="als"`` the last point is the start.

        Parameters
        ----------
        ratings : table with columns user_id, item_id, rating, or a path to one
            New ones alone; may be empty.
        users, items : table with user_id (item_id) and attributes, or None
            New rows, which replace those of the same id.
        warmup : int
            Sweeps before draws are kept again.
        checkpoint, checkpoint_minutes, max_time, callback, progress, moments_of, keep_draws
            As in `fit`.

        Examples
        --------
        >>> from tuckergp.datasets import make_ratings
        >>> data = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)
        >>> rec = TuckerRecommender(rank=2, draws=30, random_state=0).fit(data.train, data.users, data.items)
        >>> new = {"user_id": ["newcomer"] * 3, "item_id": data.items["item_id"][:3], "rating": [5.0, 5.0, 4.5]}
        >>> rec = rec.partial_fit(new)
        >>> "newcomer" in rec.layout_.sides[0].number, len(rec.fit_.history)
        (True, 40)
        """
        control = Control(checkpoint, checkpoint_minutes, max_time, callback, progress, self.n_jobs)
        if not hasattr(self, "fit_"):
            run = {name: getattr(control, name) for name in RUN_ARGUMENTS}
            return self.fit(ratings, users, items, moments_of=moments_of, keep_draws=keep_draws, **run)
        inference = self._resolve_inference(ranks_of(self.rank, 2)[0])
        if isinstance(inference, Gibbs):
            inference = replace(inference, warmup=warmup)
        check_continuation(self.fit_, inference, ranks_of(self.rank, 2)[0], self.likelihood)
        last = Folded(self.layout_, last_draws(self.fit_), self.history_)
        seed = continued_seed(self.random_state, checkpoint, last.fit)
        table = standard_names(as_table(ratings, "ratings"), self.columns)
        tables = self._attribute_tables(users, items)
        if len(table):
            last = fold_in(*last, table, tables, **self._reading, seed=seed)
        return self._learn(
            inference, last.history, self._merged(tables), self.time_, seed, control, (moments_of, keep_draws), last
        )

    @property
    def _reading(self) -> dict[str, Any]:
        """How ratings are read."""
        return {"scale": self.rating_scale, "duplicates": self.duplicates, "negatives": self.negatives}

    def _merged(self, tables: Sequence[Table | None]) -> tuple[Table | None, Table | None]:
        """The attribute tables there are with new rows."""
        merged = [merged_tables(self.tables_[d], tables[d], KEYS[d]) for d in range(2)]
        return merged[0], merged[1]
