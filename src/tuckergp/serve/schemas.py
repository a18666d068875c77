"""What requests and answers look like, for checks of requests and for OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

__all__ = ["Cell", "Error", "Id", "PredictRequest", "Predictions"]

MOST_ROWS = 100_000
Text = Annotated[str, Field(strict=True, max_length=2_000)]
Whole = Annotated[int, Field(strict=True, ge=-(2**63), lt=2**64)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
# An id keeps the type that it has in JSON.
Id = Whole | Text | Number
Cell = Whole | Number | Text | StrictBool | None


class Strict(BaseModel):
    """A body in which an unknown field is an error, so that no misspelled one is ignored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Error(BaseModel):
    """What went wrong, in one or two sentences."""

    detail: str = Field(examples=["The model knows no user 'anna'. Did you mean 'Anna'?"])


class PredictRequest(Strict):
    """Pairs of a user and an item, or for a regression model rows of inputs."""

    rows: list[dict[str, Cell]] = Field(
        min_length=1,
        max_length=MOST_ROWS,
        description="For a recommender user_id and item_id, with timestamp and context columns if the model has them; "
        "for a regression model its input columns.",
        examples=[[{"user_id": "u0001", "item_id": "i0001"}]],
    )
    std: bool = Field(True, description="Also standard deviations of a new rating; null for a MAP estimate.")
    interval: float | None = Field(None, gt=0, lt=1, description="Also an interval of this probability.")
    unknown: Literal["refuse", "average"] = Field(
        "refuse", description="Ids that the model does not know: status 404, or predictions for the average."
    )


class Prediction(BaseModel):
    """A prediction of one row."""

    mean: float
    std: float | None = None
    low: float | None = None
    high: float | None = None


class Predictions(BaseModel):
    """Predictions in the order of the rows."""

    predictions: list[Prediction]


class Entity(BaseModel):
    """What is known of a user or an item."""

    title: str | None
    attributes: dict[str, Any]


class User(Entity):
    """A user."""

    user_id: Any = Field(examples=["u0001"])


class Item(Entity):
    """An item."""

    item_id: Any = Field(examples=["i0001"])


class Users(BaseModel):
    """A page of users."""

    total: int
    offset: int
    users: list[User]


class Items(BaseModel):
    """A page of items."""

    total: int
    offset: int
    items: list[Item]


class Recommendation(BaseModel):
    """An item of a list."""

    item_id: Any = Field(examples=["i0001"])
    title: str | None
    score: float
    std: float | None
    rank: int
    rating: float | None = None
    choice: float | None = None


class Recommendations(BaseModel):
    """A list for one user, best first."""

    user_id: Any = Field(examples=["u0001"])
    items: list[Recommendation]
