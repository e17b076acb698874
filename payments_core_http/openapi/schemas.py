"""JSON Schemas of wire classes, from the annotations that the readers read.

Bodies are closed: a field that is not listed is refused. Responses stay open, since a contract may
gain fields, except for the classes that the interface closes (`closed`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import attrs
import msgspec

from payments_core.validation import metadata
from payments_core.validation.constraints import MAX_INTEGER
from payments_core.validation.metadata import Metadata
from payments_core.validation.readers import find_discriminator, null_is_absent
from payments_core_http.openapi.conventions import Schema, rules_of
from payments_core_http.openapi.resources import resource_name
from payments_core_http.openapi.sentences import describe_fields, find_sentences
from payments_core_http.routing import ListOf

COMPONENTS = "#/components/schemas/"
_SOURCE = re.compile(r" \((?:contract|interface)[^)]*\)")
"""A docstring's reference to its source, which the document's readers do not have."""

Side = Literal["body", "response"]
"""Whether a class is read from a request or written to a response."""


@attrs.frozen
class NamedSchema:
    """A class whose schema has its own name, and its side; or a page of them."""

    kind: Any
    side: Literal["body", "response", "page"]

    @property
    def placeholder(self) -> str:
        """The text in place of its name until all names are known."""
        return f"{COMPONENTS}?{self.side}:{self.kind.__module__}.{self.kind.__qualname__}"

    @property
    def short_name(self) -> str:
        """The name that it has if no other class wants the same."""
        name: str = self.kind.__name__
        if self.side == "body":
            return name
        return name.removesuffix("View") + ("Page" if self.side == "page" else "")

    @property
    def qualified_name(self) -> str:
        """The name with its module's, if another class of its side has the plain one."""
        resource = resource_name(self.kind)
        return "".join(word.capitalize() for word in resource.split("_")) + self.short_name


class Schemas:
    """Gathers the schemas of classes as they are requested."""

    def __init__(self) -> None:
        self._found: dict[NamedSchema, Schema] = {}
        self._added: dict[str, Schema] = {}
        self._needs_metadata = False

    def reference_to(self, kind: Any, side: Side) -> Schema:
        """The schema of a type; objects are referred to by marks that `named` replaces."""
        if isinstance(kind, ListOf):
            named = NamedSchema(kind.view, "page")
            self._found.setdefault(named, self._make_page_schema(kind.view))
            return {"$ref": named.placeholder}
        return self._make_schema(kind, side)

    def add(self, name: str, schema: Schema) -> Schema:
        """A schema that no class describes, under its own name."""
        self._added[name] = schema
        return {"$ref": COMPONENTS + name}

    def parameter_schema(self, field: attrs.Attribute[Any]) -> Schema:
        """The schema of a single parameter, with its default."""
        return {**self._make_schema(field.type, "body"), **_default_keyword(field)}

    def resolve_names(self, document: Schema) -> Schema:
        """The document with the gathered schemas in it and real names in place of marks."""
        names = self._assign_names()
        schemas = {
            names[named.placeholder].removeprefix(COMPONENTS): schema
            for named, schema in self._found.items()
        }
        if self._needs_metadata:
            schemas.update(_make_metadata_schemas())
        if twice := schemas.keys() & self._added.keys():
            raise ValueError(f"two schemas with one name: {sorted(twice)}")
        components = {**document["components"], "schemas": {**schemas, **self._added}}
        components["schemas"] = dict(sorted(components["schemas"].items()))
        renamed: Schema = replace_texts({**document, "components": components}, names)
        return renamed

    # Types

    def _make_schema(self, kind: Any, side: Side) -> Schema:
        origin: Any = get_origin(kind)
        if origin is Annotated:
            inner, *annotations = get_args(kind)
            metas = [one for one in annotations if isinstance(one, msgspec.Meta)]
            return _add_constraints(self._make_schema(inner, side), metas)
        if origin in (Union, UnionType):
            return self._make_union_schema(kind, side)
        if origin is Literal:
            return _make_literal_schema(get_args(kind))
        if origin is tuple:
            return {"type": "array", "items": self._make_schema(get_args(kind)[0], side)}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            names, items = (self._make_schema(one, side) for one in get_args(kind))
            ruled = {"propertyNames": names} if names.keys() - {"type"} else {}
            return {"type": "object", **ruled, "additionalProperties": items}
        if kind is Metadata:
            self._needs_metadata = True
            return {"$ref": COMPONENTS + "Metadata"}
        if attrs.has(kind) or _is_struct(kind):
            return self._refer_to(kind, side)
        return dict(_SCHEMA_BY_TYPE[side][kind])

    def _make_union_schema(self, kind: Any, side: Side) -> Schema:
        parts = get_args(kind)
        nullable = NoneType in parts
        kinds = [part for part in parts if part not in (NoneType, msgspec.UnsetType)]
        if len(kinds) == 1:
            schema = self._make_schema(kinds[0], side)
            return _make_nullable(schema) if nullable else schema
        schemas = [self._make_schema(one, side) for one in kinds]
        ends = [{"type": "null"}] if nullable else []
        told_apart = _find_discriminator(kinds)
        if told_apart is None:  # as some responses, whose classes differ by their fields alone
            return {"anyOf": [*schemas, *ends]}
        tag, by_value = told_apart
        mapping = {value: self._make_schema(one, side)["$ref"] for value, one in by_value.items()}
        return {
            "oneOf": [*schemas, *ends],
            "discriminator": {"propertyName": tag, "mapping": mapping},
        }

    def _make_page_schema(self, view: Any) -> Schema:
        schema: Schema = {
            "type": "object",
            "required": ["data", "limit", "hasNextPage", "nextCursor"],
            "properties": {
                "data": {"type": "array", "items": self._make_schema(view, "response")},
                "limit": {"type": "integer"},
                "hasNextPage": {"type": "boolean"},
                "nextCursor": {"type": ["string", "null"]},
            },
        }
        return describe_fields(schema, {})

    # Objects

    def _refer_to(self, kind: Any, side: Side) -> Schema:
        named = NamedSchema(kind, side)
        if named not in self._found:
            self._found[named] = {}  # a class may hold itself
            self._found[named].update(self._make_object_schema(kind, side))
        return {"$ref": named.placeholder}

    def _make_object_schema(self, kind: Any, side: Side) -> Schema:
        fields = list(fields_of(kind, side))
        owner = kind.__name__
        properties = {}
        for field in fields:
            schema = self._make_schema(field.type, side)
            if field.is_nullable:
                schema = _make_nullable(schema)
            if side == "response" and schema.get("type") in ("string", ["string", "null"]):
                schema = {**(rules_of(field.name, owner) if len(schema) == 1 else {}), **schema}
            properties[field.name] = {**schema, **field.default}
        found: Schema = {
            "type": "object",
            "description": describe(kind),
            "properties": properties,
            "required": [field.name for field in fields if field.required],
        }
        if not found["description"]:
            del found["description"]
        if not found["required"]:
            del found["required"]
        if side == "body" or getattr(kind, "closed", False):
            found["additionalProperties"] = False
        found.update(_exactly_one_of_keyword(kind, properties))
        return describe_fields(found, find_sentences(kind))

    def _assign_names(self) -> dict[str, str]:
        """The name of every class. If two want the same name, each of them on that side adds its
        module; a body that wants a response's name gets the suffix `Input`."""
        names: dict[str, str] = {}
        for is_body in (False, True):
            mine = [named for named in self._found if (named.side == "body") == is_body]
            wanted = [named.short_name for named in mine]
            for named in mine:
                name = (
                    named.short_name
                    if wanted.count(named.short_name) == 1
                    else named.qualified_name
                )
                taken = COMPONENTS + name in names.values()
                names[named.placeholder] = COMPONENTS + name + ("Input" if taken else "")
        if len(set(names.values())) != len(names):
            raise ValueError(f"two classes with one name among {sorted(names.values())}")
        return names


@attrs.frozen
class WireField:
    """A field of a wire class, as it is on the wire."""

    name: str
    type: Any
    required: bool
    default: Schema = attrs.field(factory=dict)
    is_nullable: bool = False
    """Also null, though its type does not say so."""


def fields_of(kind: Any, side: Side) -> Iterator[WireField]:
    """The fields of a class, in its order."""
    if _is_struct(kind):
        for member in msgspec.structs.fields(kind):
            absent = msgspec.UnsetType in get_args(member.type)
            yield WireField(member.encode_name, member.type, not absent)
        return
    attrs.resolve_types(kind)
    for field in attrs.fields(kind):
        if side == "response":
            yield WireField(field.name, field.type, msgspec.UnsetType not in get_args(field.type))
        else:
            yield WireField(
                field.name,
                field.type,
                field.default is attrs.NOTHING,
                _default_keyword(field),
                null_is_absent(field),
            )


def describe(kind: Any) -> str:
    """A class's description, and what it refuses besides its fields' own rules."""
    # attrs writes a docstring if there is none, and it begins with the class's name.
    text = _SOURCE.sub("", " ".join((kind.__doc__ or "").split()))
    sentences = [] if text.startswith(f"{kind.__name__}(") else [text]
    if hasattr(kind, "faults"):
        refused = " ".join((kind.faults.__doc__ or "").split())
        sentences.append(f"Also refused: {refused[:1].lower()}{refused[1:]}")
    return " ".join(sentences).strip()


def _find_discriminator(kinds: list[Any]) -> tuple[str, dict[str, Any]] | None:
    """The field whose value distinguishes the classes, and the class of each; None without one."""
    try:
        tag, by_value = find_discriminator(kinds)
    except TypeError:
        return None
    values = [get_args(attrs.fields_dict(kind)[tag].type) for kind in kinds]
    return (tag, by_value) if len(by_value) == sum(map(len, values)) else None


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _default_keyword(field: attrs.Attribute[Any]) -> Schema:
    default = field.default
    if default is None or default is attrs.NOTHING or default is msgspec.UNSET:
        return {}
    if isinstance(default, Decimal):
        return {"default": int(default)}
    return {"default": list(default) if isinstance(default, tuple) else default}


def _exactly_one_of_keyword(kind: Any, properties: Mapping[str, Schema]) -> Schema:
    """`exactly_one_of`, with null treated as absent."""
    groups: tuple[tuple[str, ...], ...] = getattr(kind, "exactly_one_of", ())
    if not groups:
        return {}
    # A field is given if it is present and not null; each group has exactly one that is given.
    found: list[Schema] = [
        {
            "oneOf": [
                {
                    "required": [name],
                    "properties": {name: {"type": _non_null_type(properties[name])}},
                }
                for name in group
            ]
        }
        for group in groups
    ]
    return found[0] if len(found) == 1 else {"allOf": found}


def _non_null_type(schema: Schema) -> str:
    [kind] = [kind for kind in schema["type"] if kind != "null"]
    return str(kind)


def _make_literal_schema(values: tuple[Any, ...]) -> Schema:
    [kind] = {type(value) for value in values}
    schema: Schema = {"type": {str: "string", int: "integer", bool: "boolean"}[kind]}
    return {**schema, **({"const": values[0]} if len(values) == 1 else {"enum": list(values)})}


def _make_nullable(schema: Schema) -> Schema:
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    found = {**schema, "type": [schema["type"], "null"]}
    if "const" in found:
        found["enum"] = [found.pop("const")]
    if "enum" in found:
        found["enum"] = [*found["enum"], None]
    return found


def _add_constraints(schema: Schema, metas: Iterable[msgspec.Meta]) -> Schema:
    found = dict(schema)
    for meta in metas:
        extra = meta.extra or {}
        counted = "Items" if schema.get("type") == "array" else "Length"
        keywords = {
            f"min{counted}": meta.min_length,
            f"max{counted}": meta.max_length,
            "minimum": meta.ge,
            "maximum": meta.le,
            "pattern": meta.pattern,
            "enum": list(extra["values"]) if "values" in extra else None,
            "format": extra.get("format"),
            "description": extra.get("rule"),
        }
        found.update({name: value for name, value in keywords.items() if value is not None})
    return found


def _make_metadata_schemas() -> dict[str, Schema]:
    """The limits of metadata: each level of nesting is its own schema."""
    names = ["Metadata", *(f"MetadataLevel{n}" for n in range(2, metadata.MAX_DEPTH + 1))]
    text: Schema = {"maxLength": metadata.MAX_CHARACTERS}
    scalars = ["string", "number", "boolean", "null"]
    found: dict[str, Schema] = {}
    for name, below in zip(names, [*names[1:], None], strict=True):
        value: Schema = {"type": scalars, **text}
        if below is not None:
            value = {"anyOf": [value, {"$ref": COMPONENTS + below}]}
        inside: Schema = {
            "maxProperties": metadata.MAX_KEYS,
            "propertyNames": text,
            "additionalProperties": value,
        }
        if name == "Metadata":
            about = (
                f"The partner's own data: at most {metadata.MAX_BYTES} bytes as JSON, and"
                f" {metadata.MAX_DEPTH} levels. Integers are within ±(2^53−1)."
            )
            found[name] = {"type": "object", "description": about, **inside}
        else:
            listed = {"maxItems": metadata.MAX_ITEMS, "items": value}
            found[name] = {"type": ["object", "array"], **inside, **listed}
    return found


def replace_texts(value: Any, names: Mapping[str, str]) -> Any:
    """The JSON value with other texts in place of those that the mapping has."""
    if isinstance(value, dict):
        return {key: replace_texts(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_texts(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


_INTEGER: Schema = {"type": "integer", "minimum": -MAX_INTEGER, "maximum": MAX_INTEGER}
_SCHEMA_BY_TYPE: Mapping[Side, Mapping[Any, Schema]] = {
    "body": {
        str: {"type": "string"},
        int: _INTEGER,
        bool: {"type": "boolean"},
        Decimal: {"type": "number", "minimum": 0},
    },
    "response": {
        str: {"type": "string"},
        int: {"type": "integer"},
        bool: {"type": "boolean"},
        NoneType: {"type": "null"},
        Any: {},
    },
}
