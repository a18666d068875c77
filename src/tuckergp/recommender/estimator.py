"""`TuckerRecommender`: predictions and recommendations from tables of ratings, users and items.

The class holds parameters and fitted attributes. Its methods leave everything else to `learning` and `updating`, which
make a `FittedRecommender` from tables, and to `answering`, which uses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt

from tuckergp.checks import check, one_of
from tuckergp.data.frames import Frame
from tuckergp.data.history import History
from tuckergp.data.names import named_table
from tuckergp.data.pairs import Duplicates
from tuckergp.data.periods import Unit
from tuckergp.errors import InputError
from tuckergp.likelihoods.all_pairs import AllPairs
from tuckergp.model.cores import CoreSpec
from tuckergp.params import Estimator, check_fitted
from tuckergp.posterior.export import as_inference_data, block_names, watched_of
from tuckergp.posterior.fitted import Fit
from tuckergp.posterior.moments import Moments
from tuckergp.random import stream
from tuckergp.recommender import answering
from tuckergp.recommender.answering import By, OnUnknown
from tuckergp.recommender.consistency import check_parts
from tuckergp.recommender.decisions import Choice, shown_kernel
from tuckergp.recommender.drift_trial import drift_helps
from tuckergp.recommender.explain import feature_importance
from tuckergp.recommender.explanation import Explanation, Importance
from tuckergp.recommender.factors import Factors
from tuckergp.recommender.feature_report import FeatureReport
from tuckergp.recommender.fitted import FittedRecommender
from tuckergp.recommender.forgetting import without_ratings, without_user
from tuckergp.recommender.growth import compacted
from tuckergp.recommender.layout import Layout
from tuckergp.recommender.learning import Run, learn
from tuckergp.recommender.neighbours import Embeddings, embeddings
from tuckergp.recommender.out_of_core import learn_in_files
from tuckergp.recommender.questions import attributes_of, known_type, users_of
from tuckergp.recommender.reading import AttributeTables, Given
from tuckergp.recommender.serving import Strategy
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.recommender.together import How
from tuckergp.recommender.updating import go_on, with_ratings
from tuckergp.recommender.value import choice_settings
from tuckergp.running.checkpoint import delete_checkpoint
from tuckergp.running.control import Callback, Control, kept
from tuckergp.running.fit import Inference
from tuckergp.running.threads import one_at_a_time
from tuckergp.store.journal import forget_in
from tuckergp.store.model_file import Storable, check_savable

__all__ = ["TuckerRecommender"]

Floats = npt.NDArray[np.float64]

# What a fitted recommender consists of; the attributes have an underscore behind these names.
LEARNED = ("layout", "fit", "history", "time", "tables", "rating_range", "backend")


class TuckerRecommender(Storable, Estimator):
    """Recommender that learns from ratings and from attributes of users and items.

    Parameters
    ----------
    rank : int
    inference : {"gibbs", "als", "sgd", "vi"} or Gibbs, ALS, SGD, VI
        How the factors are learned: Gibbs sampling, which needs no tuning and gives uncertainty, a MAP estimate, or a
        mean-field approximation of the posterior (``"vi"``). A name stands for that method with its settings for
        ratings; ``"als"`` and ``"sgd"`` first find the scale of their prior by three to six trials on held-out training
        ratings.
    likelihood : {"auto", "gaussian", "student", "ordinal", "bernoulli", "negative_binomial", "clicks"} or Clicks
        ``"auto"``: Gaussian noise for ratings, and clicks for tables without a rating column. Clicks: every row is a
        choice (a click, a play, a purchase), every other pair of a user and an item a zero of less weight; the weights
        are chosen on a held-out tenth of the choices, a `tuckergp.likelihoods.Clicks` insists on some. Student: noise
        with heavy tails, for ratings with outliers. Ordinal: the distinct ratings are ordered levels with learned
        distances; Bernoulli: ratings are 0 and 1. Both are probit models, and predictions are means of the distribution
        over levels. Negative binomial: ratings are counts, such as plays. Clicks are learned by ``"gibbs"`` or
        ``"als"``; others but the Gaussian need ``"gibbs"``.
    core : {"identity", "full", "auto", "superdiagonal", "cp", "pairwise"} or one of tuckergp.cores
        ``"identity"`` is matrix factorisation. ``"superdiagonal"`` (or ``"cp"``): one learned weight per component.
        ``"pairwise"``: a factorisation machine, with an intercept, main effects of users, items and contexts, and the
        interactions of each two of them. `tuckergp.cores.Random` and `tuckergp.cores.Entries`: entries at random or
        given places. `tuckergp.cores.Learned`: it is learned which entries are non-zero, by ``"gibbs"``.
    draws, warmup, chains : int
        Draws per chain, sweeps before them, and chains; for ``"gibbs"``.
    side_information : bool
        Whether to use the attribute tables.
    implicit : bool or "auto"
        Whether to learn from co-rating: users who rated the same items are similar, and so are items rated by the same
        users, whatever the ratings. ``"auto"``: with ``"gibbs"``, which learns how much it matters, up to a million
        ratings.
    time : {"auto", "week", "month"} or None
        Let users drift: in each week or month of the ratings' ``timestamp`` column the tastes and mood of a user may
        differ from the user's average, by an amount that is learned. Needs ``"gibbs"`` and an identity core.
        ``"auto"``: weeks if there is a timestamp column, drift is possible, and short runs on a part of the ratings
        predict held-out ratings better with weeks than without. Times that cannot be read are then left out, with a
        warning.
    noise : {"auto", "shared", "rows"}
        One noise variance, or a factor for each user and item (some rate erratically, some divide opinions).
        ``"auto"``: rows where the inference and the likelihood support it, except for ``"bernoulli"``, where the
        factors have this role.
    columns : dict or None
        The names of ``user_id``, ``item_id``, ``rating``, ``timestamp`` and ``count`` in your tables:
        ``{"user_id": "kunde"}``. Common names, such as userId, movieId, isbn, stars and date, are found without it.
    attributes : dict or None
        How to use some columns of the user and item tables, instead of what their values suggest:
        ``{"users": {"zip_code": None, "age": SE(1.0)}, "items": {"title": "text"}}``. None leaves a column out;
        ``"number"``, ``"category"``, ``"bag"``, ``"text"`` and ``"vector"`` (a list of floats in each cell, such as an
        embedding) say how to read it; a kernel compares its values (numbers are standardised first).
    context : str or sequence of str
        Columns of the ratings that say where or how, such as device, place, hour: a further mode. Needs ``"gibbs"`` and
        a core that is ``"identity"``, ``"superdiagonal"`` or ``"pairwise"``.
    rating_scale : pair of float or None
        The lowest and the highest possible rating. Ratings outside are refused, predictions stay inside.
    duplicates : {"keep", "mean", "last", "refuse"}
        What to do with several ratings of one item by one user: learn from each, from their mean, from the last, or
        refuse them. Counts of clicks are added, unless the last is wanted.
    negatives : int
        Negative sampling for clicks (tables without a rating column, with ``likelihood="bernoulli"``): how many random
        pairs without a click to learn from per click, at most as many as there are. More are better and take longer.
    objective : {"auto", "value", "rating"}
        What `recommend` sorts by: ``"value"`` fits a model of choices (every rating is one, whatever its value) beside
        that of ratings, and sorts by the probability of a choice times the square of the expected rating, between the
        lowest and the highest one. ``"auto"``: value from 10,000 ratings on.
    n_jobs : int or None
        Processes that run the chains; None is 1 (unless in a `joblib.parallel_config`), -1 all cores. Draws do not
        depend on it.
    random_state : int, Generator or None

    Attributes
    ----------
    features_ : FeatureReport
        How each column of the user and item tables is used, or why not: print it.
    time_ : {"week", "month"} or None
        The unit of drift that is used.
    columns_ : dict
        The columns that were taken for ``user_id``, ``item_id``, ``rating`` and ``timestamp``, where they have other
        names.
    layout_ : Layout
        Users, items and circumstances as modes.
    history_ : History
        The ratings learned from, as numbers.
    fit_ : Fit
        Model, parameters and learning curve.
    choice_ : TuckerRecommender
        The model of choices beside that of ratings, where there is one (``objective``).
    ranks_by_ : {"value", "rating", "choice"}
        What `recommend` sorts by where ``by`` does not say.
    moments_ : Moments
        Posterior mean and standard deviation of predictions, after ``fit(..., moments_of=...)``.

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
    ...     rec = TuckerRecommender(rank=2, draws=40, random_state=0)
    ...     short = rec.fit(data.train, checkpoint=folder, max_time=0.1)
    ...     rec = rec.fit(data.train, checkpoint=folder)
    >>> len(rec.fit_.draws)
    40
    """

    layout_: Layout
    fit_: Fit
    history_: History
    time_: Unit | None
    tables_: AttributeTables
    rating_range_: tuple[float, float]
    backend_: str
    columns_: dict[str, str]
    features_: FeatureReport
    moments_: Moments

    def __init__(
        self,
        rank: int = 16,
        inference: str | Inference = "gibbs",
        likelihood: str | AllPairs = "auto",
        core: CoreSpec = "identity",
        draws: int = 250,
        warmup: int = 50,
        chains: int = 1,
        side_information: bool = True,
        implicit: bool | Literal["auto"] = "auto",
        time: Unit | Literal["auto"] | None = "auto",
        noise: Literal["auto", "shared", "rows"] = "auto",
        columns: Mapping[str, str] | None = None,
        attributes: Mapping[str, Mapping[str, Choice]] | None = None,
        context: str | Sequence[str] = (),
        rating_scale: tuple[float, float] | None = None,
        duplicates: Duplicates = "keep",
        negatives: int = 16,
        objective: Literal["auto", "value", "rating"] = "auto",
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
        self.attributes = attributes
        self.context = context
        self.rating_scale = rating_scale
        self.duplicates = duplicates
        self.negatives = negatives
        self.objective = objective
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
        keep: int | None = None,
        keep_draws: bool = True,
        scratch: str | Path | None = None,
    ) -> Self:
        """Learn from a table of ratings.

        Parameters
        ----------
        ratings : table with columns user_id, item_id, rating, or a path to one
        users, items : table with user_id (item_id) and attributes, or None
            May hold users and items without ratings (cold start): they are predicted from their attributes.
        checkpoint : path or None
            A folder to which sampling saves its chains every ``checkpoint_minutes`` and at the end. If it holds a run
            with the same data and settings, that run is continued.
        checkpoint_minutes : float
        max_time : float or None
            Seconds of learning after which to stop with the result so far.
        callback : callable or None
            Called after every step (sweep, round, epoch) with an object that has ``step``, ``chain`` and ``figures``.
        progress : bool or None
            Show a progress line; None shows it when standard error is a terminal.
        moments_of : table with columns user_id and item_id, or None
            Pairs for which to compute posterior means and standard deviations while sampling, in ``moments_``.
        keep : int or None
            How many draws to keep, evenly spread, as many of each chain (rounded up); None keeps all. Fewer take less
            memory and smaller files; all of them still count for convergence and moments. 0 keeps only the moments,
            and `predict` is then refused. Moments of clicks are those of the kept draws, which may not be 0.
        keep_draws : bool
            False means ``keep=0``.
        scratch : path or None
            A folder for files that the ratings, given as the path of a Parquet file, are learned from where they are
            larger than memory. Gaussian ratings alone, by ``"gibbs"`` or an ``ALS`` object; ``"auto"`` means without
            co-rating, drift and a model of choices.
        """
        settings = RecommenderSettings.of(self)
        control = Control(checkpoint, checkpoint_minutes, max_time, callback, progress, self.n_jobs)
        given, run = Given(ratings, users, items), Run(control, moments_of, kept(keep, keep_draws))
        if scratch is not None:
            return self._keep(learn_in_files(settings, given, run, scratch))
        return self._keep(learn(settings, given, run, drift_helps))

    def fold_in(
        self, ratings: Any, users: Any = None, items: Any = None, *, duplicates: Duplicates | None = None
    ) -> Self:
        """Add new ratings, of known or new users, without a new fit.

        In each draw the users of the new ratings are drawn again from their exact conditional, given all their old and
        new ratings and everything else in the draw; a MAP estimate takes the conditional mean. Items without
        ratings so far follow, given these users; items that had ratings stay unchanged. With such items, and in ordinal
        and Bernoulli models, which have latent utilities to draw as well, the result is the last of 20 Gibbs scans,
        which is exact in the limit of many. Co-rating is updated for these users, and their
        noise factors are drawn with them; in weeks without an earlier rating, users do not drift. Time grows with the
        number of ratings of these users and the number of draws, not with the number of users.

        Parameters
        ----------
        ratings : table with columns user_id, item_id, rating, or a path to one
            The timestamp and context columns may be missing. For Bernoulli clicks, negative pairs are sampled for these
            users.
        users, items : table with user_id (item_id) and attributes, or None
            Attributes of these users and items, or of new ones. What the table has no column for stays as it was.
            Columns that `fit` did not know are ignored, and other ids keep their attributes, until `partial_fit`.
            Numbers more than ten times the width of the training range away from it are refused.
        duplicates : {"keep", "mean", "last", "refuse"} or None
            What to do with a new rating of an item that the user rated before: ``"last"`` takes it in place of the
            earlier one. None is the estimator's own choice.

        Returns
        -------
        TuckerRecommender
            Itself. After an error it is unchanged.

        Notes
        -----
        Other threads may go on asking meanwhile: each answer is from the model before or after, never a mixture. Calls
        of several threads wait for each other.

        Examples
        --------
        >>> from tuckergp.datasets import make_ratings
        >>> data = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)
        >>> rec = TuckerRecommender(rank=2, draws=30, random_state=0).fit(data.train, data.users, data.items)
        >>> liked = data.items["item_id"][:3]
        >>> new = {"user_id": ["newcomer"] * 3, "item_id": liked, "rating": [5.0, 5.0, 4.5]}
        >>> average = rec.predict({"user_id": ["newcomer"], "item_id": liked[:1]})
        >>> rec = rec.fold_in(new)
        >>> bool(rec.predict({"user_id": ["newcomer"], "item_id": liked[:1]}) > average)
        True
        """
        with one_at_a_time(self):
            settings = RecommenderSettings.of(self).with_duplicates(duplicates)
            return self._keep(with_ratings(self._fitted, settings, Given(ratings, users, items)))

    def forget(self, user: Any, checkpoint: str | Path | None = None, journal: str | Path | None = None) -> Self:
        """Forget a person: id, ratings, attributes and vectors are removed, and files saved from now on hold none.

        Answers for others stay as they are. What the ratings of this person taught the model about items is not
        undone; a new fit without them does that. A user whom neither the model nor the journal knows is refused.

        Parameters
        ----------
        user : id
        checkpoint : path or None
            The folder of a checkpoint of this model, which is deleted: its files hold a vector of each user.
        journal : path or None
            The journal of a server of this model, in which the ratings of the user are overwritten, and a line is
            added that lets running servers, and restarted ones, forget the user too.

        Examples
        --------
        >>> from tuckergp.datasets import make_ratings
        >>> data = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)
        >>> rec = TuckerRecommender(rank=2, draws=20, random_state=0).fit(data.train, data.users, data.items)
        >>> rec = rec.forget("u0001")
        >>> "u0001" in rec.layout_.sides[0].number
        False
        """
        with one_at_a_time(self):
            fitted = self._fitted
            (user,) = known_type([user], fitted.layout.sides[0])
            known = user in fitted.layout.sides[0].number
            erased = journal is not None and forget_in(journal, user, always=known)
            if not known and not erased:
                raise InputError(f"The model knows no user {user!r}; there is nothing to forget.")
            if checkpoint is not None:
                delete_checkpoint(checkpoint)
            return self._keep(without_user(fitted, user)) if known else self

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
        keep: int | None = None,
        keep_draws: bool = True,
        duplicates: Duplicates | None = None,
    ) -> Self:
        """Continue learning from old and new ratings together, starting from the last draws.

        New ratings are folded into the last draw of each chain, columns are read again from all rows, and the chains
        are continued. The earlier draws are replaced. For a model that was never fitted, this is `fit`. With
        ``inference="als"`` the last point is the start.

        Parameters
        ----------
        ratings : table with columns user_id, item_id, rating, or a path to one
            Only the new ones; may be empty.
        users, items : table with user_id (item_id) and attributes, or None
            New rows, which replace those of the same id in the columns that the table has.
        warmup : int
            Sweeps before draws are kept again.
        checkpoint, checkpoint_minutes, max_time, callback, progress, moments_of, keep, keep_draws
            As in `fit`.
        duplicates : {"keep", "mean", "last", "refuse"} or None
            As in `fold_in`: with ``"last"`` ratings that were learned from before may be among the new ones.

        Examples
        --------
        >>> from tuckergp.datasets import make_ratings
        >>> data = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)
        >>> rec = TuckerRecommender(rank=2, draws=30, random_state=0).fit(data.train, data.users, data.items)
        >>> new = {"user_id": ["newcomer"] * 3, "item_id": data.items["item_id"][:3], "rating": [5.0, 5.0, 4.5]}
        >>> rec = rec.partial_fit(new)
        >>> "newcomer" in rec.layout_.sides[0].number, len(rec.fit_.steps)
        (True, 40)
        """
        settings = RecommenderSettings.of(self).with_duplicates(duplicates)
        control = Control(checkpoint, checkpoint_minutes, max_time, callback, progress, self.n_jobs)
        given, run = Given(ratings, users, items), Run(control, moments_of, kept(keep, keep_draws))
        if not hasattr(self, "fit_"):
            return self._keep(learn(settings, given, run, drift_helps))
        return self._keep(go_on(self._fitted, settings, given, run, warmup))

    @overload
    def predict(
        self, pairs: Any, *, include_noise: bool = ..., clip: bool = ..., on_unknown: OnUnknown = ...
    ) -> Floats: ...

    @overload
    def predict(
        self,
        pairs: Any,
        return_std: Literal[True],
        *,
        include_noise: bool = ...,
        clip: bool = ...,
        on_unknown: OnUnknown = ...,
    ) -> tuple[Floats, Floats]: ...

    @overload
    def predict(
        self,
        pairs: Any,
        return_std: bool = ...,
        quantiles: Sequence[float] | None = ...,
        include_noise: bool = ...,
        clip: bool = ...,
        interval: float | None = ...,
        on_unknown: OnUnknown = ...,
    ) -> Any: ...

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
        """Predict the rating of each row of ``pairs``.

        Parameters
        ----------
        pairs : table with columns user_id and item_id, or a path to one
            With ``time``, a timestamp column says when; without it, or where it is missing, the user's average is used.
            The same holds for context columns. Other columns are ignored; a rating column is never read.
        return_std : bool
            Also return standard deviations; needs ``inference="gibbs"``.
        quantiles : sequence of float or None
            Also return these quantiles, shape (n_pairs, len(quantiles)).
        include_noise : bool
            Standard deviations, quantiles and intervals of a new rating; False for those of its mean.
        clip : bool
            Keep means, quantiles and intervals within the range of the training ratings (for counts, from 0 on), or
            the ``rating_scale``.
        interval : float or None
            Also return an interval that holds a new rating with this probability, shape (n_pairs, 2). For levels, as
            close to it as whole levels allow, and of three or more about right on average.
        on_unknown : {"predict", "nan", "raise"}
            What to do with ids that have neither ratings nor attributes: predict the average, return NaN, or raise an
            error.

        Returns
        -------
        ndarray, shape (n_pairs,), or a tuple of it and what else was asked for
            Standard deviations first, then quantiles, then the interval.
        """
        return answering.predict(self._fitted, pairs, return_std, quantiles, include_noise, clip, interval, on_unknown)

    def predict_proba(self, pairs: Any) -> Floats:
        """Probability of each rating level (``fit_.levels``) for each row of ``pairs``, shape (n_pairs, K).

        For ordinal and Bernoulli models.
        """
        return answering.predict_proba(self._fitted, pairs)

    def log_density(self, ratings: Any) -> Floats:
        """Log predictive density (of levels and counts: probability) of every rating of a table, shape (n_ratings,).

        That of the mixture over all draws. In a Gaussian model the ``nll`` of `tuckergp.evaluate` takes the one normal
        with the same mean and variance instead, which has less noise for newcomers.
        """
        return answering.log_density(self._fitted, ratings)

    def crps(self, ratings: Any) -> Floats:
        """Continuous ranked probability score of every rating of a table, shape (n_ratings,); smaller is better.

        That of the mixture over all draws, in the units of the ratings; see `log_density` for Gaussian models.
        """
        return answering.crps(self._fitted, ratings)

    def score(self, ratings: Any) -> float:
        """R^2 of the predictions of a table of ratings: the share of their variance that is predicted, at most 1."""
        return answering.score(self._fitted, ratings)

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
        titles: str | None = None,
        by: By | None = None,
        where: Mapping[str, Any] | None = None,
        min_ratings: int = 0,
        diversity: float = 0.0,
        boosts: Mapping[Any, float] | None = None,
    ) -> Frame:
        """Recommend the best items for each user.

        Parameters
        ----------
        users : id, sequence of ids, table, or None
            A table has a column user_id, and may have timestamp and context columns: when and where to recommend for.
            It may also have attributes, which are used for new users. None: all users with ratings, or with ``ratings``
            those who have some there.
        n : int
            Items per user; fewer where fewer are left.
        exclude_seen : bool
            Leave out the items that the user has rated.
        items : sequence of ids, table with a column item_id, or None
            Recommend among these only.
        exclude : sequence of ids, table with a column item_id, or None
            Never recommend these.
        strategy : {"mean", "ucb", "thompson"}
            What to sort by. ``"mean"``: the posterior mean of the rating. ``"ucb"``: that plus ``kappa`` standard
            deviations, which gives new items a chance. ``"thompson"``: the rating in one posterior draw per user, which
            explores more where less is known. The last two need ``inference="gibbs"``.
        kappa : float
            For ``"ucb"`` alone.
        random_state : int, Generator or None
            For ``"thompson"``.
        ratings : table of ratings, or None
            New ratings, of known or new users, to use for this call only; see `fold_in`.
        titles : str or None
            A column of the item table to show beside the ids, such as ``"title"``.
        by : {"value", "rating", "choice"} or None
            What makes an item good: the probability that the user chooses it times how much the user would then like
            it, the expected rating, or the probability of a choice alone. None: by value where a model of choices was
            fitted beside that of ratings (see ``objective``), else by what the model is of.
        where : dict or None
            Conditions on columns of the item table, all of which must hold: ``{"genre": "Comedy", "year": (1980,
            1999)}``. A value, or any of a list of values; where cells hold several values, one of them. A tuple is a
            range of numbers or dates with both ends, None for an open end; the text ``"1999"`` or ``"1999-12-31"`` is
            that whole year or day. Where no item is left, the list is empty, with a warning.
        min_ratings : int
            Recommend only items with at least so many ratings, or choices, those folded in included.
        diversity : float
            From 0 (the best items) to 1: how much less an item counts the more similar it is to one before it in the
            list. Of the 10 n best items, the next one has the largest (1 - diversity) times its standardised score
            minus diversity times its largest similarity: the correlation of two items' expected ratings by this user
            over the draws, or the cosine of their factors for a MAP estimate.
        boosts : dict or None
            What to add to the scores of some items, ``{"item 7": 0.5, "item 9": -1.0}``, in the units of
            the score: those of ratings in lists by rating, from 0 to 1 in lists by choice. Items that the model
            does not know are left out.

        Returns
        -------
        data frame with columns user_id, item_id, score, std, rank; by value also rating and choice
            From the same library as the ratings' table. ``score`` is what items are sorted by, unless there is
            ``diversity``, not clipped; ``std`` is the posterior standard deviation of the mean rating, without noise
            (NaN for a MAP estimate).

        Examples
        --------
        >>> from tuckergp import TuckerRecommender
        >>> from tuckergp.datasets import make_ratings
        >>> data = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)
        >>> rec = TuckerRecommender(rank=2, draws=30, random_state=0).fit(data.train, data.users, data.items)
        >>> list(rec.recommend(data.train["user_id"][0], n=3)["rank"])
        [1, 2, 3]
        """
        fitted, users = self._for_now(users, ratings)
        return answering.best_items(
            fitted,
            users,
            n,
            exclude_seen,
            items,
            exclude,
            strategy,
            kappa,
            random_state,
            titles,
            by,
            where,
            min_ratings,
            diversity,
            boosts,
        )

    def recommend_together(
        self,
        users: Any,
        n: int = 10,
        how: How = "mean",
        exclude_seen: bool = True,
        items: Any = None,
        exclude: Any = None,
        ratings: Any = None,
        titles: str | None = None,
        where: Mapping[str, Any] | None = None,
        min_ratings: int = 0,
        by: By | None = None,
    ) -> Frame:
        """Recommend the best items for a group of people together: what shall we watch tonight?

        Parameters
        ----------
        users : sequence of ids, or table
            The members; one who is named twice counts twice. A table as in `recommend`. A member whom the model does
            not know counts as an average person, with a warning.
        n : int
            Items in the list; fewer where fewer are left.
        how : {"mean", "least"}
            What an item is worth to the group: the mean of its values for the members, or of their expected ratings, or
            the least of them, so that nobody is unhappy. It is taken in each draw, and the score is its posterior mean.
        exclude_seen : bool
            Leave out the items that any member has rated.
        items, exclude, ratings, titles, where, min_ratings, by
            As in `recommend`.

        Returns
        -------
        data frame with columns item_id, score, std, rank; by value also rating and choice
            ``std`` is the posterior standard deviation of the group's score (NaN for a MAP estimate).

        Examples
        --------
        >>> from tuckergp import TuckerRecommender
        >>> from tuckergp.datasets import make_ratings
        >>> data = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)
        >>> rec = TuckerRecommender(rank=2, draws=30, random_state=0).fit(data.train, data.users, data.items)
        >>> tonight = rec.recommend_together(["u0001", "u0002", "u0003"], n=3, how="least")
        >>> list(tonight.columns)
        ['item_id', 'score', 'std', 'rank']
        """
        fitted, users = self._for_now(users, ratings)
        return answering.best_together(
            fitted, users, n, how, exclude_seen, items, exclude, where, min_ratings, titles, by
        )

    def scores(self, users: Sequence[Any], items: Sequence[Any], by: By | None = None) -> Floats:
        """What `recommend` sorts by, for each of some users and items, shape (n_users, n_items).

        Without time and context. For a Gaussian likelihood it is one matrix product, for others one for each draw.

        Parameters
        ----------
        users, items : sequence of ids
        by : {"value", "rating", "choice"} or None
            As in `recommend`: ``"rating"`` has predictions, not clipped, and ``"value"`` the probability of a choice
            times how good the rating would be.
        """
        return answering.scores(self._fitted, users, items, by)

    def similar_items(self, item: Any, n: int = 10, titles: str | None = None) -> Frame:
        """The items most similar to one: liked by the same users, relative to what all like.

        Parameters
        ----------
        item : id, title, or a table of one row with attributes
            A title is looked up in the column ``title`` or ``name`` of the item table, and must be that of one item. A
            new item is compared by its attributes.
        n : int
        titles : str or None
            A column of the item table to show beside the ids, such as ``"title"``.

        Returns
        -------
        data frame with columns item_id and similarity
            Similarity is the correlation of predictions over users, from -1 to 1.
        """
        return answering.most_alike(self._fitted, 1, item, n, titles)

    def similar_users(self, user: Any, n: int = 10) -> Frame:
        """The users most similar to one: who like the same items, relative to their own average.

        Parameters
        ----------
        user : id, or a table of one row with attributes
            A new user is compared by attributes.
        n : int

        Returns
        -------
        data frame with columns user_id and similarity
            Similarity is the correlation of predictions over items, from -1 to 1.
        """
        return answering.most_alike(self._fitted, 0, user, n)

    def embeddings(self, width: int | None = None) -> Embeddings:
        """Vectors of all known users and items, for nearest-neighbour indexes.

        ``offset + users @ items.T`` are the predictions (the latent ones of ordinal and Bernoulli models), without time
        and context.

        Parameters
        ----------
        width : int or None
            None concatenates the draws, and products are exact; a number compresses them to vectors of at most this
            width, the best in least squares over all pairs.

        Returns
        -------
        Embeddings
            ``user_ids``, ``users``, ``item_ids``, ``items``, ``offset``.
        """
        fitted = self._fitted
        fitted.fit.draws.require_kept()
        exact = embeddings(Factors(fitted.layout, fitted.fit))
        return exact if width is None else exact.compressed(width)

    def explain(self, user: Any, item: Any, by: By | None = None, **circumstances: Any) -> Explanation:
        """Explain a prediction as a sum: the average, each attribute, co-rating, and the id's own part.

        Parts are relative to the average user and the average item, and add up to ``predict(..., clip=False)``. What a
        part of the user and a part of the item contribute together is shared evenly between them (Shapley values). In
        ordinal and Bernoulli models they add up to the mean of the latent utility.

        Parameters
        ----------
        user, item : id
            With ratings, with attributes alone, or unknown. An item may be given by its title, as in `similar_items`.
        by : {"value", "rating", "choice"} or None
            What is explained, as in `recommend`. The value is explained by its two factors: the rating, how much the
            item would be liked, and beside it in ``choice`` why it would be chosen.
        **circumstances
            The timestamp and context columns, such as ``timestamp="1998-04-22"``; the average without them.

        Returns
        -------
        Explanation
            ``print`` it, ``plot()`` it (extra ``plot``), or take its ``words`` or its ``rows``.

        Examples
        --------
        >>> from tuckergp import TuckerRecommender
        >>> from tuckergp.datasets import make_ratings
        >>> data = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)
        >>> rec = TuckerRecommender(rank=2, draws=20, warmup=10, random_state=0).fit(data.train, data.users, data.items)
        >>> user, item = data.train["user_id"][0], data.train["item_id"][0]
        >>> explanation = rec.explain(user, item)
        >>> [row.what for row in explanation.rows if row.side == "user"]
        ['age', 'sex', 'occupation', 'co-rating', 'own']
        >>> predicted = rec.predict({"user_id": [user], "item_id": [item]}, clip=False)[0]
        >>> bool(abs(explanation.total - predicted) < 1e-9)
        True
        """
        return answering.explain_pair(self._fitted, user, item, by, circumstances)

    def feature_importance(self) -> Importance:
        """The share of the variance of f over the training ratings that each attribute, and the ids' own part, explain.

        A share is the covariance of a part with f, divided by the variance of f, so that shares sum to 1; it may be
        slightly negative. Parts are those of `explain`. Means and standard deviations are over up to 100 draws, at up
        to 10,000 ratings.

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
        fitted = self._fitted
        return feature_importance(fitted.layout, fitted.fit, fitted.history, stream(0))

    def save(self, path: str | Path, ratings: bool = True) -> None:
        """Write the fitted model to a file, which `tuckergp.load` reads, with all that further learning needs too.

        Ratings that were folded in are joined with the others first, which copies the draws once. An old file is
        replaced atomically, even the one that the model was loaded from. A ``random_state`` that is a generator becomes
        None.

        Parameters
        ----------
        path : path
            The file, such as ``model.tgp``.
        ratings : bool
            False makes a file that does not tell who rated what. It predicts, recommends and explains, new users
            can be folded in, and lists may hold what a user has rated; but ratings of known users cannot be added,
            `partial_fit` is refused, and explanations count co-rating as a user's or item's own.
        """
        check("ratings", ratings, one_of(True, False))
        check_savable(self, path)
        fitted = self._fitted
        layout, fit, history = compacted(fitted.layout, fitted.fit, fitted.history)
        choice = fitted.choice
        if choice is not None:
            parts = compacted(choice.layout, choice.fit, choice.history)
            choice = replace(choice, layout=parts[0], fit=parts[1], history=parts[2])
        whole = replace(fitted, layout=layout, fit=fit, history=history, choice=choice)
        self._keep(whole)
        if ratings:
            super().save(path)
            return
        other = type(self)(**self.get_params(deep=False))._keep(without_ratings(whole))
        super(TuckerRecommender, other).save(path)

    def inference_data(self) -> Any:
        """The draws of identifiable quantities, for ArviZ's plots and summaries (extra ``arviz``).

        Returns
        -------
        arviz.InferenceData, or xarray.DataTree from ArviZ 1.0 on
            Group ``posterior``: ``f`` at up to 100 training observations, ``tau`` (the precision of each feature
            block), and of the likelihood ``noise`` (its standard deviation, or the scale of Student's t), ``nu``,
            ``cuts`` or ``dispersion``. Group ``log_likelihood``: ``y`` at the same observations. Groups
            ``posterior_predictive`` and ``observed_data``: replicated and observed ``y`` there, for ``arviz.plot_ppc``.
            Group ``sample_stats``: figures of each step, of HMC and NUTS also ``energy`` and ``diverging``. Chain and
            draw are the first dimensions; values are in the units of the ratings.
        """
        fitted = self._fitted
        layout, fit = fitted.layout, fitted.fit
        names = [shown_kernel(name) for name in block_names(layout.modes, layout.names)]
        return as_inference_data(watched_of(fit.draws, names, fit.steps))

    def _for_now(self, users: Any, ratings: Any) -> tuple[FittedRecommender, Any]:
        """The model with ratings folded in for one answer, and the users asked for, by default those who have some."""
        fitted = self._fitted
        if ratings is None:
            return fitted, users
        table = named_table(ratings, "ratings", fitted.names)
        users = users_of(table, fitted) if users is None else users
        given = Given(table, attributes_of(users, fitted))
        return with_ratings(fitted, RecommenderSettings.of(self), given), users

    def _check_parts(self) -> None:
        RecommenderSettings.of(self)
        check_parts(self._fitted)
        if self._fitted.choice is not None:
            check_parts(self._fitted.choice)

    def _keep(self, fitted: FittedRecommender) -> Self:
        """Set the fitted attributes, which users and model files know, from what was learned.

        All at once, by one assignment: a thread that answers meanwhile sees all of them as they were, or as they are.
        """
        learned: dict[str, Any] = {f"{name}_": getattr(fitted, name) for name in LEARNED}
        learned |= {"features_": fitted.features, "columns_": dict(fitted.names or {})}
        if fitted.moments is not None:
            learned["moments_"] = fitted.moments
        if fitted.choice is not None:
            own = choice_settings(RecommenderSettings.of(self).decided(True))
            parameters = {each.name: getattr(own, each.name) for each in fields(own)}
            learned["choice_"] = type(self)(**parameters)._keep(fitted.choice)
        others = {name: value for name, value in self.__dict__.items() if name not in ("moments_", "choice_")}
        self.__dict__ = {**others, **learned}
        return self

    @property
    def ranks_by_(self) -> By:
        """What `recommend` sorts by where ``by`` does not say."""
        return answering.usually_ranked_by(self._fitted)

    @property
    def _fitted(self) -> FittedRecommender:
        """The fitted attributes as the object that the functions of `answering` take."""
        check_fitted(self)
        now = self.__dict__  # once: `_keep` puts another in its place and never changes this one
        learned = {name: now[f"{name}_"] for name in LEARNED}
        names = {**now.get("columns_", {}), **(now["columns"] or {})}
        choice = None if now.get("choice_") is None else now["choice_"]._fitted
        return FittedRecommender(**learned, names=names, moments=now.get("moments_"), choice=choice)
