"""Older contracts on the wire: the version that a request requires, its body and its response.

The core, the handlers and the wire classes know the newest contract alone (contract §18). For an
older one, a body is made newer before it is read, and a response older before it is encoded; the
schemas of the newest OpenAPI document say where in them the objects are that differ.
Interface "Versioning" 2 to 6 and contract §3 "Versions".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import msgspec

from payments_core.contracts.changes import Renamed, Reworded
from payments_core.contracts.versions import Changes, Versions
from payments_core.engine.idempotency.record import AlreadyResponded
from payments_core.errors import (
    BadInput,
    ConflictError,
    FieldError,
    Forbidden,
    UnsupportedVersion,
    ValidationFailed,
    VersionMismatch,
)
from payments_core.validation.faults import join_path
from payments_core_http.authentication import Caller
from payments_core_http.idempotency import build_idempotent, read_key
from payments_core_http.routing import Route
from payments_core_http.wire.request_body import read_body

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

Schema = Mapping[str, Any]

_NOTHING: Schema = {}
_PATH_PART = re.compile(r"\[\d+\]|[^.\[]+")


def require_version(
    service: PaymentsService,
    caller: Caller,
    environ: Mapping[str, Any],
    find_earlier: Callable[[], AlreadyResponded | None],
) -> None:
    """Return if the caller requested no version, or the one that all credentials are bound to.

    Raises UnsupportedVersion if this deployment does not serve the requested or the bound version,
    VersionMismatch if the two differ, and AlreadyResponded if they agreed at the response to
    the same request: the pin was moved since.
    """
    versions, asked = service.settings.versions, environ.get("HTTP_SERVICE_VERSION")
    bound = caller.bound_versions
    for version in bound if asked is None else (asked, *bound):
        if version not in versions.supported:
            raise UnsupportedVersion(versions.supported)
    for version in bound:
        if asked not in (None, version):
            earlier = find_earlier()
            if earlier is not None and earlier.response.api_version == asked:
                raise earlier
            raise VersionMismatch(version)


def read_older_body(
    service: PaymentsService,
    route: Route,
    caller: Caller,
    environ: Mapping[str, Any],
    path: Mapping[str, str],
    document: Any,
    older: RouteContract | None,
) -> Any:
    """The wire object of a document, which is of an older contract if one is given.

    Raises ValidationFailed, with the names of that contract, and AlreadyResponded if the same
    request had a response under a contract that accepted it.
    """
    try:
        if older is None:
            return read_body(route, document)
        newer = older.read({} if document is None else document)
        try:
            return read_body(route, newer)
        except ValidationFailed as failed:
            raise older.name_faults(failed) from None
    except ValidationFailed:
        earlier = find_earlier_response(service, route, caller, environ, path, lambda: document)
        if earlier is not None:
            raise earlier from None
        raise


def find_earlier_response(
    service: PaymentsService,
    route: Route,
    caller: Caller,
    environ: Mapping[str, Any],
    path: Mapping[str, str],
    read_document: Callable[[], Any],
) -> AlreadyResponded | None:
    """The earlier response to the same request; None without one.

    For a request whose version, or whose body, is no longer that of its pin: its refusal would read
    as that of the first request.
    """
    authority = caller.authority_for(route)
    if authority is None:
        return None
    try:
        if key := read_key(route, environ):
            authority.require_allowed()
            idempotent = build_idempotent(route, authority, key, path, read_document())
            service.parts.ports.committer.replay(authority, idempotent)
    except AlreadyResponded as earlier:
        return earlier
    except (BadInput, Forbidden, ConflictError, UnicodeEncodeError):  # such as a lone surrogate
        return None  # it is refused in any case
    return None


class OlderContracts:
    """The older contracts of a deployment at its routes. Threads may share it."""

    def __init__(self, versions: Versions, build_document: Callable[[], Schema]) -> None:
        """`build_document` makes the newest document, when an older contract first needs it."""
        self._versions = versions
        self._newest = versions.current
        self._build_document = build_document
        self._by_date: dict[str, Mapping[str, RouteContract]] = {}

    def find(self, route: Route, date: str) -> RouteContract | None:
        """How the contract differs at the route; None for one that does not, as the newest."""
        if date == self._newest:
            return None
        if date not in self._by_date:
            self._by_date[date] = self._build(self._versions.changes_since(date))
        return self._by_date[date].get(route.name)

    def _build(self, changes: Changes) -> Mapping[str, RouteContract]:
        if not changes:
            return {}
        document = self._build_document()
        objects = OlderObjects(document["components"]["schemas"], changes)
        rows = {
            f"{method.upper()} {path}": RouteContract(objects, *_find_schemas(operation))
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        }
        return {name: row for name, row in rows.items() if row.differs}


@attrs.frozen
class RouteContract:
    """How an older contract differs in the body and the response of one route."""

    _objects: OlderObjects
    _body: Schema
    _response: Schema

    @property
    def differs(self) -> bool:
        """Whether it does."""
        return self._objects.differs(self._body) or self._objects.differs(self._response)

    def read(self, document: Any) -> Any:
        """The body as in the newest contract.

        Raises ValidationFailed, with older names, for fields that only newer contracts know.
        """
        return self._objects.read(document, self._body)

    def render(self, view: Any) -> Any:
        """The response as in the older contract."""
        return self._objects.render(msgspec.to_builtins(view), self._response)

    def name_faults(self, failed: ValidationFailed) -> ValidationFailed:
        """The error of a newer body, with the older names of its fields."""
        paths = [self._objects.name_path(one.path, self._body) for one in failed.fields]
        found = zip(paths, failed.fields, strict=True)
        return ValidationFailed(tuple(FieldError(path, one.message) for path, one in found))


def _find_schemas(operation: Schema) -> tuple[Schema, Schema]:
    """The schemas of an operation's body and of its response; all its successes have the same."""
    holders = [
        operation.get("requestBody", _NOTHING),
        *(one for status, one in operation["responses"].items() if status.startswith("2")),
    ]
    found = [
        one["content"]["application/json"]["schema"] if "content" in one else _NOTHING
        for one in holders
    ]
    return found[0], found[1] if len(found) > 1 else _NOTHING


class OlderObjects:
    """Finds the objects that differ, in JSON values, by the schemas of the newest document."""

    def __init__(self, schemas: Mapping[str, Schema], changes: Changes) -> None:
        """`schemas` are the document's components. Raises KeyError for a change of none of them."""
        self._newest = schemas
        self._changes = changes
        described = {name: self._describe(name) for name in changes}
        self.schemas: Mapping[str, Schema] = {**schemas, **described}
        """The components of the older document."""
        self._differing = set(changes)
        known = 0
        while known != len(self._differing):  # until nothing else contains one of them
            known = len(self._differing)
            self._differing |= {name for name, schema in schemas.items() if self.differs(schema)}

    def _describe(self, name: str) -> dict[str, Any]:
        newer = self._newest[name]
        older = {**newer, "properties": dict(newer["properties"])}
        for change in self._changes[name]:
            change.describe(older)
        return older

    def differs(self, schema: Any) -> bool:
        """Whether the values of a schema may contain an object that differs."""
        if isinstance(schema, list):
            return any(map(self.differs, schema))
        if not isinstance(schema, Mapping):
            return False
        return _name_of(schema) in self._differing or any(map(self.differs, schema.values()))

    def render(self, value: Any, schema: Schema) -> Any:
        """The value as in the older contract. It is of builtins alone."""
        if not self.differs(schema):
            return value
        if isinstance(value, list | tuple):
            items = self._items(schema)
            return [self.render(item, items) for item in value]
        if not isinstance(value, dict):
            return value
        name, schema = self._resolve(value, schema)
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
        name, schema = self._resolve(value, schema)
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
            schema = form.get("items", _NOTHING) if part[0] == "[" else _field(form, part)
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

    def _resolve(self, value: Any, schema: Schema) -> tuple[str, Schema]:
        """The name and the schema of a value; of several forms, those of its own.

        A value without a form of its own is not changed.
        """
        listed = self._list_forms(schema)
        forms = {name: form for name, form in listed if name} or dict(listed)  # not null
        if "discriminator" in schema:
            word = value.get(schema["discriminator"]["propertyName"])
            known = schema["discriminator"]["mapping"]
            name = _name_of({"$ref": known.get(word, "")}) if isinstance(word, str) else ""
        elif len(forms) == 1:
            [name] = forms
        else:
            required = {name: set(form.get("required", ())) for name, form in forms.items()}
            fitting = [name for name, needed in required.items() if needed <= value.keys()]
            name = max(fitting, key=lambda name: len(required[name]), default="")
        return name, forms.get(name, _NOTHING)

    def _items(self, schema: Schema) -> Schema:
        """The schema of the items of a list, which may also be null."""
        forms = (form for _, form in self._list_forms(schema) if "items" in form)
        items: Schema = next(forms, _NOTHING).get("items", _NOTHING)
        return items

    def _list_forms(self, schema: Schema) -> list[tuple[str, Schema]]:
        """The names and schemas of what a value may be."""
        if name := _name_of(schema):
            return [(name, self._newest[name])]
        forms = schema.get("oneOf") or schema.get("anyOf")
        if forms and "properties" not in schema:
            return [form for one in forms for form in self._list_forms(one)]
        return [("", schema)]


def _name_of(schema: Schema) -> str:
    """The name of the schema that is referred to; empty for a schema without one."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _field(schema: Schema, name: str) -> Schema:
    """The schema of a field, or of the values of a mapping."""
    found = schema.get("properties", _NOTHING).get(name) or schema.get("additionalProperties")
    return found or _NOTHING


def _join(path: str, name: str) -> str:
    return join_path(path, name) if path else name
