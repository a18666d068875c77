"""Tucker Gaussian processes, f(x) = W x_1 U_1'phi_1(x) x_2 ... x_D U_D'phi_D(x): a regressor and a recommender.

The public names live here and are imported on first use, so that ``import tuckergp`` and the command line start
without loading numba or SciPy.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tuckergp.data.tables import from_matrix as from_matrix
    from tuckergp.data.tables import read_table as read_table
    from tuckergp.evaluation.tuning import tune as tune
    from tuckergp.model.mode import Mode as Mode
    from tuckergp.recommender import TuckerRecommender as TuckerRecommender
    from tuckergp.regressor import TuckerGPRegressor as TuckerGPRegressor
    from tuckergp.store.model_file import load as load

__version__ = "0.1.0"

# Modules by their public names, and where their code is.
_MODULES = {
    "baselines": "tuckergp.evaluation.baselines",
    "cores": "tuckergp.model.cores",
    "datasets": "tuckergp.data.datasets",
    "describe": "tuckergp.recommender.describe",
    "evaluate": "tuckergp.evaluation.evaluate",
    "metrics": "tuckergp.evaluation.metrics",
    "splits": "tuckergp.data.splits",
    "tuning": "tuckergp.evaluation.tuning",
}

_HOMES = {
    "Mode": "tuckergp.model.mode",
    "TuckerGPRegressor": "tuckergp.regressor",
    "TuckerRecommender": "tuckergp.recommender",
    "from_matrix": "tuckergp.data.tables",
    "load": "tuckergp.store.model_file",
    "read_table": "tuckergp.data.tables",
    "tune": "tuckergp.evaluation.tuning",
}

__all__ = [
    "Mode",
    "TuckerGPRegressor",
    "TuckerRecommender",
    "__version__",
    "from_matrix",
    "load",
    "read_table",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES:
        return sys.modules[f"tuckergp.{name}"]
    raise AttributeError(f"module 'tuckergp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])


class _Alias(ModuleType):
    """A module by its public name, loaded when one of its attributes is first used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        return getattr(importlib.import_module(_MODULES[self.__name__.removeprefix("tuckergp.")]), name)


for _name in _MODULES:
    sys.modules[f"tuckergp.{_name}"] = _Alias(f"tuckergp.{_name}")
