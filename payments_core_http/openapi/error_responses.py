"""The errors of a route: the handler's own from its row, and what the pipeline raises before it.

Grouped by status, each with the codes that it can have here. An example of every code is made by
the error class itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, get_args, get_origin, get_type_hints

import attrs
import msgspec

from payments_core import errors
from payments_core.errors import PaymentsError
from payments_core_http import errors as wire
from payments_core_http.errors import ENCODERS, ErrorForm, status_of
from payments_core_http.openapi.conventions import Schema, rules_of
from payments_core_http.openapi.example_values import example_id
from payments_core_http.openapi.examples import example_detail
from payments_core_http.openapi.schemas import Schemas
from payments_core_http.openapi.sentences import OF_ERRORS, describe_fields
from payments_core_http.routing import Route

ErrorClass = type[PaymentsError]
Condition = Callable[[Route], bool]

RESPONSES = "#/components/responses/"
EXAMPLES = "#/components/examples/"
_MAX_RESPONSE_NAME_CHARACTERS = 100
_DOCS = "https://pay.example/docs/errors"


def _takes_credential(route: Route) -> bool:
    return route.credential not in ("none", "app_id")


def _takes_client_token(route: Route) -> bool:
    return route.credential in ("client_token", "session_token")


def _takes_two_credentials(route: Route) -> bool:
    return route.with_payment_secret or route.may_have_payment_secret


def _is_bound_to_version(route: Route) -> bool:
    return route.credential != "none"


def _needs_rights(route: Route) -> bool:
    needs = route.needs
    return needs is not None and bool(needs.scopes or needs.permissions or needs.standard_only)


def _needs_products(route: Route) -> bool:
    needs = route.needs
    return needs is not None and bool(needs.scopes or needs.permissions or needs.products)


def _has_path_ids(route: Route) -> bool:
    return bool(route.path_names)


def _takes_key(route: Route) -> bool:
    return route.idempotency != "ignored"


def _needs_key(route: Route) -> bool:
    return route.idempotency == "required"


def _takes_body(route: Route) -> bool:
    return route.method != "GET"


def _is_any(route: Route) -> bool:
    return True


PIPELINE_ERRORS: tuple[tuple[Condition, tuple[ErrorClass, ...]], ...] = (
    (
        _is_any,
        (
            wire.MalformedRequest,
            errors.ValidationFailed,  # parameters that the row does not have
            errors.UnsupportedVersion,
            wire.RequestTimedOut,
            wire.RateLimited,
            wire.HeadersTooLarge,
            wire.InternalError,
            errors.ConfigurationError,
            wire.UnsupportedTransferCoding,
            errors.Unavailable,
        ),
    ),
    (_takes_credential, (errors.Unauthorized,)),
    (_is_bound_to_version, (errors.VersionMismatch,)),
    (_takes_client_token, (errors.ClientTokenExpired,)),
    (_takes_two_credentials, (errors.CredentialMismatch,)),
    (_needs_rights, (errors.InsufficientPermissions,)),
    (_needs_products, (errors.EntitlementRequired,)),
    (_has_path_ids, (errors.NotFound,)),
    (_takes_key, (errors.IdempotencyConflict, errors.IdempotencyInProgress)),
    (_needs_key, (errors.IdempotencyKeyRequired,)),
    (
        _takes_body,
        (
            errors.InvalidJson,
            wire.LengthRequired,
            wire.PayloadTooLarge,
            wire.UnsupportedMediaType,
        ),
    ),
)
"""What the pipeline and the server before it may return, and on which routes."""


def errors_of(route: Route) -> dict[int, list[ErrorClass]]:
    """The error classes of a route by status, each in the order of its codes."""
    kinds = set(route.errors)
    for condition, raised in PIPELINE_ERRORS:
        if condition(route):
            kinds.update(raised)
    found: dict[int, list[ErrorClass]] = {}
    for kind in sorted(kinds, key=lambda kind: (status_of(kind), kind.code)):
        found.setdefault(status_of(kind), []).append(kind)
    return found


class ErrorResponses:
    """Gathers the responses and examples of errors as routes refer to them."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self.responses: dict[str, Schema] = {}
        self.examples: dict[str, Schema] = {}

    def add_responses(self, route: Route) -> dict[str, Schema]:
        """The error responses of a route by status."""
        return {
            str(status): self._add_response(kinds, route.error_form)
            for status, kinds in errors_of(route).items()
        }

    def _add_response(self, kinds: list[ErrorClass], form: ErrorForm) -> Schema:
        for kind in kinds:
            name = _EXAMPLE_PREFIX[form] + kind.code
            self.examples.setdefault(name, make_error_example(kind, form))
        response = self._build_response(kinds, form)
        name = _SCHEMA_PREFIX[form] + _response_name(kinds)
        if len(name) > _MAX_RESPONSE_NAME_CHARACTERS:
            return response
        self.responses[name] = response
        return {"$ref": RESPONSES + name}

    def _build_response(self, kinds: list[ErrorClass], form: ErrorForm) -> Schema:
        status = status_of(kinds[0])
        prefix, make_schema = _SCHEMA_PREFIX[form], _SCHEMA_MAKERS[form]
        schemas = [
            self._schemas.add(
                prefix + _schema_name(kind), describe_fields(make_schema(kind), OF_ERRORS)
            )
            for kind in kinds
        ]
        return {
            "description": " or ".join(f"`{kind.code}`" for kind in kinds) + ".",
            "headers": {
                name: {"$ref": f"#/components/headers/{name}"}
                for name in _header_names(status, kinds)
            },
            "content": {
                "application/json": {
                    "schema": schemas[0] if len(schemas) == 1 else {"oneOf": schemas},
                    "examples": {
                        kind.code: {"$ref": EXAMPLES + _EXAMPLE_PREFIX[form] + kind.code}
                        for kind in kinds
                    },
                }
            },
        }


def _response_name(kinds: list[ErrorClass]) -> str:
    return f"E{status_of(kinds[0])}" + "".join(map(_camel_case, kinds))


def _camel_case(kind: ErrorClass) -> str:
    return "".join(word.capitalize() for word in kind.code.split("_"))


def _schema_name(kind: ErrorClass) -> str:
    return _camel_case(kind).removesuffix("Error") + "Error"


def _header_names(status: int, kinds: list[ErrorClass]) -> list[str]:
    names = ["Service-Version", "X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining"]
    names += ["RateLimit-Reset"]
    if any(_has_retry_after(kind) for kind in kinds):
        names.append("Retry-After")
    if status == HTTPStatus.UNAUTHORIZED:
        names.append("WWW-Authenticate")
    return names


def describe_error(kind: ErrorClass) -> str:
    """An error class's description, in one paragraph."""
    return " ".join((kind.__doc__ or "").split("\n\n")[0].split())


def _has_retry_after(kind: ErrorClass) -> bool:
    return "retry_after_s" in {field.name for field in attrs.fields(kind)}


_OPTIONAL_FACTS: Mapping[ErrorClass, tuple[str, ...]] = {
    errors.DependencyFailed: ("reason",),
    wire.RateLimited: ("rule",),
}
"""The facts that an error may lack: no answer has no reason, and a refusal because of the address
alone names no rule."""


def _error_schema(kind: ErrorClass) -> Schema:
    """The envelope of one error."""
    details = details_of(kind)
    optional = _OPTIONAL_FACTS.get(kind, ())
    error: Schema = {
        "type": "object",
        "required": ["code", "message", "details"],
        "properties": {
            "code": {"type": "string", "const": kind.code},
            "message": {"type": "string"},
            "details": {
                "type": "object",
                "required": [name for name in details if name not in {*optional, "docUrl"}],
                "properties": details,
            },
        },
    }
    return {
        "type": "object",
        "description": describe_error(kind),
        "required": ["error"],
        "properties": {"error": error},
    }


def _flat_error_schema(kind: ErrorClass) -> Schema:
    """The envelope of one error of the legacy interface."""
    properties: Schema = {
        "success": {"type": "boolean", "const": False},
        "error": {"type": "string"},
        "code": {"type": "string", "const": kind.code},
        "requestId": {"type": "string", **rules_of("requestId")},
    }
    return {
        "type": "object",
        "description": describe_error(kind),
        "required": list(properties),
        "properties": properties,
    }


_SCHEMA_MAKERS: Mapping[ErrorForm, Callable[[ErrorClass], Schema]] = {
    "nested": _error_schema,
    "flat": _flat_error_schema,
}
_SCHEMA_PREFIX: Mapping[ErrorForm, str] = {"nested": "", "flat": "Legacy"}
_EXAMPLE_PREFIX: Mapping[ErrorForm, str] = {"nested": "", "flat": "legacy_"}


def details_of(kind: ErrorClass) -> dict[str, Schema]:
    """The schemas of an error's details by their names on the wire."""
    found: dict[str, Schema] = {}
    types = get_type_hints(kind)
    for field in attrs.fields(kind):
        name = wire_name(field.name)
        found[name] = _detail_schema(field.name, name, types[field.name])
    # What the server refuses before the application sees it has no page.
    return {
        **found,
        "requestId": {"type": "string", **rules_of("requestId")},
        "docUrl": {"type": "string", **rules_of("docUrl")},
    }


def wire_name(name: str) -> str:
    """A fact's name among an error's `details`."""
    first, *rest = name.replace("_after_s", "_after_seconds").split("_")
    return first + "".join(word.title() for word in rest)


def _detail_schema(fact: str, name: str, kind: Any) -> Schema:
    if fact.endswith(("_at", "_atomic")):
        return {"type": "string", **rules_of(name)}
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        if item is errors.FieldError:
            texts = {"path": {"type": "string"}, "message": {"type": "string"}}
            listed: Schema = {"type": "object", "required": list(texts), "properties": texts}
            return {"type": "array", "items": listed}
        return {"type": "array", "items": {"type": "string"}}
    if type(None) in get_args(kind):
        return {"type": ["string", "null"]}
    if kind in _TYPES:
        return {"type": _TYPES[kind]}
    return {"type": "string", "enum": list(get_args(kind))}


_TYPES: Mapping[Any, str] = {str: "string", int: "integer", bool: "boolean"}


def make_error_example(kind: ErrorClass, form: ErrorForm) -> Schema:
    """An error as it is answered, with the facts that all examples share."""
    facts = {field.name: example_detail(kind.code, field) for field in _required_fields(kind)}
    encoded = ENCODERS[form](kind(**facts), example_id("req"), f"{_DOCS}/{kind.code}")
    body = msgspec.json.decode(encoded)
    return {"summary": describe_error(kind), "value": body}


def _required_fields(kind: ErrorClass) -> list[attrs.Attribute[Any]]:
    return [field for field in attrs.fields(kind) if field.default is attrs.NOTHING]
