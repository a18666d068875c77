"""A core with a learned pattern: spike and slab (Mitchell and Beauchamp 1988), entries exactly 0 or N(0, sigma_w^2).

Unlike a shrinkage prior such as the horseshoe, entries are exactly 0, so that sweeps and predictions get cheaper and
each entry has a probability of being included. A global scale of shrinkage would also be poorly identified, because U
compensates for any change of the scale of W; here the scale of the slab is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tuckergp.compute.contract import evaluate
from tuckergp.compute.selection import draw_entries
from tuckergp.likelihoods.precision import Precision
from tuckergp.model.cores import inclusion_prior
from tuckergp.model.tucker import Core, pack

__all__ = ["entries_given_factors"]

Floats = npt.NDArray[np.float64]


def entries_given_factors(
    core: Core,
    psi: Sequence[Floats],
    index: npt.NDArray[np.int32],
    y: Floats,
    precision: Precision,
    prior: float,
    last: Floats,
    rng: np.random.Generator,
) -> Floats:
    """Draw every entry of W once, in random order, each given the others: whether it is included, then its value.

    Parameters
    ----------
    core : Core
        Sparse, with a ``share`` below 1.
    psi : sequence of ndarray, shapes (M_d, r_d)
    index : ndarray of int32, shape (N, D)
    y : ndarray, shape (N,)
        Targets.
    precision : Precision
        Of the noise.
    prior : float
        Precision of an entry that is included.
    last : ndarray, shape (Q,)
        The present entries; 0 for those that are not included.
    """
    flat, start = pack(psi)
    residual = y - evaluate(core.kind, last, core.coords, core.ranks, flat, start, index)
    w, n = last.copy(), core.n_weights
    order, uniform, normal = rng.permutation(n), rng.random(n), rng.standard_normal(n)
    # P(entry included) ~ Beta(a, b)
    a, b = inclusion_prior(core.share)
    draw_entries(
        order, w, core.coords, core.ranks, flat, start, index,
        residual, precision.at(index), prior, a, b, uniform, normal,
    )  # fmt: skip
    return w
