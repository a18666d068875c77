"""Export of draws to ArviZ, for its plots and summaries: of identifiable quantities only, never of raw U or W."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.inference.base import Info
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.posterior.draws import Draws

__all__ = ["Watched", "as_inference_data", "block_names", "watched_of"]

Floats = npt.NDArray[np.float64]

# Figures of a step, and what ArviZ calls them.
STATISTICS = {
    "lp": "lp",
    "energy": "energy",
    "acceptance": "acceptance_rate",
    "step_size": "step_size",
    "leapfrogs": "n_steps",
    "depth": "tree_depth",
    "train_rmse": "train_rmse",
    "log_probability": "log_probability",
}


def block_names(modes: Sequence[FittedMode], names: Sequence[str] | None = None) -> list[str]:
    """Labels of the feature blocks: mode and kernel, with a number where two are alike."""
    labels: list[str] = []
    for name, mode in zip(names or [mode.mode.name for mode in modes], modes, strict=True):
        for block in mode.blocks:
            kernel, _ = block.kernel.unscaled()
            label = f"{name}: {kernel!r}"
            count = sum(known == label or known.startswith(f"{label} (") for known in labels)
            labels.append(f"{label} ({count + 1})" if count else label)
    return labels


class Watched(NamedTuple):
    """What was watched while sampling, as ArviZ takes it.

    Attributes
    ----------
    groups : dict of str to dict of str to ndarray
        Variables by name in groups by name; chain and draw are the first axes, but of observed data.
    dims : dict of str to list of str
        The names of the other axes of variables.
    coords : dict of str to list
        What the places along axes are called.
    """

    groups: dict[str, dict[str, npt.NDArray[Any]]]
    dims: dict[str, list[str]]
    coords: dict[str, Sequence[Any]]


def watched_of(draws: Draws, blocks: Sequence[str], steps: Sequence[Info] = ()) -> Watched:
    """The watched quantities in the units of the targets.

    ``steps`` have the figures of each step; those of the draws become sampler statistics. Chains that were stopped
    early are cut to the shortest.
    """
    if not draws.sampled:
        raise InputError("A MAP estimate has no draws to hand over; use inference='gibbs'.")
    if not draws.watched:
        raise InputError("Variational inference has no chains to hand over; use inference='gibbs'.")
    shortest = min(len(chain["f"]) for chain in draws.watched)
    watched = {name: np.stack([chain[name][:shortest] for chain in draws.watched]) for name in draws.watched[0]}
    likelihood = draws.model.likelihood
    at = watched.pop("step", np.zeros((len(draws.watched), 0)))
    predictive = {"y": watched.pop("replicate")} if "replicate" in watched else {}
    log_likelihood = watched.pop("log_likelihood") - np.log(likelihood.scale)
    posterior = {"f": likelihood.mean + likelihood.scale * watched.pop("f")}
    posterior |= {name: values for name, values in likelihood.in_units(watched).items() if values.size}
    groups = {
        "posterior": posterior,
        "log_likelihood": {"y": log_likelihood},
        "posterior_predictive": predictive,
        "sample_stats": _statistics(steps, at, likelihood.scale),
        "observed_data": {"y": np.asarray(draws.targets)} if draws.targets else {},
    }
    dims = {"f": ["observation"], "y": ["observation"], "tau": ["block"], **likelihood.dims}
    coords = {"observation": draws.observations, "block": list(blocks)}
    return Watched({name: values for name, values in groups.items() if values}, dims, coords)


def as_inference_data(watched: Watched) -> Any:
    """ArviZ's container: `arviz.InferenceData` up to ArviZ 0.x, `xarray.DataTree` from 1.0 on."""
    try:
        arviz: Any = import_module("arviz")
    except ImportError as error:
        raise ImportError("inference_data() needs ArviZ: pip install 'tuckergp[arviz]'.") from error
    groups, dims, coords = watched
    if int(version("arviz").split(".")[0]) >= 1:
        return arviz.from_dict(groups, dims=dims, coords=coords)
    return arviz.from_dict(**groups, dims=dims, coords=coords)


def _statistics(steps: Sequence[Info], at: Floats, scale: float) -> dict[str, npt.NDArray[Any]]:
    """Figures of the steps ``at`` (chains, draws) that draws were kept at, by ArviZ's names; none where not known."""
    by_step = {(info.chain, info.step): info.figures for info in steps}
    own = [[by_step.get((chain, int(step)), {}) for step in row] for chain, row in enumerate(at)]
    names = set.intersection(*(set(figures) for row in own for figures in row)) if at.size else set()
    found: dict[str, npt.NDArray[Any]] = {
        STATISTICS[name]: np.array([[figures[name] for figures in row] for row in own])
        for name in STATISTICS
        if name in names
    }
    if "train_rmse" in found:
        found["train_rmse"] = scale * found["train_rmse"]
    if "divergences" in names:  # the figure counts those so far
        before = [[by_step.get((chain, int(step) - 1), {}) for step in row] for chain, row in enumerate(at)]
        count = np.array([[figures["divergences"] for figures in row] for row in own])
        found["diverging"] = count > np.array([[figures.get("divergences", 0.0) for figures in row] for row in before])
    return found
