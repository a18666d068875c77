"""The classes that a model file may hold, by names that stay when code moves, and how each is stored and rebuilt.

Only classes listed here are ever built from a file. Kernels, feature maps, inferences, likelihoods and residuals come
from the lists of their packages, so that a new one needs nothing here. A field that a file lacks gets its default, and
one that the class lacks is ignored, so fields may come and go within a major version of the format.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable, Iterator
from functools import cache, reduce
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from tuckergp import features as feature_maps
from tuckergp import kernels
from tuckergp.data.filed_history import FiledHistory
from tuckergp.data.history import SortedHistory
from tuckergp.data.tables import Table
from tuckergp.inference import INFERENCES
from tuckergp.inference.base import Info
from tuckergp.kernels import Sum
from tuckergp.likelihoods import LIKELIHOODS
from tuckergp.params import Parametrised
from tuckergp.residuals import RESIDUALS
from tuckergp.residuals.base import ModeDraws
from tuckergp.store.stored_rows import StoredRows
from tuckergp.store.trees import fields_of
from tuckergp.store.typed import check_fields, hints_of

__all__ = [
    "ESTIMATORS",
    "AsRows",
    "UnknownClass",
    "build",
    "class_of",
    "declared",
    "fields",
    "fitted",
    "learn",
    "name_of",
]

Fields = dict[str, Any]

ESTIMATORS = ("TuckerRecommender", "TuckerGPRegressor")

_HOMES: dict[str, tuple[str, ...]] = {
    "tuckergp.recommender": ("TuckerRecommender",),
    "tuckergp.regressor": ("TuckerGPRegressor",),
    "tuckergp.features.compose": ("Concatenated", "Kronecker", "ScaledMap"),
    "tuckergp.model.mode": ("Mode",),
    "tuckergp.model.block": ("Block",),
    "tuckergp.model.fitted_mode": ("FittedMode",),
    "tuckergp.features.new": ("NewFeatures",),
    "tuckergp.model.mode_table": ("ModeTable",),
    "tuckergp.model.tucker": ("Core", "TuckerModel"),
    "tuckergp.model.cores": ("Entries", "Learned", "Random"),
    "tuckergp.residuals.base": ("ModeDraws",),
    "tuckergp.posterior.draws": ("Draws",),
    "tuckergp.posterior.fitted": ("Fit",),
    "tuckergp.posterior.moments": ("Moments", "Running"),
    "tuckergp.recommender.attributes": ("Attributes",),
    "tuckergp.recommender.decisions": ("Attribute",),
    "tuckergp.recommender.feature_report": ("FeatureReport",),
    "tuckergp.regressor.choice": ("Choice",),
    "tuckergp.regressor.outputs": ("Outputs",),
    "tuckergp.data.grids": ("Coordinate", "GridData"),
    "tuckergp.data.ids": ("Ids",),
    "tuckergp.recommender.circumstances": ("Circumstance", "Context", "Drift"),
    "tuckergp.recommender.entities": ("Side",),
    "tuckergp.data.history": ("History",),
    "tuckergp.recommender.layout": ("Layout",),
    "tuckergp.data.columns": ("Encoder",),
}


_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


class UnknownClass(ValueError):
    """An error for a file that names a class that is not listed."""


class AsRows(NamedTuple):
    """Marks a large array that readers map into memory, to read only the rows that they need.

    Its numbers are below ``below`` where that is given.
    """

    values: Any
    below: int | None = None


def _exported(module: ModuleType) -> Iterator[type]:
    """The public classes of a package of kernels or feature maps."""
    for name in module.__all__:
        kind = getattr(module, name)
        if isinstance(kind, type) and kind not in _ABSTRACT:
            yield kind


_ABSTRACT = (kernels.Kernel, kernels.Stationary, feature_maps.FeatureMap)


@cache
def _listed() -> dict[str, type]:
    """The classes of the packages that list theirs, by their names in files."""
    kinds = [*_exported(kernels), *_exported(feature_maps), *INFERENCES.values(), *LIKELIHOODS.values()]
    classes = {kind.__name__: kind for kind in kinds}
    return classes | {f"residuals.{kind.__name__}": kind for kind in RESIDUALS}  # feature maps have the same names


@cache
def _names() -> dict[type, str]:
    return {kind: name for name, kind in _listed().items()} | dict.fromkeys((SortedHistory, FiledHistory), "History")


@cache
def _name_or_none(kind: type) -> str | None:
    """The name of a class in files; None for a class that is not listed."""
    if kind in _names():
        return _names()[kind]
    return kind.__name__ if kind.__name__ in _HOME_OF and class_of(kind.__name__) is kind else None


def class_of(name: str) -> type:
    """The class that has this name in files.

    Examples
    --------
    >>> class_of("SE").__name__
    'SE'
    """
    if name in _HOME_OF:  # the regressor's module, for one, is not loaded for a recommender
        kind: type = getattr(importlib.import_module(_HOME_OF[name]), name)
        return kind
    if name not in _listed():
        raise UnknownClass(name)
    return _listed()[name]


class _Classes(dict[str, type]):
    """The classes by their names, each module loaded when one of its classes is asked for."""

    def __missing__(self, name: str) -> type:
        if name not in _HOME_OF:
            raise KeyError(name)
        return class_of(name)


def name_of(kind: type) -> str:
    """The name of a class in files; TypeError for a class that is not listed."""
    name = _name_or_none(kind)
    if name is None:
        raise TypeError(f"a {kind.__name__} cannot be stored")
    return name


def fitted(thing: Any) -> Fields:
    """The fitted attributes of an object: those whose names end in an underscore."""
    return {name: value for name, value in vars(thing).items() if _is_learned(name)}


def learn(thing: Any, values: Fields) -> None:
    """Set the fitted attributes of an object."""
    vars(thing).update({name: value for name, value in values.items() if _is_learned(name)})


def _is_learned(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_") and name.isidentifier()


def fields(thing: Any) -> Fields | None:
    """The fields that an object is stored as; None for values such as lists, which have none."""
    name = _name_or_none(type(thing))  # type: ignore[arg-type]
    if name in _SPECIAL:
        return _SPECIAL[name][0](thing)
    if isinstance(thing, Parametrised):
        return {**thing.get_params(deep=False), **fitted(thing)}
    return fields_of(thing)


def build(kind: Any, values: Fields) -> Any:
    """Build an object of a class from its fields; ValueError where one is not what the class declares."""
    name = name_of(kind)
    if name in _SPECIAL:
        made = _SPECIAL[name][1](values)
    elif issubclass(kind, Parametrised):
        made = _described(kind, values)
    else:
        made = _made(kind, values)
    check_fields(made, declared(type(made)))  # type: ignore[arg-type]  # classes have a hash, though instances may not
    return made


@cache
def declared(kind: type) -> dict[str, Any]:
    """The types that the fields of a class have."""
    return hints_of(kind, _Classes(_listed()))


def _made(kind: Any, values: Fields) -> Any:
    """Build a dataclass or a NamedTuple from those fields that it has."""
    known = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else kind._fields
    return kind(**{name: value for name, value in values.items() if name in known})


def _described(kind: Any, values: Fields) -> Any:
    """Build a kernel or a feature map from its constructor's arguments and its fitted attributes."""
    made = kind.__new__(kind)
    signature = inspect.signature(kind.__init__).parameters
    for name in kind._parameter_names():
        default = () if signature[name].kind is inspect.Parameter.VAR_POSITIONAL else signature[name].default
        if name not in values and default is inspect.Parameter.empty:
            raise ValueError(f"{kind.__name__} lacks {name}")
        vars(made)[name] = values.get(name, default)
    learn(made, values)
    return made


# A sum of many kernels is a deeply nested chain of pairs, so files hold a list of the terms.


def _sum_fields(kernel: Any) -> Fields:
    later = []
    while type(kernel) is Sum:
        later.append(kernel.k2)
        kernel = kernel.k1
    return {"terms": [kernel, *reversed(later)]}


def _build_sum(values: Fields) -> Any:
    return reduce(Sum, values["terms"])


# Arrays of draws by rows are large, and readers may need few of the rows.


def _draws_fields(draws: Any) -> Fields:
    own = fields_of(draws) or {}
    own |= {"B": AsRows(draws.B), "rows": {name: AsRows(values) for name, values in draws.rows.items()}}
    return own | {"row_noise": None if draws.row_noise is None else AsRows(draws.row_noise)}


def _build_draws(values: Fields) -> Any:
    made = _made(ModeDraws, values)
    if isinstance(made.row_noise, StoredRows):
        made.row_noise.limit(np.finfo(np.float64).smallest_subnormal, np.inf)
    return made


# Files hold a learning curve as a table with one row per step.


def _fit_fields(fit: Any) -> Fields:
    steps = fit.steps
    columns: dict[str, Any] = {name: np.array([getattr(info, name) for info in steps]) for name in _OF_STEPS}
    for name in dict.fromkeys(name for info in steps for name in info.figures):
        columns[f"figure.{name}"] = np.array([info.figures.get(name) for info in steps])
    return {"draws": fit.draws, "steps": Table(columns, "steps", len(steps))}


_OF_STEPS = ("step", "chain", "done")


def _build_fit(given: Fields) -> Any:
    table = given["steps"]
    figures = {name.removeprefix("figure."): table[name].tolist() for name in table.columns if name not in _OF_STEPS}
    each: list[dict[str, float]] = [{} for _ in range(len(table))]
    for name, values in figures.items():
        for info, value in zip(each, values, strict=True):
            if value is not None:
                info[name] = value
    rows = zip(*(table[name].tolist() for name in ("step", "done", "chain")), each, strict=True)
    steps = [Info(step, figures, done, chain) for step, done, chain, figures in rows]
    return _made(class_of("Fit"), {**given, "steps": steps})


# Files hold ratings sorted by user, in large arrays that are read by rows.


def _history_fields(history: Any) -> Fields:
    ordered = history.sorted()
    rows = {"item": AsRows(ordered.item, len(ordered.ids[1])), "place": AsRows(ordered.place, len(ordered))}
    columns = ordered.when.columns.items()  # floats may be missing, which large tensors do not have
    when = {name: AsRows(values) if values.dtype.kind in "iubmM" else values for name, values in columns}
    known = {"ids": ordered.ids, "clicks": ordered.clicks, "starts": ordered.starts, "source": ordered.when.name}
    more = {} if ordered.counts is None else {"counts": ordered.counts}
    return {**known, **more, **rows, "value": AsRows(ordered.value), "when": when}


def _build_history(values: Fields) -> Any:
    when = Table(values.pop("when"), values.pop("source"), len(values["item"]))
    names = ("ids", "starts", "item", "value", "place")
    more = {"clicks": values.get("clicks", False), "counts": values.get("counts")}
    return SortedHistory(**{name: values[name] for name in names}, when=when, **more)


def _report_fields(report: Any) -> Fields:
    return {"sides": dict(report)}


def _build_report(values: Fields) -> Any:
    return class_of("FeatureReport")(values["sides"])


# Attributes of grids may be of any type; files keep text, booleans and numbers.


def _grid_fields(grid: Any) -> Fields:
    values = fields_of(grid) or {}
    values["attrs"] = {str(k): v for k, v in values["attrs"].items() if isinstance(v, str | bool | int | float)}
    if values.get("values") is not None and values["values"].dtype.kind in "US":
        values["values"] = values["values"].astype(object)
    return values


_SPECIAL: dict[str | None, tuple[Callable[[Any], Fields], Callable[[Fields], Any]]] = {
    "Sum": (_sum_fields, _build_sum),
    "History": (_history_fields, _build_history),
    "Fit": (_fit_fields, _build_fit),
    "ModeDraws": (_draws_fields, _build_draws),
    "FeatureReport": (_report_fields, _build_report),
    "GridData": (_grid_fields, lambda values: _made(class_of("GridData"), values)),
    "Coordinate": (_grid_fields, lambda values: _made(class_of("Coordinate"), values)),
}
