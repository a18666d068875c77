"""The list of all experiments, the groups they are shown in, and how names become experiments."""

from __future__ import annotations

from collections.abc import Sequence

from tuckergp.errors import InputError
from tuckergp.paper.experiment import Experiment
from tuckergp.paper.theory import THEORY

__all__ = ["EXPERIMENTS", "GROUPS", "find"]

GROUPS = {
    "theory": "Theory: convergence and features",
}
"""Titles of the groups, in the order of the report."""

EXPERIMENTS: tuple[Experiment, ...] = (THEORY,)


def find(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names or groups, or ``all``, each once and in the order of the list.

    Examples
    --------
    >>> [experiment.name for experiment in find(["theory"])]
    ['theory']
    """
    for name in names:
        if name != "all" and not any(name in (one.name, one.group) for one in EXPERIMENTS):
            there = ", ".join(dict.fromkeys([*GROUPS, *(one.name for one in EXPERIMENTS)]))
            raise InputError(f"There is no experiment {name!r}; there are all, {there}.")
    return [one for one in EXPERIMENTS if {"all", one.name, one.group} & set(names)]
