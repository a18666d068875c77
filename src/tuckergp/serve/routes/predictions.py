"""`/predict`: many predictions at once; `/explain`: the parts of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request

from tuckergp.serve.computing import TimedRoute
from tuckergp.serve.replies import Reply
from tuckergp.serve.routes.common import ERRORS, service_of
from tuckergp.serve.schemas import Predictions, PredictRequest, Why

__all__ = ["router"]

router = APIRouter(tags=["predictions"], responses=ERRORS, route_class=TimedRoute)


@router.post("/predict", response_model=Predictions, summary="Predictions of many pairs, or rows")
def predict(request: Request, asked: PredictRequest) -> Any:
    """The mean of each row, its standard deviation, and an interval if one is asked for, in the order of the rows."""
    served = service_of(request).current()
    std = asked.std and served.model.fit_.draws.sampled
    parts = served.predict(asked.rows, asked.unknown, return_std=std, interval=asked.interval)
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


@router.get("/explain", response_model=Why, summary="Why an item is predicted so for a user")
def explain(
    request: Request,
    user_id: Annotated[str, Query(description="A known user.", max_length=2_000, examples=["u0001"])],
    item_id: Annotated[str, Query(description="A known item.", max_length=2_000, examples=["i0001"])],
    timestamp: Annotated[str | None, Query(description="When, for models with time.", max_length=40)] = None,
) -> Any:
    """The prediction as a sum: the average, each attribute, co-rating, and the own part of the user and the item."""
    served = service_of(request).recommender()
    when = {} if timestamp is None else {"timestamp": timestamp}
    return Reply(served.explain(served.users.known(user_id), served.items.known(item_id), **when))
