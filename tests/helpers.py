"""Small problems and NumPy twins shared by the tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from tuckergp.inference.base import Problem
from tuckergp.likelihoods import Gaussian
from tuckergp.model.design import Design
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import Parameters, SparseCore, TuckerModel, make_core
from tuckergp.residuals import NoResidual, Rows
from tuckergp.store.trees import digest


def quick_and_long(names, quick, long):
    """A test at two sizes: the quick one in every run, the long one before a release. Tuples for several names."""
    long = (long,) if isinstance(names, str) else long
    return pytest.mark.parametrize(names, [quick, pytest.param(*long, marks=pytest.mark.slow)])


def z_scores(changes):
    """Means in their standard errors, over independent repetitions. changes: array, shape (repetitions, functions)."""
    return changes.mean(axis=0) / np.maximum(changes.std(axis=0), 1e-12) * np.sqrt(len(changes))


def with_share_of_draws(sampler, share):
    """The same sampler with a share of its draws."""
    return replace(sampler, draws=round(share * sampler.draws))


def fingerprint(draws):
    """Equal for equal draws of equal chains."""
    return digest((draws.modes, draws.W, draws.unknowns, draws.lengths))


def random_design(rng, rows, features, n, kind="dense"):
    """D modes with given numbers of rows and features, n observations. kind: dense, sparse, rows or mixed."""
    modes = []
    for d, (M, p) in enumerate(zip(rows, features, strict=True)):
        table = rng.standard_normal((M, p))
        this = {"mixed": ("dense", "rows", "sparse")[d % 3]}.get(kind, kind)
        if this == "dense":
            modes.append(ModeTable(table))
        else:
            table[rng.random(table.shape) < 0.5] = 0.0
            residual = Rows.of(M, 0.7) if this == "rows" else NoResidual()
            modes.append(ModeTable(sparse.csr_array(table), residual))
    index = np.stack([rng.integers(M, size=n) for M in rows], axis=1).astype(np.int32)
    return Design(tuple(modes), index)


def core_of(name, ranks, rng):
    return make_core(SparseCore(max(1, int(np.prod(ranks)) // 2)) if name == "sparse" else name, ranks, rng)


def model_of(core, noise=0.5):
    return TuckerModel(core, Gaussian(noise), core.default_sigma_u(), core.default_sigma_w())


def random_problem(rng, core="full", ranks=(2, 3), kind="mixed", n=40, noise=0.5):
    design = random_design(rng, [6] * len(ranks), [4] * len(ranks), n, kind)
    model = model_of(core_of(core, list(ranks), rng), noise)
    truth = model.init(design, rng)
    y = model.predict(truth, design) + np.sqrt(noise) * rng.standard_normal(n)
    return Problem(model, design, y)


def dense_f(core, W, vectors):
    """W x_1 v_1 ... x_D v_D by tensordot."""
    tensor = core.dense(W)
    for v in vectors:
        tensor = np.tensordot(v, tensor, axes=(0, 0))
    return float(tensor)


def dense_others(core, W, vectors, d):
    """W x_{e != d} v_e by tensordot."""
    tensor = np.moveaxis(core.dense(W), d, -1)
    for e, v in enumerate(vectors):
        if e != d:
            tensor = np.tensordot(v, tensor, axes=(0, 0))
    return tensor


def flatten(parameters):
    return np.concatenate([*(U.ravel() for U in parameters.U), parameters.W])


def unflatten(vector, like):
    U, at = [], 0
    for table in like.U:
        U.append(vector[at : at + table.size].reshape(table.shape))
        at += table.size
    return Parameters(tuple(U), vector[at:])
