"""The bodies of deliveries: the service's own envelope (interface "Events"), or CloudEvents 1.0 in
the structured mode, whose attributes are in the body and so under its signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from payments_core.clock import format_iso
from payments_core.contracts.versions import Versions
from payments_core.engine.event_payloads import render_payload
from payments_core.engine.events import Event
from payments_core.webhooks.filters import EventFilter, satisfies

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


class EventBodies:
    """The bodies of events of one environment, each made once, in the contract that its event is
    bound to."""

    def __init__(self, versions: Versions, environment_id: str) -> None:
        self._versions = versions
        self._environment_id = environment_id
        self._envelopes: dict[str, dict[str, Any]] = {}
        self._bodies: dict[tuple[str, BodyFormat], str] = {}

    def envelope(self, event: Event) -> Mapping[str, Any]:
        """An event as its receivers see it."""
        made = self._envelopes.get(event.id)
        if made is None:
            made = self._envelopes[event.id] = {
                "id": event.id,
                "name": event.name,
                "apiVersion": event.api_version,
                "createdAt": format_iso(event.created_at_ms),
                "payload": render_payload(event, self._versions),
            }
        return made

    def satisfies(self, event: Event, filters: Sequence[EventFilter]) -> bool:
        """Whether an event satisfies all filters of an endpoint."""
        return not filters or satisfies(filters, self.envelope(event))

    def encode(self, event: Event, form: BodyFormat) -> str:
        """The body of the deliveries of an event to the endpoints of a format."""
        made = self._bodies.get((event.id, form))
        if made is None:
            document = self.envelope(event)
            if form == "cloudevents":
                document = _to_cloud_event(document, self._environment_id)
            made = self._bodies[event.id, form] = msgspec.json.encode(document).decode()
        return made


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
