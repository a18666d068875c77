"""Explanations of one prediction, and of all predictions together: f as a sum of parts.

The factors of a user are a sum: those of the average user, what each attribute and co-rating add to them, and the
user's own residual. The same holds for items and circumstances. f is linear in each mode, so it is a sum over products
of parts. A product is shared evenly among those of its parts that are not the average: these are the Shapley values of
the parts. They do not change when factors are rotated, so that means over draws are meaningful.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import Any

import numpy as np
import numpy.typing as npt

from tuckergp.data.cells import is_null
from tuckergp.data.history import History
from tuckergp.data.tables import Table
from tuckergp.kernels import Constant
from tuckergp.model.block import Block
from tuckergp.model.design import Design
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.model.mode_table import ModeTable
from tuckergp.posterior.draws import PREDICTION_SEED, Draws
from tuckergp.posterior.fitted import Fit
from tuckergp.random import DrawStreams, stream
from tuckergp.recommender.attributes import WHO_RATED_WHAT, join
from tuckergp.recommender.circumstances import Context, Drift
from tuckergp.recommender.decisions import shown_name
from tuckergp.recommender.explanation import OWN, Contribution, Explanation, Importance
from tuckergp.recommender.layout import Layout
from tuckergp.residuals.base import ModeDraws

__all__ = ["explain", "feature_importance"]

Floats = npt.NDArray[np.float64]

# The largest numbers of ratings and draws from which shares of variance are computed.
MOST_RATINGS, MOST_DRAWS = 10_000, 100

# How a value that is not there is shown.
MISSING = "missing"

# How many values are shown of a cell that holds many, and how many characters of a text.
SHOWN, LONGEST = 4, 40


@dataclass(frozen=True)
class ModeParts:
    """The parts whose sum the factors of one mode are: the average, attributes, and the id's own.

    Attributes
    ----------
    mode : FittedMode
    name : str
        The name of the mode in tables.
    groups : dict of str to tuple of Block
        The feature blocks of each attribute, without the constant.
    mean : ndarray, shape (n,)
        Features of the average row.
    """

    mode: FittedMode
    name: str
    groups: dict[str, tuple[Block, ...]]
    mean: Floats

    @property
    def names(self) -> list[str]:
        """The names of the parts: attributes, then the part that only the id explains."""
        return [*self.groups, OWN]

    def base(self, draws: ModeDraws) -> Floats:
        """Factors of the average row in each draw, (S, r)."""
        return np.asarray(draws.mean(self.mean[None])[0])

    def of(self, table: ModeTable, d: int, draws: Draws, streams: DrawStreams | None = None) -> list[Floats]:
        """What each part adds to the average factors, for the rows of a table in each draw, (M, S, r) each.

        What a draw does not determine has its mean, or with ``streams`` is drawn.
        """
        mode = draws.modes[d]
        parts = []
        for blocks in self.groups.values():
            difference = np.zeros((table.n_rows, *mode.B.shape[1:]))
            for columns in (block.columns for block in blocks):
                own = replace(mode, B=mode.B[columns])
                difference += own.mean(table.features[:, columns]) - own.mean(self.mean[None, columns])
            parts.append(difference)
        rest, rows = draws.factors(d, table, streams) - mode.mean(table.features), table.newcomers
        for blocks, part in zip(self.groups.values(), parts, strict=True):
            # what else there is of newcomers is due to the set that is not known
            if table.set_block is not None and self.mode.blocks[table.set_block] in blocks:
                part[rows] += rest[rows]
                rest[rows] = 0.0
        return [*parts, rest]


def parts_of(layout: Layout) -> list[ModeParts]:
    """The parts of each mode; averages are over users and items with ratings, and over ratings for other modes."""
    parts = []
    for side, name in zip(layout.sides, ("user", "item"), strict=True):
        mean = side.average
        parts.append(ModeParts(side.mode, name, _groups(side.mode, side.attributes.used), mean))
    for circumstance in layout.circumstances:
        reader = circumstance.reader
        groups = _groups(circumstance.mode, reader.attributes.used if isinstance(reader, Context) else [])
        parts.append(ModeParts(circumstance.mode, circumstance.reader.name, groups, circumstance.average))
    return parts


def _groups(mode: FittedMode, attributes: Sequence[Any]) -> dict[str, tuple[Block, ...]]:
    """The feature blocks of each attribute; a number has two."""
    source = {name: a.column for a in attributes for name in a.encoded_columns}
    groups: dict[str, tuple[Block, ...]] = {}
    for block in mode.blocks:
        kernel, _ = block.kernel.unscaled()
        if isinstance(kernel, Constant):
            continue
        read = kernel.reads(mode.mode.columns)
        name = ", ".join(dict.fromkeys(source.get(column, column) for column in read))
        groups[name] = (*groups.get(name, ()), block)
    return groups


def _shares(
    parts: Sequence[ModeParts], draws: Draws, design: Design, streams: DrawStreams | None = None
) -> tuple[Floats, list[list[Floats]]]:
    """f of the average in each draw (S,), and what each part of each mode adds to it, (N, S) each.

    The Shapley value of part a of mode d is the integral over s from 0 to 1 of f with a in mode d and the average plus
    s times the rest in the others: s^k integrates to 1 / (k + 1), the share of a product of k + 1 such parts.
    """
    core, index = draws.model.core, design.index
    base = [part.base(mode) for part, mode in zip(parts, draws.modes, strict=True)]
    tables = zip(parts, design.modes, strict=True)
    added = [part.of(table, d, draws, streams) for d, (part, table) in enumerate(tables)]
    at = [np.sum(each, axis=0)[index[:, d]] for d, each in enumerate(added)]
    nodes, weights = np.polynomial.legendre.leggauss(len(base) // 2 + 1)
    between = [[b + (node + 1) / 2 * a for b, a in zip(base, at, strict=True)] for node in nodes]
    shares: list[list[Floats]] = []
    for d, each in enumerate(added):
        z = np.zeros_like(at[d])
        for psi, weight in zip(between, weights, strict=True):
            others = [None if e == d else table for e, table in enumerate(psi)]
            z += weight / 2 * core.others_in_draws(draws.W, others, d)[0]
        shares.append([(part[index[:, d]] * z).sum(axis=2) for part in each])
    z, alone = core.others_in_draws(draws.W, [None, *(b[None] for b in base[1:])], 0)
    return (z[0] * base[0]).sum(axis=1) + alone[0], shares


def explain(layout: Layout, fit: Fit, pair: Table, tables: Sequence[Table | None] = (None, None)) -> Explanation:
    """The contributions to the prediction of one pair; see `TuckerRecommender.explain`.

    Texts of users and items, of which the model knows hashed words alone, are looked up in ``tables``.
    """
    fit.draws.require_kept()
    design = layout.pairs(pair).compact()  # its own rows alone
    parts = parts_of(layout)
    starts, shares = _shares(parts, fit.draws, design)
    drawn = shares
    if fit.draws.sampled and any(table.undetermined.any() for table in design.modes):  # as uncertain as in `predict`
        drawn = _shares(parts, fit.draws, design, fit.draws.streams(stream(PREDICTION_SEED)))[1]
    base = fit.mean + fit.scale * starts
    lines = [Contribution("", "base", "", float(base.mean()), _deviation(base))]
    for d, part in enumerate(parts):
        for k, name in enumerate(part.names):
            mean, deviation = fit.scale * float(shares[d][k][0].mean()), _deviation(fit.scale * drawn[d][k][0])
            shown = _value(part, name, design.modes[d], layout, d, pair)
            if shown.endswith(" words"):
                known = tables[d] if d < len(layout.sides) else pair
                shown = _text_of(known, layout.sides[d].key if d < len(layout.sides) else None, pair, name) or shown
            lines.append(Contribution(part.name, shown_name(name), shown, mean, deviation))
    total = starts + sum(value[0] for each in drawn for value in each)
    predicted = float(fit.predict(design)[0])
    ids = {side.key: pair[side.key].tolist()[0] for side in layout.sides}
    std = _deviation(fit.scale * total)
    latent = None if fit.likelihood.linear else fit.likelihood.latent
    predicts = fit.likelihood.predicts
    return Explanation(ids["user_id"], ids["item_id"], tuple(lines), std, predicted, latent, predicts)


def _deviation(values: Floats) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _text_of(table: Table | None, key: str | None, pair: Table, column: str) -> str:
    """A text attribute of the user or item of a pair, or of the pair itself, shortened; empty if nothing tells it."""
    if table is None or column not in table:
        return "" if key is not None else MISSING
    rows = table if key is None else join(table, key, pair[key].tolist(), table.name)
    (text,) = rows[column].tolist()
    return MISSING if is_null(text) else shorten(str(text), LONGEST, placeholder=" ...")


def _value(part: ModeParts, name: str, table: ModeTable, layout: Layout, d: int, pair: Table) -> str:
    """The value of an attribute of one row as text, read from its features."""
    seen = table.residual.seen
    rated = seen is not None and bool(seen[0])
    reader = layout.circumstances[d - len(layout.sides)].reader if d >= len(layout.sides) else None
    if isinstance(reader, Drift):
        return reader.when(pair) or "time not given"
    if name == OWN:
        return "" if rated else "no ratings"
    if name == WHO_RATED_WHAT and not rated:
        return "not known"
    words: list[str] = []
    used = _attributes_of(layout, d)
    number = next((a for a in used if a.column == name and a.use == "number"), None)
    vector = next((a for a in used if a.column == name and a.means), None)
    if vector is not None:
        return f"vector of {len(vector.means)}"
    if any(a.column == name and a.use == "kernel" for a in used):
        return "by its kernel"
    if any(a.column == name and a.use == "text" for a in used):
        found = [str(block.map.feature_names_[j]) for block in part.groups[name]
                 for j in np.flatnonzero(_dense(table, block))]  # fmt: skip
        alone = [word.split("=", 1)[-1] for word in found] == ["<missing>"]
        return MISSING if alone else f"{len(found)} words"
    for block in part.groups[name]:
        row = _dense(table, block)
        places = np.flatnonzero(row)
        if name == WHO_RATED_WHAT:
            return f"{len(places)} {('items', 'users')[d]}"
        names = [str(block.map.feature_names_[j]) for j in places]
        if number is not None and block.map.feature_names_ == [name]:
            _, variance = block.kernel.unscaled()
            words.insert(0, number.shown(number.mean + number.spread * float(row[0]) / variance**0.5))
        elif number is None:
            words += [word.split("=", 1)[-1] for word in names]
        elif not names or "missing" in names[0]:
            return MISSING  # a missing number counts as average, with a level of its own
    if not words or words == ["<missing>"]:
        return MISSING
    return ", ".join(words[:SHOWN]) + (", ..." if len(words) > SHOWN else "")


def _attributes_of(layout: Layout, d: int) -> Sequence[Any]:
    """The attributes of a mode."""
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
    rows = np.sort(rng.permutation(len(history.base))[:MOST_RATINGS])
    some = history.base.take(rows)
    users, items = (side.numbers(ids)[code] for side, ids, code in zip(layout.sides, some.ids, some.codes, strict=True))
    design = layout.design(users, items, some.occasion).compact()
    parts = parts_of(layout)
    draws = fit.draws.thinned(MOST_DRAWS)
    by_draw = []
    for s in range(len(draws)):
        _, shares = _shares(parts, draws.only(s), design)
        values = np.stack([value[:, 0] for each in shares for value in each])
        values -= values.mean(axis=1, keepdims=True)
        f = values.sum(axis=0)
        by_draw.append(values @ f / max(float(f @ f), np.finfo(float).tiny))
    names = [(part.name, name) for part in parts for name in part.names]
    share = np.stack(by_draw)
    lines = [
        Contribution(side, shown_name(what), "", float(share[:, k].mean()), _deviation(share[:, k]))
        for k, (side, what) in enumerate(names)
    ]
    return Importance(tuple(sorted(lines, key=lambda line: -line.contribution)))
