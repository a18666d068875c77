"""`tune`: compare settings of a model on the same folds and keep the best.

The MAP estimate (ALS, SGD) is judged by cross-validated error, Gibbs sampling by the held-out log score. The
values to try are in `tuckergp.evaluation.tuning.space`, their order in `tuckergp.evaluation.tuning.proposals`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tuckergp.data.frames import backend_of, with_index
from tuckergp.data.splits import GivenParts, KFold, Splitter
from tuckergp.data.tables import as_table
from tuckergp.errors import InputError, NotConvergedWarning, UnknownIdWarning
from tuckergp.evaluation.evaluate import attribute_tables, evaluate, fit_afresh, parts_of
from tuckergp.evaluation.scoring import ERRORS, Metric
from tuckergp.evaluation.tuning.proposals import GridProposals, OptunaProposals, Proposals
from tuckergp.evaluation.tuning.space import (
    Params,
    Search,
    Space,
    check_names,
    configured,
    default_grid,
    read_grid,
    samples,
)
from tuckergp.evaluation.tuning.trials import Trial, Tuning
from tuckergp.inference.base import Info
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.random import seed_of
from tuckergp.running.progress import progress_line

__all__ = ["Tuning", "default_grid", "tune"]

SMALLER_IS_BETTER = (*ERRORS, "nll", "crps")
# Errors of a configuration that are recorded as its failure; other errors are bugs and are raised.
FAILURES = (ArithmeticError, ValueError, TypeError, MemoryError)
FOLDS, FOLDS_OF_DRAWS = 5, 3


def tune(
    model: Any,
    ratings: Any,
    users: Any = None,
    items: Any = None,
    *,
    grid: Any = None,
    split: Splitter | Sequence[tuple[Any, Any]] | None = None,
    metric: str | None = None,
    k: int = 10,
    relevant: float | Callable[..., Any] | None = None,
    search: Search = "grid",
    trials: int = 50,
    refit: bool = True,
    progress: bool | None = None,
    random_state: Any = None,
) -> Tuning:
    """Search for the settings of a model that predict held-out ratings best.

    Parameters
    ----------
    model : estimator
        Gives the parameters that are not in the grid. It is not changed.
    ratings : table of ratings, or None
        None if ``split`` has the tables.
    users, items : table or None
        Attributes for each fit.
    grid : dict of str to list, list of such, or None
        Values by parameter; settings of the inference as ``inference__sigma_u``. All combinations are tried, of each
        dict if there are several. For Optuna a tuple is a range: ``(low, high)`` or ``(low, high, "log")``. None is
        `default_grid`: for ALS and SGD prior scale, noise and step size; for Gibbs sampling ranks, and the model
        without each of attributes, co-rating, drift, context and noise factors of rows.
    split : splitter of `tuckergp.splits`, list of (train, test), or None
        None is five random folds; three for Gibbs sampling.
    metric : str or None
        What to choose by: a name among those of `tuckergp.evaluate.evaluate`. None is ``"nll"``, the negative log
        score, for Gibbs sampling, ``"crps"`` if models of levels are compared with others, and ``"rmse"`` if there is
        a model without a distribution.
    k, relevant
        For metrics of lists, as in `tuckergp.evaluate.evaluate`.
    search : {"grid", "optuna"}
        Optuna needs the extra ``tune``.
    trials : int
        The number of configurations that Optuna may propose.
    refit : bool
        Learn the best configuration from all ratings.
    progress : bool or None
        Show a progress line; None shows it when standard error is a terminal.
    random_state : int, Generator or None
        For the folds, models without a ``random_state``, and Optuna.

    Returns
    -------
    Tuning
        ``best_params``, ``best_score``, ``best_model``, ``table``; printed, the table.

    Notes
    -----
    Each configuration is fitted on the same folds, with the same seed. One that fails has the reason in its row. After
    Ctrl-C, the result has the configurations finished so far, without a refit.

    Examples
    --------
    >>> from tuckergp import TuckerRecommender
    >>> from tuckergp.datasets import make_ratings
    >>> data = make_ratings(n_users=60, n_items=50, n_ratings=1500, random_state=0)
    >>> model = TuckerRecommender(rank=2, inference="als")
    >>> tuning = tune(model, data.train, grid={"inference__sigma_u": [1.0, 0.3]}, random_state=0)
    >>> tuning.best_params
    {'inference__sigma_u': 0.3}
    >>> tuning.best_model.predict(data.test).shape == (len(data.test),)
    True
    """
    if not hasattr(model, "get_params"):
        raise InputError(f"tune needs a model with parameters, such as a TuckerRecommender, not {model!r}.")
    if ratings is None and refit:
        raise InputError("There are no ratings to learn the best model from; give them, or use refit=False.")
    seed = seed_of(random_state)
    table = None if ratings is None else as_table(with_index(ratings), "ratings")
    names = getattr(model, "columns", None)
    tables = attribute_tables(users, items, names)
    if search not in ("grid", "optuna"):
        raise InputError(f"search must be 'grid' or 'optuna', not {search!r}.")
    if grid is None:
        grid = default_grid(model, table, attributes=any(side is not None for side in tables), search=search)
    spaces = read_grid(grid)
    check_names(model, spaces)
    metric = _metric(metric, model, spaces)
    proposals = _proposals(search, spaces, model, trials, metric, seed)
    if split is None:
        split = KFold(FOLDS_OF_DRAWS if _all_sample(model, spaces) else FOLDS, seed)
    elif not hasattr(split, "split"):
        split = GivenParts(split)
    n_folds = sum(1 for _ in parts_of(split, table, names))

    def score(params: Params, advance: Callable[[], None]) -> Trial:
        began, folds, failed = time.perf_counter(), [], None
        try:
            candidate = _seeded(configured(model, params), seed)
            for pair in parts_of(split, table, names):
                folds.append(_score(candidate, pair, tables, metric, k, relevant, seed))
                advance()
        except FAILURES as error:
            failed = " ".join(str(error).split()) or type(error).__name__
        return Trial(params, folds, time.perf_counter() - began, failed)

    tried, complete = _search(proposals, score, n_folds, metric, progress)
    if all(trial.failed is not None for trial in tried):
        raise InputError(f"All {len(tried)} configurations failed. The first: {tried[0].failed}")
    tuning = Tuning(tried, metric, metric not in SMALLER_IS_BETTER, None, n_folds, seed, complete)
    best = _seeded(configured(model, tuning.best_params), seed)
    if refit and complete and table is not None:
        try:
            best = fit_afresh(best, table, tables, progress)
            if hasattr(best, "backend_"):
                best.backend_ = backend_of(ratings)
        except FAILURES as error:  # the search is not lost with it
            warnings.warn(f"The best configuration fails on all ratings, and is not fitted: {error}", stacklevel=2)
        except KeyboardInterrupt:
            warnings.warn("The best configuration was interrupted, and is not fitted.", stacklevel=2)
    return replace(tuning, best_model=best)


def _search(
    proposals: Proposals,
    score: Callable[[Params, Callable[[], None]], Trial],
    n_folds: int,
    metric: str,
    progress: bool | None,
) -> tuple[list[Trial], bool]:
    """Fit and score the proposed configurations; returns whether the search was completed."""
    tried: list[Trial] = []
    best: dict[str, float] = {}
    choose = min if metric in SMALLER_IS_BETTER else max
    with (
        progress_line("Tuning", proposals.total * n_folds, progress) as advance,
        warnings.catch_warnings(),
    ):
        for category in (NotConvergedWarning, UnknownIdWarning):
            warnings.simplefilter("ignore", category)

        def fold_done() -> None:
            advance(Info(0, best))

        try:
            while (params := proposals.ask()) is not None:
                trial = score(params, fold_done)
                for _ in range(n_folds - len(trial.folds)):
                    fold_done()
                tried.append(trial)
                proposals.tell(None if trial.failed is not None else trial.mean)
                means = [each.mean for each in tried if each.failed is None]
                if means:
                    best[f"best {metric}"] = choose(means)
        except KeyboardInterrupt:
            if all(trial.failed is not None for trial in tried):
                raise
            return tried, False
    return tried, True


def _score(
    candidate: Any,
    pair: tuple[Any, Any],
    tables: Sequence[Any],
    metric: str,
    k: int,
    relevant: Any,
    seed: int,
) -> float:
    """The metric of one configuration on one fold."""
    board = evaluate(
        candidate,
        None,
        split=[pair],
        users=tables[0],
        items=tables[1],
        metrics=metric,
        k=k,
        relevant=relevant,
        seed=seed,
        progress=False,
    )
    (metrics,) = board.parts.values()
    if metric not in metrics:
        raise InputError(f"{type(candidate).__name__} has no {metric}.")
    value = metrics[metric][0].value
    if not abs(value) < float("inf"):
        raise InputError(f"{metric} is {value}.")
    return value


def _seeded(candidate: Any, seed: int) -> Any:
    """The model with the seed that all configurations share, unless it has its own."""
    if candidate.get_params(deep=False).get("random_state", seed) is None:
        candidate.set_params(random_state=seed)
    return candidate


def _proposals(search: str, spaces: list[Space], model: Any, trials: int, metric: str, seed: int) -> Proposals:
    if search == "grid":
        return GridProposals(spaces, model.get_params(deep=False))
    if isinstance(trials, bool) or not isinstance(trials, int) or trials < 1:
        raise InputError(f"trials must be a whole number of at least 1, not {trials!r}.")
    return OptunaProposals(spaces, trials, metric not in SMALLER_IS_BETTER, seed)


def _metric(metric: str | None, model: Any, spaces: Sequence[Space]) -> str:
    """The metric asked for, or the default for the configurations compared."""
    tried = [LIKELIHOODS.get(str(name)) for name in _tried("likelihood", model, spaces)]
    with_levels = {kind is not None and kind.has_levels for kind in tried}
    if metric is None:
        if not _all_sample(model, spaces):
            return "rmse"
        return "crps" if len(with_levels) > 1 else "nll"
    Metric.read(metric)
    if metric == "interval_coverage":
        raise InputError("interval_coverage should be near its level, not large or small; choose by 'nll' or 'crps'.")
    if metric == "nll" and len(with_levels) > 1:
        raise InputError("nll of levels is of probabilities, of other targets of densities; compare them by 'crps'.")
    return metric


def _all_sample(model: Any, spaces: Sequence[Space]) -> bool:
    """Whether all configurations sample, and so have predicted distributions."""
    return all(samples(inference) for inference in _tried("inference", model, spaces))


def _tried(name: str, model: Any, spaces: Sequence[Space]) -> list[Any]:
    """The values of a parameter in the search; the model's own for grids without it."""
    own = getattr(model, name, None)
    tried: list[Any] = []
    for space in spaces:
        values = space.get(name)
        tried += values if isinstance(values, list) else [own]
    return tried
