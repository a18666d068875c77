"""Features of kernels: phi(x)'phi(x') equals k(x, x'), or estimates it.

A feature map holds parameters until `fit`, which learns what it needs (levels, pivots, frequencies) from the inputs of
one mode; `realise` does it for a composed kernel.
"""

from __future__ import annotations

from tuckergp.features.base import FeatureMap
from tuckergp.features.cholesky import Cholesky
from tuckergp.features.compose import choose, realise
from tuckergp.features.exact import Exact
from tuckergp.features.field import Field
from tuckergp.features.fourier import Fourier
from tuckergp.features.hashing import Hashing, hash_columns
from tuckergp.features.line import Line
from tuckergp.features.line_sum import LineSum
from tuckergp.features.nystrom import Nystrom
from tuckergp.features.rows import Rows

__all__ = [
    "RESIDUALS",
    "Chain",
    "Cholesky",
    "Exact",
    "FeatureMap",
    "Field",
    "Fourier",
    "Hashing",
    "Line",
    "LineSum",
    "Nystrom",
    "Rows",
    "choose",
    "hash_columns",
    "realise",
]

RESIDUALS = (Rows, Line, Field)
"""The marks of residuals, in the order in which `tuckergp.Mode` tries them by itself."""

Chain = Line  # its earlier name
