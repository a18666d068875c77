"""References for the Tucker model: the Gaussian process that it approximates, computed exactly.

`ExactGP` for any inputs, `GridGP` on grids, `FullRank` in weight space. The names are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuckergp.gp.exact import ExactGP as ExactGP
    from tuckergp.gp.full_rank import FullRank as FullRank
    from tuckergp.gp.grid import GridGP as GridGP

_HOMES = {"ExactGP": "tuckergp.gp.exact", "FullRank": "tuckergp.gp.full_rank", "GridGP": "tuckergp.gp.grid"}

__all__ = ["ExactGP", "FullRank", "GridGP"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tuckergp.gp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
