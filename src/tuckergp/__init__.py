"""Tucker Gaussian Processes: f(x) = W x_1 U_1'phi_1(x) x_2 ... x_D U_D'phi_D(x).

The public names live here and are imported on first use, so that ``import tuckergp`` and the command line start
without loading numba or SciPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuckergp.design import Mode as Mode
    from tuckergp.recommender import TuckerRecommender as TuckerRecommender
    from tuckergp.regressor import TuckerGPRegressor as TuckerGPRegressor
    from tuckergp.store.model_file import load as load
    from tuckergp.tuning import tune as tune

__version__ = "0.1.0"

_HOMES = {
    "Mode": "tuckergp.design",
    "TuckerGPRegressor": "tuckergp.regressor",
    "TuckerRecommender": "tuckergp.recommender",
    "load": "tuckergp.store.model_file",
    "tune": "tuckergp.tuning",
}

__all__ = ["Mode", "TuckerGPRegressor", "TuckerRecommender", "__version__", "load", "tune"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tuckergp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
