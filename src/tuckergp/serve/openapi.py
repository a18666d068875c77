"""What OpenAPI says beyond the types: the token, examples of bodies, and an example of each answer."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["BODIES", "OPEN", "answers", "completed"]

Json = dict[str, Any]

SCHEME = "token"
OPEN = ("/health",)
"""Addresses that need no token."""

# By operation, then by name; ids are those of `tuckergp explore --demo`.
BODIES: dict[str, dict[str, Json]] = {
    "POST /predict": {
        "pairs": {
            "summary": "Two pairs of a user and an item",
            "value": {"rows": [{"user_id": "u0001", "item_id": "i0001"}, {"user_id": "u0001", "item_id": "i0002"}]},
        },
        "interval": {
            "summary": "With an interval, also for somebody whom the model does not know",
            "value": {
                "rows": [{"user_id": "a-stranger", "item_id": "i0001"}],
                "interval": 0.9,
                "unknown": "average",
            },
        },
        "regression": {
            "summary": "Rows of inputs of a regression model",
            "value": {"rows": [{"longitude": -0.5, "latitude": 1.2, "season": "dry"}], "interval": 0.9},
        },
    },
    "POST /recommendations": {
        "new": {
            "summary": "A new person with two ratings",
            "value": {
                "users": [{"ratings": [{"item_id": "i0001", "rating": 5}, {"item_id": "i0002", "rating": 2}]}],
                "n": 5,
                "reasons": 2,
            },
        },
        "described": {
            "summary": "A new person of whom attributes are known, and what to choose from",
            "value": {
                "users": [{"attributes": {"age": 34, "occupation": "teacher"}}],
                "where": {"genres": ["Comedy", "Drama"], "year": {"low": 1980, "high": 1999}},
            },
        },
        "group": {
            "summary": "What shall we watch tonight?",
            "value": {"users": [{"user_id": "u0001"}, {"user_id": "u0002"}], "together": "least"},
        },
        "rules": {
            "summary": "Business rules",
            "value": {
                "users": [{"user_id": "u0001"}],
                "exclude": ["i0003"],
                "boosts": [{"item_id": "i0004", "boost": 0.5}],
                "stock": [{"item_id": "i0005", "left": 0}],
            },
        },
        "clicks": {
            "summary": "A new person with two choices, of a model of clicks",
            "value": {"users": [{"ratings": [{"item_id": "i0001"}, {"item_id": "i0002"}]}], "n": 5},
        },
    },
    "POST /fold-in": {
        "ratings": {
            "summary": "Ratings by a known user and by a new one, who is described",
            "value": {
                "ratings": [
                    {"user_id": "u0001", "item_id": "i0002", "rating": 4},
                    {"user_id": "newcomer", "item_id": "i0001", "rating": 5},
                ],
                "users": [{"user_id": "newcomer", "age": 34, "occupation": "teacher"}],
            },
        },
        "attributes": {
            "summary": "Another attribute of a known user",
            "value": {"users": [{"user_id": "u0001", "age": 35}]},
        },
        "clicks": {
            "summary": "A choice, of a model of clicks",
            "value": {"ratings": [{"user_id": "u0001", "item_id": "i0002", "count": 1}]},
        },
    },
    "POST /page/expected": {
        "two": {"summary": "Two items", "value": {"user_id": "u0001", "items": ["i0001", "i0002"]}},
        "new": {"summary": "Of somebody new", "value": {"attributes": {"age": 34}, "items": ["i0001"]}},
    },
    "POST /page/surface": {
        "map": {
            "summary": "A map over two columns, in the second of the usual values of a third",
            "value": {"along": ["longitude", "latitude"], "fixed": {"season": 1}},
        },
        "series": {
            "summary": "A series along one column, with the components of the first draw",
            "value": {"along": ["longitude"], "draw": 0},
        },
    },
}


@cache
def answers() -> dict[str, Any]:
    """An answer by operation, as `tools/answers.py` has written them: of the demo, with lists cut short."""
    text = (files("tuckergp.serve") / "answers.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def completed(schema: Json, token: bool) -> Json:
    """FastAPI's OpenAPI with examples of bodies and answers, and with the token where one is asked for."""
    if token:
        scheme = {"type": "http", "scheme": "bearer", "description": "The token that the operator has chosen."}
        schema.setdefault("components", {})["securitySchemes"] = {SCHEME: scheme}
        schema["security"] = [{SCHEME: []}]
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            name = f"{method.upper()} {path}"
            if name in BODIES:
                operation["requestBody"]["content"]["application/json"]["examples"] = BODIES[name]
            if name in answers():
                (content,) = operation["responses"]["200"]["content"].values()
                content["example"] = answers()[name]
            if token and path in OPEN:
                operation["security"] = []
    return schema
