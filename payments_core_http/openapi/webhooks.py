"""The section `webhooks`: one entry for each event of the catalogue, with its payload's fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from payments_core.accounts.capabilities.record import CAPABILITIES
from payments_core.accounts.record import AccountStatus
from payments_core.deposits.lifecycle import DEPOSIT
from payments_core.engine.event_payloads import PAYLOAD_NAMES
from payments_core.engine.events import CATALOGUE, EventType
from payments_core.onramps.lifecycle import BANK_TRANSACTION
from payments_core.payments.disputes.record import DisputeStatus
from payments_core.payments.funding.lifecycle import FUNDING_OPERATION
from payments_core.payments.record import CreatedBy
from payments_core.payments.refunds.lifecycle import REFUND
from payments_core.payments.transitions import PAYMENT
from payments_core_http.openapi.conventions import Schema, rules_of
from payments_core_http.openapi.example_values import example_id
from payments_core_http.openapi.examples import make_example
from payments_core_http.openapi.schemas import Schemas
from payments_core_http.openapi.sentences import describe_fields, find_sentences
from payments_core_http.v2.statuses import PaymentLabel
from payments_core_http.v2.webhooks.views import EventView

ENVELOPE = ("id", "name", "apiVersion", "createdAt", "payload")

_STATUSES_BY_FAMILY: Mapping[str, tuple[str, ...]] = {
    "account": get_args(AccountStatus),
    "bank_funding": tuple(sorted(BANK_TRANSACTION.states)),
    "deposit": tuple(sorted(DEPOSIT.states)),
    "dispute": get_args(DisputeStatus),
    "payment": tuple(sorted(PAYMENT.states)),
    "refund": tuple(sorted(REFUND.states)),
    "vault_funding": tuple(sorted(FUNDING_OPERATION.states)),
}
"""What `status` may be, by family; other families are not sent yet."""

_VALUES_BY_FIELD: Mapping[str, tuple[str, ...]] = {
    "capability": CAPABILITIES,
    "createdBy": get_args(CreatedBy),
}
"""The fields of any family that have a list of values."""

_TYPES: Mapping[type, str] = {str: "string", int: "integer", list: "array", dict: "object"}
"""By the type of a field's sample."""


def build_webhooks(schemas: Schemas, version: str) -> Schema:
    """Each event as the request that it makes."""
    return {event.name: {"post": _make_delivery(event, schemas, version)} for event in CATALOGUE}


def _make_delivery(event: EventType, schemas: Schemas, version: str) -> Schema:
    later = "" if event.emitted else " This release does not send it yet."
    return {
        "operationId": "on" + "".join(map(str.capitalize, _split_words(event.name))),
        "tags": ["Webhooks"],
        "summary": event.meaning,
        "description": f"Sent at least once: dedupe by `x-service-delivery`.{later}",
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in HEADERS],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _make_envelope(event, schemas, version)}},
        },
        "responses": {
            "2XX": {"description": "Delivered; it is not sent to this endpoint again."},
            "default": {
                "description": "408, 425, 429 and any 5xx are tried again; any other status"
                " abandons the delivery."
            },
        },
        "security": [],
    }


def _make_envelope(event: EventType, schemas: Schemas, version: str) -> Schema:
    properties: Schema = {
        "id": {"type": "string", **rules_of("eventId")},
        "name": {"type": "string", "const": event.name},
        "apiVersion": {"type": "string", "const": version},
        "createdAt": {"type": "string", **rules_of("createdAt")},
        "payload": schemas.add(PAYLOAD_NAMES[event.name], _make_payload(event, schemas)),
    }
    schema: Schema = {"type": "object", "required": list(ENVELOPE), "properties": properties}
    return describe_fields(schema, find_sentences(EventView))


def _make_payload(event: EventType, schemas: Schemas) -> Schema:
    properties = {name: _make_field(event, name, schemas) for name in event.fields}
    return {"type": "object", "required": list(properties), "properties": properties}


def _make_field(event: EventType, name: str, schemas: Schemas) -> Schema:
    field = event.fields[name]
    kind = _TYPES[type(field.sample)]
    schema: Schema = {"type": [kind, "null"] if field.nullable else kind, **rules_of(name)}
    if kind == "array":
        schema["items"] = schemas.reference_to(PaymentLabel, "response")
    if kind == "object":
        schema["additionalProperties"] = {}
    if values := _list_values(event, name):
        schema["enum"] = [*values, None] if field.nullable else list(values)
    return {**schema, "description": field.meaning}


def _list_values(event: EventType, name: str) -> tuple[str, ...]:
    if name == "status" and "capability" not in event.fields:
        return _STATUSES_BY_FAMILY.get(event.name.partition(".")[0], ())
    return _VALUES_BY_FIELD.get(name, ())


def add_examples(events: Schema, schemas: Mapping[str, Schema]) -> None:
    """Give every event an example, with the payload that the catalogue has as its sample."""
    for event in CATALOGUE:
        post = events[event.name]["post"]
        content = post["requestBody"]["content"]["application/json"]
        found = make_example(content["schema"], schemas, owner="Event")
        content["example"] = {**found, "payload": event.make_payload(example_id)}


def _split_words(name: str) -> list[str]:
    return name.replace(".", "_").split("_")


_TEXT: Schema = {"type": "string"}
_UNIX: Schema = {"type": "string", "pattern": "^[0-9]+$"}

HEADERS: Mapping[str, tuple[str, Schema]] = {
    "x-service-event": ("The event's name.", _TEXT),
    "x-service-event-id": (
        "The event's id; it is the same in every delivery.",
        {"type": "string", **rules_of("eventId")},
    ),
    "x-service-delivery": (
        "The delivery's id; a retry keeps it.",
        {"type": "string", **rules_of("deliveryId")},
    ),
    "x-service-account-id": (
        "The account that the event is about, if there is one.",
        {"type": "string", **rules_of("accountId")},
    ),
    "x-service-external-user-id": ("Your own id of that account's user, percent-encoded.", _TEXT),
    "x-service-timestamp": ("When it was sent, in Unix seconds.", _UNIX),
    "x-service-signature": (
        "HMAC-SHA256 over `<timestamp>.<raw body>`, keyed with the whole signing secret. While a"
        " rotation overlaps, there is one `v1` for each secret.",
        {"type": "string", "pattern": "^t=[0-9]+(,v1=[0-9a-f]{64})+$"},
    ),
    "webhook-id": ("As Standard Webhooks defines it.", _TEXT),
    "webhook-timestamp": ("As Standard Webhooks defines it, in Unix seconds.", _UNIX),
    "webhook-signature": ("As Standard Webhooks defines it.", _TEXT),
}
"""The headers of a delivery."""

_OPTIONAL_HEADERS = frozenset({"x-service-account-id", "x-service-external-user-id"})


def make_header_parameters() -> dict[str, Schema]:
    """The headers of a delivery as components."""
    return {
        name: {
            "name": name,
            "in": "header",
            "required": name not in _OPTIONAL_HEADERS,
            "description": text,
            "schema": schema,
        }
        for name, (text, schema) in HEADERS.items()
    }
