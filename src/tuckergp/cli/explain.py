"""`tuckergp explain`: the contributions to one prediction, or the importance of attributes in a model."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tuckergp.cli.options import Json, Model, Output

__all__ = ["explain"]


def explain(
    model: Model,
    user: Annotated[str | None, typer.Option(help="A user's id.", metavar="ID")] = None,
    item: Annotated[str | None, typer.Option(help="An item's id.", metavar="ID")] = None,
    by: Annotated[
        Literal["value", "rating", "choice"] | None,
        typer.Option(help="Explain the value (the rating and the choice), or one of them.", show_default=False),
    ] = None,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Explain the prediction for a user and an item; without them, show the importance of each attribute."""
    from tuckergp.cli.ids import known_id
    from tuckergp.cli.models import load_recommender
    from tuckergp.cli.tables import check_output, to_json, write_result
    from tuckergp.errors import InputError
    from tuckergp.recommender.explanation import Explanation, Importance

    check_output(output)
    if (user is None) != (item is None):
        raise InputError("Give both --user and --item, or neither for what matters in the model.")
    recommender = load_recommender(model)
    answer: Explanation | Importance
    if user is None or item is None:
        answer = recommender.feature_importance()
    else:
        users, items = recommender.layout_.sides
        answer = recommender.explain(known_id(user, users), known_id(item, items), by)
    if output is not None:
        write_result(output, answer.to_dict(), answer.records())
    if as_json:
        print(to_json(answer.to_dict()))
    elif output is None:
        print(answer)
