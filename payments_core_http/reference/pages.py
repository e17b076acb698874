"""The reference as a page: the OpenAPI document with its references followed, for the template."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import jinja2
import markupsafe

from payments_core.evolve import evolve
from payments_core_http.openapi.conventions import Schema, resolved

_SCHEMAS = "#/components/schemas/"
_LIMIT_TEXTS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "maxProperties": "at most {} keys",
    "format": "{}",
}
_MAX_INTEGER = 2**53 - 1
"""The limits of all integers, which are not repeated for each."""

TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("payments_core_http.reference"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)


def _render_prose(text: str) -> markupsafe.Markup:
    """A description as HTML: escaped, with text in backticks as code."""
    escaped = str(markupsafe.escape(text))
    return markupsafe.Markup(_CODE.sub(r"<code>\1</code>", escaped))


_CODE = re.compile("`([^`]+)`")
TEMPLATES.filters["prose"] = _render_prose


@attrs.frozen(kw_only=True)
class TypeName:
    """A type in words: `name` is its own, or that of a schema that it leads to."""

    name: str
    target: str | None = None


@attrs.frozen(kw_only=True)
class FieldRow:
    """A field or a parameter."""

    name: str
    types: tuple[TypeName, ...]
    required: bool
    rules: tuple[str, ...]
    about: str = ""
    place: str = ""


@attrs.frozen(kw_only=True)
class ResponseEntry:
    """What a route may return with one status."""

    status: str
    about: str
    types: tuple[TypeName, ...]
    codes: tuple[str, ...]
    headers: tuple[str, ...]
    examples: Mapping[str, str]


@attrs.frozen(kw_only=True)
class OperationEntry:
    """A route."""

    id: str
    method: str
    path: str
    summary: str
    about: str
    credentials: tuple[str, ...]
    schemes: tuple[tuple[str, ...], ...]
    parameters: tuple[FieldRow, ...]
    body: tuple[TypeName, ...]
    body_required: bool
    body_examples: Mapping[str, str]
    responses: tuple[ResponseEntry, ...]


@attrs.frozen(kw_only=True)
class SchemaEntry:
    """A schema with a name."""

    name: str
    about: str
    closed: bool
    rows: tuple[FieldRow, ...]
    types: tuple[TypeName, ...]


def render_page(document: Schema, mode: str) -> str:
    """The page. Only in mode `sandbox` its forms accept an app's secret, which no browser should
    have elsewhere."""
    schemas = document["components"]["schemas"]
    is_error = {name: name.endswith("Error") for name in schemas}
    return TEMPLATES.get_template("reference.html").render(
        info=document["info"],
        mode=mode,
        schemes=document["components"]["securitySchemes"],
        resources=list(_list_resources(document)),
        events=list(_list_events(document)),
        errors=[
            (code, example["summary"], _format_json(example["value"]))
            for code, example in document["components"]["examples"].items()
            if "summary" in example
        ],
        schemas=[
            make_schema_entry(name, schema)
            for name, schema in schemas.items()
            if not is_error[name]
        ],
    )


def make_schema_entry(name: str, schema: Schema) -> SchemaEntry:
    """A schema with its fields."""
    required = schema.get("required", ())
    groups = [branch["required"][0] for branch in schema.get("oneOf", ())]
    rows = [
        FieldRow(
            name=field,
            types=_name_types(inner),
            required=field in required,
            rules=tuple(_describe_rules(inner))
            + ((f"exactly one of {', '.join(groups)}",) if field in groups else ()),
            about=inner.get("description", ""),
        )
        for field, inner in schema.get("properties", {}).items()
    ]
    return SchemaEntry(
        name=name,
        about=schema.get("description", ""),
        closed=schema.get("additionalProperties") is False,
        rows=tuple(rows),
        types=() if rows else _name_types(schema),
    )


def _list_resources(document: Schema) -> Iterator[tuple[str, list[OperationEntry]]]:
    found: dict[str, list[OperationEntry]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            [tag] = operation["tags"]
            found[tag].append(_make_operation(document, method.upper(), path, operation))
    return ((tag, members) for tag, members in found.items() if members)


def _make_operation(document: Schema, method: str, path: str, operation: Schema) -> OperationEntry:
    body = operation.get("requestBody")
    content: Schema = body["content"]["application/json"] if body else {}
    ways = operation["security"]
    return OperationEntry(
        id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        about=operation.get("description", ""),
        credentials=tuple(" and ".join(way) for way in ways),
        schemes=tuple(tuple(way) for way in ways),
        parameters=tuple(
            _make_parameter_row(resolved(one, document)) for one in operation.get("parameters", ())
        ),
        body=_name_types(content["schema"]) if body else (),
        body_required=bool(body and body["required"]),
        body_examples=_render_examples(content, document),
        responses=tuple(
            _make_response(status, resolved(response, document), document)
            for status, response in operation["responses"].items()
        ),
    )


def _make_parameter_row(parameter: Schema) -> FieldRow:
    return FieldRow(
        name=parameter["name"],
        place=parameter["in"],
        types=_name_types(parameter["schema"]),
        required=parameter["required"],
        rules=tuple(_describe_rules(parameter["schema"])),
        about=parameter.get("description", ""),
    )


def _make_response(status: str, response: Schema, document: Schema) -> ResponseEntry:
    content: Schema = response.get("content", {}).get("application/json", {})
    is_error = status >= "4"
    examples = content.get("examples", {})
    return ResponseEntry(
        status=status,
        about="" if is_error else response["description"],
        types=_name_types(content["schema"]) if content and not is_error else (),
        codes=tuple(examples) if is_error else (),
        headers=tuple(response.get("headers", {})),
        examples={} if is_error else _render_examples(content, document),
    )


def _render_examples(content: Schema, document: Schema) -> dict[str, str]:
    return {
        name: _format_json(resolved(example, document)["value"])
        for name, example in content.get("examples", {}).items()
    }


def _list_events(document: Schema) -> Iterator[tuple[str, Schema, tuple[TypeName, ...], str]]:
    """Each event with its operation, the type of its payload, and an example."""
    for name, entry in document["webhooks"].items():
        post = entry["post"]
        content = post["requestBody"]["content"]["application/json"]
        payload = content["schema"]["properties"]["payload"]
        yield name, post, _name_types(payload), _format_json(content["example"])


def _name_types(schema: Schema) -> tuple[TypeName, ...]:
    """A type in words; several are alternatives."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_SCHEMAS)
        return (TypeName(name=name, target=name),)
    for several in ("oneOf", "anyOf"):
        if several in schema:
            return tuple(one for branch in schema[several] for one in _name_types(branch))
    if "items" in schema and "additionalProperties" not in schema:
        listed = tuple(
            evolve(one, name=f"list of {one.name}") for one in _name_types(schema["items"])
        )
        kinds = schema["type"]
        return listed + ((TypeName(name="null"),) if "null" in kinds else ())
    further = schema.get("additionalProperties")
    if isinstance(further, dict) and further:
        return tuple(evolve(one, name=f"map of {one.name}") for one in _name_types(further))
    kinds = schema.get("type", "any value")
    return tuple(TypeName(name=kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _describe_rules(schema: Schema) -> Iterator[str]:
    """The rules of a value, in words."""
    if "const" in schema:
        yield f"always {schema['const']}"
    if "enum" in schema:
        yield "one of " + ", ".join(str(value) for value in schema["enum"] if value is not None)
    for name, words in _LIMIT_TEXTS.items():
        if name in schema and abs(schema[name] if name != "format" else 0) != _MAX_INTEGER:
            yield words.format(schema[name])
    if "pattern" in schema and "description" not in schema:
        yield f"matches {schema['pattern']}"
    if "default" in schema:
        yield f"{json.dumps(schema['default'])} if absent"
    if "items" in schema:
        yield from (f"each {rule}" for rule in _describe_rules(schema["items"]))


def _format_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
