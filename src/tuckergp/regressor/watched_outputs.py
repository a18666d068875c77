"""What was watched while sampling a model of several outputs, as variables of each output in its units."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.data.tables import Table
from tuckergp.posterior.export import Watched
from tuckergp.regressor.learning import FittedRegressor
from tuckergp.regressor.outputs import Outputs

__all__ = ["by_output"]

Floats = npt.NDArray[np.float64]


def by_output(found: Watched, outputs: Outputs, fitted: FittedRegressor) -> Watched:
    """The variables with one of each output in place of all: ``f_NAME``, ``noise_NAME``, and ``NAME`` for y.

    Observations are then the rows of Y. Other variables have no units, but ``train_rmse``, which stays in standard
    deviations of the outputs.
    """
    inputs, codes = np.divmod(np.array(fitted.fit.draws.observations, dtype=np.intp), len(outputs.names))
    groups = {
        group: {k: v for k, v in own.items() if k not in ("f", "y", "noise")} for group, own in found.groups.items()
    }
    dims, coords = dict(found.dims), {"block": found.coords["block"]}
    noise = _noise(found, outputs, fitted)
    for k, name in enumerate(outputs.names):
        at = np.flatnonzero(codes == k)
        mean, scale, along = outputs.means[k], outputs.scales[k], f"row_{name}"
        dims |= {f"f_{name}": [along], name: [along]}
        coords[along] = inputs[at].tolist()
        for group, own in found.groups.items():
            if "f" in own:
                groups[group][f"f_{name}"] = mean + scale * own["f"][..., at]
            if "y" in own:
                logs = group == "log_likelihood"
                groups[group][name] = own["y"][..., at] - np.log(scale) if logs else mean + scale * own["y"][..., at]
        if noise is not None:
            groups["posterior"][f"noise_{name}"] = scale * noise[k]
    return Watched(groups, dims, coords)


def _noise(found: Watched, outputs: Outputs, fitted: FittedRegressor) -> Floats | None:
    """Standard deviations of the noise of each standardised output, (K, chains, draws); None where they are not known.

    They are where no output has noise of its own, or where all draws were kept.
    """
    noise = found.groups["posterior"].get("noise")
    if noise is None:
        return None
    draws = fitted.fit.draws
    d = next(d for d, mode in enumerate(fitted.modes) if mode.mode.columns == (outputs.column,))
    if draws.modes[d].row_noise is None:
        return np.broadcast_to(noise, (len(outputs.names), *noise.shape))
    if [len(chain["f"]) for chain in draws.watched] != list(draws.lengths):
        return None
    table = Table({outputs.column: np.array(outputs.names, dtype=object)}, "outputs", len(outputs.names))
    own, rows = fitted.modes[d].transform(table)
    chains = np.split(draws.row_factors(d, own)[rows], np.cumsum(draws.lengths)[:-1], axis=1)
    return noise / np.sqrt(np.stack([chain[:, : noise.shape[1]] for chain in chains], axis=1))
