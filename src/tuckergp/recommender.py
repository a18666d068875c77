"""`TuckerRecommender`: tables of ratings, users and items in, predictions out.

A thin layer: ids become row numbers, attributes become kernels, and the Tucker model with a user and an item mode does
the rest. Users and items without ratings are predicted from their attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tuckergp.attributes import Attribute, Attributes, join
from tuckergp.design import Design, Mode
from tuckergp.entities import KEYS, Drift, add_who_rated_what, known, read_attributes, read_ratings
from tuckergp.errors import InputError
from tuckergp.inference import ALS, SGD, Gibbs
from tuckergp.inference.control import Callback, Control
from tuckergp.inference.export import as_inference_data, block_names
from tuckergp.inference.fit import (
    Inference,
    LikelihoodName,
    fit_model,
    predict_with,
    probabilities_with,
    ranks_of,
    resolve_inference,
    seed_for,
)
from tuckergp.inference.moments import MomentsOf
from tuckergp.model import CoreSpec, make_core
from tuckergp.periods import Unit, periods
from tuckergp.random import stream
from tuckergp.tables import Table, as_table

__all__ = ["TuckerRecommender"]

Floats = npt.NDArray[np.float64]
LARGEST_IMPLICIT = 1_000_000
TIMESTAMP = "timestamp"


class TuckerRecommender(BaseEstimator):  # type: ignore[misc]
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
        ``"auto"``: weeks where there is a timestamp column and drift is possible.
    noise : {"auto", "shared", "rows"}
        One noise variance, or a factor for every user and item (some rate erratically, some divide opinions).
        ``"auto"``: rows where the inference can.
    n_jobs : int or None
        Processes among which to share the chains; None is 1 (unless in a `joblib.parallel_config`), -1 all cores.
        Draws do not depend on it.
    random_state : int, Generator or None

    Attributes
    ----------
    features_ : dict of str to list of Attribute
        How every column of the user and item tables is used, or why not.
    modes_ : tuple of FittedMode
        Of users, of items, and of moments where there is a ``time``.
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
        ranks = ranks_of(self.rank, 2)
        inference = self._resolve_inference(ranks[0])
        table = as_table(ratings, "ratings")
        unit = self._time_unit(inference, table)
        y, rated, codes = read_ratings(table)
        tables = [
            read_attributes(source, name, key, ids) if self.side_information else None
            for source, name, key, ids in zip((users, items), ("users", "items"), KEYS, rated, strict=True)
        ]
        if self._uses_implicit(inference, len(table)):
            tables = add_who_rated_what(tables, rated, codes)
        attributes = [Attributes.fit(key, side) for key, side in zip(KEYS, tables, strict=True)]
        encoded = [
            kind.encode(join(side, key, ids, "users and items"))
            for kind, side, key, ids in zip(attributes, tables, KEYS, rated, strict=True)
        ]
        modes = [Mode(list(side.columns), kind.kernel(side)) for kind, side in zip(attributes, encoded, strict=True)]
        if unit is not None:
            drift = Drift.of(codes[0], periods(table, TIMESTAMP, unit))
            modes, encoded, codes = [*modes, drift.mode], [*encoded, drift.rows], [*codes, drift.code]
            ranks = [*ranks, ranks[0]]
        seed = seed_for(self.random_state, checkpoint)
        design, self.modes_ = Design.of_entities(modes, encoded, codes, stream(seed, 1, 1))
        self.features_: dict[str, list[Attribute]] = {
            name: list(kind.columns) for name, kind in zip(("users", "items"), attributes, strict=True)
        }
        self.rating_range_ = (float(y.min()), float(y.max()))
        self.time_ = unit
        self._sides = tuple(known(KEYS[d], rated[d], tables[d], attributes[d], self.modes_[d]) for d in range(2))
        self._drift_mode = None if unit is None else self.modes_[2]
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
            ranks=ranks,
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

    def predict(
        self,
        pairs: Any,
        return_std: bool = False,
        quantiles: Sequence[float] | None = None,
        include_noise: bool = True,
        clip: bool = True,
        interval: float | None = None,
    ) -> Any:
        """Predict the rating of every row of ``pairs``.

        Parameters
        ----------
        pairs : table with columns user_id and item_id, or a path to one
            With ``time``, a timestamp column says when; without it, or where it is missing, the user is taken as on
            average. Other columns are ignored; a rating column is never read.
        return_std : bool
            Also return standard deviations; needs ``inference="gibbs"``.
        quantiles : sequence of float or None
            Also return these quantiles, shape (n_pairs, len(quantiles)), instead of standard deviations.
        include_noise : bool
            Standard deviations, quantiles and intervals of a new rating; False for those of its mean.
        clip : bool
            Keep means, quantiles and intervals within the range of the ratings learned from.
        interval : float or None
            Also return an interval that holds a new rating with this probability, shape (n_pairs, 2), instead. Between
            levels of an ordinal model: as near to it as whole levels allow, and about right on average.

        Returns
        -------
        ndarray, shape (n_pairs,), or a pair of it and the standard deviations, quantiles or interval
            An id that is unknown and has no attributes is predicted as the average one.
        """
        check_is_fitted(self)
        design = self._pairs(pairs)
        found = predict_with(self.fit_, design, return_std, quantiles, interval, include_noise)
        low, high = self.rating_range_ if clip else (-np.inf, np.inf)
        if not isinstance(found, tuple):
            return np.clip(found, low, high)
        mean, more = found
        return np.clip(mean, low, high), more if return_std else np.clip(more, low, high)

    def predict_proba(self, pairs: Any) -> Floats:
        """Probability of every rating level (``fit_.levels``) for every row of ``pairs``, shape (n_pairs, K).

        For ordinal and Bernoulli models.
        """
        check_is_fitted(self)
        return probabilities_with(self.fit_, self._pairs(pairs))

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
        names = [*KEYS, "user in period"][: len(self.modes_)]
        return as_inference_data(fit.draws, fit.mean, fit.scale, block_names(self.modes_, names))

    def _pairs(self, pairs: Any) -> Design:
        table = as_table(pairs, "pairs")
        rows = [side.rows(table[key]) for side, key in zip(self._sides, KEYS, strict=True)]
        tables = [side.table for side in self._sides]
        if self._drift_mode is not None and self.time_ is not None:
            when = periods(table, TIMESTAMP, self.time_) if TIMESTAMP in table.columns else None
            drift_table, drift = self._drift_mode.transform(
                Drift.inputs(self._sides[0].numbers(table["user_id"]), when)
            )
            tables, rows = [*tables, drift_table], [*rows, drift]
        return Design(tuple(tables), np.stack(rows, axis=1).astype(np.int32))

    def _uses_implicit(self, inference: Inference, ratings: int) -> bool:
        if self.implicit not in (True, False, "auto"):
            raise InputError(f"implicit must be True, False or 'auto', not {self.implicit!r}.")
        if self.implicit == "auto":
            return isinstance(inference, Gibbs) and ratings <= LARGEST_IMPLICIT
        return bool(self.implicit)

    def _time_unit(self, inference: Inference, table: Table) -> Unit | None:
        """The unit of drift asked for and possible."""
        if self.time not in ("auto", "week", "month", None):
            raise InputError(f"time must be 'week', 'month', 'auto' or None, not {self.time!r}.")
        if self.time is None:
            return None
        possible = isinstance(inference, Gibbs) and self.core == "identity"
        if self.time == "auto":
            return "week" if possible and TIMESTAMP in table.columns else None
        if not possible:
            raise InputError("Drift over time needs inference='gibbs' and core='identity'; else use time=None.")
        table[TIMESTAMP]  # says so if there is none
        return self.time

    def _resolve_inference(self, rank: int) -> Inference:
        # Most probable values overfit under the prior that matches moments: a prior sd of half as much, and a noise
        # as large as the ratings' variance, did best on held-out parts of MovieLens 100K's training data.
        sigma_u = 0.5 * float(make_core(self.core, [rank, rank], stream(0)).default_sigma_u()[0])
        named: dict[Any, Inference] = {
            "als": ALS(noise=1.0, sigma_u=sigma_u),
            "sgd": SGD(noise=1.0, sigma_u=sigma_u),
        }
        return resolve_inference(self, named, noise="rows" if self.noise == "auto" else self.noise)
