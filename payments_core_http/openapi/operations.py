"""One row of the routes as an operation: parameters, body, responses, errors and credentials."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any, NoReturn, get_args, get_origin

import attrs

from payments_core.engine.idempotency.record import KEY_PATTERN
from payments_core_http.openapi.conventions import Schema
from payments_core_http.openapi.error_responses import ErrorResponses
from payments_core_http.openapi.resources import operation_id
from payments_core_http.openapi.schemas import Schemas, describe
from payments_core_http.routing import PATH_IDS, Credential, ListOf, Nothing, Route
from payments_core_http.wire.query import PageQuery

PARAMETERS = "#/components/parameters/"
HEADERS = "#/components/headers/"
PAYMENT_SECRET_HEADER = "paymentSecretHeader"

SCHEMES: Mapping[Credential, str] = {
    "server_key": "appSecret",
    "bearer_key": "appSecretAsBearer",
    "client_token": "accessToken",
    "session_token": "sessionToken",
    "payment_secret": "paymentSecret",
    "basic_app_id": "appId",
    "sdk_key": "sdkKey",
}
"""The security scheme of each credential; a route that is open to all has none."""


class Operations:
    """Makes operations, and gathers the schemas, errors and parameters that they refer to."""

    def __init__(self, schemas: Schemas, failures: ErrorResponses) -> None:
        self._schemas = schemas
        self._failures = failures
        self._path_names: set[str] = set()

    def add_operation(self, route: Route, tag: str) -> Schema:
        """The operation of a row; `tag` is its resource."""
        found: Schema = {
            "operationId": operation_id(route),
            "tags": [tag],
            "summary": route.summary,
        }
        if text := _describe_route(route):
            found["description"] = text
        found["security"] = security_of(route)
        if parameters := self._list_parameters(route):
            found["parameters"] = parameters
        if route.body is not Nothing:
            found["requestBody"] = {
                "required": not route.body_may_be_empty,
                "content": {
                    "application/json": {"schema": self._schemas.reference_to(route.body, "body")}
                },
            }
        found["responses"] = {**self._make_successes(route), **self._failures.add_responses(route)}
        return found

    def _list_parameters(self, route: Route) -> list[Schema]:
        self._path_names.update(route.path_names)
        names = [*route.path_names, "Service-Version"]
        if route.idempotency != "ignored":
            required = route.idempotency == "required"
            names.append("Idempotency-Key-required" if required else "Idempotency-Key")
        names += ["If-None-Match"] * route.has_etag
        return [{"$ref": PARAMETERS + name} for name in names] + self._list_query_parameters(route)

    def _list_query_parameters(self, route: Route) -> list[Schema]:
        if route.query is Nothing:
            return []
        attrs.resolve_types(route.query)
        paged: set[str] = set()  # a list of v1 has its own pages
        if issubclass(route.query, PageQuery):
            paged = {field.name for field in attrs.fields(PageQuery)}
        own = [field for field in attrs.fields(route.query) if field.name not in paged]
        shared = [{"$ref": PARAMETERS + name} for name in sorted(paged)]
        return [self._make_parameter(field) for field in own] + shared

    def _make_parameter(self, field: attrs.Attribute[Any]) -> Schema:
        schema = _strip_null(self._schemas.parameter_schema(field))
        about = schema.pop("description", None)
        return {
            "name": field.name,
            "in": "query",
            "required": field.default is attrs.NOTHING,
            **({"description": about} if about else {}),
            "schema": schema,
        }

    def _make_successes(self, route: Route) -> dict[str, Schema]:
        if route.response is NoReturn:
            return {}
        schema = self._schemas.reference_to(route.response, "response")
        names = ["Service-Version", "X-Request-Id"]
        if route.idempotency != "ignored":
            names.append("Idempotent-Replayed")
        names += ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"]
        names += ["ETag"] * route.has_etag
        response: Schema = {
            "description": _describe_response(route.response),
            "headers": {name: {"$ref": HEADERS + name} for name in names},
            "content": {"application/json": {"schema": schema}},
        }
        if route.has_csv:
            response["content"]["text/csv"] = {"schema": {"type": "string"}}
            response["headers"]["Link"] = {"$ref": HEADERS + "Link"}
        found = {str(route.success): response}
        if route.success_if_existing:
            found = {str(route.success_if_existing): dict(response), **found}
        if route.has_etag:
            found["304"] = {
                "description": "Nothing has changed since the response with that ETag.",
                "headers": {name: {"$ref": HEADERS + name} for name in names},
            }
        return found

    def make_shared_parameters(self, versions: tuple[str, ...]) -> dict[str, Schema]:
        """The parameters that the added rows may share."""
        attrs.resolve_types(PageQuery)
        paged = {field.name: self._make_parameter(field) for field in attrs.fields(PageQuery)}
        return {
            **_make_path_parameters(self._path_names),
            **_make_header_parameters(versions),
            **paged,
        }


def security_of(route: Route) -> list[Schema]:
    """The credentials that a row accepts, each with the scopes or permissions that it needs."""
    if route.credential not in SCHEMES:
        return []
    needs = route.needs
    roles = [] if needs is None else [*needs.scopes, *needs.permissions]
    alone: Schema = {SCHEMES[route.credential]: roles}
    both = {**alone, PAYMENT_SECRET_HEADER: []}
    if route.with_payment_secret:
        return [both]
    return [alone, both] if route.may_have_payment_secret else [alone]


def _describe_route(route: Route) -> str:
    sentences = []
    needs = route.needs
    if needs is not None and needs.standard_only:
        sentences.append("Needs a standard key.")
    if needs is not None and (needs.scopes or needs.permissions):
        names = ", ".join(f"`{name}`" for name in (*needs.scopes, *needs.permissions))
        sentences.append(f"Needs {names}.")
    if route.success_if_existing:
        sentences.append(f"Returns {route.success_if_existing} if it already existed.")
    if route.response is NoReturn:
        sentences.append("This release does not implement it yet.")
    if route.query is not Nothing:
        sentences.append(describe(route.query))
    return " ".join(sentences)


def _describe_response(kind: Any) -> str:
    """The description of the response's class."""
    if isinstance(kind, ListOf):
        return f"A page of: {_describe_response(kind.view)}"
    kinds = get_args(kind) if get_origin(kind) is not None else (kind,)
    return " Or: ".join(describe(one) for one in kinds) or HTTPStatus.OK.phrase


def _make_path_parameters(names: Collection[str]) -> dict[str, Schema]:
    return {
        name: {
            "name": name,
            "in": "path",
            "required": True,
            "description": f"The {shape.noun}.",
            "schema": {"type": "string", "pattern": shape.pattern},
        }
        for name, shape in PATH_IDS.items()
        if name in names
    }


def _make_header_parameters(versions: tuple[str, ...]) -> dict[str, Schema]:
    key: Schema = {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The same request with the same key runs once; a repeat gets the same"
        " response, with `Idempotent-Replayed: true`.",
        "schema": {"type": "string", "pattern": KEY_PATTERN},
    }
    version: Schema = {
        "name": "Service-Version",
        "in": "header",
        "required": False,
        "description": "The dated contract that your program was written for; it must be the one"
        " that the credential is bound to.",
        "schema": {"type": "string", "enum": list(versions)},
    }
    tag: Schema = {
        "name": "If-None-Match",
        "in": "header",
        "required": False,
        "description": "The ETag of the response that you have.",
        "schema": {"type": "string"},
    }
    return {
        "Service-Version": version,
        "If-None-Match": tag,
        "Idempotency-Key": {**key, "required": False},
        "Idempotency-Key-required": {**key, "required": True},
    }


def _strip_null(schema: Schema) -> Schema:
    """A parameter is absent or a text: it cannot be null."""
    if isinstance(schema.get("type"), list):
        [kind] = [kind for kind in schema["type"] if kind != "null"]
        schema = {**schema, "type": kind}
    if "enum" in schema:
        schema = {**schema, "enum": [value for value in schema["enum"] if value is not None]}
    return schema
