"""A mode fitted to its training inputs: every term of its kernel as features, or kept out of them as the residual.

The residual (E in psi = Phi B + E) is an Identity that tells all rows apart, whose conditional is one small solve for
each row, the Materns on one column, a Markov process along its values, or a Matern on several, a field.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.data.columns import row_keys
from tuckergp.data.tables import Table, distinct_rows
from tuckergp.errors import ApproximationWarning, InputError, NotPositiveDefinite
from tuckergp.features import RESIDUALS, FeatureMap, realise
from tuckergp.features.base import ResidualMap, hstack
from tuckergp.features.new import NewFeatures, side_by_side
from tuckergp.kernels import Constant, Identity, Kernel
from tuckergp.linalg import Matrix
from tuckergp.model.block import Block
from tuckergp.model.mode import Mode
from tuckergp.model.mode_table import ModeTable
from tuckergp.model.whitening import whiten
from tuckergp.residuals import NoResidual

__all__ = ["FittedMode"]


@dataclass(frozen=True)
class FittedMode:
    """A mode whose feature maps have been fitted to its distinct training inputs.

    ``set_block`` is the block that may be not known of newcomers (`tuckergp.model.newcomers`), where rows are learned
    one by one: a Cosine block of which every training row has some features, named by its column when it is fitted.
    """

    mode: Mode
    whitening: dict[str, tuple[float, float]]
    blocks: tuple[Block, ...]
    residual: ResidualMap | None
    residual_sd: float
    set_block: int | None = None

    @classmethod
    def fit(
        cls,
        mode: Mode,
        rows: Table,
        whitening: dict[str, tuple[float, float]],
        rng: np.random.Generator,
        any_residual: bool = True,
        set_column: str | None = None,
    ) -> tuple[FittedMode, ModeTable]:
        """Fit the feature maps to the distinct inputs ``rows``, already whitened; also return their table.

        ``set_column`` may hold sets that are not known of newcomers.
        """
        plan = mode.plan()
        places, residual, residual_sd = _find_residual(mode, plan, rows, any_residual)
        blocks: list[Block] = []
        width = 0
        for number, (term, features) in enumerate(plan):
            if number in places:
                continue
            if isinstance(features, ResidualMap):
                raise InputError(features.refusal(term, mode.name))
            try:
                fitted = realise(term, rows, features, rng)
            except NotPositiveDefinite as error:
                raise NotPositiveDefinite(f"Mode {mode.name!r}: {error}") from error
            doubt = fitted.doubt(rows)
            if doubt is not None:
                warnings.warn(f"Mode {mode.name!r}: {doubt}", ApproximationWarning, stacklevel=2)
            blocks.append(Block.of(term, width, fitted, rows))
            width += fitted.n_features_
        fitted_mode = cls(mode, whitening, tuple(blocks), residual, residual_sd)
        table = fitted_mode._known(rows)
        columns = [block.kernel.reads(list(rows.columns)) if block.average is not None else [] for block in blocks]
        if set_column is None or [set_column] not in columns or not table.residual.exchangeable:
            return fitted_mode, table
        g = columns.index([set_column])
        blocks[g] = replace(blocks[g], average=None)
        return replace(fitted_mode, blocks=tuple(blocks), set_block=g), replace(table, set_block=g)

    def features(self, rows: Table) -> Matrix:
        """The features of inputs as the kernel sees them, whitened already."""
        blocks = [block.features(rows) for block in self.blocks]
        features = hstack(blocks) if blocks else np.zeros((len(rows), 0))
        self._check(features)
        return features

    def new_features(self, rows: Table, joint: bool) -> NewFeatures | None:
        """Features of inputs that training did not have; see `tuckergp.features.FeatureMap.new_features`."""
        # a set of members never seen is not known
        known = [(g, block) for g, block in enumerate(self.blocks) if g != self.set_block]
        parts = [(g, block.map.new_features(rows, joint)) for g, block in known]
        return side_by_side([None if new is None else new.in_block(g) for g, new in parts])

    def table(self, rows: Table, joint: bool = True) -> ModeTable:
        """The table of inputs as the kernel sees them, whitened already.

        What features leave out at new inputs is correlated between them with ``joint``.
        """
        table = self._known(rows)
        seen = table.residual.seen  # the factors of these rows were learned, with all that features leave out
        unseen = np.arange(len(rows)) if seen is None else np.flatnonzero(~seen)
        new = self.new_features(rows.take(unseen), joint) if len(unseen) else None
        return table if new is None else replace(table, new=new.put(unseen, len(rows)))

    def _known(self, rows: Table) -> ModeTable:
        """The table of inputs without features that training did not have."""
        features = self.features(rows)
        residual = NoResidual() if self.residual is None else self.residual.at(rows, self.residual_sd)
        before = residual.n_columns
        constants = [b.columns.start + before for b in self.blocks if isinstance(b.kernel.unscaled()[0], Constant)]
        blocks = tuple(block.columns for block in self.blocks)
        constant = constants[0] if constants else None
        made = ModeTable(features, residual, constant, blocks, self.nested, set_block=self.set_block)
        if self.nested is None or (made.groups >= 0).all():
            return made
        columns = self.blocks[self.nested].kernel.reads(list(rows.columns))
        return replace(made, group_names=row_keys(rows.select(columns)))

    @property
    def nested(self) -> int | None:
        """The block that is one-hot in groups of training rows; None where there is none."""
        coarser = [g for g, block in enumerate(self.blocks) if isinstance(block.kernel.unscaled()[0], Identity)]
        return coarser[0] if coarser and self.residual is not None and self.residual.n_groups else None

    @property
    def n_groups(self) -> int:
        """How many groups of training rows may have noise factors."""
        if self.nested is not None:
            return self.blocks[self.nested].map.n_features_
        return 0 if self.residual is None else self.residual.n_groups

    def _check(self, features: Matrix) -> None:
        values = features.data if sparse.issparse(features) else features
        if not np.isfinite(values).all():
            raise InputError(f"The features of mode {self.mode.name!r} are not finite; rescale its columns.")

    def transform(self, table: Table, joint: bool = True) -> tuple[ModeTable, npt.NDArray[np.intp]]:
        """The table of the distinct rows of new inputs, and for each row of ``table`` its number among them."""
        inputs = whiten(table.select(self.mode.columns), self.whitening)
        first, code = distinct_rows(inputs, self.mode.columns)
        return self.table(inputs.take(first), joint), code

    def realise(self, table: Table) -> ModeTable:
        """The table of new inputs with a row for every row of ``table``, in its order, each as if it were alone."""
        return self.table(whiten(table.select(self.mode.columns), self.whitening), joint=False)


def _find_residual(
    mode: Mode, plan: Sequence[tuple[Kernel, FeatureMap | None]], rows: Table, any_residual: bool
) -> tuple[list[int], ResidualMap | None, float]:
    """Which terms are the residual, its fitted map and its standard deviation.

    The term that the user marked, else the first that one of the residuals can serve, in the order of the residuals;
    with it, others that can be part of the same residual and are marked alike, or not at all.
    """
    marked = [(number, features) for number, (_, features) in enumerate(plan) if isinstance(features, ResidualMap)]
    free = [number for number, (_, features) in enumerate(plan) if features is None]
    for number, mark in marked or [(number, kind()) for kind in RESIDUALS for number in free]:
        if not any_residual and not mark.in_weight_space:
            if marked:
                raise InputError(
                    f"{type(mark).__name__}() of mode {mode.name!r} needs inference='gibbs' or 'als'; other methods "
                    f"learn weights of features, so leave features out."
                )
            continue
        kernel, variance = plan[number][0].unscaled()
        if mark.serves(kernel, rows):
            places = [
                k
                for k, (term, features) in enumerate(plan)
                if k == number
                or ((features is None or type(features) is type(mark)) and mark.joins(kernel, term.unscaled()[0], rows))
            ]
            if len(places) == 1:
                return places, mark.unfitted().fit(rows, kernel), variance**0.5
            total = reduce(add, (plan[k][0] for k in places))
            summed = mark.summed([plan[k][1] or mark for k in places])
            return places, summed.fit(rows, total), sum(plan[k][0].unscaled()[1] for k in places) ** 0.5
    return [], None, 0.0
