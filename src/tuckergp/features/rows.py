"""The mark for an Identity term that is kept as independent rows instead of becoming features."""

from __future__ import annotations

from tuckergp.features.base import FeatureMap
from tuckergp.kernels import Identity, Kernel

__all__ = ["Rows"]


class Rows(FeatureMap):
    """Keep an Identity term as the residual of its mode: one free row an input, solved row by row.

    `tuckergp.Mode` chooses it by itself for an Identity term that tells all inputs apart; naming it insists on that.

    Examples
    --------
    >>> from tuckergp import Mode
    >>> Mode("user_id", Identity(), features=Rows()).features
    Rows()
    """

    def suits(self, kernel: Kernel) -> bool:
        """Whether the kernel is an Identity."""
        return isinstance(kernel, Identity)
