"""What a model file may hold: classes by names that stay when code moves, and how each is taken apart and rebuilt.

Only what is listed here is ever built from a file. A class that moves gets another home here; one that is renamed
keeps its name in files (``"Side": "tuckergp.recommender.entities:Party"``). A field that is not in a file has its
default, and one that is not in the class is left out, so fields may come and go within a major version of the format.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable
from functools import cache, reduce
from typing import Any

from tuckergp.kernels import Sum
from tuckergp.params import Parameters
from tuckergp.recommender.feature_report import FeatureReport
from tuckergp.store.trees import fields_of

__all__ = ["ESTIMATORS", "UnknownClass", "build", "class_of", "fields", "fitted", "learn", "name_of"]

Fields = dict[str, Any]

ESTIMATORS = ("TuckerRecommender", "TuckerGPRegressor")

_HOMES: dict[str, tuple[str, ...]] = {
    "tuckergp.recommender": ("TuckerRecommender",),
    "tuckergp.regressor": ("TuckerGPRegressor",),
    "tuckergp.kernels": (
        *("SE", "Constant", "Cosine", "Identity", "Linear", "Matern12", "Matern32", "Matern52", "Periodic"),
        *("Product", "Scaled", "Sum"),
    ),
    "tuckergp.features": ("Chain", "Cholesky", "Exact", "Fourier", "Hashing", "Nystrom", "Rows"),
    "tuckergp.features.compose": ("Concatenated", "Kronecker", "ScaledMap"),
    "tuckergp.model.design": ("Block", "Design", "FittedMode", "Mode"),
    "tuckergp.model.mode_table": ("Line", "ModeTable"),
    "tuckergp.model.tucker": ("Core", "Parameters", "Path", "TuckerModel"),
    "tuckergp.model.cores": ("Entries", "Learned"),
    "tuckergp.likelihoods": ("Gaussian", "Ordinal", "Poisson"),
    "tuckergp.inference": ("ALS", "HMC", "NUTS", "SGD", "SGLD", "VI", "Gibbs"),
    "tuckergp.inference.base": ("Info",),
    "tuckergp.posterior.draws": ("Draw", "Draws"),
    "tuckergp.posterior.fitted": ("CountFit", "Fit", "OrdinalFit"),
    "tuckergp.inference.gibbs": ("GibbsState", "ModeState"),
    "tuckergp.posterior.moments": ("Moments", "Running"),
    "tuckergp.recommender.attributes": ("Attributes",),
    "tuckergp.recommender.decisions": ("Attribute",),
    "tuckergp.recommender.feature_report": ("FeatureReport",),
    "tuckergp.data.grids": ("Coordinate", "GridData"),
    "tuckergp.data.ids": ("Ids",),
    "tuckergp.recommender.circumstances": ("Circumstance", "Context", "Drift"),
    "tuckergp.recommender.entities": ("Side",),
    "tuckergp.data.history": ("History",),
    "tuckergp.recommender.layout": ("Layout",),
    "tuckergp.data.columns": ("Encoder",),
}
_PLACES = {name: f"{module}:{name}" for module, names in _HOMES.items() for name in names}
_PLACES["SparseCore"] = "tuckergp.cores:Random"


class UnknownClass(ValueError):
    """A file names a class that is not listed."""


@cache
def class_of(name: str) -> type:
    """The class that files call so.

    Examples
    --------
    >>> class_of("SE").__name__
    'SE'
    """
    if name not in _PLACES:
        raise UnknownClass(name)
    module, _, qualified = _PLACES[name].partition(":")
    kind: type = getattr(importlib.import_module(module), qualified)
    return kind


@cache
def _names() -> dict[type, str]:
    return {class_of(name): name for name in _PLACES}


def name_of(kind: type) -> str:
    """What files call a class; TypeError for one that is not listed."""
    try:
        return _names()[kind]
    except KeyError:
        raise TypeError(f"a {kind.__name__} cannot be stored") from None


def fitted(thing: Any) -> Fields:
    """What an object has learned: its attributes that end in an underscore."""
    return {name: value for name, value in vars(thing).items() if _is_learned(name)}


def learn(thing: Any, found: Fields) -> None:
    """Give an object what it had learned."""
    vars(thing).update({name: value for name, value in found.items() if _is_learned(name)})


def _is_learned(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_") and name.isidentifier()


def fields(thing: Any) -> Fields | None:
    """What an object is made of; None for what is no object of this kind (a list, say)."""
    name = _names().get(type(thing))
    if name in _SPECIAL:
        return _SPECIAL[name][0](thing)
    if isinstance(thing, Parameters):
        return {**thing.get_params(deep=False), **fitted(thing)}
    return fields_of(thing)


def build(kind: Any, found: Fields) -> Any:
    """An object of a class from what it is made of."""
    name = name_of(kind)
    if name in _SPECIAL:
        return _SPECIAL[name][1](found)
    if issubclass(kind, Parameters):
        return _described(kind, found)
    return _made(kind, found)


def _made(kind: Any, found: Fields) -> Any:
    """A dataclass or a NamedTuple."""
    known = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else kind._fields
    return kind(**{name: value for name, value in found.items() if name in known})


def _described(kind: Any, found: Fields) -> Any:
    """A kernel or a feature map: what its constructor stores, and what it has learned."""
    made = kind.__new__(kind)
    signature = inspect.signature(kind.__init__).parameters
    for name in kind._parameter_names():
        default = () if signature[name].kind is inspect.Parameter.VAR_POSITIONAL else signature[name].default
        if name not in found and default is inspect.Parameter.empty:
            raise ValueError(f"{kind.__name__} lacks {name}")
        vars(made)[name] = found.get(name, default)
    learn(made, found)
    return made


# A sum of many kernels is a long chain of pairs: a list of them in files.


def _sum_fields(kernel: Any) -> Fields:
    later = []
    while type(kernel) is Sum:
        later.append(kernel.k2)
        kernel = kernel.k1
    return {"terms": [kernel, *reversed(later)]}


def _build_sum(found: Fields) -> Any:
    return reduce(Sum, found["terms"])


# Ratings are a table in files, a row each, which is far smaller than arrays.


def _history_fields(history: Any) -> Fields:
    found = fields_of(history) or {}
    user, item = found.pop("codes")
    moment = found.pop("moment")
    columns = {"user": user, "item": item, "rating": found.pop("rating")}
    columns |= {f"moment.{name}": values for name, values in moment.columns.items()}
    return {**found, "ratings": dataclasses.replace(moment, columns=columns)}


def _build_history(found: Fields) -> Any:
    ratings = found.pop("ratings")
    columns = {
        name.removeprefix("moment."): values for name, values in ratings.columns.items() if name.startswith("moment.")
    }
    found |= {"codes": (ratings["user"], ratings["item"]), "rating": ratings["rating"]}
    return _made(class_of("History"), {**found, "moment": dataclasses.replace(ratings, columns=columns)})


def _report_fields(report: Any) -> Fields:
    return {"sides": dict(report)}


def _build_report(found: Fields) -> Any:
    return FeatureReport(found["sides"])


# Attributes of grids may be anything; files keep those that are plain.


def _grid_fields(grid: Any) -> Fields:
    found = fields_of(grid) or {}
    found["attrs"] = {str(k): v for k, v in found["attrs"].items() if isinstance(v, str | bool | int | float)}
    if found.get("values") is not None and found["values"].dtype.kind in "US":
        found["values"] = found["values"].astype(object)
    return found


_SPECIAL: dict[str | None, tuple[Callable[[Any], Fields], Callable[[Fields], Any]]] = {
    "Sum": (_sum_fields, _build_sum),
    "History": (_history_fields, _build_history),
    "FeatureReport": (_report_fields, _build_report),
    "GridData": (_grid_fields, lambda found: _made(class_of("GridData"), found)),
    "Coordinate": (_grid_fields, lambda found: _made(class_of("Coordinate"), found)),
}
