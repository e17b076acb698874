"""A sentence for each field on the wire: `describe_field` finds it.

Most fields are described by their name, since a name means the same everywhere; `owners.py` has
the names that mean something else, or something more, in one resource. The tables are by topic. A
row without a field fails the tests, as does a field without a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from payments_core_http.openapi.conventions import Schema
from payments_core_http.openapi.sentences import accounts, console, conventions, legacy, payments
from payments_core_http.openapi.sentences.owners import BY_OWNER

TABLES = (conventions, payments, accounts, console, legacy)

BY_NAME: Mapping[str, str] = {
    name: sentence for table in TABLES for name, sentence in table.BY_NAME.items()
}


def describe_field(owner: str, name: str) -> str | None:
    """The sentence for a field of the schema `owner`; None for a field that is not ours."""
    for table in (BY_OWNER.get(owner, {}), _tables_of_errors(owner)):
        if name in table:
            return table[name]
    return BY_NAME.get(name)


def describe_query(name: str) -> str | None:
    """The sentence for a field of a query string."""
    return conventions.OF_QUERIES.get(name) or BY_NAME.get(name)


def _tables_of_errors(owner: str) -> Mapping[str, str]:
    return conventions.OF_ERRORS if owner.endswith("Error") else {}


def describe_fields(owner: str, schema: Schema) -> None:
    """Give each field of a schema its sentence, and each field of the objects inside it.

    A rule that a body's field already has follows the sentence; listed values need no rule.
    """
    for name, field in schema.get("properties", {}).items():
        rule = None if "enum" in field else field.get("description")
        if sentence := describe_field(owner, name):
            field["description"] = _join(sentence, rule)
        describe_fields(owner, field)
    for inner in _inner_schemas(schema):
        describe_fields(owner, inner)


def _inner_schemas(schema: Schema) -> Iterator[Schema]:
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield schema[keyword]


def _join(sentence: str, rule: str | None) -> str:
    return f"{sentence} {rule[:1].upper()}{rule[1:].rstrip('.')}." if rule else sentence
