"""Consistency checks of a model read from a file, so that compiled code never gets an index out of bounds.

An intact file that is inconsistent must have been edited; it is refused here, for what both estimators share. Sparse
matrices are checked where they are read, and the draws of rows when they are first used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from tuckergp.compute.contract import FULL, IDENTITY, SPARSE
from tuckergp.data.columns import Encoder
from tuckergp.features.base import FeatureMap, ResidualMap
from tuckergp.features.new import NewFeatures
from tuckergp.likelihoods import Likelihood
from tuckergp.likelihoods.row_noise import LEAST, NU
from tuckergp.model.block import Block
from tuckergp.model.cores import LEFT_OUT
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.model.newcomers import Newcomers
from tuckergp.model.tucker import Core, TuckerModel
from tuckergp.params import Parametrised
from tuckergp.posterior.draws import Draws
from tuckergp.posterior.fitted import Fit
from tuckergp.residuals.base import ModeDraws

__all__ = ["check_fit", "check_modes", "check_new", "inside", "require"]

Shape = tuple[int, ...]

# Within these bounds the variance of a residual, and its inverse, are far from the largest and the least numbers.
RESIDUAL_SD = (1e-50, 1e50)

# Relative to the entry of the matrix, a pivot of Cholesky's algorithm that is 0 but for rounding.
ROUNDING = 1e-14


def require(condition: Any, what: str) -> None:
    """Raise a ValueError that says ``what`` is wrong unless the condition holds."""
    if not condition:
        raise ValueError(what)


def inside(numbers: Any, end: int, start: int = 0) -> bool:
    """Whether all are whole numbers from ``start`` to ``end`` - 1."""
    values = np.asarray(numbers)
    return bool(values.dtype.kind in "iu" and (values.size == 0 or (values.min() >= start and values.max() < end)))


def check_modes(modes: Sequence[FittedMode]) -> None:
    """Raise a ValueError for modes whose parts do not fit together."""
    for mode in modes:
        require(isinstance(mode, FittedMode), "its modes are of another class")
        start = 0
        for block in mode.blocks:
            require(isinstance(block, Block), "its features are of another class")
            _check_map(block.map)
            read = (kernel.reads(mode.mode.columns) for kernel in (block.kernel, block.map.kernel_))
            require(len(set(map(tuple, read))) == 1, "its features are of other columns than their kernel")
            end = start + block.map.n_features_
            require(block.columns == slice(start, end), "its features do not lie side by side")
            start = end
        require(mode.set_block is None or inside(mode.set_block, len(mode.blocks)), "its set is no block")
        if mode.residual is not None:
            require(isinstance(mode.residual, ResidualMap), "its residuals are of another class")
            _check_map(mode.residual)
            low, high = RESIDUAL_SD
            require(low <= mode.residual_sd <= high, "the scale of its residuals is none")


def _check_map(fitted: Any) -> None:
    """Check that levels and distinct rows, which become columns of sparse matrices, are numbered in order."""
    require(_is_fitted(fitted), "its features were not learned")
    for piece in _parts(fitted):
        if isinstance(piece, Encoder):
            numbers = list(piece.levels.values())
            require(numbers == list(range(len(numbers))), f"the levels of {piece.name!r} are not numbered in order")
        if isinstance(piece, FeatureMap) and any(name.endswith("_") for name in vars(piece)):
            require(_is_fitted(piece), "its features were not learned")
            fault = piece.fault()
            require(fault is None, str(fault))


def _is_fitted(fitted: Any) -> bool:
    return isinstance(fitted, FeatureMap) and hasattr(fitted, "n_features_") and hasattr(fitted, "kernel_")


def _parts(thing: Any) -> Iterator[Any]:
    yield thing
    if isinstance(thing, Parametrised):
        for name, value in vars(thing).items():
            if name != "feature_names_":  # a list of text, and long
                yield from _parts(value)
    elif isinstance(thing, list | tuple):
        for value in thing:
            if not isinstance(value, str):
                yield from _parts(value)


def check_fit(fit: Fit, modes: Sequence[FittedMode]) -> None:
    """Raise a ValueError for a fit whose draws do not fit to these modes."""
    require(isinstance(fit, Fit) and isinstance(fit.draws, Draws), "what it learned is of another class")
    draws, model = fit.draws, fit.draws.model
    require(isinstance(model, TuckerModel) and isinstance(model.core, Core), "its core is of another class")
    require(isinstance(model.likelihood, Likelihood), "its likelihood is of another class")
    _check_core(model.core, len(modes))
    _check_numbers({"sigma_u": model.sigma_u}, {"sigma_u": (len(modes),)})
    lengths = draws.lengths
    require(all(type(length) is int and length >= 0 for length in lengths), "its chains have no lengths")
    require(sum(lengths) == len(draws), "its chains have other lengths")
    require(draws.names.dtype == np.int64 and draws.names.shape == (len(draws), 2), "its draws have no names")
    require((draws.names >= 0).all(), "its draws have no names")
    if not len(draws):  # moments alone were kept
        return
    unknowns = {name: np.shape(value) for name, value in model.likelihood.unknowns().items()}
    _check_numbers({"W": draws.W}, {"W": (model.core.n_weights,)}, len(draws))
    _check_numbers(draws.unknowns, unknowns, len(draws))
    fault = model.likelihood.fault(draws.unknowns)
    require(fault is None, str(fault))
    if NU in draws.unknowns:
        _check_numbers(draws.unknowns, {NU: (len(modes),)}, len(draws))
        require((draws.unknowns[NU] >= LEAST).all(), f"{NU} is below {LEAST:g}")
    require(len(draws.modes) == len(modes), "its draws have other modes than its core")
    for own, mode, r in zip(draws.modes, modes, model.core.ranks.tolist(), strict=True):
        _check_mode_draws(own, mode, r, len(draws), np.dtype(np.float32 if draws.sampled else np.float64))


def check_new(new: Any, rows: int, blocks: int) -> None:
    """Raise a ValueError for features that training did not have which do not fit to a table."""
    require(isinstance(new, NewFeatures), "its new features are of another class")
    count = len(new.keys)
    require(new.keys.dtype == np.uint64 and new.keys.shape == (count,), "its new features have no keys")
    require(new.block.shape == (count,) and inside(new.block, blocks), "its new features are of no block")
    require(
        isinstance(new.values, sparse.csr_array) and new.values.shape == (rows, count),
        "its new features have another shape",
    )


def _check_core(core: Core, modes: int) -> None:
    require(core.kind in (IDENTITY, FULL, SPARSE), "its core is of an unknown kind")
    require(core.ranks.dtype == np.int64 and core.ranks.shape == (modes,), "its core has other modes")
    require((core.ranks > 0).all(), "its core has no ranks")
    require(core.kind != IDENTITY or len(set(core.ranks.tolist())) == 1, "its core has several ranks")
    require(core.coords.dtype == np.int64 and core.coords.ndim == 2, "its core is misshapen")
    require(core.coords.shape[1] == modes, "its core is misshapen")
    for d in range(modes):
        column = core.coords[:, d]
        require(inside(column[column != LEFT_OUT], int(core.ranks[d])), "its core has entries outside")


def _check_numbers(arrays: Mapping[str, Any], shapes: Mapping[str, Shape], count: int | None = None) -> None:
    """Check that arrays in memory are finite floats of these shapes, ``count`` times each where it is given."""
    require(arrays.keys() >= shapes.keys(), "its draws lack something")
    for name, shape in shapes.items():
        values = arrays[name]
        require(isinstance(values, np.ndarray) and values.dtype == np.float64, f"{name} has other numbers")
        require(values.shape == (shape if count is None else (count, *shape)), f"{name} has another shape")
        require(np.isfinite(values).all(), f"{name} is not finite")


def _check_mode_draws(own: ModeDraws, mode: FittedMode, r: int, count: int, dtype: np.dtype[Any]) -> None:
    require(isinstance(own, ModeDraws), "its draws are of another class")
    by_row, besides = ({}, {}) if mode.residual is None else mode.residual.kept(r)
    features = sum(block.map.n_features_ for block in mode.blocks)
    if mode.set_block is not None:
        besides = besides | Newcomers.shapes(features - mode.blocks[mode.set_block].map.n_features_, r)
    require(own.rows.keys() >= by_row.keys(), "its draws lack rows of its modes")
    shapes = {"B": (features, r)} | by_row
    for name, (rows, *shape) in shapes.items():
        values = own.B if name == "B" else own.rows[name]
        require(values.dtype == dtype, "its draws have other numbers")
        require(values.shape == (rows, count, *shape), "its draws have other rows, ranks or numbers than its modes")
    for values in (own.B, own.row_noise, *own.rows.values()):
        require(not isinstance(values, np.ndarray) or np.isfinite(values).all(), "its draws are not finite")
    if own.row_noise is not None:
        require(own.row_noise.dtype == dtype, "its noise has other numbers")
        require(not isinstance(own.row_noise, np.ndarray) or (own.row_noise > 0).all(), "its noise is not positive")
        require(own.row_noise.shape == (mode.n_groups, count), "its noise has other rows than its modes")
    scales = {"spread": (r, r), "tau": (len(mode.blocks),)}
    _check_numbers(own.values, besides | {name: scales[name] for name in scales if name in own.values}, count)
    require(("spread" in own.values) == ("tau" in own.values), "its draws lack something")
    for name in ("tau", "lengthscale", "share"):
        require((own.values.get(name, np.ones(1)) > 0).all(), f"{name} is not positive")
    _check_numbers({"covariance": own.covariance}, {"covariance": (r, r)}, count)
    require(mode.residual is None or _are_positive(own.covariance), "covariance is not positive definite")
    require("spread" not in own.values or _are_positive(own.values["spread"]), "spread is not positive definite")


def _are_positive(matrices: Any) -> bool:
    """Whether matrices are symmetric and positive definite, as draws of them are."""
    for first in range(0, len(matrices), 1000):  # some at a time, for little memory
        some = matrices[first : first + 1000]
        if not np.allclose(some, np.swapaxes(some, -1, -2), rtol=1e-6):
            return False
        try:
            pivots = np.diagonal(np.linalg.cholesky(some), axis1=-2, axis2=-1) ** 2
        except np.linalg.LinAlgError:
            return False
        if (pivots <= ROUNDING * np.diagonal(some, axis1=-2, axis2=-1)).any():  # a singular matrix may pass by rounding
            return False
    return True
