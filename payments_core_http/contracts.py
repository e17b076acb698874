"""Older contracts on the wire: the version that a request requires, its body and its response.

The core, the handlers and the wire classes know the newest contract alone (contract §18). For an
older one, a body is made newer before it is read, and a response older before it is encoded; the
schemas of the newest OpenAPI document say where in them the objects are that differ.
Interface "Versioning" 2 to 6 and contract §3 "Versions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import msgspec

from payments_core.contracts.versions import Changes, Versions
from payments_core.engine.idempotency.record import AlreadyResponded
from payments_core.errors import (
    FieldError,
    UnsupportedVersion,
    ValidationFailed,
    VersionMismatch,
)
from payments_core_http.authentication import Caller
from payments_core_http.older_objects import NOTHING, OlderObjects, Schema
from payments_core_http.routing import Route


def require_version(
    versions: Versions,
    caller: Caller,
    environ: Mapping[str, Any],
    find_earlier: Callable[[], AlreadyResponded | None],
) -> AlreadyResponded | None:
    """Return if the caller requested no version, or the one that all credentials are bound to.

    If they agreed at the response to the same request, since when the pin was moved, return that
    response. Raises UnsupportedVersion if this deployment does not serve the requested or the bound
    version, and VersionMismatch if the two differ.
    """
    asked, bound = environ.get("HTTP_SERVICE_VERSION"), caller.bound_versions
    for version in bound if asked is None else (asked, *bound):
        if version not in versions.supported:
            raise UnsupportedVersion(versions.supported)
    for version in bound:
        if asked not in (None, version):
            earlier = find_earlier()
            if earlier is not None and earlier.response.api_version == asked:
                return earlier
            raise VersionMismatch(version)
    return None


class OlderContracts:
    """The older contracts of a deployment at its routes. Threads may share it."""

    def __init__(self, versions: Versions, build_document: Callable[[], Schema]) -> None:
        """`build_document` makes the newest document, which only older contracts that differ need.

        Raises ValueError for a contract with a change that could not be kept.
        """
        older = {
            date: changes
            for date in versions.supported
            if (changes := versions.changes_since(date))
        }
        document = build_document() if older else NOTHING
        self._by_date = {date: _list_routes(document, changes) for date, changes in older.items()}

    def find(self, route: Route, date: str) -> RouteContract | None:
        """How the contract differs at the route; None for one that does not, as the newest."""
        return self._by_date.get(date, {}).get(route.name)


def _list_routes(document: Schema, changes: Changes) -> Mapping[str, RouteContract]:
    objects = OlderObjects(document, changes)
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
        operation.get("requestBody", NOTHING),
        *(one for status, one in operation["responses"].items() if status.startswith("2")),
    ]
    found = [
        one["content"]["application/json"]["schema"] if "content" in one else NOTHING
        for one in holders
    ]
    return found[0], found[1] if len(found) > 1 else NOTHING
