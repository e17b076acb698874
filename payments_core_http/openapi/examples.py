"""Examples: made from the schemas, which they must fit; nothing in them is random."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from payments_core.clock import format_iso
from payments_core.contracts.versions import CURRENT_VERSION
from payments_core.errors import FieldError
from payments_core.tenants.record import STORAGE_LIMIT_BYTES
from payments_core_http.openapi.conventions import Schema, prefix_of
from payments_core_http.openapi.example_values import (
    ABSENT,
    ABSENT_OF,
    EMPTY,
    HOUR_MS,
    NOW,
    NULL,
    VALUES,
    VALUES_OF,
    example_id,
)

_FUTURE_FIELDS = frozenset({"expiresAt", "exchangeExpiresAt", "actionExpiresAt", "quoteExpiresAt"})


def make_example(
    schema: Schema, schemas: Mapping[str, Schema], name: str = "", owner: str = ""
) -> Any:
    """A value that fits the schema. `name` is the field's, `owner` the name of its object."""
    if "$ref" in schema:
        kind = schema["$ref"].rpartition("/")[2]
        return make_example(schemas[kind], schemas, name, kind)
    if name in NULL and _may_be_null(schema):
        return None
    for several in ("anyOf", "oneOf"):
        if several in schema and "properties" not in schema:
            return make_example(schema[several][0], schemas, name, owner)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        known = _find_known_value(name, owner)
        return next((value for value in schema["enum"] if value == known), schema["enum"][0])
    if "properties" in schema:
        return _make_example_object(schema, schemas, owner)
    if "items" in schema:
        return _make_example_array(schema, schemas, name, owner)
    return _make_example_scalar(schema, name, owner)


def _make_example_object(
    schema: Schema, schemas: Mapping[str, Schema], owner: str
) -> dict[str, Any]:
    required = schema.get("required", [])
    # Of a group of which one must be given, the first is given.
    several = [schema, *schema.get("allOf", ())]
    groups = [
        [branch["required"][0] for branch in one["oneOf"]] for one in several if "oneOf" in one
    ]
    chosen = {group[0] for group in groups}
    grouped = {name for group in groups for name in group}
    closed = schema.get("additionalProperties") is False
    return {
        name: make_example(inner, schemas, name, owner)
        for name, inner in schema["properties"].items()
        if name in required
        or name in chosen
        or not (
            name in grouped
            or name in ABSENT
            or (owner, name) in ABSENT_OF
            or (closed and "default" in inner)
        )
    }


def _make_example_array(
    schema: Schema, schemas: Mapping[str, Schema], name: str, owner: str
) -> list[Any]:
    if name in EMPTY:
        return []
    items = schema["items"]
    given = _find_known_value(name, owner)
    if isinstance(given, list):
        return given
    return [make_example(items, schemas, name.removesuffix("s"), owner)]


def _make_example_scalar(schema: Schema, name: str, owner: str) -> Any:
    kinds = schema.get("type")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    prefix = prefix_of(name, owner)
    if kind == "string" and (prefix is not None or (name == "id" and "pattern" not in schema)):
        return example_id(prefix or "id")
    known = _find_known_value(name, owner)
    if known is not None and _is_a(known, kind):
        return known
    if schema.get("format") == "date-time":
        return format_iso(NOW + HOUR_MS) if name in _FUTURE_FIELDS else format_iso(NOW)
    if "default" in schema:
        return schema["default"]
    return _VALUE_BY_TYPE[kind or "object"]


def _find_known_value(name: str, owner: str) -> Any:
    return VALUES_OF.get((owner.removesuffix("Input"), name), VALUES.get(name))


def _may_be_null(schema: Schema) -> bool:
    branches = schema.get("anyOf") or schema.get("oneOf") or []
    return "null" in schema.get("type", []) or {"type": "null"} in branches


def _is_a(value: Any, kind: str | None) -> bool:
    return kind is None or type(value) is type(_VALUE_BY_TYPE[kind])


_VALUE_BY_TYPE: Mapping[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "object": {},
    "null": None,
}

# Errors

_DETAILS: Mapping[str, Any] = {
    "account_id": example_id("acct"),
    "action": "cancel",
    "allowed": ("GET", "HEAD", "OPTIONS"),
    "api_version": CURRENT_VERSION,
    "available_atomic": 5_000_000,
    "capability": "us_bank_payout",
    "chain_id": 8453,
    "dependency": "chain",
    "expired_at": NOW,
    "fields": (FieldError("amount", "is required"),),
    "limit": 10,
    "limit_bytes": 65_536,
    "option_id": example_id("pay_option"),
    "outcome": "blocked",
    "product": "payments",
    "remaining": 0,
    "required": ("v2:payments",),
    "required_atomic": 25_000_000,
    "reset_at": NOW,
    "resource": "payment",
    "retry_after_s": 12,
    "rule": "perPaymentLimit",
    "status": "succeeded",
    "supported_api_versions": (CURRENT_VERSION,),
    "symbol": "DAI",
}
_DETAILS_OF: Mapping[tuple[str, str], Any] = {
    ("account_suspended", "status"): "suspended",
    ("amount_out_of_range", "reason"): "zero",
    ("conflict", "reason"): "An account with this externalUserId exists.",
    ("destination_not_allowed", "reason"): "the account has no vault on this chain",
    ("headers_too_large", "limit_bytes"): 16_384,
    ("invalid_json", "reason"): "the body is empty",
    ("rate_limited", "limit"): 70,
    ("rate_limited", "reason"): "rate_limit_exceeded",
    ("rate_limited", "rule"): "sensitive_minute",
    ("reconciliation_action_not_allowed", "action"): "accept",
    ("reconciliation_action_not_allowed", "reason"): "no funds are held",
    ("screening_refused", "reason"): "a sanctions list names it",
    ("storage_limit_reached", "counted_at"): NOW,
    ("storage_limit_reached", "limit_bytes"): STORAGE_LIMIT_BYTES,
    ("storage_limit_reached", "stored_bytes"): STORAGE_LIMIT_BYTES + 1_048_576,
    ("webhook_url_not_allowed", "reason"): "it leads to a private address",
}
_DETAIL_BY_TYPE: Mapping[Any, Any] = {int: 1, bool: True}


def example_detail(code: str, field: attrs.Attribute[Any]) -> Any:
    """What an example of the error says in this field."""
    default = _DETAIL_BY_TYPE.get(field.type, "as the message says")
    return _DETAILS_OF.get((code, field.name), _DETAILS.get(field.name, default))
