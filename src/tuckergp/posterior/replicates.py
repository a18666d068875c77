"""Replicated targets: what the model would have observed at training observations, for posterior predictive checks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuckergp.inference.base import Problem
from tuckergp.likelihoods.given import Predicted
from tuckergp.model.draw import Draw

__all__ = ["replicates"]

Floats = npt.NDArray[np.float64]


def replicates(problem: Problem, draw: Draw, f: Floats, rng: np.random.Generator) -> Floats:
    """Draw one new target for each observation of a problem, (N,), given f (N,) and the unknowns of one draw."""
    likelihood, offset = problem.model.likelihood, problem.offset
    # the offset of a count is the logarithm of mean rate times exposure
    exposure = None if offset is None else np.exp(offset - likelihood.mean)
    unknowns = {name: np.asarray(values)[None] for name, values in draw.unknowns.items()}
    factors = _noise_factors(problem, draw)
    at = Predicted(f[None], unknowns, None if factors is None else factors[None], exposure)
    return np.asarray(likelihood.sample(at, rng)[0])


def _noise_factors(problem: Problem, draw: Draw) -> Floats | None:
    """Products of the noise factors of the rows of each observation, (N,); None where all are 1."""
    product = None
    for d, (table, mode) in enumerate(zip(problem.design.modes, draw.modes, strict=True)):
        if mode.row_noise is not None:
            factors = mode.row_noise[table.groups[problem.design.index[:, d]]]
            product = factors if product is None else product * factors
    return product
