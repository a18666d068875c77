"""What requests and answers look like, for checks of requests and for OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, model_validator

MOST_ROWS, MOST_NAMES, MOST_TEXT = 100_000, 100, 2_000
Text = Annotated[str, Field(strict=True, max_length=MOST_TEXT)]
Whole = Annotated[int, Field(strict=True, ge=-(2**63), lt=2**64)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
# An id keeps the type that it has in JSON.
Id = Whole | Text | Number
Cell = Whole | Number | Text | StrictBool | None


def few_names(row: Any) -> Any:
    """A row, refused before its cells are looked at if it has very many of them."""
    if isinstance(row, dict) and len(row) > MOST_NAMES:
        raise ValueError(f"a row has at most {MOST_NAMES} names")
    return row


# Of lists the first wrong element is told, so that errors are few, however long a list is.
Ids = Annotated[list[Id], Field(fail_fast=True)]
Row = Annotated[dict[str, Cell], BeforeValidator(few_names), Field(json_schema_extra={"maxProperties": MOST_NAMES})]
Described = Annotated[
    dict[str, Cell | Annotated[list[Cell], Field(fail_fast=True)]],
    BeforeValidator(few_names),
    Field(json_schema_extra={"maxProperties": MOST_NAMES}),
]


class Strict(BaseModel):
    """A body in which an unknown field is an error, so that no misspelled one is ignored."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Error(BaseModel):
    """What went wrong, in one or two sentences."""

    detail: str = Field(examples=["The model knows no user 'anna'. Did you mean 'Anna'?"])


class PredictRequest(Strict):
    """Pairs of a user and an item, or for a regression model rows of inputs."""

    rows: Annotated[list[Row], Field(fail_fast=True)] = Field(
        min_length=1,
        max_length=MOST_ROWS,
        description="For a recommender user_id and item_id, with timestamp and context columns if the model has them; "
        "for a regression model its input columns.",
        examples=[[{"user_id": "u0001", "item_id": "i0001"}]],
    )
    std: bool = Field(True, description="Also standard deviations of a new rating; null for a MAP estimate.")
    interval: float | None = Field(None, gt=0, lt=1, description="Also an interval of this probability.")
    unknown: Literal["refuse", "average"] = Field(
        "refuse", description="Ids that a recommender does not know: status 404, or predictions for the average."
    )


class Prediction(BaseModel):
    """A prediction of one row; of a model of several outputs, each number is one for each output, by its name."""

    mean: float | dict[str, float]
    std: float | dict[str, float] | None = None
    low: float | dict[str, float] | None = None
    high: float | dict[str, float] | None = None


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


class Reason(BaseModel):
    """A part of a prediction."""

    side: str = Field(examples=["user"])
    what: str = Field(examples=["age"])
    value: str = Field(examples=["33"])
    label: str = Field(examples=["user age=33"])
    contribution: float
    std: float | None
    of: str = Field(description="What it is a part of: the rating, or the probability of a choice.")


class Recommendation(BaseModel):
    """An item of a list."""

    item_id: Any = Field(examples=["i0001"])
    title: str | None
    score: float
    std: float | None
    rank: int
    rating: float | None = Field(None, description="The expected rating, in lists by value.")
    choice: float | None = Field(None, description="The probability of a choice, in lists by value.")
    reasons: list[Reason] | None = None


class Recommendations(BaseModel):
    """A list for one user, or for a group, best first."""

    user_id: Any = Field(description="Null for a group, and for a new user without an id.", examples=["u0001"])
    items: list[Recommendation]


class Lists(BaseModel):
    """Lists in the order of the users; one for a group."""

    lists: list[Recommendations]


class ListOptions(Strict):
    """How to make a list."""

    n: int = Field(10, ge=1, le=1000, description="Items in the list; fewer where fewer are left.")
    by: Literal["value", "rating", "choice"] | None = Field(
        None, description="What to sort by; see /version.", examples=["rating"]
    )
    strategy: Literal["mean", "ucb", "thompson"] = Field(
        "mean", description="The expected score; that plus kappa standard deviations; or one draw, which explores."
    )
    kappa: float = Field(1.0, ge=-100, le=100)
    seed: int | None = Field(None, ge=0, lt=2**63, description="Of thompson; without one, every list is another.",
                             examples=[7])  # fmt: skip
    diversity: float = Field(0.0, ge=0, le=1, description="How much similar items are avoided.")
    min_ratings: int = Field(0, ge=0, le=2**31, description="Only items with at least so many ratings.")
    exclude_seen: bool = Field(True, description="Leave out what the user has rated.")
    reasons: int = Field(
        0, ge=0, le=20, description="How many reasons to give for each item; by value, for its rating and its choice."
    )


Words = Annotated[list[Annotated[str, Field(max_length=500)]], Field(fail_fast=True)]


class QueryOptions(ListOptions):
    """How to make a list, in an address."""

    where: Words = Field(
        [],
        description="Only items with this attribute: a value, or a range of which either end may be left out.",
        max_length=20,
        examples=[["genres=Comedy", "year=1980..1999"]],
    )
    items: Words = Field([], description="Only these items.", max_length=10_000, examples=[["i0001", "i0002"]])
    exclude: Words = Field([], description="Never these items.", max_length=10_000, examples=[["i0003"]])
    boost: Words = Field(
        [],
        description="Points to add to the score of an item, after its id and a colon.",
        max_length=1000,
        examples=[["i0004:0.5"]],
    )


class Range(Strict):
    """A range with both ends, either of which may be open."""

    low: Whole | Number | Text | None = Field(None, examples=[1980])
    high: Whole | Number | Text | None = Field(None, examples=[1999])


class Boost(Strict):
    """Points to add to the score of an item."""

    item_id: Id
    boost: Number


class Stock(Strict):
    """How many there are of an item; none is recommended of which there is none."""

    item_id: Id
    left: Annotated[int, Field(strict=True, ge=0, le=2**53)]


Value = Whole | Number | Text | StrictBool


class BodyOptions(ListOptions):
    """How to make a list, in a body."""

    where: Annotated[
        dict[str, Value | Range | Annotated[list[Value | Range], Field(fail_fast=True)]], BeforeValidator(few_names)
    ] = Field(
        {},
        max_length=20,
        description="Conditions on columns of the item table: a value, a range, or a list of which one must hold.",
        examples=[{"genres": ["Comedy", "Drama"], "year": {"low": 1980, "high": 1999}}],
    )
    items: Ids | None = Field(None, description="Only these items.", max_length=MOST_ROWS)
    exclude: Ids = Field([], description="Never these items: a blocklist.", max_length=MOST_ROWS)
    boosts: Annotated[list[Boost], Field(fail_fast=True)] = Field([], max_length=1000)
    stock: Annotated[list[Stock], Field(fail_fast=True)] = Field([], max_length=MOST_ROWS)


class WithColumns(BaseModel):
    """Fields and further columns, not very many."""

    model_config = ConfigDict(extra="allow")

    _few = model_validator(mode="before")(few_names)


class ItemRating(WithColumns):
    """A rating, or a choice, of an item; also with timestamp, count and context columns."""

    __pydantic_extra__: dict[str, Cell] = Field(init=False)

    item_id: Id = Field(examples=["i0001"])
    rating: Number | Whole | None = Field(None, description="None for clicks.", examples=[4.5])


class Rating(ItemRating):
    """A rating, or a choice, of an item by a user."""

    user_id: Id = Field(examples=["u0001"])


class UserAttributes(WithColumns):
    """Attributes of a user, as columns of the training table."""

    __pydantic_extra__: dict[str, Cell | Annotated[list[Cell], Field(fail_fast=True)]] = Field(init=False)

    user_id: Id


class Person(Strict):
    """Somebody to recommend for: a known id, or somebody new; attributes and ratings count for this answer alone."""

    user_id: Id | None = Field(None, examples=["u0001"])
    attributes: Described = Field({}, examples=[{}])
    ratings: Annotated[list[ItemRating], Field(fail_fast=True)] = Field(
        [], max_length=MOST_ROWS, description="For this answer alone; /fold-in keeps them."
    )


class RecommendRequest(BodyOptions):
    """Lists for some people, or one for them together."""

    users: Annotated[list[Person], Field(fail_fast=True)] = Field(min_length=1, max_length=1000)
    together: Literal["mean", "least"] | None = Field(
        None, description="One list for all: by the mean, or the least, of their scores."
    )


class Folded(BaseModel):
    """What was added."""

    ratings: int
    users: list[Any] = Field(examples=[["u0001"]])


class FoldInRequest(Strict):
    """Ratings, or choices, to be kept; a rating of an item that the user rated before takes the place of that."""

    ratings: Annotated[list[Rating], Field(fail_fast=True)] = Field([], max_length=MOST_ROWS)
    users: Annotated[list[UserAttributes], Field(fail_fast=True)] = Field(
        [],
        max_length=MOST_ROWS,
        description="Attributes of users, new ones or in place of those known, with or without ratings; those that are "
        "not named stay as they were.",
    )


class Forgotten(BaseModel):
    """Who was forgotten."""

    forgotten: Any = Field(examples=["u0001"])


class SimilarItem(BaseModel):
    """An item and its similarity, from -1 to 1."""

    item_id: Any = Field(examples=["i0001"])
    title: str | None
    similarity: float | None


class SimilarUser(BaseModel):
    """A user and the similarity, from -1 to 1."""

    user_id: Any = Field(examples=["u0001"])
    title: str | None
    similarity: float | None


class SimilarItems(BaseModel):
    """The most similar items, most similar first."""

    item_id: Any = Field(examples=["i0001"])
    items: list[SimilarItem]


class SimilarUsers(BaseModel):
    """The most similar users, most similar first."""

    user_id: Any = Field(examples=["u0001"])
    users: list[SimilarUser]


class Explained(BaseModel):
    """The parts of a prediction, which add up with the base to the total."""

    base: float
    parts: list[Reason]
    total: float
    std: float | None
    predicted: float
    latent: str | None = Field(description="What the parts add up to, if it is not the rating.")
    words: str = Field(description="The parts that count most, in a sentence.")


class Why(Explained):
    """The parts of a prediction of a pair; why the item would be chosen beside it, where the model knows that."""

    user_id: Any = Field(examples=["u0001"])
    item_id: Any = Field(examples=["i0001"])
    title: str | None
    choice: Explained | None = Field(description="The same for the choice, of models that list by value.")
    value: float | None = Field(description="What lists by value are sorted by, of these models.")


class RatedItem(BaseModel):
    """An item that a user has rated."""

    item_id: Any = Field(examples=["i0001"])
    title: str | None
    rating: float


class UserDetails(User):
    """A user, with all ratings."""

    ratings: list[RatedItem]
