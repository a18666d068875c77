"""Evaluation of models on held-out ratings: `evaluate` on any split, `cross_validate` on random folds.

Each model is fitted again on each training part and scored on the test part. Any object with ``fit(ratings, users,
items)`` and ``predict(pairs, clip=)`` can be evaluated.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from tuckergp.data.frames import with_index
from tuckergp.data.ids import with_aligned_ids
from tuckergp.data.names import KEYS, RATING, id_names, named_table
from tuckergp.data.splits import GivenParts, Holdout, KFold, Splitter
from tuckergp.data.tables import Table, as_table, show_cell
from tuckergp.errors import InputError, UnknownIdWarning
from tuckergp.evaluation.baselines import BASELINES
from tuckergp.evaluation.metrics.intervals import Part
from tuckergp.evaluation.scoreboard import Scoreboard
from tuckergp.evaluation.scoring import DISTRIBUTIONS, ERRORS, METRICS, RANKING, Candidates, Metric, rank, rate
from tuckergp.running.loop import ctrl_c_interrupts

__all__ = ["DISTRIBUTIONS", "ERRORS", "METRICS", "RANKING", "cross_validate", "evaluate"]

DEFAULT_METRICS = ("rmse", "mae", "ndcg", "recall", "recall@20", "recall@50", "catalogue_coverage", "novelty")


def evaluate(
    model: Any,
    data: Any,
    *,
    split: Splitter | Iterable[tuple[Any, Any]] | None = None,
    users: Any = None,
    items: Any = None,
    metrics: str | Sequence[str] = DEFAULT_METRICS,
    k: int = 10,
    relevant: float | Callable[[npt.NDArray[np.float64]], npt.ArrayLike] | None = None,
    baselines: Sequence[str] = (),
    interval: float = 0.9,
    confidence: float = 0.95,
    seed: int = 0,
    progress: bool | None = None,
) -> Scoreboard:
    """Fit models on training parts and score them on test parts.

    Parameters
    ----------
    model : estimator, or dict of str to estimator
        Clones are fitted; the objects given are not changed.
    data : table of ratings, or None
        None if ``split`` has the tables. Its columns may have the names in the model's ``columns``.
    split : splitter of `tuckergp.splits`, list of (train, test), or None
        None is ``Holdout(0.2)``.
    users, items : table or None
        Attributes for each fit. Items of the table can be recommended even if nobody rated them.
    metrics : sequence of str
        Names among ``METRICS``, which is ``ERRORS + DISTRIBUTIONS + RANKING``. ``"recall@20"`` is of lists of 20.
    k : int
        Length of the lists of recommendations where a metric does not say.
    relevant : number, callable or None
        Which test ratings make an item relevant: those of at least this number, or those for which the callable, given
        all test ratings, is True. None: at least the median of the training ratings, and above their minimum.
    baselines : sequence of str
        Baselines to evaluate as well, of ``"mean"``, ``"biases"`` and ``"popularity"``. The last has no errors.
    interval : float
        Level of the predicted intervals for ``"interval_coverage"``.
    confidence : float
        Level of the confidence intervals.
    seed : int
        Seed of confidence intervals, and of the order of items with equal scores.
    progress : bool or None
        Show progress on standard error; None shows it if that is a terminal.

    Returns
    -------
    Scoreboard

    Notes
    -----
    Lists are those that the model would give: by value where it has a model of choices beside that of ratings, else by
    what it predicts; ``ranked_by`` of the scoreboard says which. Where only errors are asked for, no model of choices
    is fitted. ``seconds`` has the time of all that is fitted.

    Lists are made for the test users with a relevant test item. Candidates are all items in either part or in ``items``
    that the user has not rated in the training part, including test items that are not relevant. For clicks (tables
    without a rating column) all test items are relevant, and there are no errors.

    Predictions of test ratings use all columns of the test part except the rating, so that a model with drift knows the
    time of a rating. Lists are made without a time.

    Examples
    --------
    >>> from tuckergp import TuckerRecommender
    >>> from tuckergp.datasets import make_ratings
    >>> data = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)
    >>> model = TuckerRecommender(rank=2, inference="als", random_state=0)
    >>> board = evaluate(model, data.train, metrics=["rmse", "ndcg"], baselines=["biases"])
    >>> board.models
    ['TuckerRecommender', 'biases']
    >>> 0.8 < board.value("rmse") < 1.1
    True
    """
    models = _models(model, baselines)
    names = _metric_names(metrics)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k must be a whole number of at least 1, not {k!r}.")
    for label, level in (("interval", interval), ("confidence", confidence)):
        if not 0 < level < 1:
            raise InputError(f"{label} must be between 0 and 1, not {level!r}.")
    is_relevant = _relevance(relevant)
    theirs = next((each.columns for each in models.values() if getattr(each, "columns", None)), None)
    tables = attribute_tables(users, items, theirs)
    to_rank = any(Metric.read(name).ranks for name in names)
    show = sys.stderr.isatty() if progress is None else progress

    number: dict[Hashable, int] = {}
    parts: dict[str, dict[str, list[Part]]] = {label: {name: [] for name in names} for label in models}
    seconds, ranked_by = dict.fromkeys(models, 0.0), dict[str, str]()
    n_folds = n_ratings = 0
    for train, test in parts_of(split, data, theirs):
        n_folds, n_ratings = n_folds + 1, n_ratings + len(test)
        clicks = RATING not in train.columns
        if clicks and not to_rank:
            raise InputError(f"{train.name} has no ratings to predict; ask for metrics of lists: {', '.join(RANKING)}.")
        candidates = Candidates.of(train, test, tables[1], is_relevant, seed) if to_rank else None
        if candidates is not None and not candidates.users:
            raise InputError("No test user has a relevant item that is a candidate; change relevant or the split.")
        for label, each in models.items():
            _say(f"fold {n_folds}: {label}", show)
            began = time.perf_counter()
            fitted = fit_afresh(each, train, tables, progress, predictions=not to_rank)
            seconds[label] += time.perf_counter() - began
            measured: dict[str, Part] = {}
            if getattr(fitted, "predicts_ratings", True) and not clicks:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UnknownIdWarning)  # newcomers of the test part are no surprise
                    measured |= rate(fitted, test, names, number, interval)
            if candidates is not None:
                ranked_by[label] = getattr(fitted, "ranks_by_", "prediction")
                with _bar("recommending", len(candidates.users), show) as advance:
                    measured |= rank(fitted, candidates, names, number, k, advance)
            for name, part in measured.items():
                parts[label][name].append(part)
    return Scoreboard(
        parts={
            label: {name: folds for name, folds in by_metric.items() if folds} for label, by_metric in parts.items()
        },
        metrics=names,
        n_users=len(number),
        n_folds=n_folds,
        n_ratings=n_ratings,
        k=int(k),
        interval=float(interval),
        confidence=float(confidence),
        seconds=seconds,
        seed=seed,
        ranked_by=ranked_by,
    )


def cross_validate(model: Any, data: Any, *, n_folds: int = 5, seed: int = 0, **settings: Any) -> Scoreboard:
    """Evaluate by cross-validation on random folds: each rating is held out once.

    Parameters
    ----------
    model : estimator, or dict of str to estimator
    data : table of ratings
    n_folds : int
    seed : int
        Seed of the folds and of `evaluate`.
    **settings
        Other settings of `evaluate`, except ``split``.

    Returns
    -------
    Scoreboard
        Figures are means over the folds.

    Examples
    --------
    >>> from tuckergp.baselines import Biases
    >>> from tuckergp.datasets import make_ratings
    >>> ratings = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0).train
    >>> cross_validate(Biases(), ratings, n_folds=3, metrics=["rmse"]).n_folds
    3
    """
    if "split" in settings:
        raise InputError("cross_validate makes random folds; for another split use evaluate.")
    return evaluate(model, data, split=KFold(n_folds, seed), seed=seed, **settings)


def _models(model: Any, baselines: Sequence[str]) -> dict[str, Any]:
    models = dict(model) if isinstance(model, Mapping) else {type(model).__name__: model}
    for name in [baselines] if isinstance(baselines, str) else baselines:
        if name not in BASELINES:
            raise InputError(f"There is no baseline {name!r}; there are {', '.join(map(repr, BASELINES))}.")
        if name in models:
            raise InputError(f"{name!r} is the name of a model and of a baseline; give the model another name.")
        models[name] = BASELINES[name]()
    if not models:
        raise InputError("There is no model to evaluate.")
    for each in models.values():
        if not hasattr(each, "fit") or not hasattr(each, "predict"):
            raise InputError(f"A model has fit and predict; {show_cell(each)} has not.")
    return models


def _metric_names(metrics: str | Sequence[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys([metrics] if isinstance(metrics, str) else metrics))
    if not names:
        raise InputError(f"No metric is named; there are {', '.join(METRICS)}.")
    for name in names:
        Metric.read(name)
    return names


def _relevance(relevant: Any) -> Callable[[npt.NDArray[np.float64], npt.NDArray[np.float64]], npt.NDArray[np.bool_]]:
    """The function that says which test ratings are relevant, given those of the training part."""
    if relevant is None:
        return lambda test, train: (test >= np.median(train)) & ((test > train.min()) | (train.min() == train.max()))
    if isinstance(relevant, int | float | np.number) and not isinstance(relevant, bool):
        return lambda test, train: test >= float(relevant)
    if not callable(relevant):
        raise InputError(f"relevant must be a number, a function of ratings, or None, not {relevant!r}.")

    def by_rule(test: npt.NDArray[np.float64], train: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        flags = np.asarray(relevant(test))
        if flags.shape != test.shape or flags.dtype != bool:
            raise InputError("relevant must return True or False for every rating that it is given.")
        return flags

    return by_rule


def parts_of(split: Any, data: Any, names: Mapping[str, str] | None = None) -> Iterator[tuple[Table, Table]]:
    """The pairs (train, test) of a splitter or of a list of pairs; None holds out a random fifth."""
    if data is not None:
        table = as_table(with_index(data), "ratings")
        renamed = named_table(table, "ratings", names)
        data = replace(renamed, columns={**table.columns, **renamed.columns})  # a splitter may ask for either
    if split is not None and (isinstance(split, str) or not hasattr(split, "split")):
        if not isinstance(split, Iterable) or isinstance(split, str):
            raise InputError(
                f"split must be one of tuckergp.splits, such as KFold(5), or pairs of tables, not {split!r}."
            )
        split = GivenParts(split)
    if data is None and not isinstance(split, GivenParts):
        raise InputError("There are no ratings: give data, or a list of (train, test) as split.")
    splitter: Splitter = Holdout() if split is None else split
    for train, test in splitter.split(data):
        learned, asked = (named_table(part, part.name, names) for part in (train, test))
        for key in KEYS:
            if len(learned) and key in learned and key in asked:
                asked = with_aligned_ids(asked, key, learned[key][:1].tolist()[0])
        yield learned, asked


def attribute_tables(users: Any, items: Any, names: Mapping[str, str] | None = None) -> list[Table | None]:
    """The attributes of users and items, read once for all fits."""
    return [
        None if source is None else named_table(source, name, id_names(names), [key])
        for source, name, key in ((users, "users", KEYS[0]), (items, "items", KEYS[1]))
    ]


def fit_afresh(
    model: Any, train: Table, tables: Sequence[Table | None], progress: bool | None, predictions: bool = False
) -> Any:
    """A clone of the model, fitted with the tables of users and items.

    With ``predictions`` it is judged by these alone, to which a model of choices beside that of ratings adds nothing.
    """
    fresh = clone(model, safe=False)
    if predictions and getattr(fresh, "objective", None) == "auto":
        fresh.objective = "rating"
    more = {"progress": progress} if "progress" in signature(fresh.fit).parameters else {}
    with ctrl_c_interrupts():  # a model that was stopped early is not the one to be evaluated
        fresh.fit(train, users=tables[0], items=tables[1], **more)
    return fresh


def _say(what: str, show: bool) -> None:
    if show:
        from rich.console import Console

        Console(stderr=True, highlight=False).print(what, markup=False)


@contextmanager
def _bar(what: str, total: int, show: bool) -> Iterator[Callable[[int], None]]:
    """Show a progress bar and yield the function to call with the number of users done."""
    if not show:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
