"""A mode as the user describes it: which columns go together, and which kernel compares them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuckergp.errors import InputError
from tuckergp.features import FeatureMap
from tuckergp.features.base import ResidualMap
from tuckergp.kernels import Constant, Kernel

__all__ = ["Mode"]


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
        Identity and Linear; Line and Field: for the first Matern), or a sequence with one entry for each term. None
        chooses.
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
        return self.constant and not any(isinstance(term.unscaled()[0], Constant) for term in self.kernel.terms())


def _applies(features: FeatureMap | None, term: Kernel) -> bool:
    """Whether a map given for the whole kernel is meant for this term."""
    return features is not None and features.suits(term.unscaled()[0])
