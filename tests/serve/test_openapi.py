"""OpenAPI is complete: it names all errors and the token, and its examples are requests and answers that hold."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

import jsonschema_rs
import pytest

from tests.serve.conftest import serving
from tests.serve.requests import asked
from tuckergp.serve.app import create_app
from tuckergp.serve.openapi import BODIES

# Which model an example is for, where it is not one of ratings.
MODELS = {"clicks": "synthetic_clicks", "regression": "map", "map": "map", "series": "map"}
TEXT = ("GET /metrics",)


@pytest.fixture(scope="module")
def schema(files):
    return create_app(files["synthetic"], watch=0.0).openapi()


@pytest.fixture(scope="module")
def servers(files):
    """Clients by the name of the model, each made when it is first asked for."""

    class Servers(dict):
        def __missing__(self, name):
            self[name] = entered.enter_context(serving(files[name]))
            return self[name]

    with ExitStack() as entered:
        yield Servers()


def operations(schema):
    return {f"{method.upper()} {path}": (method, path, operation)
            for path, methods in schema["paths"].items() for method, operation in methods.items()}  # fmt: skip


def content_of(operation):
    return next(iter(operation["responses"]["200"]["content"].values()))


def fault(schema, value, part):
    """Why a value is not what a part of the schema says; nothing if it is."""
    whole = {**part, "components": schema["components"]}
    error = next(jsonschema_rs.Draft202012Validator(whole).iter_errors(value), None)
    return error and error.message


def documented():
    """The statuses of errors that the page on serving lists."""
    text = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
    start = text.index("An error is")
    return set(re.findall(r"\b([45]\d\d) \(", text[start : text.index("\n\n", start)]))


def test_every_operation_has_a_summary_and_all_errors(schema):
    assert len(operations(schema)) >= 20
    for name, (_, _, operation) in operations(schema).items():
        assert operation["summary"], name
        assert set(operation["responses"]) - {"200"} == documented(), name


def test_every_parameter_says_what_to_give(schema):
    for name, (_, _, operation) in operations(schema).items():
        for parameter in operation.get("parameters", []):
            told = parameter["schema"]
            assert told.get("examples") or told.get("default") is not None, (name, parameter["name"])
            for example in told.get("examples", []):
                assert not fault(schema, example, told), (name, parameter["name"])


def test_every_answer_has_an_example_that_validates(schema):
    for name, (_, _, operation) in operations(schema).items():
        content = content_of(operation)
        assert content["example"], name
        assert not fault(schema, content["example"], content["schema"]), name
        if name not in TEXT:
            assert fault(schema, 5, content["schema"]), name  # the schema refuses something


def test_every_body_has_examples(schema):
    named = {name: operation["requestBody"]["content"]["application/json"]["examples"]
             for name, (_, _, operation) in operations(schema).items() if "requestBody" in operation}  # fmt: skip
    assert named == BODIES
    for name, examples in named.items():
        _, _, operation = operations(schema)[name]
        told = operation["requestBody"]["content"]["application/json"]["schema"]
        for example in examples.values():
            assert example["summary"], name
            assert not fault(schema, example["value"], told), (name, example)


@pytest.mark.parametrize(("name", "example"), [(name, example) for name in BODIES for example in BODIES[name]])
def test_every_body_example_is_answered_as_the_schema_says(schema, servers, name, example):
    method, path, operation = operations(schema)[name]
    answer = servers[MODELS.get(example, "synthetic")].request(**asked(schema, method, path, example))
    assert answer.status_code == 200, answer.text
    assert not fault(schema, answer.json(), content_of(operation)["schema"])


def test_the_examples_of_parameters_are_answered_as_the_schema_says(schema, servers):
    """All that have one at once; those of circumstances by a model that has them."""
    for name, (method, path, operation) in operations(schema).items():
        if method != "get" or name in TEXT:
            continue
        request = asked(schema, method, path)
        for parameter in operation.get("parameters", []):
            examples = parameter["schema"].get("examples")
            if examples and parameter["in"] == "query" and name != "GET /explain":
                request["params"][parameter["name"]] = examples[0]
        answer = servers["synthetic"].request(**request)
        assert answer.status_code == 200, (name, answer.text)
        assert not fault(schema, answer.json(), content_of(operation)["schema"]), name
    of_explain = {one["name"]: one["schema"]["examples"][0]
                  for one in schema["paths"]["/explain"]["get"]["parameters"]}  # fmt: skip
    pair = {"user_id": "u0002", "item_id": "i0003"}
    for model, more in (("timed", {"timestamp": of_explain["timestamp"]}), ("contexts", of_explain["circumstances"])):
        assert servers[model].get("/explain", params={**pair, **more}).status_code == 200


def test_the_token_is_a_scheme_that_all_but_health_ask_for(files):
    open_to_all = create_app(files["ratings"], watch=0.0).openapi()
    guarded = create_app(files["ratings"], watch=0.0, token="0123456789abcdef").openapi()
    scheme = guarded["components"]["securitySchemes"]["token"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    assert "security" not in open_to_all
    assert guarded["security"] == [{"token": []}]
    free = [name for name, (_, _, operation) in operations(guarded).items() if operation.get("security") == []]
    assert free == ["GET /health"]
    with serving(files["ratings"], token="0123456789abcdef") as client:
        assert {name for name, (method, path, _) in operations(guarded).items()
                if client.request(**asked(guarded, method, path)).status_code != 401} == set(free)  # fmt: skip
