"""`TuckerRecommender`: tables of ratings, users and items in, predictions out.

A thin layer: ids become row numbers, attributes become kernels, and the Tucker model with a user and an item mode does
the rest. Users and items without ratings are predicted from their attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tuckergp.attributes import WHO_RATED_WHAT, Attribute, Attributes, check_keys, join
from tuckergp.design import Design, FittedMode, Mode, ModeTable
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
from tuckergp.kernels import Identity
from tuckergp.model import CoreSpec, make_core
from tuckergp.periods import UNKNOWN, Unit, periods
from tuckergp.random import stream
from tuckergp.tables import Table, as_table, distinct_rows, is_missing

__all__ = ["TuckerRecommender"]

Floats = npt.NDArray[np.float64]
KEYS = ("user_id", "item_id")
LARGEST_IMPLICIT = 1_000_000
TIMESTAMP = "timestamp"

# Prior variance of the drift of a user in a period, relative to the user's average, and of what all share in a period.
DRIFT_VARIANCE = 0.04
SHARED_DRIFT = 0.2


@dataclass(frozen=True)
class Moments:
    """Users in periods, the third mode: f = sum_k u_k v_k t_k, where t is constant but for the user's drift."""

    mode: Mode
    rows: Table
    code: npt.NDArray[np.intp]

    @classmethod
    def of(cls, user: npt.NDArray[np.intp], period: npt.NDArray[np.int64]) -> Self:
        """Every user in every period of the ratings."""
        inputs = moment_inputs(user, period)
        first, code = distinct_rows(inputs, list(inputs.columns))
        kernel = Identity() + SHARED_DRIFT * Identity("period")
        return cls(Mode(list(inputs.columns), DRIFT_VARIANCE * kernel), inputs.take(first), code)


def moment_inputs(user: npt.NDArray[np.intp], period: npt.NDArray[np.int64] | None) -> Table:
    """Numbers of users and periods, a row a rating; None for times that are not known."""
    when = np.full(len(user), UNKNOWN) if period is None else period
    return Table({"user": user.astype(np.int64), "period": when}, "ratings", len(user))


@dataclass(frozen=True)
class _Side:
    """Users or items: the ids known (rated, or with attributes), their features, and an unknown id's last."""

    number: dict[Any, int]
    table: ModeTable
    code: npt.NDArray[np.intp]

    def numbers(self, ids: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """The number of every id; the last one for those unknown."""
        unknown = len(self.number)
        return np.fromiter((self.number.get(value, unknown) for value in ids.tolist()), dtype=np.intp, count=len(ids))

    def rows(self, ids: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
        """The row of the table of every id."""
        return self.code[self.numbers(ids)]


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
        y, rated, codes = _read_ratings(table)
        tables = [
            _read_attributes(source, name, key, ids) if self.side_information else None
            for source, name, key, ids in zip((users, items), ("users", "items"), KEYS, rated, strict=True)
        ]
        if self._uses_implicit(inference, len(table)):
            tables = _add_who_rated_what(tables, rated, codes)
        attributes = [Attributes.fit(key, side) for key, side in zip(KEYS, tables, strict=True)]
        encoded = [
            kind.encode(join(side, key, ids, "users and items"))
            for kind, side, key, ids in zip(attributes, tables, KEYS, rated, strict=True)
        ]
        modes = [Mode(list(side.columns), kind.kernel(side)) for kind, side in zip(attributes, encoded, strict=True)]
        if unit is not None:
            moments = Moments.of(codes[0], periods(table, TIMESTAMP, unit))
            modes, encoded, codes = [*modes, moments.mode], [*encoded, moments.rows], [*codes, moments.code]
            ranks = [*ranks, ranks[0]]
        seed = seed_for(self.random_state, checkpoint)
        design, self.modes_ = Design.of_entities(modes, encoded, codes, stream(seed, 1, 1))
        self.features_: dict[str, list[Attribute]] = {
            name: list(kind.columns) for name, kind in zip(("users", "items"), attributes, strict=True)
        }
        self.rating_range_ = (float(y.min()), float(y.max()))
        self.time_ = unit
        self._sides = tuple(_known(KEYS[d], rated[d], tables[d], attributes[d], self.modes_[d]) for d in range(2))
        self._moment_mode = None if unit is None else self.modes_[2]
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
            Standard deviations and quantiles of a new rating; False for those of its mean.
        clip : bool
            Keep means and quantiles within the range of the ratings learned from.

        Returns
        -------
        ndarray, shape (n_pairs,), or a pair of it and the standard deviations or quantiles
            An id that is unknown and has no attributes is predicted as the average one.
        """
        check_is_fitted(self)
        design = self._pairs(pairs)
        found = predict_with(self.fit_, design, return_std, quantiles, include_noise)
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
        names = [*KEYS, "moment"][: len(self.modes_)]
        return as_inference_data(fit.draws, fit.mean, fit.scale, block_names(self.modes_, names))

    def _pairs(self, pairs: Any) -> Design:
        table = as_table(pairs, "pairs")
        rows = [side.rows(table[key]) for side, key in zip(self._sides, KEYS, strict=True)]
        tables = [side.table for side in self._sides]
        if self._moment_mode is not None and self.time_ is not None:
            when = periods(table, TIMESTAMP, self.time_) if TIMESTAMP in table.columns else None
            moment_table, moment = self._moment_mode.transform(
                moment_inputs(self._sides[0].numbers(table["user_id"]), when)
            )
            tables, rows = [*tables, moment_table], [*rows, moment]
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


def _known(key: str, rated: list[Any], table: Table | None, kind: Attributes, mode: FittedMode) -> _Side:
    """The features of all ids known: rated ones first, then those with attributes alone, then one that is unknown."""
    known = dict.fromkeys(rated)
    if table is not None:
        known.update(dict.fromkeys(table[key]))
    mode_table, code = mode.transform(kind.encode(join(table, key, [*known, _Unknown()], key)))
    return _Side({value: number for number, value in enumerate(known)}, mode_table, code)


def _add_who_rated_what(
    tables: list[Table | None], rated: list[list[Any]], codes: list[npt.NDArray[np.intp]]
) -> list[Table | None]:
    """Give users the set of items they rated, and items the set of their raters, as one more attribute."""
    out: list[Table | None] = []
    for d, table in enumerate(tables):
        order = np.argsort(codes[d], kind="stable")
        ends = np.cumsum(np.bincount(codes[d], minlength=len(rated[d])))
        sets = dict(zip(rated[d], np.split(codes[1 - d][order], ends[:-1]), strict=True))
        ids = list(rated[d]) if table is None else [*table[KEYS[d]], *(set(rated[d]) - set(table[KEYS[d]]))]
        column = np.empty(len(ids), dtype=object)
        column[:] = [tuple(sets.get(value, ())) for value in ids]
        joined = join(table, KEYS[d], ids, ("users", "items")[d])
        out.append(Table({**joined.columns, WHO_RATED_WHAT: column}, joined.name, len(ids)))
    return out


class _Unknown:
    """An id that equals no other."""


def _read_ratings(table: Table) -> tuple[Floats, list[list[Any]], list[npt.NDArray[np.intp]]]:
    """Ratings as numbers, and for users and items the distinct ids and their number in every row."""
    if len(table) == 0:
        raise InputError(f"{table.name} is empty; there is nothing to learn from.")
    ids, codes = [], []
    for key in KEYS:
        values = table[key]
        missing = is_missing(values)
        if missing.any():
            raise InputError(f"{table.name} column {key!r} is missing at {table.row_label(int(np.argmax(missing)))}.")
        number: dict[Any, int] = {}
        codes.append(np.array([number.setdefault(value, len(number)) for value in values.tolist()], dtype=np.intp))
        ids.append(list(number))
    return table.numeric("rating"), ids, codes


def _read_attributes(source: Any, name: str, key: str, rated: list[Any]) -> Table | None:
    if source is None:
        return None
    table = as_table(source, name)
    check_keys(table, key)
    table = Table({**table.columns, key: _objects(table[key])}, table.name, len(table), table.first_line)
    known = set(table[key])
    if not any(value in known for value in rated):
        raise InputError(
            f"No {key} of the ratings is in {table.name}: ids are like {rated[0]!r} there and "
            f"{next(iter(known), None)!r} here. Give both the same type and spelling."
        )
    return table


def _objects(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Python objects, so that 3 and numpy's 3 are one id."""
    out = np.empty(len(values), dtype=object)
    out[:] = values.tolist()
    return out
