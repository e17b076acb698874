"""The reference as a page: the OpenAPI document with its references followed, for the template."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import jinja2
import markupsafe

from payments_core_http.openapi.conventions import Schema, resolved

_SCHEMAS = "#/components/schemas/"
_LIMITS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "maxProperties": "at most {} keys",
    "format": "{}",
}
_WIDEST = 2**53 - 1
"""What any integer is held to is not told at each."""

_PAGES = jinja2.Environment(
    loader=jinja2.PackageLoader("payments_core_http.reference"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)


def _prose(text: str) -> markupsafe.Markup:
    """A description as HTML: escaped, and what stands in backticks as code."""
    escaped = str(markupsafe.escape(text))
    return markupsafe.Markup(_CODE.sub(r"<code>\1</code>", escaped))


_CODE = re.compile("`([^`]+)`")
_PAGES.filters["prose"] = _prose


@attrs.frozen(kw_only=True)
class Type:
    """A type in words: `name` is its own, or that of a schema that it leads to."""

    name: str
    target: str | None = None


@attrs.frozen(kw_only=True)
class Row:
    """A field or a parameter."""

    name: str
    types: tuple[Type, ...]
    required: bool
    rules: tuple[str, ...]
    about: str = ""
    place: str = ""


@attrs.frozen(kw_only=True)
class Response:
    """What a route may answer with one status."""

    status: str
    about: str
    types: tuple[Type, ...]
    codes: tuple[str, ...]
    headers: tuple[str, ...]
    examples: Mapping[str, str]


@attrs.frozen(kw_only=True)
class Operation:
    """A route."""

    id: str
    method: str
    path: str
    summary: str
    about: str
    credentials: tuple[str, ...]
    schemes: tuple[tuple[str, ...], ...]
    parameters: tuple[Row, ...]
    body: tuple[Type, ...]
    body_required: bool
    body_examples: Mapping[str, str]
    responses: tuple[Response, ...]


@attrs.frozen(kw_only=True)
class Described:
    """A schema of its own."""

    name: str
    about: str
    closed: bool
    rows: tuple[Row, ...]
    types: tuple[Type, ...]


def rendered(document: Schema, mode: str) -> str:
    """The page. In mode `sandbox` its forms take an app's secret; elsewhere no browser may."""
    schemas = document["components"]["schemas"]
    is_error = {name: name.endswith("Error") for name in schemas}
    return _PAGES.get_template("reference.html").render(
        info=document["info"],
        mode=mode,
        schemes=document["components"]["securitySchemes"],
        resources=list(_resources(document)),
        events=list(_events(document)),
        errors=[
            (code, example["summary"], _json(example["value"]))
            for code, example in document["components"]["examples"].items()
            if "summary" in example
        ],
        schemas=[
            _described(name, schema) for name, schema in schemas.items() if not is_error[name]
        ],
    )


def _resources(document: Schema) -> Iterator[tuple[str, list[Operation]]]:
    found: dict[str, list[Operation]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            [tag] = operation["tags"]
            found[tag].append(_operation(document, method.upper(), path, operation))
    return ((tag, members) for tag, members in found.items() if members)


def _operation(document: Schema, method: str, path: str, operation: Schema) -> Operation:
    body = operation.get("requestBody")
    content: Schema = body["content"]["application/json"] if body else {}
    ways = operation["security"]
    return Operation(
        id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        about=operation.get("description", ""),
        credentials=tuple(" and ".join(way) for way in ways),
        schemes=tuple(tuple(way) for way in ways),
        parameters=tuple(
            _parameter(resolved(one, document)) for one in operation.get("parameters", ())
        ),
        body=_types(content["schema"]) if body else (),
        body_required=bool(body and body["required"]),
        body_examples=_examples(content, document),
        responses=tuple(
            _response(status, resolved(response, document), document)
            for status, response in operation["responses"].items()
        ),
    )


def _parameter(parameter: Schema) -> Row:
    return Row(
        name=parameter["name"],
        place=parameter["in"],
        types=_types(parameter["schema"]),
        required=parameter["required"],
        rules=tuple(_rules(parameter["schema"])),
        about=parameter.get("description", ""),
    )


def _response(status: str, response: Schema, document: Schema) -> Response:
    content: Schema = response.get("content", {}).get("application/json", {})
    is_error = status >= "4"
    examples = content.get("examples", {})
    return Response(
        status=status,
        about="" if is_error else response["description"],
        types=_types(content["schema"]) if content and not is_error else (),
        codes=tuple(examples) if is_error else (),
        headers=tuple(response.get("headers", {})),
        examples={} if is_error else _examples(content, document),
    )


def _examples(content: Schema, document: Schema) -> dict[str, str]:
    return {
        name: _json(resolved(example, document)["value"])
        for name, example in content.get("examples", {}).items()
    }


def _events(document: Schema) -> Iterator[tuple[str, Schema, tuple[Type, ...], str]]:
    """Each event with its operation, the type of its payload, and an example."""
    for name, entry in document["webhooks"].items():
        post = entry["post"]
        content = post["requestBody"]["content"]["application/json"]
        payload = content["schema"]["properties"]["payload"]
        yield name, post, _types(payload), _json(content["example"])


def _described(name: str, schema: Schema) -> Described:
    required = schema.get("required", ())
    groups = [branch["required"][0] for branch in schema.get("oneOf", ())]
    rows = [
        Row(
            name=field,
            types=_types(inner),
            required=field in required,
            rules=tuple(_rules(inner))
            + ((f"exactly one of {', '.join(groups)}",) if field in groups else ()),
            about=inner.get("description", ""),
        )
        for field, inner in schema.get("properties", {}).items()
    ]
    return Described(
        name=name,
        about=schema.get("description", ""),
        closed=schema.get("additionalProperties") is False,
        rows=tuple(rows),
        types=() if rows else _types(schema),
    )


def _types(schema: Schema) -> tuple[Type, ...]:
    """A type in words; several are alternatives."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_SCHEMAS)
        return (Type(name=name, target=name),)
    for several in ("oneOf", "anyOf"):
        if several in schema:
            return tuple(one for branch in schema[several] for one in _types(branch))
    if "items" in schema and "additionalProperties" not in schema:
        listed = tuple(
            attrs.evolve(one, name=f"list of {one.name}") for one in _types(schema["items"])
        )
        kinds = schema["type"]
        return listed + ((Type(name="null"),) if "null" in kinds else ())
    further = schema.get("additionalProperties")
    if isinstance(further, dict) and further:
        return tuple(attrs.evolve(one, name=f"map of {one.name}") for one in _types(further))
    kinds = schema.get("type", "any value")
    return tuple(Type(name=kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _rules(schema: Schema) -> Iterator[str]:
    """What a value is held to, in words."""
    if "const" in schema:
        yield f"always {schema['const']}"
    if "enum" in schema:
        yield "one of " + ", ".join(str(value) for value in schema["enum"] if value is not None)
    for name, words in _LIMITS.items():
        if name in schema and abs(schema[name] if name != "format" else 0) != _WIDEST:
            yield words.format(schema[name])
    if "pattern" in schema and "description" not in schema:
        yield f"matches {schema['pattern']}"
    if "default" in schema:
        yield f"{json.dumps(schema['default'])} where it is absent"
    if "items" in schema:
        yield from (f"each {rule}" for rule in _rules(schema["items"]))


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
