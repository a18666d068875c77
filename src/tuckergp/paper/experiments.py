"""The list of all experiments, their groups, and the search for experiments by name."""

from __future__ import annotations

from collections.abc import Sequence

from tuckergp.errors import InputError
from tuckergp.paper.california import CALIFORNIA, CALIFORNIA_CHOICE
from tuckergp.paper.california_reasons import CALIFORNIA_REASONS
from tuckergp.paper.columns import COLUMNS
from tuckergp.paper.experiment import Experiment
from tuckergp.paper.movielens_bpmf import MOVIELENS_BPMF
from tuckergp.paper.movielens_calibration import MOVIELENS_CALIBRATION
from tuckergp.paper.movielens_cv import MOVIELENS_CV
from tuckergp.paper.movielens_defaults import MOVIELENS_DEFAULTS
from tuckergp.paper.movielens_gibbs import MOVIELENS_GIBBS, MOVIELENS_GIBBS_CHOICE
from tuckergp.paper.movielens_map import MOVIELENS_MAP
from tuckergp.paper.movielens_scarce import MOVIELENS_SCARCE
from tuckergp.paper.ranking import RANKING, RANKING_CHOICE
from tuckergp.paper.ratings import RATINGS
from tuckergp.paper.theory import THEORY
from tuckergp.paper.variational import VARIATIONAL
from tuckergp.paper.wind import WIND, WIND_CHOICE

__all__ = ["EXPERIMENTS", "GROUPS", "find"]

GROUPS = {
    "movielens": "Ratings: MovieLens 100K",
    "california": "Space: California house prices",
    "wind": "Space and time: Irish wind",
    "theory": "Theory: convergence and features",
    "future": "The paper's future work",
    "ranking": "Lists of recommendations",
    "choices": "Settings chosen on training data",
}
"""Titles of the groups, in the order of the report."""

EXPERIMENTS: tuple[Experiment, ...] = (
    *(MOVIELENS_MAP, MOVIELENS_CV, MOVIELENS_DEFAULTS, MOVIELENS_BPMF),
    *(MOVIELENS_GIBBS, MOVIELENS_CALIBRATION, MOVIELENS_SCARCE),
    *(CALIFORNIA, CALIFORNIA_REASONS, WIND, THEORY, RATINGS, VARIATIONAL, COLUMNS, RANKING),
    *(MOVIELENS_GIBBS_CHOICE, CALIFORNIA_CHOICE, WIND_CHOICE, RANKING_CHOICE),
)


def find(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names or groups, or ``all``, each once and in the order of the list.

    Examples
    --------
    >>> [experiment.name for experiment in find(["theory", "future"])]
    ['theory', 'ratings', 'variational', 'columns']
    """
    for name in names:
        if name != "all" and not any(name in (one.name, one.group) for one in EXPERIMENTS):
            listed = ", ".join(dict.fromkeys([*GROUPS, *(one.name for one in EXPERIMENTS)]))
            raise InputError(f"There is no experiment {name!r}; there are all, {listed}.")
    return [one for one in EXPERIMENTS if {"all", one.name, one.group} & set(names)]
