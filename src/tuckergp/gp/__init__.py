"""References for the Tucker model: the Gaussian process that it approximates, computed exactly.

`ExactGP` for any inputs. The names are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuckergp.gp.exact import ExactGP as ExactGP

_HOMES = {"ExactGP": "tuckergp.gp.exact"}

__all__ = ["ExactGP"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tuckergp.gp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
