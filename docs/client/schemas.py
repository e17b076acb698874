"""Turns the schemas of the OpenAPI document into structs and annotations of Python."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import attrs

from payments_core_http.openapi.conventions import Schema

Side = Literal["response", "body"]

_NULL = {"type": "null"}
_SCALARS = {
    "integer": "int",
    "boolean": "bool",
    "number": "Decimal",
    "string": "str",
    "null": "None",
}
_PAGE_FIELDS = ("limit", "hasNextPage", "nextCursor")
_FREE_FORM = frozenset({"Metadata"})
"""Objects of the partner's own fields."""
_BASES = {"response": "Response", "body": "Body"}
_WIDTH = 96
_MOST_VALUES = 20
"""The maximum number of values in a signature; longer lists, such as all events, are left out."""


@attrs.frozen
class Types:
    """The structs of one side, responses or bodies, written when an annotation first needs them."""

    schemas: Mapping[str, Schema]
    side: Side
    written: dict[str, str] = attrs.field(factory=dict)

    def annotate(self, schema: Schema) -> str:
        """The annotation of a value, with ` | None` if it may be null."""
        if not schema:
            return "Any"
        if "$ref" in schema:
            return self._name_of(schema["$ref"].rpartition("/")[2])
        forms = schema.get("anyOf") or schema.get("oneOf")
        if forms and "properties" not in schema:
            return self._annotate_union(forms)
        types = schema.get("type")
        if isinstance(types, list):
            [only] = [name for name in types if name != "null"]
            return f"{self.annotate({**schema, 'type': only})} | None"
        if "const" in schema or "enum" in schema:
            values = [schema["const"]] if "const" in schema else schema["enum"]
            return self._annotate_values([value for value in values if value is not None])
        if types == "array":
            kind = "list" if self.side == "response" else "Sequence"
            return f"{kind}[{self.annotate(schema['items'])}]"
        if types == "object":
            kind = "dict" if self.side == "response" else "Mapping"
            return f"{kind}[str, {self.annotate(schema.get('additionalProperties') or {})}]"
        if self.side == "response" and schema.get("format") == "date-time":
            return "datetime"
        if self.side == "body" and "ISO 8601 time" in schema.get("description", ""):
            return "datetime | str"
        return _SCALARS[str(types)]

    def _annotate_values(self, values: Sequence[Any]) -> str:
        if all(isinstance(value, bool) for value in values):
            return "bool"
        if len(values) > _MOST_VALUES:
            return "str"
        literal = f"Literal[{', '.join(map(quoted, values))}]"
        return f"Known[{literal}]" if self.side == "response" else literal

    def _annotate_union(self, forms: Sequence[Schema]) -> str:
        real = [form for form in forms if form != _NULL]
        null = " | None" if len(real) < len(forms) else ""
        if len(real) > 1 and self.side == "response" and all("$ref" in form for form in real):
            return self._merge([form["$ref"].rpartition("/")[2] for form in real]) + null
        return " | ".join(dict.fromkeys(map(self.annotate, real))) + null

    def _name_of(self, name: str) -> str:
        schema = self.schemas[name]
        if name in _FREE_FORM:
            return "dict[str, Any]" if self.side == "response" else "Mapping[str, Any]"
        if name not in self.written:
            self._keep(name, schema)
        return self._as_page(name, schema) or name

    def _keep(self, name: str, schema: Schema) -> None:
        """Write a struct after those that it needs, since a base must be defined before it."""
        self.written[name] = ""  # a schema may contain itself
        source = self._write(name, schema)
        del self.written[name]
        self.written[name] = source

    def _as_page(self, name: str, schema: Schema) -> str | None:
        """A plain page needs no class of its own."""
        if sorted(schema["properties"]) != sorted(("data", *_PAGE_FIELDS)):
            return None
        self.written.pop(name, None)
        return f"Page[{self.annotate(schema['properties']['data']['items'])}]"

    def item_of_page(self, schema: Schema) -> str | None:
        """The items of a list's response, or None if it is not a page."""
        whole = self.schemas[schema["$ref"].rpartition("/")[2]]
        if not set(_PAGE_FIELDS) <= whole["properties"].keys():
            return None
        return self.annotate(_listed(whole["properties"])[1]["items"])

    def _write(self, name: str, schema: Schema) -> str:
        fields: dict[str, Schema] = dict(schema["properties"])
        required = set(schema.get("required", ()))
        base = _BASES[self.side]
        lines = []
        if self.side == "response" and set(_PAGE_FIELDS) <= fields.keys():
            field, items = _listed(fields)
            item = self.annotate(items["items"])
            base = f"Page[{item}]"
            if field != "data":
                lines.append(f'data: list[{item}] = msgspec.field(name="{field}")')
            fields = {key: one for key, one in fields.items() if key not in (*_PAGE_FIELDS, field)}
        for key, one in fields.items():
            lines += self._write_field(key, one, key in required)
        about = schema.get("description") or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()
        return "\n".join(
            [
                f"class {name}({base}, frozen=True, kw_only=True):",
                textwrap.indent(docstring(about), "    "),
                "",
                *(f"    {line}" for line in lines),
            ]
        )

    def _write_field(self, key: str, schema: Schema, required: bool) -> Iterable[str]:
        name, kind = python_name(key), self.annotate(schema)
        renamed = f'name="{key}"' if camel(name) != key else ""
        default = "" if required else "default=None"
        if self.side == "body":
            default = "" if required else "default=UNSET"
            if not required:
                kind = f"{kind} | UnsetType"
            elif "const" in schema:
                default = f"default={quoted(schema['const'])}"
        elif not required and not kind.endswith("None"):
            kind = f"{kind} | None"
        options = ", ".join(filter(None, (default, renamed)))
        if renamed:
            yield f"{name}: {kind} = msgspec.field({options})"
        else:
            yield f"{name}: {kind}" + (f" = {default.partition('=')[2]}" if default else "")
        if schema.get("description"):
            yield docstring(str(schema["description"]))

    def _merge(self, names: Sequence[str]) -> str:
        """A struct for one of several forms: a field that not all of them have may be None."""
        name = "Or".join(names)
        if name not in self.written:
            forms = [self.schemas[one] for one in names]
            keys = dict.fromkeys(key for form in forms for key in form["properties"])
            merged = {
                "description": f"Either {' or '.join(f'`{one}`' for one in names)}: "
                "fields that the actual form lacks are None.",
                "properties": {key: _merge_field(key, forms) for key in keys},
                "required": [
                    key for key in keys if all(key in form.get("required", ()) for form in forms)
                ],
            }
            self._keep(name, merged)
        return name


def _merge_field(key: str, forms: Sequence[Schema]) -> Schema:
    """A schema for a field that has one in several forms."""
    found = [form["properties"][key] for form in forms if key in form["properties"]]
    different = [one for number, one in enumerate(found) if one not in found[:number]]
    if len(different) == 1:
        only: Schema = different[0]
        return only
    if all("const" in one for one in different):
        return {"type": "string", "enum": [one["const"] for one in different]}
    if all(one.get("type") == "array" for one in different):
        return {"type": "array", "items": {"anyOf": [one["items"] for one in different]}}
    kinds = {name for one in different for name in _type_names(one)} - {"null"}
    if len(kinds) == 1:  # the same, in one form null too
        widest: Schema = max(different, key=lambda one: len(_type_names(one)))
        return widest
    flat = [part for one in different for part in one.get("anyOf") or one.get("oneOf") or [one]]
    return {"anyOf": [part for number, part in enumerate(flat) if part not in flat[:number]]}


def _type_names(schema: Schema) -> Sequence[str]:
    names = schema.get("type", [])
    return [names] if isinstance(names, str) else names


def _listed(fields: Mapping[str, Schema]) -> tuple[str, Schema]:
    """The field of a page that lists: `data`, or the first list."""
    lists = [(key, one) for key, one in fields.items() if one.get("type") == "array"]
    return next((pair for pair in lists if pair[0] == "data"), lists[0])


def quoted(value: Any) -> str:
    """A literal of Python, with double quotes."""
    return '"' + value + '"' if isinstance(value, str) else repr(value)


def python_name(key: str) -> str:
    """The Python name of a field or parameter."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key.replace("-", "_")).lower()
    return f"{snake}_" if keyword.iskeyword(snake) else snake


def camel(name: str) -> str:
    """What `rename="camel"` makes of a Python name."""
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def class_name(snake: str) -> str:
    """`own_payments` as `OwnPayments`."""
    return "".join(part.title() for part in snake.split("_"))


def docstring(text: str) -> str:
    """A docstring of one sentence or more, wrapped."""
    text = " ".join(text.split()).replace("\\", "\\\\")
    text = text[:1].upper() + text[1:]
    if not text.endswith((".", "!", "?")):
        text += "."
    wrapped = textwrap.wrap(text, _WIDTH - 10)
    if len(wrapped) == 1:
        return f'"""{wrapped[0]}"""'
    return '"""' + "\n".join(wrapped) + '\n"""'
