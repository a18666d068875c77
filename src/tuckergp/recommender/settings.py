"""The parameters of a recommender in one immutable object: types, defaults and allowed values.

Their meaning is described in `TuckerRecommender`. What follows from them and the tables is in
`tuckergp.recommender.choosing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tuckergp.checks import (
    JOBS,
    RANDOM_STATE,
    RANKS,
    Allowed,
    Checked,
    dict_of,
    instance,
    list_of,
    one_of,
    setting,
    text,
    whole,
)
from tuckergp.data.pairs import Duplicates
from tuckergp.data.periods import Unit
from tuckergp.inference import INFERENCES
from tuckergp.likelihoods import LIKELIHOODS, Likelihood
from tuckergp.likelihoods.all_pairs import AllPairs
from tuckergp.model.cores import CoreSpec, Entries, Learned, Random
from tuckergp.recommender.decisions import Choice
from tuckergp.running.fit import Inference, allowed_inferences

__all__ = ["RecommenderSettings"]


def _is_scale(value: Any) -> bool:
    try:
        low, high = map(float, value)
    except (TypeError, ValueError, OverflowError):
        return False
    return low < high and not isinstance(value, str)


# all that Gibbs sampling can learn, and so what `fold_in` can take in
LIKELIHOOD = one_of(*(name for name, kind in LIKELIHOODS.items() if INFERENCES["gibbs"].learns(kind)))
CHOICE = one_of("auto") | LIKELIHOOD | instance("a tuckergp.likelihoods.Clicks", AllPairs)
CORES = one_of("auto", "identity", "full", "superdiagonal", "cp", "pairwise") | instance(
    "one of tuckergp.cores", Random, Entries, Learned
)
SCALE = Allowed(("a lowest and a highest rating",), _is_scale) | one_of(None)
NAMES = dict_of("a dict of column names", text("a name")) | one_of(None)
CHOICES = dict_of("a dict with a dict for 'users', for 'items' or for both", instance("a dict", Mapping)) | one_of(None)
CONTEXT = text("the name of a column") | list_of("a list of such names", text("a name"))


@dataclass(frozen=True)
class RecommenderSettings(Checked):
    """The parameters of a `TuckerRecommender`, checked."""

    rank: int = setting(16, RANKS)
    inference: str | Inference = setting("gibbs", allowed_inferences(ratings=True))
    likelihood: str | AllPairs = setting("auto", CHOICE)
    core: CoreSpec = setting("identity", CORES)
    draws: int = setting(250, whole(1))
    warmup: int = setting(50, whole(0))
    chains: int = setting(1, whole(1))
    side_information: bool = setting(True, one_of(True, False))
    implicit: bool | Literal["auto"] = setting("auto", one_of(True, False, "auto"))
    time: Unit | Literal["auto"] | None = setting("auto", one_of("week", "month", "auto", None))
    noise: Literal["auto", "shared", "rows"] = setting("auto", one_of("auto", "shared", "rows"))
    columns: Mapping[str, str] | None = setting(None, NAMES)
    attributes: Mapping[str, Mapping[str, Choice]] | None = setting(None, CHOICES)
    context: str | Sequence[str] = setting((), CONTEXT)
    rating_scale: tuple[float, float] | None = setting(None, SCALE)
    duplicates: Duplicates = setting("keep", one_of("keep", "mean", "last", "refuse"))
    negatives: int = setting(16, whole(1))
    objective: Literal["auto", "value", "rating"] = setting("auto", one_of("auto", "value", "rating"))
    n_jobs: int | None = setting(None, JOBS)
    random_state: int | np.random.Generator | None = setting(None, RANDOM_STATE)

    @property
    def kind(self) -> type[Likelihood]:
        """The class of the likelihood; that of ratings where the table decides."""
        if not isinstance(self.likelihood, str):
            return type(self.likelihood)
        return LIKELIHOODS["gaussian" if self.likelihood == "auto" else self.likelihood]

    def decided(self, rated: bool) -> RecommenderSettings:
        """With the likelihood that ``"auto"`` means for a table with or without ratings."""
        if self.likelihood != "auto":
            return self
        whole = next(name for name, kind in LIKELIHOODS.items() if kind.all_pairs)
        return replace(self, likelihood="gaussian" if rated else whole)

    def with_duplicates(self, duplicates: Duplicates | None) -> RecommenderSettings:
        """With another choice for several ratings of one pair; None leaves it as it is."""
        return self if duplicates is None else replace(self, duplicates=duplicates)

    @property
    def contexts(self) -> list[str]:
        """The context columns, as a list."""
        return [self.context] if isinstance(self.context, str) else list(self.context)
