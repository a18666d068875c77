"""One mode as a table of M distinct inputs: their features, and the residual that the features do not explain."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tuckergp.features.base import hstack, vstack
from tuckergp.features.new import NewFeatures, stacked
from tuckergp.linalg import Matrix
from tuckergp.random import Keys
from tuckergp.residuals import NoResidual, Residual

__all__ = ["Index", "ModeTable"]

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int32]


@dataclass(frozen=True)
class ModeTable:
    """One mode at M distinct inputs: psi = features @ B + E, plus what features that training did not have add.

    Attributes
    ----------
    features : ndarray or csr_array, shape (M, n)
    residual : Residual
        What is known of E at these inputs.
    constant : int or None
        Which column of `table` is the Constant term.
    blocks : tuple of slice
        The columns of `features` that belong to each kernel term; all of them in one block if not given.
    nested : int or None
        The block that is one-hot in groups of rows, such as the user of a user-week. Noise factors belong to groups.
    new : NewFeatures or None
        Features that training did not have; they count for rows that were not learned from the data. None for none.
    group_names : ndarray of uint64, shape (M,), or None
        Keys of the random numbers of groups never seen, the same for all rows of a group; None for those of the rows.
    more : ModeTable or None
        Rows that were added after these, which are not copied; `features` and `residual` do not include them.
    set_block : int or None
        The block of which every training row has some features, such as who rated it; see `newcomers`.
    """

    features: Matrix
    residual: Residual = field(default_factory=NoResidual)
    constant: int | None = None
    blocks: tuple[slice, ...] = ()
    nested: int | None = None
    new: NewFeatures | None = None
    group_names: Keys | None = None
    more: ModeTable | None = None
    set_block: int | None = None

    def __post_init__(self) -> None:
        if not self.blocks and self.features.shape[1]:
            object.__setattr__(self, "blocks", (slice(0, int(self.features.shape[1])),))

    def with_residual(self, residual: Residual) -> ModeTable:
        """The same features beside another residual, whose columns come first in `table`."""
        shift = residual.n_columns - self.residual.n_columns
        return replace(self, residual=residual, constant=None if self.constant is None else self.constant + shift)

    def take(self, rows: npt.NDArray[np.integer]) -> ModeTable:
        """Some of the rows, in the order given."""
        if self.more is None:
            features, residual = self.features[rows], self.residual.take(rows)
            names = None if self.group_names is None else self.group_names[rows]
            new = None if self.new is None else self.new.take(rows)
            return replace(self, features=features, residual=residual, group_names=names, new=new)
        first = int(self.features.shape[0])
        old = rows < first
        if old.all():
            return replace(self, more=None).take(rows)
        both = replace(self, more=None).take(rows[old])._joined(self.more.take(rows[~old] - first))
        return both.take(np.argsort(np.concatenate([np.flatnonzero(old), np.flatnonzero(~old)])))

    def _joined(self, rows: ModeTable) -> ModeTable:
        features = vstack([self.features, rows.features])
        residual = self.residual.joined(rows.residual)
        names = None if self.group_names is None else np.concatenate([self.group_names, rows.group_keys])
        new = stacked([(self.new, self.features.shape[0]), (rows.new, rows.features.shape[0])])
        return replace(self, features=features, residual=residual, group_names=names, new=new)

    def grown(self, rows: ModeTable) -> ModeTable:
        """These rows, which are not copied, then those of another table of the same mode."""
        return replace(self, more=rows if self.more is None else self.more._joined(rows))

    @property
    def n_rows(self) -> int:
        """The number of rows, M."""
        return int(self.features.shape[0]) + (0 if self.more is None else self.more.n_rows)

    @cached_property
    def seen(self) -> npt.NDArray[np.bool_]:
        """Which rows were learned from the data, (M,); all where rows are not learned one by one."""
        seen = self.residual.seen
        seen = np.ones(int(self.features.shape[0]), dtype=bool) if seen is None else seen
        return seen if self.more is None else np.concatenate([seen, self.more.seen])

    @property
    def group_keys(self) -> Keys:
        """Keys of the random numbers of the rows' groups, (M,), where rows may have noise factors."""
        keys = self.residual.keys if self.group_names is None else self.group_names
        return keys if self.more is None else np.concatenate([keys, self.more.group_keys])

    @cached_property
    def undetermined(self) -> npt.NDArray[np.bool_]:
        """Which rows a draw does not determine, so that predictions draw them, (M,)."""
        rows = self.residual.undetermined
        rows = np.zeros(int(self.features.shape[0]), dtype=bool) if rows is None else rows
        if self.new_unlearned is not None:
            rows = rows | (np.diff(self.new_unlearned.values.indptr) > 0)
        return rows if self.more is None else np.concatenate([rows, self.more.undetermined])

    @cached_property
    def new_unlearned(self) -> NewFeatures | None:
        """New features of rows that were not learned from the data; None for none."""
        seen = self.residual.seen
        if self.new is None or seen is None or not seen.any():
            return self.new
        rows = np.flatnonzero(~seen)
        return self.new.take(rows).put(rows, len(seen)) if len(rows) else None

    @cached_property
    def newcomers(self) -> npt.NDArray[np.intp]:
        """The rows never seen whose set is not known, without those of `more`."""
        seen = self.residual.seen
        if self.set_block is None or seen is None or seen.all():
            return np.zeros(0, dtype=np.intp)
        rows = np.flatnonzero(~seen)
        members = sparse.csr_array(self.features[rows][:, self.blocks[self.set_block]])
        return np.asarray(rows[np.asarray(members.power(2).sum(axis=1)).ravel() == 0])

    @property
    def features_besides_set(self) -> Matrix:
        """The features of all blocks but the set, (M, k)."""
        others = [self.features[:, block] for g, block in enumerate(self.blocks) if g != self.set_block]
        return hstack([self.features[:, :0], *others])

    @cached_property
    def groups(self) -> Index:
        """The group of each row, (M,): the training row it is, or its column of the nested block; -1 for none."""
        if self.more is not None:
            return np.concatenate([replace(self, more=None).groups, self.more.groups])
        groups = np.full(self.n_rows, -1, dtype=np.int32)
        if self.nested is None:
            return groups if self.residual.groups is None else self.residual.groups
        onehot = sparse.csr_array(sparse.csc_array(self.features)[:, self.blocks[self.nested]])
        groups[np.diff(onehot.indptr) > 0] = onehot.indices
        return groups

    @property
    def n_groups(self) -> int:
        """How many groups there are among the training rows; 0 where rows have no noise factors."""
        if self.nested is None or not self.residual.n_groups:
            return self.residual.n_groups
        return int(self.blocks[self.nested].stop - self.blocks[self.nested].start)

    @cached_property
    def table(self) -> Matrix:
        """Residual and features side by side: Phi of the weight-space model psi = Phi U."""
        columns = self.residual.columns()
        return self.features if columns is None else hstack([columns, self.features])

    @property
    def n_features(self) -> int:
        """The number of columns of `table`."""
        return int(self.features.shape[1]) + self.residual.n_columns
