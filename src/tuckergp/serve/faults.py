"""What is wrong with a request, in plain sentences, from what FastAPI and pydantic say of it.

A sentence names the place as a client knows it, ``users, row 1, user_id``, and what must stand there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tuckergp.serve.schemas import MOST_TEXT

__all__ = ["JSON_TYPE", "sentences"]

JSON_TYPE = "application/json"

# The most faults of one request that are named, and that are looked at.
NAMED, MOST_READ = 3, 100
# Lists of rows; others have elements.
ROWS = {"rows", "users", "ratings", "boosts", "stock"}

Fault = Mapping[str, Any]
Place = tuple[Any, ...]

# What may stand at a place, by the kind of fault; of several, in this order, joined by "or".
KINDS: dict[str, str] = {
    "int": "a whole number",
    "float": "a number",
    "finite_number": "a finite number",
    "string": f"text of at most {MOST_TEXT:,} characters",
    "bool": "true or false",
    "list": "a list",
    "dict": "an object",
    "model": "an object",
}
# The same where it depends on the limits of the place.
LIMITS: dict[str, Callable[[Fault], str]] = {
    "literal_error": lambda limits: str(limits["expected"]),
    "greater_than": lambda limits: f"above {limits['gt']:g}",
    "greater_than_equal": lambda limits: f"at least {_number(limits['ge'])}",
    "less_than": lambda limits: f"below {_number(limits['lt'])}",
    "less_than_equal": lambda limits: f"at most {_number(limits['le'])}",
    "string_too_long": lambda limits: f"text of at most {limits['max_length']:,} characters",
    "too_long": lambda limits: f"a list of at most {limits['max_length']:,}",
    "too_short": lambda limits: f"a list of at least {limits['min_length']:,}",
}


def sentences(faults: Sequence[Fault], body: Any, content_type: str | None) -> str:
    """What is wrong with a request, without what it sent."""
    first = faults[0]
    if first["type"] == "json_invalid":
        return f"The body is broken JSON: {first['ctx']['error']} at character {first['loc'][-1]}."
    if tuple(first["loc"]) == ("body",):
        if first["type"] == "missing":
            return f"The body is missing; send JSON, with the header Content-Type: {JSON_TYPE}."
        if isinstance(body, bytes | str) and not content_type:
            return f"The header Content-Type: {JSON_TYPE} is missing; send it with the body."
        if isinstance(body, bytes):
            return f"The header Content-Type must be {JSON_TYPE}, for the body is read as JSON alone."
    by_place: dict[Place, list[Fault]] = {}
    for fault in faults[:MOST_READ]:
        by_place.setdefault(_place(fault, body), []).append(fault)
    # of values of several types, what is wrong inside the type that was meant
    inner = [place for place in by_place if not any(other[: len(place)] == place != other for other in by_place)]
    said = [f"{_words(place)}: {_wrong(by_place[place])}." for place in inner]
    distinct = list(dict.fromkeys(said))
    return " ".join([*distinct[:NAMED], *(["And more."] if len(distinct) > NAMED else [])])


def _place(fault: Fault, body: Any) -> Place:
    """Where a fault is, without the types that were tried there."""
    part, *steps = fault["loc"]
    if part != "body":
        return (part, *steps[:1])
    place, value = [part], body
    for number, step in enumerate(steps):
        if (isinstance(value, dict) and step in value) or (isinstance(value, list) and isinstance(step, int)):
            place.append(step)
            value = value[step]
        elif fault["type"] == "missing" and number == len(steps) - 1:
            place.append(step)
    return tuple(place)


def _words(place: Place) -> str:
    part, *steps = place
    if part != "body":
        return " ".join(["parameter", *(str(step)[:80] for step in steps)])
    words = [
        f"{'row' if before in ROWS else 'element'} {step + 1}" if isinstance(step, int) else str(step)[:80]
        for before, step in zip(place, steps, strict=False)
    ]
    return ", ".join(words) or "body"


def _wrong(faults: Sequence[Fault]) -> str:
    """What is wrong at one place: something is missing, unknown, or of none of the types that may stand there."""
    kinds = {fault["type"] for fault in faults}
    if "missing" in kinds:
        return "is missing"
    if "extra_forbidden" in kinds:
        return "there is no such parameter" if faults[0]["loc"][0] == "query" else "there is no such field"
    allowed = [_allowed(fault) for fault in faults]
    if None in allowed:
        other = faults[allowed.index(None)]
        return str(other.get("ctx", {}).get("error", other["msg"])).rstrip(".")
    order = list(KINDS.values())
    ranked = sorted(dict.fromkeys(map(str, allowed)), key=lambda each: order.index(each) if each in order else -1)
    return f"must be {_either(ranked)}"


def _allowed(fault: Fault) -> str | None:
    """What may stand at a place, by one fault; None where its message says it."""
    kind = fault["type"]
    if kind in LIMITS:
        return LIMITS[kind](fault["ctx"])
    by_type = kind.endswith(("_type", "_parsing", "_from_float"))
    return KINDS.get(kind.split("_")[0] if by_type else kind)


def _either(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
