"""The modes of a recommender: users, items and circumstances, and the rows of ratings and requests in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tuckergp.data.history import KEYS, History
from tuckergp.data.periods import Unit
from tuckergp.data.tables import Table, distinct_rows
from tuckergp.model.design import Design
from tuckergp.model.fitted_mode import FittedMode
from tuckergp.model.mode import Mode
from tuckergp.recommender.attributes import WHO_RATED_WHAT, Attributes, join
from tuckergp.recommender.circumstances import Circumstance, Context, Drift
from tuckergp.recommender.decisions import Choice
from tuckergp.recommender.entities import Side, who_rated_what, with_sets

__all__ = ["SIDES", "Layout"]

Ints = npt.NDArray[np.integer]
SIDES = ("users", "items")


@dataclass(frozen=True)
class Layout:
    """Users, items and circumstances as modes.

    Attributes
    ----------
    sides : tuple of Side
        Users and items.
    circumstances : tuple of Circumstance
        Drift over time, context: further modes, in this order.
    """

    sides: tuple[Side, Side]
    circumstances: tuple[Circumstance, ...]

    @classmethod
    def fit(
        cls,
        history: History,
        tables: Sequence[Table | None],
        *,
        codes: Sequence[Ints] | None = None,
        occasion: Table | None = None,
        choices: Mapping[str, Mapping[str, Choice]] | None = None,
        implicit: bool = False,
        unit: Unit | None = None,
        context: Sequence[str] = (),
        rng: np.random.Generator,
    ) -> tuple[Layout, Design]:
        """Turn tables into modes; also returns the design of the observations, those of the history by default."""
        codes = history.codes if codes is None else codes
        occasion = history.occasion if occasion is None else occasion
        if implicit:
            tables = [
                with_sets(tables[d], KEYS[d], history.ids[d], who_rated_what(history.ids[d], *_turned(history, d)))
                for d in range(2)
            ]
        attributes = [Attributes.fit(KEYS[d], tables[d], (choices or {}).get(SIDES[d])) for d in range(2)]
        encoded = [kind.encode(join(tables[d], KEYS[d], history.ids[d], SIDES[d])) for d, kind in enumerate(attributes)]
        modes = [Mode(list(rows.columns), kind.kernel(rows)) for kind, rows in zip(attributes, encoded, strict=True)]
        index = list(codes)
        readers: list[Drift | Context] = [] if unit is None else [Drift(unit)]
        if context:
            readers.append(Context.learn(history.occasion.select(context)))
        for reader in readers:
            inputs = reader.inputs(index[0], occasion)
            first, code = distinct_rows(inputs, list(inputs.columns))
            rows = inputs.take(first)
            modes, encoded, index = [*modes, reader.mode(rows)], [*encoded, rows], [*index, code]
        design, fitted = Design.of_entities(modes, encoded, index, rng, set_column=WHO_RATED_WHAT)
        users, items = (Side.of(history.ids[d], tables[d], attributes[d], fitted[d]) for d in range(2))
        averages = [_average(design, d) for d in range(2, len(modes))]
        circumstances = tuple(Circumstance(*parts) for parts in zip(readers, fitted[2:], averages, strict=True))
        return cls((users, items), circumstances), design

    @property
    def modes(self) -> tuple[FittedMode, ...]:
        """The modes of users, of items, and of circumstances."""
        return (*(side.mode for side in self.sides), *(circumstance.mode for circumstance in self.circumstances))

    @property
    def names(self) -> list[str]:
        """The names of the modes."""
        return [*KEYS, *(circumstance.reader.name for circumstance in self.circumstances)]

    def aligned(self, table: Table) -> Table:
        """A table whose ids of users and items are of the types that were decided at the fit."""
        for side in self.sides:
            table = side.aligned(table)
        return table

    def pairs(self, table: Table) -> Design:
        """The design of pairs to predict: one row per user_id and item_id, with circumstances where they are given."""
        users, items = (side.numbers(table[side.key]) for side in self.sides)
        return self.design(users, items, table)

    def design(self, users: Ints, items: Ints, occasion: Table) -> Design:
        """The design of pairs of users and items, given by number, in the circumstances of ``occasion``."""
        tables, index = [side.table for side in self.sides], [users, items]
        for circumstance in self.circumstances:
            rows, code = circumstance.realise(self.sides[0].rows_at_fit(users), occasion)
            tables.append(rows)
            index.append(code)
        return Design(tuple(tables), np.stack(index, axis=1).astype(np.int32))


def _average(design: Design, d: int) -> npt.NDArray[np.float64]:
    """The features of mode d at the average observation."""
    share = np.bincount(design.index[:, d], minlength=design.modes[d].n_rows) / design.n_observations
    return np.asarray(share @ design.modes[d].features, dtype=np.float64)


def _turned(history: History, d: int) -> tuple[Ints, Ints]:
    return history.codes[d], history.codes[1 - d]
