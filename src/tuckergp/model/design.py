"""From tables to a design: D modes as tables of distinct rows, and the row numbers of every observation.

A `Mode` says which columns go together and which kernel compares them; `Design.fit` realises the kernel's terms as
feature blocks on the distinct inputs. At most one term is kept out of the blocks as the mode's residual (E in
psi = Phi B + E): an Identity that tells all rows apart, whose conditional is one small solve for each row, or a Matern
on one column, a Markov process along its values.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.data.columns import row_keys
from tuckergp.data.standard import mean_and_spread
from tuckergp.data.tables import Table, distinct_rows
from tuckergp.errors import ApproximationWarning, InputError, NotPositiveDefinite
from tuckergp.features import RESIDUALS, FeatureMap, realise
from tuckergp.features.base import ResidualMap, hstack
from tuckergp.features.new import NewFeatures, side_by_side
from tuckergp.kernels import Constant, Cosine, Identity, Kernel, Scaled
from tuckergp.linalg import Matrix
from tuckergp.model.mode_table import Index, ModeTable
from tuckergp.residuals import NoResidual

__all__ = ["Block", "Design", "FittedMode", "Mode", "whiten", "whitening_of"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Mode:
    """One argument of f: the columns that describe it, the kernel that compares them, how it becomes features.

    Parameters
    ----------
    columns : str, int, or sequence of such
        Names of columns, or their numbers from 0 on. Several make one input (longitude and latitude together).
    kernel : Kernel
        A sum of terms; each is realised on its own. Its numbers are in the units of the columns, or in standard
        deviations with ``whiten``.
    features : FeatureMap, sequence of FeatureMap or None, or None
        How to realise the kernel: one map for every term but Constant, Identity and Linear (Hashing: for those of
        Identity and Linear; Line: for the first Matern), or a sequence with one entry for each term. None chooses.
    constant : bool
        Add a Constant term unless there is one, so that a mean is learned.
    whiten : bool
        Standardise the numeric columns (training mean and standard deviation) before the kernel sees them.

    Examples
    --------
    >>> from tuckergp.kernels import SE
    >>> from tuckergp.features import Nystrom
    >>> Mode(["longitude", "latitude"], SE(1.0), features=Nystrom(100)).columns
    ('longitude', 'latitude')
    """

    columns: tuple[Any, ...]  # names, or places in the table until it is read
    kernel: Kernel
    features: FeatureMap | Sequence[FeatureMap | None] | None = None
    constant: bool = True
    whiten: bool = False

    def __init__(
        self,
        columns: str | int | Sequence[str | int],
        kernel: Kernel,
        features: FeatureMap | Sequence[FeatureMap | None] | None = None,
        constant: bool = True,
        whiten: bool = False,
    ) -> None:
        if not isinstance(kernel, Kernel):
            raise InputError(f"The kernel of a mode must be a tuckergp kernel, not {kernel!r}.")
        names = tuple(columns) if isinstance(columns, Iterable) and not isinstance(columns, str) else (columns,)
        if not names:
            raise InputError("A mode needs at least one column.")
        if not all(isinstance(name, str | int | np.integer) and not isinstance(name, bool) for name in names):
            raise InputError(f"A mode needs names or numbers of columns, not {columns!r}.")
        for field, value in zip(
            ("columns", "kernel", "features", "constant", "whiten"),
            (names, kernel, features, constant, whiten),
            strict=True,
        ):
            object.__setattr__(self, field, value)

    @property
    def name(self) -> str:
        """The names of the columns, for messages."""
        return ", ".join(map(str, self.columns))

    def plan(self) -> list[tuple[Kernel, FeatureMap | None]]:
        """The kernel's terms, each with the feature map asked for (None: choose), the added Constant first."""
        terms = self.kernel.terms()
        if self.features is None or isinstance(self.features, FeatureMap):
            chosen = [self.features if _applies(self.features, term) else None for term in terms]
            if self.features is not None and all(entry is None for entry in chosen):
                raise InputError(f"{self.features!r} fits no term of the kernel {self.kernel!r} of mode {self.name!r}.")
            if isinstance(self.features, ResidualMap):  # a mode has one residual; other terms become features
                first = chosen.index(self.features)
                chosen[first + 1 :] = [None] * (len(chosen) - first - 1)
        else:
            chosen = list(self.features)
            if len(chosen) != len(terms):
                raise InputError(
                    f"Mode {self.name!r} has {len(terms)} kernel terms but {len(chosen)} entries in features; "
                    f"give one entry for each term, None to choose."
                )
        plan = list(zip(terms, chosen, strict=True))
        return [(Constant(), None), *plan] if self.adds_constant else plan

    @property
    def adds_constant(self) -> bool:
        """Whether a Constant term is asked for that the kernel does not have."""
        return self.constant and not any(isinstance(_unscaled(term)[0], Constant) for term in self.kernel.terms())


def _unscaled(term: Kernel) -> tuple[Kernel, float]:
    return (term.kernel, term.variance()) if isinstance(term, Scaled) else (term, 1.0)


def _applies(features: FeatureMap | None, term: Kernel) -> bool:
    """Whether a map given for the whole kernel is meant for this term."""
    return features is not None and features.suits(_unscaled(term)[0])


# The most numbers in the averages that replace missing features, over all rows of a table.
LARGEST_AVERAGES = 50_000_000


@dataclass(frozen=True)
class Block:
    """The features of one kernel term.

    Attributes
    ----------
    kernel : Kernel
    columns : slice
        Within the mode's features.
    map : FeatureMap
        Fitted.
    average : csr_array, shape (1, n), or None
        The mean of the training rows, each counted as often as it has features (so that the mean set of raters is that
        of the item of a mean rating), for inputs that have none of these features where every training row has some.
        Zeros would be far from all training rows: such features have length one and add to the mean of the factors.
        None for the set of a mode, of which more is known (`tuckergp.model.newcomers`), but in old files.
    """

    kernel: Kernel
    columns: slice
    map: FeatureMap
    average: sparse.csr_array | None = None

    @classmethod
    def of(cls, kernel: Kernel, start: int, fitted: FeatureMap, rows: Table) -> Block:
        """The block of a fitted map whose features begin at a column."""
        columns = slice(start, start + fitted.n_features_)
        if not isinstance(_unscaled(kernel)[0], Cosine):
            return cls(kernel, columns, fitted)
        features = sparse.csr_array(fitted.transform(rows))
        counts = np.diff(features.indptr).astype(np.float64)
        if not (counts > 0).all():
            return cls(kernel, columns, fitted)
        mean = np.asarray(features.T @ (counts / counts.sum()))
        return cls(kernel, columns, fitted, sparse.csr_array(mean.reshape(1, -1)))

    def features(self, rows: Table) -> Matrix:
        """The features of inputs; the average for inputs that have none."""
        features = self.map.transform(rows)
        if self.average is None:
            return features
        features = sparse.csr_array(features)
        empty = np.flatnonzero(np.diff(features.indptr) == 0)
        if not len(empty):
            return features
        average = _largest(self.average, max(1, LARGEST_AVERAGES // len(empty)))
        place = sparse.csr_array(
            (np.ones(len(empty)), (empty, np.zeros(len(empty), dtype=np.intp))), shape=(features.shape[0], 1)
        )
        return sparse.csr_array(features + place @ average)


def _largest(row: sparse.csr_array, most: int) -> sparse.csr_array:
    """The ``most`` largest entries of a row, scaled so that the sum stays the same."""
    if row.nnz <= most:
        return row
    kept = np.argsort(-row.data, kind="stable")[:most]
    data = row.data[kept] * (row.data.sum() / row.data[kept].sum())
    return sparse.csr_array((data, (np.zeros(most, dtype=np.intp), row.indices[kept])), shape=row.shape)


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
        place, residual, residual_sd = _find_residual(mode, plan, rows, any_residual)
        blocks: list[Block] = []
        width = 0
        for number, (term, features) in enumerate(plan):
            if number == place:
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
        self._check(rows, features)
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
        constants = [b.columns.start + before for b in self.blocks if isinstance(_unscaled(b.kernel)[0], Constant)]
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
        coarser = [g for g, block in enumerate(self.blocks) if isinstance(_unscaled(block.kernel)[0], Identity)]
        return coarser[0] if coarser and self.residual is not None and self.residual.n_groups else None

    @property
    def n_groups(self) -> int:
        """How many groups of training rows may have noise factors."""
        if self.nested is not None:
            return self.blocks[self.nested].map.n_features_
        return 0 if self.residual is None else self.residual.n_groups

    def _check(self, rows: Table, features: Matrix) -> None:
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
) -> tuple[int, ResidualMap | None, float]:
    """Which term is the residual (-1: none), its fitted map and its standard deviation.

    The term that the user marked, else the first that one of the residuals can serve, in the order of the residuals.
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
        kernel, variance = _unscaled(plan[number][0])
        if mark.serves(kernel, rows):
            return number, mark.unfitted().fit(rows, kernel), variance**0.5
    return -1, None, 0.0


@dataclass(frozen=True)
class Design:
    """Modes as tables of distinct rows, and which row of each mode every observation uses.

    Attributes
    ----------
    modes : tuple of ModeTable, length D
    index : ndarray of int32, shape (N, D)

    Examples
    --------
    >>> from tuckergp.kernels import Identity, Linear
    >>> from tuckergp.data.tables import as_table
    >>> table = as_table({"user": ["ann", "bob", "ann"], "x": [1.0, 2.0, 1.0]}, "data")
    >>> design, fitted = Design.fit([Mode("user", Identity()), Mode("x", Linear())], table)
    >>> design.index
    array([[0, 0],
           [1, 1],
           [0, 0]], dtype=int32)
    """

    modes: tuple[ModeTable, ...]
    index: Index

    @property
    def n_observations(self) -> int:
        """The number of observations, N."""
        return len(self.index)

    @classmethod
    def fit(
        cls,
        modes: Sequence[Mode],
        table: Table,
        weight: Floats | None = None,
        random_state: int | np.random.Generator | None = None,
        any_residual: bool = True,
    ) -> tuple[Design, tuple[FittedMode, ...]]:
        """Fit every mode to the columns of one table that has one row for each observation.

        Whitening uses the (weighted) mean and standard deviation over observations. ``any_residual=False`` is for
        inference in weight space (SGD): a Matern on a line becomes features.
        """
        if not modes:
            raise InputError("A design needs at least one mode.")
        if len(table) == 0:
            raise InputError(f"{table.name} is empty; there is nothing to learn from.")
        rng = np.random.default_rng(random_state)
        fitted, tables, codes = [], [], []
        for mode in modes:
            inputs = table.select(mode.columns)
            whitening = whitening_of(inputs, weight) if mode.whiten else {}
            inputs = whiten(inputs, whitening)
            first, code = distinct_rows(inputs, mode.columns)
            fitted_mode, mode_table = FittedMode.fit(mode, inputs.take(first), whitening, rng, any_residual)
            fitted.append(fitted_mode)
            tables.append(mode_table)
            codes.append(code)
        return cls(tuple(tables), _stack(codes)), tuple(fitted)

    @classmethod
    def of_entities(
        cls,
        modes: Sequence[Mode],
        tables: Sequence[Table],
        codes: Sequence[npt.NDArray[Any]],
        random_state: int | np.random.Generator | None = None,
        any_residual: bool = True,
        set_column: str | None = None,
    ) -> tuple[Design, tuple[FittedMode, ...]]:
        """Fit every mode to its own table of distinct inputs; ``codes[d]`` are the observations' rows in table d.

        ``set_column`` of some tables may hold sets that are not known of newcomers.
        """
        rng = np.random.default_rng(random_state)
        fitted, mode_tables = [], []
        for mode, table in zip(modes, tables, strict=True):
            whitening = whitening_of(table.select(mode.columns), None) if mode.whiten else {}
            inputs = whiten(table, whitening)
            fitted_mode, mode_table = FittedMode.fit(mode, inputs, whitening, rng, any_residual, set_column)
            fitted.append(fitted_mode)
            mode_tables.append(mode_table)
        return cls(tuple(mode_tables), _stack(codes)), tuple(fitted)

    @classmethod
    def transform(cls, fitted: Sequence[FittedMode], table: Table) -> Design:
        """The design of new inputs, with the feature maps of fitted modes."""
        pairs = [mode.transform(table) for mode in fitted]
        return cls(tuple(mode_table for mode_table, _ in pairs), _stack([code for _, code in pairs]))

    def take(self, observations: npt.NDArray[Any]) -> Design:
        """The same modes with some of the observations."""
        return replace(self, index=np.ascontiguousarray(self.index[observations]))

    def compact(self) -> Design:
        """The same observations with only the rows they use, where those are few or not stored as one array."""
        modes, index = list(self.modes), self.index
        for d, table in enumerate(modes):
            if len(index) < table.n_rows or table.more is not None:
                rows, place = np.unique(index[:, d], return_inverse=True)
                modes[d] = table.take(rows)
                index = index.copy() if index is self.index else index
                index[:, d] = place
        return Design(tuple(modes), index)


def _stack(codes: Sequence[npt.NDArray[Any]]) -> Index:
    return np.ascontiguousarray(np.stack([np.asarray(code) for code in codes], axis=1), dtype=np.int32)


def whitening_of(inputs: Table, weight: Floats | None = None) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of every numeric column; a constant column keeps its scale."""
    whitening = {}
    for column, values in inputs.columns.items():
        if values.dtype.kind in "fiubM":
            mean, spread = mean_and_spread(inputs.numeric(column), weight)
            whitening[column] = (mean, spread or 1.0)
    return whitening


def whiten(inputs: Table, whitening: dict[str, tuple[float, float]]) -> Table:
    """The same columns, standardised by their mean and standard deviation where they have one in ``whitening``."""
    if not whitening:
        return inputs
    columns = dict(inputs.columns)
    for column, (mean, spread) in whitening.items():
        columns[column] = (inputs.numeric(column) - mean) / spread
    return replace(inputs, columns=columns)
