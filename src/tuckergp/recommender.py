"""`TuckerRecommender`: tables of ratings, users and items in, predictions and recommendations out.

A thin layer: ids become row numbers, attributes become kernels, and the Tucker model with a user and an item mode does
the rest. What a fitted recommender answers is in `tuckergp.answers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from tuckergp.answers import Answers
from tuckergp.attributes import Attribute
from tuckergp.clicks import with_negatives
from tuckergp.entities import read_attributes
from tuckergp.errors import InputError
from tuckergp.history import KEYS, RATING, TIMESTAMP, Duplicates, History, standard_names
from tuckergp.inference import ALS, SGD, Gibbs
from tuckergp.inference.control import Callback, Control
from tuckergp.inference.fit import Inference, LikelihoodName, fit_model, ranks_of, resolve_inference, seed_for
from tuckergp.inference.moments import MomentsOf
from tuckergp.layout import SIDES, Layout
from tuckergp.model import CoreSpec, make_core
from tuckergp.periods import Unit
from tuckergp.random import stream
from tuckergp.tables import Table, as_table
from tuckergp.trials import drift_helps

__all__ = ["TuckerRecommender"]

LARGEST_IMPLICIT = 1_000_000


class TuckerRecommender(Answers):
    """Predict ratings from ratings and from what is known of users and items.

    Parameters
    ----------
    rank : int
    inference : {"gibbs", "als", "sgd"} or Gibbs, ALS, SGD
        How the factors are learned: sampling, which has nothing to tune and knows how sure it is, or the most probable
        point. A name stands for that method with its settings for ratings.
    likelihood : {"gaussian", "ordinal", "bernoulli"}
        Ordinal: the distinct targets are ordered levels with learned distances; Bernoulli: targets are 0 and 1. Both
        are probit models and need ``"gibbs"``; predictions are means of the distribution over levels.
    core : {"identity", "full", "auto"} or SparseCore
        ``"identity"`` is matrix factorisation.
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
    context : str or sequence of str
        Columns of the ratings that say where or how, such as device, place, hour: a further mode. Needs ``"gibbs"`` and
        an identity core.
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
    features_ : dict of str to list of Attribute
        How every column of the user and item tables is used, or why not.
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

    def __init__(
        self,
        rank: int = 16,
        inference: Literal["gibbs", "als", "sgd"] | Inference = "gibbs",
        likelihood: LikelihoodName = "gaussian",
        core: CoreSpec = "identity",
        draws: int = 250,
        warmup: int = 50,
        chains: int = 1,
        side_information: bool = True,
        implicit: bool | Literal["auto"] = "auto",
        time: Unit | Literal["auto"] | None = "auto",
        noise: Literal["auto", "shared", "rows"] = "auto",
        columns: Mapping[str, str] | None = None,
        context: str | Sequence[str] = (),
        rating_scale: tuple[float, float] | None = None,
        duplicates: Duplicates = "keep",
        negatives: int = 16,
        n_jobs: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.rank = rank
        self.inference = inference
        self.likelihood = likelihood
        self.core = core
        self.draws = draws
        self.warmup = warmup
        self.chains = chains
        self.side_information = side_information
        self.implicit = implicit
        self.time = time
        self.noise = noise
        self.columns = columns
        self.context = context
        self.rating_scale = rating_scale
        self.duplicates = duplicates
        self.negatives = negatives
        self.n_jobs = n_jobs
        self.random_state = random_state

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
        table = standard_names(as_table(ratings, "ratings"), self.columns)
        seed = seed_for(self.random_state, checkpoint)
        clicks = self._are_clicks(table)
        unit = self._time_unit(inference, table, users, items, clicks, seed)
        context = self._context_columns(inference, table)
        moment = [*([] if unit is None else [TIMESTAMP]), *context]
        history = History.read(table, moment, clicks, self.rating_scale, self.duplicates)
        sources = (users, items) if self.side_information else (None, None)
        tables = [
            read_attributes(standard_names(as_table(source, name), self.columns), name, key, ids)
            if source is not None
            else None
            for source, name, key, ids in zip(sources, SIDES, KEYS, history.ids, strict=True)
        ]
        codes, y = history.codes, history.rating
        if clicks:
            sample = with_negatives(history, self.negatives, stream(seed, 1, 2))
            codes, y = (sample.user, sample.item), sample.y
        self.layout_, design = Layout.fit(
            history,
            tables,
            codes=codes,
            moment=history.moment.take(sample.row) if clicks else None,
            implicit=self._uses_implicit(inference, len(history), clicks),
            unit=unit,
            context=context,
            rng=stream(seed, 1, 1),
        )
        self.features_: dict[str, list[Attribute]] = {
            name: list(side.attributes.columns) for name, side in zip(SIDES, self.layout_.sides, strict=True)
        }
        self.history_ = history
        self.tables_ = tuple(tables)
        self.time_ = unit
        self.rating_range_ = self.rating_scale or (float(y.min()), float(y.max()))
        self.__dict__.pop("moments_", None)
        control = Control(
            checkpoint=checkpoint,
            checkpoint_minutes=checkpoint_minutes,
            max_time=max_time,
            callback=callback,
            progress=progress,
            n_jobs=self.n_jobs,
            moments_of=None if moments_of is None else MomentsOf(self._pairs(moments_of)),
            keep_draws=keep_draws,
        )
        self.fit_ = fit_model(
            design,
            y,
            None,
            ranks=ranks_of(self.rank, len(design.modes)),
            core=self.core,
            inference=inference,
            seed=seed,
            likelihood=self.likelihood,
            control=control,
        )
        if moments_of is not None:
            self.moments_ = self.fit_.moments()
            self.moments_ = replace(self.moments_, mean=np.clip(self.moments_.mean, *self.rating_range_))
        return self

    def _are_clicks(self, table: Table) -> bool:
        if RATING in table.columns:
            return False
        if self.likelihood != "bernoulli":
            there = ", ".join(map(str, table.columns)) or "none"
            raise InputError(
                f"{table.name} has no column {(self.columns or {}).get(RATING, RATING)!r}; its columns are {there}. "
                f"For clicks, which have no ratings, use likelihood='bernoulli'."
            )
        return True

    def _uses_implicit(self, inference: Inference, ratings: int, clicks: bool) -> bool:
        if self.implicit not in (True, False, "auto"):
            raise InputError(f"implicit must be True, False or 'auto', not {self.implicit!r}.")
        if self.implicit == "auto":
            return isinstance(inference, Gibbs) and ratings <= LARGEST_IMPLICIT and not clicks
        if self.implicit and clicks:
            raise InputError("Who clicked what is all there is to learn from clicks; use implicit=False.")
        return bool(self.implicit)

    def _time_unit(
        self, inference: Inference, table: Table, users: Any, items: Any, clicks: bool, seed: int
    ) -> Unit | None:
        """The unit of drift asked for, or found to help."""
        if self.time not in ("auto", "week", "month", None):
            raise InputError(f"time must be 'week', 'month', 'auto' or None, not {self.time!r}.")
        if self.time is None:
            return None
        possible = isinstance(inference, Gibbs) and self.core == "identity"
        if self.time == "auto":
            tried = possible and not clicks and TIMESTAMP in table.columns
            return "week" if tried and drift_helps(self, table, users, items, seed) else None
        if not possible:
            raise InputError("Drift over time needs inference='gibbs' and core='identity'; else use time=None.")
        table[TIMESTAMP]  # says so if there is none
        return self.time

    def _context_columns(self, inference: Inference, table: Table) -> list[str]:
        names = [self.context] if isinstance(self.context, str) else list(self.context)
        if names and not (isinstance(inference, Gibbs) and self.core == "identity"):
            raise InputError("Context needs inference='gibbs' and core='identity'; else use context=().")
        for name in names:
            table[name]  # says so if there is none
        return names

    def _resolve_inference(self, rank: int) -> Inference:
        # Most probable values overfit under the prior that matches moments: a prior sd of half as much, and a noise
        # as large as the ratings' variance, did best on held-out parts of MovieLens 100K's training data.
        sigma_u = 0.5 * float(make_core(self.core, [rank, rank], stream(0)).default_sigma_u()[0])
        named: dict[Any, Inference] = {
            "als": ALS(noise=1.0, sigma_u=sigma_u),
            "sgd": SGD(noise=1.0, sigma_u=sigma_u),
        }
        noise = "shared" if self.likelihood == "bernoulli" else "rows"
        return resolve_inference(self, named, noise=noise if self.noise == "auto" else self.noise)
