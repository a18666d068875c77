"""Requests made of the examples in the app's own OpenAPI."""

from __future__ import annotations

from urllib.parse import quote


def asked(schema, method, path, body=None):
    """The arguments of a client for an operation: the examples of what it must have, and one of its bodies by name."""
    operation = schema["paths"][path][method]
    needed = {one["name"]: one for one in operation.get("parameters", []) if one["required"]}
    examples = {name: one["schema"]["examples"][0] for name, one in needed.items()}
    query = {name: value for name, value in examples.items() if needed[name]["in"] == "query"}
    for name in examples.keys() - query.keys():
        path = path.replace(f"{{{name}}}", quote(examples[name], safe=""))
    bodies = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("examples", {})
    sent = bodies[body or next(iter(bodies))]["value"] if bodies else None
    return {"method": method.upper(), "url": path, "params": query, "json": sent}
