"""What moved a prediction, and what moves predictions at large: f in parts that add up.

The factors of a user are a sum: what the average user has, what each attribute adds to it, who rated what, and the
residual that is the user's own. The same goes for items and circumstances. f is linear in each mode, so it is a sum
over products of parts. A product is shared evenly among those of its parts that are not the average: the Shapley values
of the parts. They do not change when factors are rotated, so that means over draws make sense.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.history import History
from tuckergp.data.tables import Table
from tuckergp.kernels import Constant, Scaled
from tuckergp.model.design import Block, Design, FittedMode
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.tucker import Core
from tuckergp.posterior.draws import Draw
from tuckergp.recommender.attributes import WHO_RATED_WHAT
from tuckergp.recommender.circumstances import Context
from tuckergp.recommender.explanation import Explanation, Importance, Line
from tuckergp.recommender.layout import Layout
from tuckergp.running.fit import Fit, OrdinalFit

__all__ = ["explain", "feature_importance"]

Floats = npt.NDArray[np.float64]

OWN = "own"
"""What a part is called that only the id explains."""

# So many ratings and draws are looked at for shares of variance, at the most.
MOST_RATINGS, MOST_DRAWS = 10_000, 100

# A cell that holds many values is shown with so many of them.
SHOWN = 4


@dataclass(frozen=True)
class Parts:
    """How the factors of one mode are a sum.

    Attributes
    ----------
    mode : FittedMode
    name : str
        Of the mode, in tables.
    groups : dict of str to tuple of Block
        The feature blocks of every attribute, but for the constant.
    mean : ndarray, shape (n,)
        Features of the average row.
    """

    mode: FittedMode
    name: str
    groups: dict[str, tuple[Block, ...]]
    mean: Floats

    @property
    def names(self) -> list[str]:
        """Of the parts: attributes, then what only the id explains."""
        return [*self.groups, OWN]

    def base(self, U: Floats) -> Floats:
        """Factors of the average row, (r,)."""
        return np.asarray(self.mean @ U[len(U) - len(self.mean) :])

    def of(self, table: ModeTable, U: Floats) -> list[Floats]:
        """What each part adds to the average for the rows of a table, (M, r)."""
        width = len(U) - len(self.mean)
        B = U[width:]
        parts = []
        for blocks in self.groups.values():
            part = np.zeros((table.n_rows, U.shape[1]))
            for columns in (block.columns for block in blocks):
                part += table.features[:, columns] @ B[columns] - self.mean[columns] @ B[columns]
            parts.append(part)
        own = np.zeros((table.n_rows, U.shape[1])) if table.residual is None else table.residual @ U[:width]
        return [*parts, np.asarray(own)]


def parts_of(layout: Layout, history: History) -> list[Parts]:
    """The parts of every mode. The average is over users and items with ratings, and over ratings for the rest."""
    found = []
    for side, name in zip(layout.sides, ("user", "item"), strict=True):
        mean = side.table.features[: side.n_rated].mean(axis=0)
        found.append(Parts(side.mode, name, _groups(side.mode, side.attributes.used), np.asarray(mean).ravel()))
    for circumstance in layout.circumstances:
        table, code = circumstance.realise(history.codes[0], history.moment)
        share = np.bincount(code, minlength=table.n_rows) / max(len(code), 1)
        reader = circumstance.reader
        groups = _groups(circumstance.mode, reader.attributes.used if isinstance(reader, Context) else [])
        found.append(Parts(circumstance.mode, circumstance.reader.name, groups, np.asarray(share @ table.features)))
    return found


def _groups(mode: FittedMode, attributes: Sequence[Any]) -> dict[str, tuple[Block, ...]]:
    """Blocks by the attribute that they come from; a number has two."""
    source = {name: a.column for a in attributes for name in (a.level_column, a.missing_column, a.column)}
    groups: dict[str, tuple[Block, ...]] = {}
    for block in mode.blocks:
        kernel = block.kernel.kernel if isinstance(block.kernel, Scaled) else block.kernel
        if isinstance(kernel, Constant):
            continue
        read = kernel.reads(mode.mode.columns)
        name = ", ".join(dict.fromkeys(source.get(column, column) for column in read))
        groups[name] = (*groups.get(name, ()), block)
    return groups


def _shares(core: Core, parts: Sequence[Parts], draw: Draw, design: Design) -> tuple[float, list[list[Floats]]]:
    """F of the average, and what every part of every mode adds to it, (N,) each.

    The Shapley value of part a of mode d is the integral over s from 0 to 1 of f with a in mode d and the average plus
    s times the rest in the others: s^k integrates to 1 / (k + 1), the share of a product of k + 1 such parts.
    """
    U = [np.asarray(u, dtype=np.float64) for u in draw.parameters.U]
    base = [part.base(u) for part, u in zip(parts, U, strict=True)]
    added = [part.of(table, u) for part, table, u in zip(parts, design.modes, U, strict=True)]
    at = [np.sum(each, axis=0)[design.index[:, d]] for d, each in enumerate(added)]
    nodes, weights = np.polynomial.legendre.leggauss(len(base) // 2 + 1)
    shares: list[list[Floats]] = []
    between = [[b + (node + 1) / 2 * a for b, a in zip(base, at, strict=True)] for node in nodes]
    for d, each in enumerate(added):
        z = sum(
            weight / 2 * core.others(draw.parameters.W, psi, d)[0] for psi, weight in zip(between, weights, strict=True)
        )
        shares.append([(part[design.index[:, d]] * z).sum(axis=1) for part in each])
    z, alone = core.others(draw.parameters.W, [b[None] for b in base], 0)
    return float(np.sum(z @ base[0] + alone)), shares


def explain(layout: Layout, fit: Fit, history: History, pair: Table) -> Explanation:
    """What moved the prediction of one pair; see `TuckerRecommender.explain`."""
    fit.draws.require_kept()
    whole = layout.pairs(pair)
    # its own rows alone
    modes = tuple(mode.take(np.array([row])) for mode, row in zip(whole.modes, whole.index[0], strict=True))
    design = Design(modes, np.zeros((1, len(modes)), dtype=np.int32))
    parts = parts_of(layout, history)
    found = [_shares(fit.draws.model.core, parts, draw, design) for draw in fit.draws]
    scale = fit.scale
    starts = fit.mean + scale * np.array([start for start, _ in found])
    lines = [Line("", "base", "", float(starts.mean()), _deviation(starts))]
    for d, part in enumerate(parts):
        for k, name in enumerate(part.names):
            values = scale * np.array([shares[d][k][0] for _, shares in found])
            shown = _value(part, name, modes[d], layout, d)
            lines.append(Line(part.name, name, shown, float(values.mean()), _deviation(values)))
    total = np.array([start + sum(float(v[0]) for each in shares for v in each) for start, shares in found])
    latent = isinstance(fit, OrdinalFit)
    predicted = float(fit.predict(whole)[0])
    ids = {side.key: pair[side.key].tolist()[0] for side in layout.sides}
    spread = _deviation(scale * total)
    return Explanation(ids["user_id"], ids["item_id"], tuple(lines), spread, predicted, latent)


def _deviation(values: Floats) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _value(part: Parts, name: str, table: ModeTable, layout: Layout, d: int) -> str:
    """What a row has of an attribute, in words, read from its features."""
    rated = table.residual is not None and table.residual.nnz > 0
    if name == OWN:
        return "learned from ratings" if rated else "no ratings"
    if name == WHO_RATED_WHAT and not rated:
        return "as on average"
    words: list[str] = []
    used = _attributes_of(layout, d)
    number = next((a for a in used if a.column == name and a.use == "number"), None)
    if any(a.column == name and a.use == "kernel" for a in used):
        return "by its kernel"
    if any(a.column == name and a.use == "text" for a in used):
        found = sum(int(np.count_nonzero(_dense(table, block))) for block in part.groups[name])
        return f"{found} words" if found != 1 else "1 word"
    for block in part.groups[name]:
        row = _dense(table, block)
        there = np.flatnonzero(row)
        if name == WHO_RATED_WHAT:
            return f"{len(there)} {('items', 'users')[d]}"
        names = [str(block.map.feature_names_[j]) for j in there]
        if number is not None and block.map.feature_names_ == [name]:
            variance = block.kernel.variance() if isinstance(block.kernel, Scaled) else 1.0
            words.insert(0, f"{number.mean + number.spread * float(row[0]) / variance**0.5:g}")
        elif number is None:
            words += [word.split("=", 1)[-1] for word in names]
        elif not names or "missing" in names[0]:
            return "missing"  # a missing number counts as average, with a level of its own
    if not words or words == ["<missing>"]:
        return "missing"
    return ", ".join(words[:SHOWN]) + (", ..." if len(words) > SHOWN else "")


def _attributes_of(layout: Layout, d: int) -> Sequence[Any]:
    """The attributes that a mode is made of."""
    if d < len(layout.sides):
        return layout.sides[d].attributes.used
    reader = layout.circumstances[d - len(layout.sides)].reader
    return reader.attributes.used if isinstance(reader, Context) else []


def _dense(table: ModeTable, block: Block) -> Floats:
    """The features of one row in a block."""
    row = table.features[:, block.columns]
    return np.asarray(row.todense() if hasattr(row, "todense") else row, dtype=np.float64).ravel()


def feature_importance(layout: Layout, fit: Fit, history: History, rng: np.random.Generator) -> Importance:
    """The share of each part in the variance of f; see `TuckerRecommender.feature_importance`."""
    fit.draws.require_kept()
    rows = np.sort(rng.permutation(len(history))[:MOST_RATINGS])
    some = history.take(rows)
    design = layout.design(*some.codes, some.moment)
    parts = parts_of(layout, history)
    found = []
    for draw in _some_draws(fit):
        _, shares = _shares(fit.draws.model.core, parts, draw, design)
        values = np.stack([value for each in shares for value in each])
        values -= values.mean(axis=1, keepdims=True)
        f = values.sum(axis=0)
        found.append(values @ f / max(float(f @ f), np.finfo(float).tiny))
    names = [(part.name, name) for part in parts for name in part.names]
    share = np.stack(found)
    lines = [
        Line(side, what, "", float(share[:, k].mean()), _deviation(share[:, k])) for k, (side, what) in enumerate(names)
    ]
    return Importance(tuple(sorted(lines, key=lambda line: -line.contribution)))


def _some_draws(fit: Fit) -> Iterator[Draw]:
    draws = list(fit.draws)
    for place in np.unique(np.linspace(0, len(draws) - 1, min(len(draws), MOST_DRAWS)).astype(int)):
        yield draws[place]
