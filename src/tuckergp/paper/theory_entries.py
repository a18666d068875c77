"""Entries of W x_d U_d' under the prior against N(0, 1): moments, distances and quantiles by rank.

Entries are drawn by the library's own cores and models with unit-vector features. Some rows share a core; standard
errors are taken over cores, which are independent.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import ndtr, ndtri

from tuckergp.likelihoods import Gaussian
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import SparseCore, TuckerModel, make_core
from tuckergp.paper.experiment import Figures
from tuckergp.random import stream

__all__ = ["CORES", "LEVELS", "CoreName", "draw_entries", "fourth_moment", "leading_distance", "nonzeros", "summary"]

Floats = npt.NDArray[np.float64]
CoreName = Literal["full", "identity", "sparse"]
CORES: tuple[CoreName, ...] = ("full", "identity", "sparse")

ROWS_A_RANK = 10
"""The number of entries that share a core, per unit of rank: their dependence falls with the rank."""
LEVELS = np.arange(1, 100) / 100
"""The levels of the quantiles that are kept."""


def nonzeros(modes: int, rank: int) -> int:
    """Q of the sparse cores here: 4 r, or all r^D entries where they are fewer."""
    return int(min(4 * rank, rank**modes))


def draw_entries(core: CoreName, modes: int, rank: int, count: int, seed: int) -> Floats:
    """Draw about ``count`` entries of W x_d U_d' with the default prior scales, (cores, rows): one line per core."""
    rows = ROWS_A_RANK * rank
    unit = ModeTable(sparse.csr_array(sparse.eye_array(rows)))
    design = Design((unit,) * modes, np.stack([np.arange(rows)] * modes, axis=1).astype(np.int32))
    spec = SparseCore(nonzeros(modes, rank)) if core == "sparse" else core
    rng = stream(seed, CORES.index(core), modes, rank)
    lines = []
    for _ in range(max(2, count // rows)):
        shape = make_core(spec, [rank] * modes, rng)
        model = TuckerModel(shape, Gaussian(1.0), shape.default_sigma_u(), shape.default_sigma_w())
        lines.append(model.predict(model.init(design, rng), design))
    return np.array(lines)


def fourth_moment(core: CoreName, modes: int, rank: int) -> float:
    """E f^4 of an entry in closed form; it tends to the 3 of N(0, 1).

    Given U, an entry of a core with Gaussian weights is normal, and its variance is a sum over the core's places of
    products of squares of entries of U. Two places that agree in m coordinates add 3^m to its second moment. All r^D
    places give 3 (1 + 2 / r)^D; Q of them at random 3^D for the Q pairs of a place with itself and, for the others,
    the mean of 3^m over distinct places. With the identity an entry is a sum of r independent products.

    Examples
    --------
    >>> [fourth_moment(core, modes=2, rank=1) for core in ("full", "identity", "sparse")]
    [27.0, 9.0, 27.0]
    """
    D, r = modes, rank
    if core == "identity":
        return 3.0 + (3.0**D - 3.0) / r
    Q, places = nonzeros(D, r) if core == "sparse" else r**D, r**D
    distinct = ((r + 2.0) ** D - 3.0**D) / (places - 1) if places > 1 else 0.0
    return 3.0 * (3.0**D / Q + (1 - 1 / Q) * distinct)


def leading_distance(fourth: float) -> float:
    """The first term of Edgeworth's expansion of the largest distance to the normal distribution function.

    The symmetric density has no third moment, so the term is (E f^4 - 3) / 24 max |x^3 - 3 x| phi(x).

    Examples
    --------
    >>> round(leading_distance(4.0), 4)
    0.0229
    """
    x = np.sqrt(3 - np.sqrt(6))  # a root of the derivative, x^4 - 6 x^2 + 3
    return float((fourth - 3) / 24 * abs(x**3 - 3 * x) * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))


def summary(core: CoreName, modes: int, rank: int, count: int, seed: int = 0) -> Figures:
    """First four moments with standard errors, distances to N(0, 1), and 99 quantiles."""
    entries = draw_entries(core, modes, rank, count, seed)
    cores, size = len(entries), entries.size
    values = np.sort(entries, axis=None)
    normal = ndtr(values)
    steps = np.arange(size + 1) / size
    moments = {f"moment {k}": _mean_and_error((entries**k).mean(axis=1)) for k in (1, 2, 3, 4)}
    return {
        "cores": cores,
        "entries": size,
        **moments,
        "fourth": round(fourth_moment(core, modes, rank), 5),
        "kolmogorov": round(float(max(np.abs(normal - steps[1:]).max(), np.abs(normal - steps[:-1]).max())), 5),
        "leading": round(leading_distance(fourth_moment(core, modes, rank)), 5),
        "wasserstein": round(float(np.abs(values - ndtri((steps[1:] + steps[:-1]) / 2)).mean()), 5),
        "quantiles": [round(float(q), 3) for q in np.quantile(values, LEVELS)],
    }


def _mean_and_error(lines: Floats) -> list[float]:
    return [round(float(lines.mean()), 5), round(float(lines.std(ddof=1) / np.sqrt(len(lines))), 5)]
