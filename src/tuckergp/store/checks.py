"""Whether the parts of a model that was read fit together, so that no index leads compiled code astray.

A file that is whole but inconsistent, as only an edited one is, is refused here. Sparse matrices are checked where
they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tuckergp.compute.contract import FULL, IDENTITY, SPARSE
from tuckergp.data.columns import Encoder
from tuckergp.data.history import History
from tuckergp.features import Chain
from tuckergp.model.cores import LEFT_OUT
from tuckergp.model.design import FittedMode
from tuckergp.model.tucker import Core
from tuckergp.params import Parameters
from tuckergp.posterior.draws import Draw
from tuckergp.recommender.entities import Side
from tuckergp.recommender.layout import Layout
from tuckergp.running.fit import Fit, OrdinalFit

__all__ = ["check_recommender", "check_regressor"]


class Size(NamedTuple):
    """Rows of U of a mode, and the knots and the order of its chain, if it has one."""

    features: int
    line: tuple[int, int] | None


def check_recommender(layout: Layout, history: History, fit: Fit) -> None:
    """Refuse, with a ValueError, a recommender whose parts do not fit together."""
    _check(isinstance(layout, Layout) and isinstance(history, History), "its parts are of other classes")
    _check(len(layout.sides) == 2, "it has no users or items")
    for side in layout.sides:
        _check_side(side)
    for side, codes, ids in zip(layout.sides, history.codes, history.ids, strict=True):
        _check(len(codes) == len(history.rating), "its ratings differ in length")
        _check(len(ids) <= len(side.number), "it has ratings of more users or items than it knows")
        _check(_inside(codes, len(ids)), "its ratings are of users or items that it does not have")
    for mode in layout.modes:
        _check_mode(mode)
    sides = [Size(side.table.n_features, None) for side in layout.sides]
    _check_fit(fit, [*sides, *(_size(circumstance.mode) for circumstance in layout.circumstances)])


def check_regressor(modes: Sequence[FittedMode], fit: Fit) -> None:
    """Refuse, with a ValueError, a regressor whose parts do not fit together."""
    for mode in modes:
        _check_mode(mode)
    _check_fit(fit, list(map(_size, modes)))


def _check(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)


def _inside(numbers: Any, end: int) -> bool:
    values = np.asarray(numbers)
    return bool(values.dtype.kind in "iu" and (values.size == 0 or (values.min() >= 0 and values.max() < end)))


def _check_side(side: Side) -> None:
    _check(isinstance(side, Side), "its users or items are of another class")
    _check(list(side.number.values()) == list(range(len(side.number))), "its ids are not numbered in order")
    # the last row is for ids that are not known
    _check(side.table.n_rows == len(side.number) + 1, "it does not have one row of features for every id")
    _check(side.table.line is None, "its users or items lie on a line")
    residual = side.table.residual
    _check(residual is None or residual.shape[0] == side.table.n_rows, "its features differ in length")


def _check_mode(mode: FittedMode) -> None:
    _check(isinstance(mode, FittedMode), "its modes are of another class")
    for block in mode.blocks:
        _check_map(block.map)
    if mode.residual is not None:
        _check_map(mode.residual)


def _check_map(fitted: Any) -> None:
    """The levels of encoders become columns of sparse matrices."""
    for part in _parts(fitted):
        if isinstance(part, Encoder):
            numbers = list(part.levels.values())
            _check(numbers == list(range(len(numbers))), f"the levels of {part.name!r} are not numbered in order")


def _parts(thing: Any) -> Iterator[Any]:
    yield thing
    if isinstance(thing, Parameters):
        for value in vars(thing).values():
            yield from _parts(value)
    elif isinstance(thing, list | tuple):
        for value in thing:
            if not isinstance(value, str):
                yield from _parts(value)


def _size(mode: FittedMode) -> Size:
    width = sum(block.map.n_features_ for block in mode.blocks)
    if isinstance(mode.residual, Chain):
        return Size(width, (len(mode.residual.knots_), mode.residual.order_))
    return Size(width + (0 if mode.residual is None else mode.residual.n_features_), None)


def _check_fit(fit: Fit, sizes: Sequence[Size]) -> None:
    _check(isinstance(fit, Fit), "what it learned is of another class")
    core = fit.draws.model.core
    _check_core(core, len(sizes))
    levels = len(fit.levels) if isinstance(fit, OrdinalFit) else 1
    for draw in fit.draws:
        _check_draw(draw, core, sizes, levels)


def _check_core(core: Core, modes: int) -> None:
    _check(core.kind in (IDENTITY, FULL, SPARSE), "its core is of an unknown kind")
    _check(core.ranks.dtype == np.int64 and core.ranks.shape == (modes,), "its core has other modes")
    _check(bool((core.ranks > 0).all()), "its core has no ranks")
    _check(core.kind != IDENTITY or len(set(core.ranks.tolist())) == 1, "its core has several ranks")
    _check(core.coords.dtype == np.int64 and core.coords.ndim == 2, "its core is misshapen")
    _check(core.coords.shape[1] == modes, "its core is misshapen")
    for d in range(modes):
        column = core.coords[:, d]
        _check(_inside(column[column != LEFT_OUT], int(core.ranks[d])), "its core has entries outside")


def _check_draw(draw: Draw, core: Core, sizes: Sequence[Size], levels: int) -> None:
    _check(isinstance(draw, Draw), "its draws are of another class")
    parameters, ranks = draw.parameters, core.ranks.tolist()
    _check(len(parameters.U) == len(sizes), "its draws have other modes than its core")
    _check(len(draw.noise) == len(sizes), "its noise has other modes than its core")
    _check(parameters.W.shape == (core.n_weights,), "its draws have another core")
    _check(draw.cuts.shape == (levels - 1,), "its draws have other cut points than levels")
    paths = parameters.paths or (None,) * len(sizes)
    for U, path, size, rank in zip(parameters.U, paths, sizes, ranks, strict=True):
        _check(U.dtype.kind == "f" and U.shape == (size.features, rank), "its draws have other features than its modes")
        _check((path is None) == (size.line is None), "its draws have other chains than its modes")
        if path is not None and size.line is not None:
            _check(path.states.shape == (*size.line, rank), "its draws have other chains than its modes")
    for covariance, rank in zip(draw.covariance, ranks, strict=False):
        _check(covariance.shape == (rank, rank), "its draws have covariances of other ranks")
