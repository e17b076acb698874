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
from payments_core_http.errors import envelope, status_of
from payments_core_http.openapi.conventions import Schema, rules_of
from payments_core_http.openapi.examples import fact, identifier
from payments_core_http.openapi.schemas import Schemas
from payments_core_http.routing import Route

ErrorKind = type[PaymentsError]
Condition = Callable[[Route], bool]

RESPONSES = "#/components/responses/"
EXAMPLES = "#/components/examples/"
_LONGEST_NAME = 100


def _takes_credential(route: Route) -> bool:
    return route.credential not in ("none", "app_id")


def _takes_client_token(route: Route) -> bool:
    return route.credential in ("client_token", "session_token")


def _takes_two_credentials(route: Route) -> bool:
    return route.with_payment_secret or route.may_have_payment_secret


def _is_bound_to_a_version(route: Route) -> bool:
    return route.credential != "none"


def _needs_rights(route: Route) -> bool:
    needs = route.needs
    return needs is not None and bool(needs.scopes or needs.permissions or needs.standard_only)


def _needs_products(route: Route) -> bool:
    needs = route.needs
    return needs is not None and bool(needs.scopes or needs.permissions or needs.products)


def _names_a_resource(route: Route) -> bool:
    return bool(route.path_names)


def _takes_key(route: Route) -> bool:
    return route.idempotency != "ignored"


def _needs_key(route: Route) -> bool:
    return route.idempotency == "required"


def _takes_body(route: Route) -> bool:
    return route.method != "GET"


def _any(route: Route) -> bool:
    return True


PIPELINE: tuple[tuple[Condition, tuple[ErrorKind, ...]], ...] = (
    (
        _any,
        (
            wire.MalformedRequest,
            errors.ValidationFailed,  # parameters that the row does not have
            errors.UnsupportedVersion,
            wire.RequestTooSlow,
            wire.RateLimited,
            wire.HeadersTooLarge,
            wire.InternalError,
            wire.TransferCodingUnknown,
            errors.Unavailable,
        ),
    ),
    (_takes_credential, (errors.Unauthorized,)),
    (_is_bound_to_a_version, (errors.VersionMismatch,)),
    (_takes_client_token, (errors.ClientTokenExpired,)),
    (_takes_two_credentials, (errors.CredentialMismatch,)),
    (_needs_rights, (errors.InsufficientPermissions,)),
    (_needs_products, (errors.EntitlementRequired,)),
    (_names_a_resource, (errors.NotFound,)),
    (_takes_key, (errors.IdempotencyConflict, errors.IdempotencyInProgress)),
    (_needs_key, (errors.IdempotencyKeyRequired,)),
    (_takes_body, (errors.InvalidJson, wire.PayloadTooLarge, wire.UnsupportedMediaType)),
)
"""What the pipeline and the server before it may answer, and on which routes."""


def errors_of(route: Route) -> dict[int, list[ErrorKind]]:
    """The error classes of a route by status, each in the order of its codes."""
    kinds = set(route.errors)
    for condition, raised in PIPELINE:
        if condition(route):
            kinds.update(raised)
    found: dict[int, list[ErrorKind]] = {}
    for kind in sorted(kinds, key=lambda kind: (status_of(kind), kind.code)):
        found.setdefault(status_of(kind), []).append(kind)
    return found


class Failures:
    """Gathers the responses and examples of errors as routes refer to them."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self.responses: dict[str, Schema] = {}
        self.examples: dict[str, Schema] = {}

    def responses_of(self, route: Route) -> dict[str, Schema]:
        """The error responses of a route by status."""
        return {str(status): self._response(kinds) for status, kinds in errors_of(route).items()}

    def _response(self, kinds: list[ErrorKind]) -> Schema:
        for kind in kinds:
            self.examples.setdefault(kind.code, _example(kind))
        response = self._made(kinds)
        name = _name(kinds)
        if len(name) > _LONGEST_NAME:
            return response
        self.responses[name] = response
        return {"$ref": RESPONSES + name}

    def _made(self, kinds: list[ErrorKind]) -> Schema:
        status = status_of(kinds[0])
        schemas = [self._schemas.add(_schema_name(kind), _schema(kind)) for kind in kinds]
        return {
            "description": " or ".join(f"`{kind.code}`" for kind in kinds) + ".",
            "headers": {
                name: {"$ref": f"#/components/headers/{name}"} for name in _headers(status, kinds)
            },
            "content": {
                "application/json": {
                    "schema": schemas[0] if len(schemas) == 1 else {"oneOf": schemas},
                    "examples": {kind.code: {"$ref": EXAMPLES + kind.code} for kind in kinds},
                }
            },
        }


def _name(kinds: list[ErrorKind]) -> str:
    return f"E{status_of(kinds[0])}" + "".join(map(_words, kinds))


def _words(kind: ErrorKind) -> str:
    return "".join(word.capitalize() for word in kind.code.split("_"))


def _schema_name(kind: ErrorKind) -> str:
    return _words(kind).removesuffix("Error") + "Error"


def _headers(status: int, kinds: list[ErrorKind]) -> list[str]:
    names = ["Service-Version", "X-Request-Id", "RateLimit-Limit", "RateLimit-Remaining"]
    names += ["RateLimit-Reset"]
    if any(_waits(kind) for kind in kinds):
        names.append("Retry-After")
    if status == HTTPStatus.UNAUTHORIZED:
        names.append("WWW-Authenticate")
    return names


def sentence(kind: ErrorKind) -> str:
    """What an error class says of itself, in one paragraph."""
    return " ".join((kind.__doc__ or "").split("\n\n")[0].split())


def _waits(kind: ErrorKind) -> bool:
    return "retry_after_s" in {field.name for field in attrs.fields(kind)}


def _schema(kind: ErrorKind) -> Schema:
    """The envelope of one error."""
    details = details_of(kind)
    # A refusal for its address alone names no rule.
    optional = {"rule"} if kind is wire.RateLimited else set()
    error: Schema = {
        "type": "object",
        "required": ["code", "message", "details"],
        "properties": {
            "code": {"type": "string", "const": kind.code},
            "message": {"type": "string"},
            "details": {
                "type": "object",
                "required": [name for name in details if name not in optional],
                "properties": details,
            },
        },
    }
    return {
        "type": "object",
        "description": sentence(kind),
        "required": ["error"],
        "properties": {"error": error},
    }


def details_of(kind: ErrorKind) -> dict[str, Schema]:
    """The schemas of an error's details by their names on the wire."""
    found: dict[str, Schema] = {}
    types = get_type_hints(kind)
    for field in attrs.fields(kind):
        name = on_the_wire(field.name)
        found[name] = _detail(field.name, name, types[field.name])
    return {**found, "requestId": {"type": "string", **rules_of("requestId")}}


def on_the_wire(name: str) -> str:
    """A fact's name among an error's `details`."""
    first, *rest = name.replace("_after_s", "_after_seconds").split("_")
    return first + "".join(word.title() for word in rest)


def _detail(fact: str, name: str, kind: Any) -> Schema:
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


def _example(kind: ErrorKind) -> Schema:
    facts = {field.name: fact(kind.code, field) for field in _required(kind)}
    body = msgspec.json.decode(envelope(kind(**facts), identifier("req")))
    return {"summary": sentence(kind), "value": body}


def _required(kind: ErrorKind) -> list[attrs.Attribute[Any]]:
    return [field for field in attrs.fields(kind) if field.default is attrs.NOTHING]
