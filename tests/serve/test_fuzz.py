"""Requests made up from the app's own OpenAPI: no answer is a 5xx, and all are what the schema says."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.helpers import quick_and_long
from tuckergp import load
from tuckergp.serve.app import create_app

CHECKS = [
    schemathesis.checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
KINDS = ("ratings", "value", "clicks", "numbered", "timed", "contexts", "regression", "outputs")
MADE_WELL, MADE_WRONG = GenerationMode.POSITIVE, GenerationMode.NEGATIVE


class Filled:
    """Puts what the model knows, ids, columns and ratings, in place of what is made up."""

    def __init__(self, path):
        model = load(path)
        self.sides = model.layout_.sides if hasattr(model, "layout_") else ()
        self.clicks = bool(self.sides) and model.history_.clicks
        self.columns = () if self.sides else model.column_values_

    def __call__(self, value, draw):
        if isinstance(value, list):
            return [self(each, draw) for each in value]
        if not isinstance(value, dict):
            return value
        filled = {name: self(each, draw) for name, each in value.items() if name not in ("where", "attributes", "by")}
        if "rows" in filled:
            filled["rows"] = [self._row(draw) for _ in filled["rows"]]
        for side in self.sides:
            if side.key in filled:
                filled[side.key] = draw(st.sampled_from(side.ids[:20]))
        for name in ("exclude", "items"):
            if self.sides and filled.get(name):
                filled[name] = self.sides[1].ids[:3]
        if "item_id" in filled and not {"boost", "left"} & filled.keys():
            filled = {name: each for name, each in filled.items() if name in ("user_id", "item_id")}
            filled |= {} if self.clicks else {"rating": draw(st.sampled_from([1, 2, 5, 3.0]))}
        elif "user_id" in filled:
            filled = {name: each for name, each in filled.items() if name in ("user_id", "ratings", "items")}
        return {name: each for name, each in filled.items() if name != "boost" or not isinstance(each, list)}

    def _row(self, draw):
        if not self.sides:
            each = {"x": st.floats(-2, 2), "y": st.just(0.5), "kind": st.sampled_from("abc"),
                    "day": st.sampled_from(["2024-02-03", "2024-03-01"])}  # fmt: skip
            return {name: draw(each[name]) for name in self.columns}
        return {side.key: draw(st.sampled_from(side.ids[:20])) for side in self.sides}


@pytest.mark.parametrize("mode", [MADE_WELL, MADE_WRONG], ids=["right", "wrong"])
@pytest.mark.parametrize("kind", KINDS)
@quick_and_long("examples", 6, 300)
def test_whatever_is_asked_is_answered(files, kind, mode, examples):
    """Some examples of each operation, drawn the same way in every run; of some also with ids that are known."""
    examples = examples if kind == KINDS[0] else examples // 2
    app = create_app(files[kind], watch=0.0, rate=0.0)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers={"Host": "localhost"})
    filled, statuses = Filled(files[kind]), {}
    operations = [(method == "delete", method, path, operation) for path, methods in app.openapi()["paths"].items()
                  for method, operation in methods.items()]  # fmt: skip
    for _, method, path, operation in sorted(operations, key=lambda each: each[0]):  # who is forgotten is known before
        if mode is MADE_WELL or may_be_wrong(operation):
            statuses[f"{method} {path}"] = ask(schema[path][method], mode, filled, examples)
    if mode is MADE_WRONG:
        assert len(statuses) > 12
        assert all(seen & {404, 422} for seen in statuses.values()), statuses
        return
    refused = {name for name, seen in statuses.items() if 200 not in seen}
    most = 2 if filled.sides else len(statuses) - 4
    assert len(refused) <= (most if kind == KINDS[0] else most + 3), statuses  # what is asked makes sense too


def may_be_wrong(operation):
    """Whether a request can be of another kind than the schema says; what stands in a path is text in any case."""
    return "requestBody" in operation or any(one["in"] == "query" for one in operation.get("parameters", ()))


def ask(operation, mode, filled, examples):
    """The statuses of answers to made up requests, of which some are filled with what the model knows."""
    seen = set()

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    def one(case, data):
        if mode is MADE_WELL and data.draw(st.sampled_from([True, True, True, False])):
            case.path_parameters = filled(case.path_parameters or {}, data.draw)
            case.query = {
                name: value for name, value in filled(case.query or {}, data.draw).items() if name != "rating"
            }
            if isinstance(case.body, dict):
                case.body = filled(case.body, data.draw)
        answer = case.call(headers={"Host": "localhost"})
        seen.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    one()
    return seen
