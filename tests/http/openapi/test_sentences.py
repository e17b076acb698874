"""Every field that comes back has a sentence, and every sentence a field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from docs import wire_bodies
from payments_core_http.openapi import sentences
from payments_core_http.openapi.document import build_document
from payments_core_http.routes import ROUTES

WHOLE = build_document()
SCHEMAS = WHOLE["components"]["schemas"]


def fields(schema: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a schema and of the objects inside it."""
    for name, field in schema.get("properties", {}).items():
        yield name, field
        yield from fields(field)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from fields(schema[keyword])


def envelopes() -> Iterator[Any]:
    for entry in WHOLE["webhooks"].values():
        yield entry["post"]["requestBody"]["content"]["application/json"]["schema"]


@pytest.mark.parametrize("owner", SCHEMAS)
def test_each_field_of_a_schema_has_a_sentence(owner: str) -> None:
    for name, field in fields(SCHEMAS[owner]):
        said = field.get("description", "")
        assert said[:1].isupper() or said.startswith("`"), (name, said)
        assert said.endswith("."), (name, said)


def test_each_field_of_an_envelope_has_a_sentence() -> None:
    seen = [field["description"] for envelope in envelopes() for _, field in fields(envelope)]
    assert len(seen) == 5 * len(WHOLE["webhooks"])


def test_each_row_of_a_table_describes_a_field() -> None:
    described = {
        (owner.endswith("Error"), name, field.get("description", ""))
        for owner, schema in SCHEMAS.items()
        for name, field in fields(schema)
    }
    for is_error, table in ((False, sentences.BY_NAME), (True, sentences.OF_ERRORS)):
        used = {
            name
            for of_error, name, said in described
            if said.startswith(table.get(name, "-")) and (of_error or not is_error)
        }
        assert table.keys() - used == set()


def test_each_field_of_a_body_or_query_has_its_sentence_on_the_page() -> None:
    rows = [
        (route.name, field, sentence)
        for route in ROUTES
        for _, fields in wire_bodies.forms(route)
        for field, sentence, *_ in fields
    ]
    assert len(rows) > 200
    assert [row for row in rows if not row[2].endswith(".")] == []
