"""The objects that an older contract changes, wherever they are in JSON values.

The schemas of the newest OpenAPI document say where. A contract that could not keep its promises
is refused when its objects are made, which a service does at its start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from payments_core.contracts.changes import Renamed, Reworded
from payments_core.contracts.versions import Changes
from payments_core.errors import FieldError, ValidationFailed
from payments_core.validation.faults import join_path
from payments_core_http.errors import error_form_of

Schema = Mapping[str, Any]

NOTHING: Schema = {}
_COMPONENTS = "#/components/schemas/"
_PATH_PART = re.compile(r"\[\d+\]|[^.\[]+")


class OlderObjects:
    """Finds the objects that differ, in JSON values, by the schemas of the newest document."""

    def __init__(self, document: Schema, changes: Changes) -> None:
        """`document` is the newest. Raises ValueError for a change that could not be kept."""
        self._newest: Mapping[str, Schema] = document["components"]["schemas"]
        self._changes = changes
        _require_dated_objects(document, changes)
        bodies = _find_objects(document, [*_find_values(document["paths"], "requestBody")])
        described = {name: self._describe(name, is_read=name in bodies) for name in changes}
        self.schemas: Mapping[str, Schema] = {**self._newest, **described}
        """The components of the older document."""
        _require_same_forms(document, self.schemas)
        self._differing = {
            name
            for name in self._newest
            if not _find_objects(document, {"$ref": _COMPONENTS + name}).isdisjoint(changes)
        }
        self._known: dict[int, tuple[Schema, bool]] = {}

    def _describe(self, name: str, *, is_read: bool) -> dict[str, Any]:
        """The older schema of an object, which bodies may have if it `is_read`.

        No name or word may have meant something else in an older contract: a stored payload is of
        the shape of the date that was the newest then. And a word of a body has one meaning.
        """
        newer = self._newest[name]
        older = {**newer, "properties": dict(newer["properties"])}
        left: set[tuple[str, str]] = set()
        for change in self._changes[name]:
            before = _list_words(older)
            try:
                change.describe(older)
            except KeyError as missing:
                raise ValueError(
                    f"{name}: the newer contract has no {missing} that {change} could change"
                ) from None
            except ValueError as fault:
                raise ValueError(f"{name}: {fault}") from None
            after = _list_words(older)
            if isinstance(change, Renamed):
                left |= {(change.older, word) for field, word in left if field == change.newer}
            if again := after & left:
                field, word = min(again)
                raise ValueError(
                    f"{name}: a newer contract uses {word or field} for something else; "
                    "choose another name"
                )
            if is_read and isinstance(change, Reworded) and len(after) < len(before):
                raise ValueError(f"{name}: {change} gives two words of a body one older word")
            left |= before - after
        return older

    def differs(self, schema: Schema) -> bool:
        """Whether the values of a schema may contain an object that differs."""
        known = self._known.get(id(schema))
        if known is None:  # it is kept, so that no other schema gets its id
            differs = not self._differing.isdisjoint(map(_name_of, _find_values(schema, "$ref")))
            known = self._known[id(schema)] = (schema, differs)
        return known[1]

    def render(self, value: Any, schema: Schema) -> Any:
        """The value as in the older contract. It is of builtins alone."""
        if not self.differs(schema):
            return value
        if isinstance(value, list | tuple):
            items = self._items(schema)
            return [self.render(item, items) for item in value]
        if not isinstance(value, dict):
            return value
        name, schema = self._resolve(value, schema, self._newest)
        older = {key: self.render(item, _field(schema, key)) for key, item in value.items()}
        for change in self._changes.get(name, ()):
            change.render(older)
        return older

    def read(self, value: Any, schema: Schema, path: str = "") -> Any:
        """The value as in the newest contract, which may be invalid as before.

        Raises ValidationFailed for fields that only newer contracts know.
        """
        if not self.differs(schema):
            return value
        if isinstance(value, list):
            items = self._items(schema)
            return [self.read(one, items, f"{path}[{place}]") for place, one in enumerate(value)]
        if not isinstance(value, dict):
            return value
        name, schema = self._resolve(value, schema, self.schemas)
        newer, older_names = dict(value), self._older_names(name)
        if name in self._changes:
            self._refuse_what_is_newer(value, name, path)
        for change in reversed(self._changes.get(name, ())):
            change.read(newer)
        return {
            key: self.read(item, _field(schema, key), _join(path, older_names.get(key, key)))
            for key, item in newer.items()
        }

    def _refuse_what_is_newer(self, value: Mapping[str, Any], name: str, path: str) -> None:
        """Refuse fields and words of contracts between: a change would take them for its own."""
        fields = self.schemas[name]["properties"]
        reworded = {one.name for one in self._changes[name] if isinstance(one, Reworded)}
        found = [
            FieldError(_join(path, key), "is not a known field")
            for key in value
            if key not in fields
        ]
        found += [
            FieldError(_join(path, key), f"must be one of {', '.join(fields[key]['enum'])}")
            for key, word in value.items()
            if key in fields and self._newer_names(name, key) & reworded
            if isinstance(word, str) and word not in fields[key]["enum"]
        ]
        if found:
            raise ValidationFailed(tuple(found))

    def name_path(self, path: str, schema: Schema) -> str:
        """The path of a body's field by the names of the older contract."""
        named, rest = "", path
        while rest and self.differs(schema):
            found = _PATH_PART.match(rest.removeprefix("."))
            if found is None:  # the name of an unknown field may be any text
                break
            part = found[0]
            forms = self._list_forms(schema)
            knowing = [one for one in forms if part in one[1].get("properties", ())]
            name, form = (knowing or forms)[0]
            schema = form.get("items", NOTHING) if part[0] == "[" else _field(form, part)
            named = _join(named, self._older_names(name).get(part, part))
            rest = rest.removeprefix(".").removeprefix(part)
        return named + rest

    def _newer_names(self, name: str, field: str) -> set[str]:
        """A field's name in the older contract and in each newer one."""
        names = {field}
        for change in reversed(self._changes.get(name, ())):
            if isinstance(change, Renamed) and change.older in names:
                names.add(change.newer)
        return names

    def _older_names(self, name: str) -> Mapping[str, str]:
        """The older name of each renamed field of an object."""
        names: dict[str, str] = {}
        for change in reversed(self._changes.get(name, ())):
            if isinstance(change, Renamed):
                names[change.newer] = names.pop(change.older, change.older)
        return names

    def _resolve(
        self, value: Any, schema: Schema, schemas: Mapping[str, Schema]
    ) -> tuple[str, Schema]:
        """The name and the newest schema of a value; of several forms, those of its own.

        `schemas` are of the value's contract. A value without a form of its own is not changed.
        """
        listed = self._list_forms(schema)
        forms = {name: form for name, form in listed if name} or dict(listed)  # not null
        if "discriminator" in schema:
            word = value.get(schema["discriminator"]["propertyName"])
            known = schema["discriminator"]["mapping"]
            name = _name_of(known.get(word, "")) if isinstance(word, str) else ""
        elif len(forms) == 1:
            [name] = forms
        else:
            required = {name: set(schemas[name].get("required", ())) for name in forms}
            fitting = [name for name, needed in required.items() if needed <= value.keys()]
            name = max(fitting, key=lambda name: len(required[name]), default="")
        return name, forms.get(name, NOTHING)

    def _items(self, schema: Schema) -> Schema:
        """The schema of the items of a list, which may also be null."""
        forms = (form for _, form in self._list_forms(schema) if "items" in form)
        items: Schema = next(forms, NOTHING).get("items", NOTHING)
        return items

    def _list_forms(self, schema: Schema) -> list[tuple[str, Schema]]:
        """The names and schemas of what a value may be."""
        if name := _name_of(schema.get("$ref", "")):
            return [(name, self._newest[name])]
        forms = schema.get("oneOf") or schema.get("anyOf")
        if forms and "properties" not in schema:
            return [form for one in forms for form in self._list_forms(one)]
        return [("", schema)]


def _require_dated_objects(document: Schema, changes: Changes) -> None:
    """Raise ValueError for changes of what is the same under every contract."""
    undated = [
        operation if error_form_of(path) == "flat" else _list_errors(operation)
        for path, methods in document["paths"].items()
        for operation in methods.values()
    ]
    alike = _find_objects(document, undated)
    for name in changes:
        if name not in document["components"]["schemas"]:
            raise ValueError(f"{name} is not an object of the newest OpenAPI document")
        if name in alike:
            raise ValueError(f"{name}: errors and the legacy interface are the same at every date")


def _require_same_forms(document: Schema, older: Mapping[str, Schema]) -> None:
    """Raise ValueError if an older object would not be recognized by the same field and word."""
    newest = document["components"]["schemas"]
    for union in _find_values(document, "discriminator"):
        field = union["propertyName"]
        for name in map(_name_of, union["mapping"].values()):
            if older[name]["properties"].get(field) != newest[name]["properties"].get(field):
                raise ValueError(
                    f"{name}: {field} says which form the object has, and cannot be changed"
                )


def _list_errors(operation: Schema) -> list[Schema]:
    return [one for status, one in operation["responses"].items() if not status.startswith("2")]


def _find_objects(document: Schema, value: Any) -> set[str]:
    """The names of all objects that may be in what a part of the document describes."""
    found: set[str] = set()
    left = [*_find_values(value, "$ref")]
    while left:
        reference = left.pop()
        if reference not in found:
            found.add(reference)
            kind, name = reference.split("/")[2:]  # after "#/components"
            left += _find_values(document["components"][kind][name], "$ref")
    return {_name_of(one) for one in found if one.startswith(_COMPONENTS)}


def _find_values(value: Any, key: str) -> Iterator[Any]:
    """The values of a key, wherever they are in a part of the document."""
    if isinstance(value, Mapping):
        if key in value:
            yield value[key]
        value = value.values()
    elif not isinstance(value, list):
        return
    for item in value:
        yield from _find_values(item, key)


def _list_words(schema: Schema) -> set[tuple[str, str]]:
    """The names of an object's fields, each without a word and with each of its words."""
    fields = schema["properties"].items()
    return {(name, str(word)) for name, one in fields for word in ("", *one.get("enum", ()))}


def _name_of(reference: str) -> str:
    """The name of the schema that is referred to."""
    return reference.rpartition("/")[2]


def _field(schema: Schema, name: str) -> Schema:
    """The schema of a field, or of the values of a mapping."""
    found = schema.get("properties", NOTHING).get(name) or schema.get("additionalProperties")
    return found or NOTHING


def _join(path: str, name: str) -> str:
    return join_path(path, name) if path else name
