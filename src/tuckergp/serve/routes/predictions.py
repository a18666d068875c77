"""`/predict`: many predictions at once; `/explain`: the parts of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request

from tuckergp.data.names import KEYS
from tuckergp.errors import InputError
from tuckergp.serve.computing import TimedRoute
from tuckergp.serve.replies import Reply
from tuckergp.serve.routes.common import ERRORS, service_of
from tuckergp.serve.schemas import MOST_TEXT, Predictions, PredictRequest, Why

__all__ = ["router"]

router = APIRouter(tags=["predictions"], responses=ERRORS, route_class=TimedRoute)


@router.post("/predict", response_model=Predictions, summary="Predictions of many pairs, or rows")
def predict(request: Request, asked: PredictRequest) -> Any:
    """The mean of each row, its standard deviation, and an interval if one is asked for, in the order of the rows."""
    served = service_of(request).current()
    std = asked.std and served.model.fit_.draws.sampled
    is_asked = served.kind == "recommender" or "unknown" in asked.model_fields_set
    unknown = asked.unknown if is_asked else None
    parts = served.predict(asked.rows, unknown, return_std=std, interval=asked.interval)
    parts = list(parts) if isinstance(parts, tuple) else [parts]
    columns = {"mean": parts.pop(0)}
    if std:
        columns["std"] = parts.pop(0)
    if asked.interval is not None:
        columns["low"], columns["high"] = np.moveaxis(np.asarray(parts.pop(0)), -1, 0)
    listed = [_named(np.asarray(values).tolist(), served.outputs) for values in columns.values()]
    return Reply({"predictions": [dict(zip(columns, row, strict=True)) for row in zip(*listed, strict=True)]})


def _named(values: list[Any], outputs: Sequence[str] | None) -> list[Any]:
    """A number for each row, or where there are several outputs one for each of them by its name."""
    return values if outputs is None else [dict(zip(outputs, row, strict=True)) for row in values]


CIRCUMSTANCES: dict[str, Any] = {
    "name": "circumstances",
    "in": "query",
    "required": False,
    "description": "Further circumstances that /version names, each as a parameter of its own: device=tv. "
    "The average without them.",
    "style": "form",
    "explode": True,
    "schema": {
        "type": "object",
        "additionalProperties": {"type": "string", "maxLength": MOST_TEXT},
        "examples": [{"device": "tv"}],
    },
}


@router.get(
    "/explain",
    response_model=Why,
    summary="Why an item is predicted so for a user",
    openapi_extra={"parameters": [CIRCUMSTANCES]},
)
def explain(
    request: Request,
    user_id: Annotated[str, Query(description="A known user.", max_length=MOST_TEXT, examples=["u0001"])],
    item_id: Annotated[str, Query(description="A known item.", max_length=MOST_TEXT, examples=["i0001"])],
    timestamp: Annotated[
        str | None, Query(description="When, for models with time.", max_length=40, examples=["2024-01-10"])
    ] = None,
) -> Any:
    """The prediction as a sum: the average, each attribute, co-rating, and the own part of the user and the item."""
    served = service_of(request).recommender()
    given = request.query_params.multi_items()
    circumstances = {name: text for name, text in given if name not in KEYS}
    for name, text in given:
        if len(text) > MOST_TEXT:
            raise InputError(f"{name[:80]} must be text of at most {MOST_TEXT:,} characters.")
    if len(circumstances) + len(KEYS) != len(given):
        raise InputError("A parameter is given twice; /explain takes one user, one item and one of each circumstance.")
    return Reply(served.explain(served.users.known(user_id), served.items.known(item_id), circumstances))
