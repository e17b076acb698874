"""The bodies of deliveries: the service's own envelope (interface "Events"), or CloudEvents 1.0 in
the structured mode, whose attributes are in the body and so under its signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from payments_core.clock import format_iso
from payments_core.contracts.versions import Versions
from payments_core.engine.event_payloads import render_payload
from payments_core.engine.events import Event

BodyFormat = Literal["envelope", "cloudevents"]

CONTENT_TYPES: Mapping[BodyFormat, str] = {
    "envelope": "application/json",
    "cloudevents": "application/cloudevents+json",
}

SUBJECTS: Mapping[str, str] = {
    "payment": "paymentId",
    "refund": "refundId",
    "vault_funding": "fundingOperationId",
    "deposit": "depositId",
    "account": "accountId",
    "bank_account": "bankAccountId",
    "bank_funding": "transactionId",
    "dispute": "sessionId",
    "webhook": "webhookId",
}
"""The field of a payload with the id of the resource that the event is about, by the beginning of
the event's name."""


def build_envelope(event: Event, versions: Versions) -> dict[str, Any]:
    """An event as its receivers see it, in the contract that it is bound to."""
    return {
        "id": event.id,
        "name": event.name,
        "apiVersion": event.api_version,
        "createdAt": format_iso(event.created_at_ms),
        "payload": render_payload(event, versions),
    }


def encode_body(envelope: Mapping[str, Any], form: BodyFormat, environment_id: str) -> str:
    """The body of the deliveries of an event to the endpoints of a format."""
    document = envelope if form == "envelope" else _to_cloud_event(envelope, environment_id)
    return msgspec.json.encode(document).decode()


def _to_cloud_event(envelope: Mapping[str, Any], environment_id: str) -> dict[str, Any]:
    name, payload = str(envelope["name"]), envelope["payload"]
    subject = payload.get(SUBJECTS.get(name.partition(".")[0], ""))
    return {
        "specversion": "1.0",
        "id": envelope["id"],
        "source": f"urn:payments-core:{environment_id}",
        "type": name,
        **({} if subject is None else {"subject": subject}),  # an attribute is never null
        "time": envelope["createdAt"],
        "datacontenttype": "application/json",
        "apiversion": envelope["apiVersion"],
        "data": payload,
    }
