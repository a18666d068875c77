"""Reading of files of format 1.x: one object per draw, with the weights of one-hot rows and features in one matrix U.

All code for that format is here, so that it can be deleted one day. Classes that have changed since are read as plain
records, which `converted` turns into today's classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.columns import row_keys
from tuckergp.data.history import History
from tuckergp.data.ids import Ids
from tuckergp.data.tables import Table
from tuckergp.features import Exact, Line, Rows
from tuckergp.inference.base import Info
from tuckergp.likelihoods import LIKELIHOODS, Gaussian, Likelihood
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import TuckerModel
from tuckergp.posterior.draws import Draws
from tuckergp.posterior.fitted import Fit
from tuckergp.posterior.moments import Running
from tuckergp.residuals import rows as residuals
from tuckergp.residuals.base import ModeDraws
from tuckergp.store import packing, schema
from tuckergp.store.archive import OtherVersion
from tuckergp.store.cells import read_columns

__all__ = ["Unpacker", "converted"]

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Record: Any = SimpleNamespace

RENAMED = {"SparseCore": "Random", "Chain": "Line"}
CHANGED = {
    *("Draw", "Draws", "Parameters", "Path", "Fit", "OrdinalFit", "CountFit", "TuckerModel"),
    *("Gaussian", "Ordinal", "Poisson", "FittedMode", "ModeTable", "Side", "Circumstance", "Layout", "History", "Info"),
}


class Unpacker(packing.Unpacker):
    """Rebuilds a model of format 1.x, with plain records for classes that have changed since."""

    def kind(self, name: str) -> Any:
        """The class of a name, or the record that stands for a class that has changed."""
        return Record if name in CHANGED else schema.class_of(RENAMED.get(name, name))

    def build(self, kind: Any, fields: dict[str, Any]) -> Any:
        """Build an object from its fields."""
        return Record(**fields) if kind is Record else schema.build(kind, fields)

    def special(self, tag: str, content: Any) -> Any:
        """The value of ``{tag: content}``."""
        if tag == "count":
            return list(range(self._count(content)))
        if tag == "column":
            key, kind = content
            return read_columns(self.content.table(key), [kind])[0]
        if tag == "stack":
            n, structure = content
            return self._unstack(structure, self._count(n))
        return super().special(tag, content)

    def _count(self, n: Any) -> int:
        """A number of objects, checked against the size of the file: each takes at least one byte."""
        if type(n) is not int or not 0 <= n <= self.content.size:
            raise ValueError(f"{n} is more than there can be")
        return n

    def _unstack(self, structure: Any, n: int) -> list[Any]:
        """Objects of one class from tensors that each hold one field of all of them."""
        if "type" in structure:
            kind = self.kind(structure["type"])
            parts = {name: self._unstack(part, n) for name, part in structure["fields"].items()}
            return [self.build(kind, {name: part[i] for name, part in parts.items()}) for i in range(n)]
        ((tag, content),) = structure.items()
        if tag == "same":
            return [content] * n
        if tag == "tuple":
            columns = [self._unstack(part, n) for part in content]
            return [tuple(column[i] for column in columns) for i in range(n)]
        if tag == "dict":
            parts = {name: self._unstack(part, n) for name, part in content.items()}
            return [{name: part[i] for name, part in parts.items()} for i in range(n)]
        if tag == "each":
            values = self.decode(content)
        elif tag in ("floats", "ints"):
            values = self.arrays[content].tolist()
        else:
            values = [view.T if tag == "transposed" else view for view in self.arrays[content]]
        if len(values) != n:
            raise ValueError(f"{content} does not have {n} entries")
        return list(values)


def converted(state: dict[str, Any], likelihood: str) -> dict[str, Any]:
    """The fitted attributes of an estimator in today's classes; ``likelihood`` is the estimator's parameter."""
    fit = state["fit_"]
    observed = _likelihood(fit, likelihood)
    if "layout_" not in state:
        state["modes_"] = modes = tuple(map(_mode, state["modes_"]))
        tables = [_training_table(mode) for mode in modes]
        return {**state, "fit_": _fit(fit, observed, modes, tables)}
    layout, history = state["layout_"], _history(state["history_"])
    sides = [_side(side) for side in layout.sides]
    tables = [side.table.take(np.flatnonzero(side.table.seen)) for side in sides]
    circumstances = []
    for old in layout.circumstances:
        mode = _mode(old.mode)
        table, code = mode.transform(old.reader.inputs(history.codes[0], history.occasion))
        share = np.bincount(code, minlength=table.n_rows) / len(code)
        average = np.asarray(share @ table.features, dtype=np.float64)
        circumstances.append(_made("Circumstance", reader=old.reader, mode=mode, average=average))
        tables.append(table)
    made = _made("Layout", sides=tuple(sides), circumstances=tuple(circumstances))
    return {**state, "layout_": made, "history_": history, "fit_": _fit(fit, observed, made.modes, tables)}


def _made(name: str, **fields: Any) -> Any:
    return schema.class_of(name)(**fields)


def _history(old: Any) -> History:
    """The ratings, which were one table with their times."""
    table: Table = old.ratings
    moment = {name.removeprefix("moment."): table[name] for name in table.columns if name.startswith("moment.")}
    codes = (table["user"], table["item"])
    return History(old.ids, codes, table["rating"], replace(table, columns=moment), getattr(old, "clicks", False))


def _likelihood(fit: Any, name: str) -> Likelihood:
    """The likelihood with the scale of the targets, which was stored in the fit."""
    kind: Any = LIKELIHOODS[name]
    if kind is Gaussian:
        return Gaussian(fit.draws.model.likelihood.noise, fit.mean, fit.scale)
    if hasattr(fit, "levels"):
        made: Likelihood = kind(tuple(fit.draws.model.likelihood.cuts), tuple(fit.levels.tolist()))
        return made
    counts: Likelihood = kind(fit.mean)
    return counts


# Modes and sides


def _mode(old: Any) -> FittedMode:
    """A fitted mode, with a residual map of its own if it has one-hot rows."""
    mark = old.residual
    if isinstance(mark, Exact):
        mark = _mark(mark, np.arange(mark.n_features_, dtype=np.int32))
    return FittedMode(old.mode, old.whitening, old.blocks, mark, old.residual_scale)


def _mark(onehot: Exact, column: npt.NDArray[np.int32]) -> Rows:
    mark = Rows()
    mark.kernel_, mark.feature_names_, mark.n_features_ = onehot.kernel_, [], 0
    mark.onehot_, mark.column_ = onehot, column
    return mark


def _side(old: Any) -> Any:
    """Users or items: training rows in the order of the ids with ratings."""
    onehot, rows = old.table.residual, len(old.number) + 1
    column = onehot.indices[: old.n_rated].astype(np.int32)
    place = np.full(rows, -1, dtype=np.int32)
    place[: old.n_rated] = np.arange(old.n_rated)
    if onehot.shape != (rows, old.n_rated) or len(onehot.indices) != old.n_rated:
        raise ValueError("ids without ratings have rows")
    ids, names = list(old.number), np.zeros(rows, dtype=np.uint64)
    unseen = np.array([*ids[old.n_rated :], "<unknown>", None], dtype=object)[:-1]
    names[old.n_rated :] = row_keys(Table({old.key: unseen}, old.key, len(unseen)))
    residual = residuals.Rows(place, old.n_rated, old.mode.residual_scale, column, names)
    table = ModeTable(old.table.features, residual, old.table.constant, old.table.blocks, old.table.nested)
    mode = replace(_mode(old.mode), residual=_mark(old.mode.residual, column))
    average = np.asarray(table.features[: old.n_rated].mean(axis=0), dtype=np.float64).ravel()
    return _made(
        "Side",
        key=old.key,
        base=Ids(ids),
        table=table,
        attributes=old.attributes,
        mode=mode,
        n_rated=old.n_rated,
        average=average,
    )


def _training_table(mode: FittedMode) -> ModeTable:
    """The distinct training rows of a mode of a regressor, where its draws need them."""
    if not isinstance(mode.residual, Rows):
        knots = mode.residual.knots_ if isinstance(mode.residual, Line) else np.zeros(0)
        return ModeTable(np.zeros((len(knots), sum(block.map.n_features_ for block in mode.blocks))))
    rows: Table = mode.residual.onehot_.rows_
    if not set(mode.mode.columns) <= set(rows.columns):
        raise OtherVersion(
            f"was written in format 1, which has not kept all columns of the mode {mode.mode.name!r}: fit and save it "
            f"again."
        )
    return mode.table(rows)


# Draws


def _fit(old: Any, likelihood: Likelihood, modes: Sequence[FittedMode], tables: Sequence[ModeTable]) -> Fit:
    """The fit with draws at the training rows of each mode."""
    draws = old.draws
    core, sigma_u, sigma_w = draws.model.core, draws.model.sigma_u, draws.model.sigma_w
    kept = [draw for chain in draws.chains for draw in chain]
    # a MAP estimate had no covariances of new rows: they are those of the prior
    scales = [sigma * mode.residual_sd for sigma, mode in zip(sigma_u, modes, strict=True)]
    prior = [np.eye(int(r)) * scale**2 for r, scale in zip(core.ranks, scales, strict=True)]
    for draw in kept:
        draw.covariance = draw.covariance or prior
    whole = Draws(
        TuckerModel(core, likelihood, sigma_u, sigma_w),
        tuple(_mode_draws(d, kept, table, draws.sampled) for d, table in enumerate(tables)) if kept else (),
        np.stack([draw.parameters.W for draw in kept]) if kept else np.zeros((0, 0)),
        _unknowns(kept, likelihood),
        draws.sampled,
        tuple(map(len, draws.chains)),
        draws.traces,
        draws.watched,
        draws.observations,
        None if draws.moments is None else _moments(draws.moments, likelihood),
    )
    return Fit(whole, [Info(info.step, info.figures, info.done, info.chain) for info in old.history])


def _unknowns(kept: Sequence[Any], likelihood: Likelihood) -> dict[str, Floats]:
    """The parameters of the likelihood in all draws: the noise precision, or the cut points."""
    names = likelihood.unknowns() if kept else ()
    return {name: np.array([getattr(draw, name) for draw in kept], dtype=np.float64) for name in names}


def _mode_draws(d: int, kept: Sequence[Any], table: ModeTable, sampled: bool) -> ModeDraws:
    """The draws of one mode: U of one-hot rows becomes factors, psi = Phi B + scale E."""
    dtype: Any = np.float32 if sampled else np.float64
    U = np.stack([draw.parameters.U[d] for draw in kept], axis=1).astype(dtype)
    covariance = np.stack([draw.covariance[d] for draw in kept])
    residual = table.residual
    noise = None
    if kept[0].noise[d] is not None:
        noise = np.stack([draw.noise[d] for draw in kept], axis=1).astype(dtype)
    path = kept[0].parameters.paths[d] if kept[0].parameters.paths else None
    if path is not None:
        states = np.stack([draw.parameters.paths[d].states for draw in kept], axis=1).astype(dtype)
        lengthscale = np.array([draw.parameters.paths[d].lengthscale for draw in kept])
        return ModeDraws(U, covariance, {"states": states}, {"lengthscale": lengthscale}, noise)
    if not isinstance(residual, residuals.Rows):
        return ModeDraws(U, covariance, row_noise=noise)
    column = np.arange(residual.n_train) if residual.column is None else residual.column
    E, B = U[: residual.n_train][column], U[residual.n_train :]
    if table.nested is None and noise is not None:
        noise = noise[column]
    rows, place = np.flatnonzero(residual.seen), residual.place[residual.seen]
    if len(np.unique(place)) < residual.n_train:
        raise ValueError("rows were learned that are no longer there")
    psi = residual.sd * E.astype(np.float64)
    psi[place] += ModeDraws(B, covariance).mean(table.features[rows])
    return ModeDraws(B, covariance, {"psi": psi.astype(dtype)}, row_noise=noise)


def _moments(old: Mapping[str, Running], likelihood: Likelihood) -> dict[str, Running]:
    """Running moments in the units of the targets; those of levels and counts were so already."""
    if "probabilities" in old:
        probabilities, level = old["probabilities"], old["level"]
        levels: Floats = getattr(likelihood, "levels")  # noqa: B009
        centre = probabilities.mean @ levels
        noise = np.maximum(probabilities.mean @ levels**2 - centre**2, 0.0) - level.variance()
        made = {"mean": Running(centre, None, level.count), "noise": Running(noise, None, level.count)}
        return {**made, "given": level, "probabilities": probabilities}
    mean, scale = (likelihood.mean, likelihood.scale) if likelihood.linear else (0.0, 1.0)
    f = old["f"]
    squares = None if f.squares is None else scale**2 * f.squares
    return {
        "mean": Running(mean + scale * old["mean"].mean, None, f.count),
        "given": Running(mean + scale * f.mean, squares, f.count),
        "noise": Running(scale**2 * old["noise"].mean, None, f.count),
    }
