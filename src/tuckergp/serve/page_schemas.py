"""What the addresses of the page answer, for OpenAPI."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "About",
    "Accuracy",
    "Convergence",
    "DataSummary",
    "Expected",
    "ItemMap",
    "PageItem",
    "PagePerson",
    "Surface",
    "Weights",
]


class Answer(BaseModel):
    """What is answered, and nothing else."""

    model_config = ConfigDict(extra="forbid")


class Named(Answer):
    """An id as text, and what it is called."""

    id: str = Field(examples=["i0001"])
    title: str | None


class Fact(Answer):
    """An attribute as text."""

    name: str = Field(examples=["age"])
    value: str = Field(examples=["33"])


class Bin(Answer):
    """How many ratings are at a level, or in a range."""

    label: str = Field(examples=["4"])
    count: int


class Rated(Named):
    """An item that somebody rated."""

    rating: float


class PagePerson(Named):
    """A person."""

    attributes: list[Fact]
    count: int
    ratings: list[Rated]


class PageItem(Named):
    """An item."""

    attributes: list[Fact]
    count: int
    mean: float | None
    distribution: list[Bin]


class Expected(Answer):
    """Expected ratings in the order of the items, and their standard deviations; none of a MAP estimate."""

    mean: list[float]
    std: list[float] | None


class About(BaseModel):
    """The model as in /version, and for the page: of a recommender its scale, of a regression model its columns."""

    kind: Literal["recommender", "regressor"]
    file: str = Field(examples=["model.tgp"])
    likelihood: str = Field(examples=["gaussian"])
    draws: int


class Colouring(Answer):
    """A column that items can be coloured by."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(examples=["genre"])


class ItemMap(Answer):
    """Places of items on two axes."""

    ids: list[str]
    titles: list[str | None]
    x: list[float]
    y: list[float]
    count: list[int]
    share: list[float] = Field(description="Of the variance that each axis shows.")
    left_out: int
    colours: list[Colouring]


class UsedColumn(Answer):
    """How a column of the attribute tables is used."""

    table: str
    column: str
    use: Any
    note: Any


class DataSummary(Answer):
    """What the model learned from."""

    ratings: int
    users: int
    items: int
    added: int
    known_users: int
    known_items: int
    filled: float
    mean: float | None
    distribution_of: int
    distribution: list[Bin]
    columns: list[UsedColumn]


class Weight(Answer):
    """The share of the variance of predictions that an attribute explains."""

    side: str
    label: str
    what: str
    share: float | None
    std: float | None


class Weights(Answer):
    """The shares of all attributes, largest first."""

    weights: list[Weight]


class Trace(Answer):
    """A trace of each chain, thinned, with R-hat and the effective sample size of all of it."""

    label: str
    rhat: float | None
    ess: float | None
    chains: list[list[float]]


class Curve(Answer):
    """A figure of each step of a method without chains."""

    label: str
    values: list[float | None]


class Convergence(Answer):
    """Whether the chains agree."""

    traces: list[Trace]
    curve: list[Curve]
    worst_rhat: float | None
    lowest_ess: float | None
    warning: str | None
    chains: int | None = None
    draws: int | None = None
    watched: int | None = None


class Inside(Answer):
    """How many targets are within intervals of a probability."""

    share: float
    inside: float


class Accuracy(Answer):
    """Errors, or hits of clicks, at what a model has not learned from; no source where there is nothing of the kind."""

    source: Literal["held out", "copy"] | None
    can_copy: bool | None = None
    of: int | None = None
    left_out: int | None = Field(None, description="Rows of the table whose pairs the model has learned from.")
    n: int | None = None
    rmse: float | None = None
    mae: float | None = None
    usual_rmse: float | None = None
    coverage: list[Inside] | None = None
    learned_from: int | None = None
    people: int | None = None
    hit_rate: float | None = None
    usual_hit_rate: float | None = None


class Axis(Answer):
    """A column and its values along an axis."""

    name: str = Field(examples=["longitude"])
    values: list[Any]


class Band(Answer):
    """A band around the mean, of f or of a new observation."""

    low: list[float]
    high: list[float]
    noise: bool


class Component(Answer):
    """One of the summands of f in one draw."""

    label: str
    size: float
    values: list[float]


class Surface(Answer):
    """Predictions on a grid; the last axis varies fastest."""

    axes: list[Axis]
    mean: list[float]
    std: list[float] | None
    bands: list[Band]
    components: list[Component]
    base: float
    draws: int
