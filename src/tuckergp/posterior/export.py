"""Export of draws to ArviZ, for its plots and summaries: of identifiable quantities only, never of raw U or W."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.errors import InputError
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.posterior.draws import Draws

__all__ = ["as_inference_data", "block_names"]

Floats = npt.NDArray[np.float64]


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


def as_inference_data(draws: Draws, blocks: Sequence[str]) -> Any:
    """ArviZ's container of the watched quantities, in the units of the targets.

    `arviz.InferenceData` up to ArviZ 0.x, `xarray.DataTree` from 1.0 on. Chains that were stopped early are cut to the
    shortest.
    """
    if not draws.sampled:
        raise InputError("A MAP estimate has no draws to hand over; use inference='gibbs'.")
    if not draws.watched:
        raise InputError("Variational inference has no chains to hand over; use inference='gibbs'.")
    try:
        arviz: Any = import_module("arviz")
    except ImportError as error:
        raise ImportError("inference_data() needs ArviZ: pip install 'tuckergp[arviz]'.") from error
    shortest = min(len(chain["f"]) for chain in draws.watched)
    watched = {name: np.stack([chain[name][:shortest] for chain in draws.watched]) for name in draws.watched[0]}
    likelihood = draws.model.likelihood
    log_likelihood = watched.pop("log_likelihood") - np.log(likelihood.scale)
    posterior = {"f": likelihood.mean + likelihood.scale * watched.pop("f")}
    posterior |= {name: values for name, values in likelihood.in_units(watched).items() if values.size}
    dims = {"f": ["observation"], "y": ["observation"], "tau": ["block"], **likelihood.dims}
    coords = {"observation": draws.observations, "block": list(blocks)}
    groups = {"posterior": posterior, "log_likelihood": {"y": log_likelihood}}
    if int(version("arviz").split(".")[0]) >= 1:
        return arviz.from_dict(groups, dims=dims, coords=coords)
    return arviz.from_dict(**groups, dims=dims, coords=coords)
