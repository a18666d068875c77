"""The search space of a model: values and ranges of its parameters, and the model with chosen parameters.

Parameters are named as in scikit-learn: ``rank``, and with two underscores the settings of an object that a parameter
holds, such as ``inference__sigma_u``. Their order in a search is decided in `tuckergp.evaluation.tuning.proposals`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.base import clone

from tuckergp.data.history import RATING, TIMESTAMP
from tuckergp.data.tables import Table
from tuckergp.errors import InputError
from tuckergp.inference import INFERENCES
from tuckergp.model.tucker import make_core
from tuckergp.random import stream
from tuckergp.recommender import TuckerRecommender
from tuckergp.recommender.choosing import LARGEST_IMPLICIT, inference_of
from tuckergp.recommender.settings import RecommenderSettings
from tuckergp.running.fit import ranks_of

__all__ = ["Params", "Range", "Search", "Space", "check_names", "configured", "default_grid", "read_grid", "samples"]

Params: TypeAlias = dict[str, Any]
Search: TypeAlias = Literal["grid", "optuna"]

# Settings of the estimator that an inference object may have itself.
MOVED = ("draws", "warmup", "chains", "noise")


@dataclasses.dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, whole if both are; with ``log``, uniform on a logarithmic scale."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def read(cls, name: str, given: tuple[Any, ...]) -> Range:
        """Read a range from (low, high) or (low, high, "log")."""
        if len(given) not in (2, 3) or given[2:] not in ((), ("log",)):
            raise InputError(f'A range is (low, high) or (low, high, "log"); that of {name!r} is {given!r}.')
        low, high = given[:2]
        if not (_is_number(low) and _is_number(high) and low < high):
            raise InputError(f"The range of {name!r} must go from a number to a larger one, not {given!r}.")
        if len(given) == 3 and low <= 0:
            raise InputError(f"A logarithmic range must be above 0; that of {name!r} is {given!r}.")
        return cls(low, high, len(given) == 3)


Space: TypeAlias = dict[str, list[Any] | Range]


def read_grid(grid: Any) -> list[Space]:
    """Read the user's grid, or list of grids: names with a list of values, or a tuple that is a range."""
    if not isinstance(grid, Mapping | list | tuple) or any(
        not isinstance(each, Mapping) for each in ([] if isinstance(grid, Mapping) else grid)
    ):
        raise InputError(f"grid must be a dict of names to lists of values, or a list of such, not {grid!r}.")
    if not grid:
        raise InputError("The grid is empty; name at least one parameter with its values.")
    return [
        {str(name): _read_values(str(name), values) for name, values in each.items()}
        for each in ([grid] if isinstance(grid, Mapping) else grid)
    ]


def _read_values(name: str, values: Any) -> list[Any] | Range:
    if isinstance(values, tuple):
        return Range.read(name, values)
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError(f"The grid needs a list of values for {name!r}, such as [{values!r}], not {values!r}.")
    listed = [value.item() if isinstance(value, np.generic) else value for value in values]
    if not listed:
        raise InputError(f"The grid has no values for {name!r}; give some or leave it out.")
    return listed


def check_names(model: Any, spaces: Sequence[Space]) -> None:
    """Raise an error for names that are no parameter of the model or of an object that a parameter may hold."""
    known = model.get_params(deep=False)
    for space in spaces:
        for name in space:
            outer, _, inner = name.partition("__")
            if outer not in known:
                names = ", ".join(known) or "none"
                raise InputError(f"{type(model).__name__} has no parameter {outer!r}; its parameters are: {names}.")
            if not inner:
                continue
            choices = space.get(outer)
            owners = choices if isinstance(choices, list) else [known[outer]]
            settings = [_setting_names(outer, owner) for owner in owners]
            if not any(inner in each for each in settings):
                listed = ", ".join(dict.fromkeys(setting for each in settings for setting in each)) or "none"
                raise InputError(f"{name!r} is no setting of {outer}={owners[0]!r}; its settings are: {listed}.")


def _setting_names(outer: str, owner: Any) -> list[str]:
    if outer == "inference" and isinstance(owner, str):
        owner = INFERENCES.get(owner)
    if dataclasses.is_dataclass(owner):
        return [field.name for field in dataclasses.fields(owner)]
    return list(owner.get_params()) if hasattr(owner, "get_params") else []


def configured(model: Any, params: Params) -> Any:
    """A clone of the model with other parameters, including those of its inference.

    Examples
    --------
    >>> made = configured(TuckerRecommender(inference="als"), {"rank": 4, "inference__noise": 0.75})
    >>> made.rank, made.inference.noise
    (4, 0.75)
    """
    made = clone(model, safe=False)
    made.set_params(**{name: value for name, value in params.items() if "__" not in name})
    inner: dict[str, Params] = {}
    for name, value in params.items():
        outer, _, rest = name.partition("__")
        if rest:
            inner.setdefault(outer, {})[rest] = value
    for outer, settings in inner.items():
        _set_inside(made, outer, settings)
    return made


def _set_inside(made: Any, outer: str, settings: Params) -> None:
    owner = getattr(made, outer)
    if outer == "inference" and isinstance(owner, str):
        owner = inference_of(RecommenderSettings.of(made))
        defaults = {name: parameter.default for name, parameter in signature(type(made)).parameters.items()}
        made.set_params(**{name: defaults[name] for name in MOVED})
    unknown = [name for name in settings if name not in _setting_names(outer, owner)]
    if unknown:
        raise InputError(f"{type(owner).__name__} has no setting {unknown[0]!r}.")
    if dataclasses.is_dataclass(owner) and not isinstance(owner, type):
        made.set_params(**{outer: dataclasses.replace(owner, **settings)})
    else:
        owner.set_params(**settings)


def samples(inference: Any) -> bool:
    """Whether there will be draws, and so a predicted distribution."""
    kind = INFERENCES.get(inference) if isinstance(inference, str) else inference
    return not getattr(kind, "point", True)


def default_grid(
    model: Any, ratings: Table | None = None, *, attributes: bool = True, search: Search = "grid"
) -> dict[str, Any] | list[dict[str, Any]]:
    """The default grid of `tuckergp.tune`.

    Parameters
    ----------
    model : TuckerRecommender
    ratings : Table or None
        To see whether there are timestamps; None if not.
    attributes : bool
        Whether there are tables of users or items.
    search : {"grid", "optuna"}
        Ranges for Optuna, lists for a grid.

    Returns
    -------
    dict of str to list or range, or list of such

    Examples
    --------
    >>> default_grid(TuckerRecommender(rank=16, inference="als"))
    {'inference__sigma_u': [0.4, 0.32, 0.25, 0.18, 0.1], 'inference__noise': [1.0, 0.75]}
    """
    if not isinstance(model, TuckerRecommender):
        raise InputError(f"There is no default grid for {type(model).__name__}; give the parameters to try as grid.")
    inference = inference_of(RecommenderSettings.of(model))
    if inference.weighs_blocks:
        return _grid_of_blocks(model, inference, ratings, attributes, search)
    unit = float(make_core(model.core, ranks_of(model.rank, 2), stream(0)).default_sigma_u()[0])
    grid = inference.grid(unit, model.core != "identity", search == "optuna")
    return {f"inference__{name}": values for name, values in grid.items()}


def _grid_of_blocks(
    model: TuckerRecommender, inference: Any, ratings: Table | None, attributes: bool, search: Search
) -> dict[str, Any] | list[dict[str, Any]]:
    """Ranks around the model's, and the model without each of its parts; for Optuna all combinations of them."""
    parts: dict[str, list[Any]] = {}
    if attributes and model.side_information:
        parts["side_information"] = [model.side_information, False]
    few = ratings is None or len(ratings) <= LARGEST_IMPLICIT
    if model.implicit is True or (model.implicit == "auto" and few and _has(model, ratings, RATING, True)):
        parts["implicit"] = [model.implicit, False]
    if model.time is not None and model.core == "identity" and _has(model, ratings, TIMESTAMP, False):
        parts["time"] = [model.time, None]
    if model.context:
        parts["context"] = [model.context, ()]
    name = "noise" if isinstance(model.inference, str) else "inference__noise"
    noise = model.noise if name == "noise" else inference.noise
    if RecommenderSettings.of(model).kind.row_noise:
        parts[name] = [noise, "rows" if noise == "shared" else "shared"]
    one = isinstance(model.rank, int | np.integer)
    if search == "optuna":
        ranks: dict[str, Any] = {"rank": (max(1, int(model.rank) // 2), 2 * int(model.rank), "log")} if one else {}
        return {**ranks, **parts}
    tried = sorted({max(1, int(model.rank) // 2), int(model.rank), 2 * int(model.rank)}) if one else [model.rank]
    return [{"rank": tried}, *({key: [values[1]]} for key, values in parts.items())]


def _has(model: TuckerRecommender, ratings: Table | None, column: str, unknown: bool) -> bool:
    """Whether the ratings have a column, whatever the model's tables call it."""
    if ratings is None:
        return unknown
    return column in ratings.columns or (model.columns or {}).get(column, column) in ratings.columns


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)
