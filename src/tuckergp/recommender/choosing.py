"""Defaults of a recommender: the inference that a name stands for, co-rating kernels, drift over time.

Settings that cannot be combined are refused here. The values that single parameters may have are declared in
`tuckergp.recommender.settings`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tuckergp.data.history import TIMESTAMP, History
from tuckergp.data.periods import Unit
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.inference.algorithm import Sampled
from tuckergp.model.cores import Learned
from tuckergp.recommender.decisions import Choice
from tuckergp.recommender.layout import SIDES
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.running.fit import Inference, resolve_inference

__all__ = ["LARGEST_IMPLICIT", "attribute_choices", "check_context", "inference_of", "time_unit", "uses_implicit"]

LARGEST_IMPLICIT = 1_000_000


def inference_of(settings: RecommenderSettings) -> Inference:
    """The inference object that the settings ask for; a name stands for one with settings for ratings."""
    # With the noise fixed, one number decides how much most probable values shrink, and trials find it. The steps of
    # SGD, which fall to zero, did well on held-out parts of MovieLens 100K's training data and on little data.
    shrunk = {"noise": 1.0, "sigma_u": "auto"}
    steps = {"epochs": 20, "step_u": 0.01, "schedule": "linear", "validation": 0.0}
    tuned = {"als": shrunk, "sgd": {**shrunk, **steps}}
    kind = settings.kind
    noise = kind.default_noise if settings.noise == "auto" else settings.noise
    inference = resolve_inference(settings, kind, tuned, noise, ratings=True)
    if not (isinstance(inference, Sampled) or inference.learns(kind)):
        raise InputError(f"likelihood={kind.name!r} needs inference={kind.sampler!r}, not {inference!r}.")
    return inference


def check_context(settings: RecommenderSettings, inference: Inference) -> None:
    """Raise an error for context columns that the inference or the core does not support."""
    pattern = settings.core.candidates if isinstance(settings.core, Learned) else settings.core
    able = pattern in ("identity", "superdiagonal", "cp", "pairwise")
    if settings.contexts and not (inference.weighs_blocks and able):
        raise InputError(
            "Context needs inference='gibbs' and a core that is 'identity', 'superdiagonal' or 'pairwise'; else "
            "use context=()."
        )


def uses_implicit(settings: RecommenderSettings, inference: Inference, history: History) -> bool:
    """Whether to use co-rating kernels: users are similar if they rated the same items, items if by the same users."""
    if settings.implicit == "auto":
        return inference.weighs_blocks and len(history) <= LARGEST_IMPLICIT and not history.clicks
    if settings.implicit and history.clicks:
        raise InputError("Co-rating is what clicks are learned from already; use implicit=False.")
    return bool(settings.implicit)


def attribute_choices(settings: RecommenderSettings) -> Mapping[str, Mapping[str, Choice]] | None:
    """The user's choices of how to use attributes; None without side information."""
    for name in settings.attributes or {}:
        if name not in SIDES:
            raise InputError(f"attributes has choices for 'users' and for 'items', not for {name!r}.")
    return settings.attributes if settings.side_information else None


def time_unit(
    settings: RecommenderSettings, inference: Inference, table: Table, clicks: bool, helps: Callable[[], bool]
) -> Unit | None:
    """The unit of drift from ``time``; ``"auto"`` means weeks where drift is possible and ``helps`` says so."""
    if settings.time is None:
        return None
    possible = inference.weighs_blocks and settings.core == "identity"
    if settings.time == "auto":
        return "week" if possible and not clicks and TIMESTAMP in table.columns and helps() else None
    if not possible:
        raise InputError("Drift over time needs inference='gibbs' and core='identity'; else use time=None.")
    table[TIMESTAMP]  # says so if there is none
    return settings.time
