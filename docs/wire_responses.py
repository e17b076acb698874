"""Prints the responses: each field of each response and each event's payload, with a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from docs.markdown import code, table
from payments_core_http.openapi.document import build_document
from payments_core_http.reference.pages import FieldRow, make_schema_entry
from payments_core_http.routing import Route

HEAD = ("Field", "Type", "What it is")
_COMPONENTS = "#/components/schemas/"


def page() -> str:
    """Every object that a response has, by name."""
    document = _document()
    schemas = document["components"]["schemas"]
    parts = [
        "# Responses",
        "All responses, field by field; the reference at `/docs` of every deployment has the"
        " same, with examples.\n"
        "Each [route](routes.md) names its response; the page about [events](events.md)"
        " describes the payloads of events,"
        " and the page about [errors](errors.md) describes errors.",
        "Ids are opaque, times are ISO 8601 in UTC with milliseconds, and amounts are strings.\n"
        "Contracts gain fields over time: ignore unknown fields.",
    ]
    for name in sorted(_answers_of(document)):
        entry = make_schema_entry(name, schemas[name])
        parts += [f"## {name}"]
        parts += [entry.about] if entry.about else []
        parts += [table(HEAD, map(_row, entry.rows))]
    return "\n\n".join(parts)


def rows_of_payload(event_name: str) -> Iterator[tuple[str, ...]]:
    """The rows of an event's payload."""
    document = _document()
    post = document["webhooks"][event_name]["post"]
    envelope = post["requestBody"]["content"]["application/json"]["schema"]
    name = envelope["properties"]["payload"]["$ref"].removeprefix(_COMPONENTS)
    return map(_row, make_schema_entry(name, document["components"]["schemas"][name]).rows)


def links_of(route: Route) -> str:
    """The objects that a route's success returns, each with a link to its fields."""
    operations = _document()["paths"].get(route.path, {})
    responses = operations.get(route.method.lower(), {}).get("responses", {})
    found = [
        name
        for status, response in responses.items()
        if status.startswith("2")
        for name in _names_in(response.get("content", {}).get("application/json", {}).get("schema"))
    ]
    return " or ".join(f"[{name}](responses.md#{name.lower()})" for name in dict.fromkeys(found))


@cache
def _document() -> dict[str, Any]:
    return build_document()


def _answers_of(document: dict[str, Any]) -> set[str]:
    """The names of the schemas that successes lead to."""
    found: set[str] = set()
    waiting = [
        response
        for path in document["paths"].values()
        for operation in path.values()
        for status, response in operation["responses"].items()
        if status.startswith("2")
    ]
    while waiting:
        for name in _names_in(waiting.pop()):
            if name not in found:
                found.add(name)
                waiting.append(document["components"]["schemas"][name])
    return found


def _names_in(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _names_in(item)
    elif isinstance(value, dict):
        if str(value.get("$ref", "")).startswith(_COMPONENTS):
            yield value["$ref"].removeprefix(_COMPONENTS)
        for item in value.values():
            yield from _names_in(item)


def _row(row: FieldRow) -> tuple[str, ...]:
    kinds = " or ".join(
        f"[{kind.name}](responses.md#{kind.target.lower()})" if kind.target else kind.name
        for kind in row.types
    )
    values = [rule for rule in row.rules if rule.startswith(("one of ", "always "))]
    said = f" {values[0][:1].upper()}{values[0][1:]}." if values else ""
    return code(row.name), kinds, row.about + said
