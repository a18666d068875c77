"""Addresses that only the page asks: what it shows of people, items, the model, and regression surfaces."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field

from tuckergp.errors import InputError
from tuckergp.serve.computing import TimedRoute
from tuckergp.serve.page_schemas import (
    About,
    Accuracy,
    Convergence,
    DataSummary,
    Expected,
    ItemMap,
    PageItem,
    PagePerson,
    Surface,
    Weights,
)
from tuckergp.serve.pages import PageState
from tuckergp.serve.people import including
from tuckergp.serve.recommending import ServedRecommender
from tuckergp.serve.replies import Reply
from tuckergp.serve.routes.common import ERRORS, service_of
from tuckergp.serve.schemas import MOST_TEXT, Described, Id, Person, Strict, Text
from tuckergp.serve.views.about import about_recommender
from tuckergp.serve.views.item_map import item_map
from tuckergp.serve.views.learning import convergence, data_summary, weights
from tuckergp.serve.views.people import about_item, about_person
from tuckergp.serve.views.surface import columns_of, surface

__all__ = ["router"]

router = APIRouter(prefix="/page", tags=["page"], responses=ERRORS, route_class=TimedRoute)

UserText = Annotated[str, Query(description="The user's id as text.", max_length=MOST_TEXT, examples=["u0001"])]
ItemText = Annotated[str, Query(description="The item's id as text.", max_length=MOST_TEXT, examples=["i0001"])]


class ExpectedRequest(Strict):
    """A person, known or described, and some items."""

    user_id: Id | None = None
    attributes: Described = Field({}, description="Of somebody new; they count for this answer alone.")
    items: list[Id] = Field(min_length=1, max_length=1_000)


class SurfaceRequest(Strict):
    """The columns along which to look, and which of its usual values each other column has."""

    along: list[Text] = Field(min_length=1, max_length=2, examples=[["longitude", "latitude"]])
    fixed: dict[Text, int] = Field(default_factory=dict)
    draw: int = -1
    output: Text | None = Field(None, description="Of several outputs, which to show; null is the first.")


def state_of(request: Request) -> PageState:
    """What the page remembers."""
    page: PageState = request.app.state.page
    return page


def levels(request: Request) -> list[float]:
    """The ratings that can be given to items of the model file."""
    return state_of(request).levels(service_of(request).recommender_of_file())


@router.get("/about", response_model=About, summary="What kind of model it is")
def about(request: Request) -> Any:
    """Kind, scale of ratings, attributes of people; for regression the columns and their usual values."""
    service = service_of(request)
    served = service.current()
    if isinstance(served, ServedRecommender):
        return Reply({**service.facts, **about_recommender(served, levels(request))})
    return Reply({**service.facts, **columns_of(served.model)})


@router.get("/person", response_model=PagePerson | None, summary="A person")
def person(request: Request, user_id: UserText, new: bool = False) -> Any:
    """Attributes of a person, and what they have rated; null for somebody ``new`` who has not rated anything."""
    served = service_of(request).recommender()
    if new and served.users.read(user_id) not in served.users.side.number:
        return Reply(None)
    return Reply(about_person(served, served.users.known(user_id)))


@router.get("/item", response_model=PageItem, summary="An item")
def item(request: Request, item_id: ItemText) -> Any:
    """Attributes of a known item, and how its ratings are distributed."""
    served = service_of(request).recommender()
    return Reply(about_item(served, served.items.known(item_id), levels(request)))


@router.post("/expected", response_model=Expected, summary="Expected ratings and how uncertain they are")
def expected(request: Request, asked: ExpectedRequest) -> Any:
    """The expected rating of each item by one person, and its standard deviation without the noise of one rating."""
    who = Person(user_id=asked.user_id, attributes=asked.attributes, ratings=[])
    served, users = including(service_of(request).recommender(), [who])
    items = [served.items.known(value) for value in asked.items]
    pairs = {"user_id": users * len(items), "item_id": items}
    if not served.model.fit_.draws.sampled:
        return Reply({"mean": served.model.predict(pairs), "std": None})
    mean, std = served.model.predict(pairs, return_std=True, include_noise=False, clip=False)
    return Reply({"mean": mean, "std": std})


@router.get("/map", response_model=ItemMap, summary="A map of items")
def map_of_items(request: Request) -> Any:
    """Places of the items of the model file: close together where the same people are predicted to like them."""
    served = service_of(request).recommender_of_file()
    return Reply(state_of(request).once(served, "map", lambda: item_map(served.fitted)))


@router.get("/model/data", response_model=DataSummary, summary="What the model learned from")
def data(request: Request) -> Any:
    """Numbers of ratings, people and items, how ratings are distributed, and how columns are used."""
    return Reply(data_summary(service_of(request).recommender().fitted, levels(request)))


@router.get("/model/weights", response_model=Weights, summary="How much each attribute counts")
def learned_weights(request: Request) -> Any:
    """The share of the variance of predictions that each attribute explains."""
    served = service_of(request).recommender_of_file()
    return Reply({"weights": state_of(request).once(served, "weights", lambda: weights(served.model))})


@router.get("/model/convergence", response_model=Convergence, summary="Whether the chains agree")
def chains(request: Request) -> Any:
    """Traces with R-hat and effective sample sizes."""
    served = service_of(request).current()
    return Reply(state_of(request).once(served, "convergence", lambda: convergence(served.model.fit_)))


@router.get("/model/accuracy", response_model=Accuracy, summary="How far predictions are off")
def accuracy(request: Request) -> Any:
    """Errors and coverage at held-out data, where the operator gave some."""
    return Reply(state_of(request).accuracy(service_of(request).of_file(), copy=False))


@router.post("/model/accuracy", response_model=Accuracy, summary="Judge a copy of the model")
def accuracy_of_copy(request: Request) -> Any:
    """Learn a copy from nine tenths of the ratings and judge it by the rest; `tuckergp explore` allows it."""
    return Reply(state_of(request).accuracy(service_of(request).of_file(), copy=True))


@router.post("/surface", response_model=Surface, summary="A regression model over one or two columns")
def over_columns(request: Request, asked: SurfaceRequest) -> Any:
    """Mean, band and components on a grid of one or two columns, the others held fixed."""
    model = service_of(request).regressor().model
    draws = len(model.fit_.draws)
    if not -draws <= asked.draw < draws:
        raise InputError(f"There are {draws} draws, so draw must be from {-draws} to {draws - 1}, not {asked.draw}.")
    return Reply(surface(model, asked.along, asked.fixed, asked.draw, asked.output))
