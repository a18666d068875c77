"""The parameters of a regressor in one immutable object: types, defaults and allowed values.

Their meaning is described in `TuckerGPRegressor`. What follows from them and the data is in
`tuckergp.regressor.choosing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tuckergp.checks import (
    JOBS,
    RANDOM_STATE,
    RANKS,
    Checked,
    instance,
    list_of,
    one_of,
    setting,
    text,
    whole,
)
from tuckergp.kernels import Kernel
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.model.cores import CoreSpec, Entries, Learned, Random
from tuckergp.model.inputs import Modes
from tuckergp.model.mode import Mode
from tuckergp.running.fit import Inference, allowed_inferences

__all__ = ["RegressorSettings"]

MODE = instance("a Mode", Mode)
MODES = list_of("a list of at least one Mode", MODE | text("a column") | whole(0), least=1) | MODE
MODES = MODES | instance("a kernel", Kernel) | one_of(None)
LIKELIHOOD = one_of(*(name for name, kind in LIKELIHOODS.items() if not kind.all_pairs))
CORES = one_of("auto", "identity", "full", "superdiagonal", "cp", "pairwise") | instance(
    "one of tuckergp.cores", Random, Entries, Learned
)


@dataclass(frozen=True)
class RegressorSettings(Checked):
    """The parameters of a `TuckerGPRegressor`, checked."""

    modes: Modes = setting(None, MODES)
    rank: int | Sequence[int] = setting(5, RANKS)
    inference: str | Inference = setting("gibbs", allowed_inferences(ratings=False))
    likelihood: str = setting("gaussian", LIKELIHOOD)
    core: CoreSpec = setting("auto", CORES)
    noise: Literal["shared", "rows"] = setting("shared", one_of("shared", "rows"))
    hyperparameters: Literal["fixed", "ml"] = setting("fixed", one_of("fixed", "ml"))
    learn_rows: int = setting(2000, whole(2))
    fixed: Sequence[str] = setting((), list_of("a list of names", text("a name")))
    draws: int | None = setting(None, whole(1) | one_of(None))
    warmup: int | None = setting(None, whole(0) | one_of(None))
    chains: int = setting(1, whole(1))
    n_jobs: int | None = setting(None, JOBS)
    random_state: int | np.random.Generator | None = setting(None, RANDOM_STATE)
