"""`/predict`: many predictions at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from fastapi import APIRouter, Request

from tuckergp.serve.replies import Reply
from tuckergp.serve.routes.common import ERRORS, service_of
from tuckergp.serve.schemas import Predictions, PredictRequest

__all__ = ["router"]

router = APIRouter(tags=["predictions"], responses=ERRORS)


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
        columns["low"], columns["high"] = np.asarray(parts.pop(0)).T
    listed = [np.asarray(values).tolist() for values in columns.values()]
    return Reply({"predictions": [dict(zip(columns, row, strict=True)) for row in zip(*listed, strict=True)]})
