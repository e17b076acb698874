"""The client's events, held against the OpenAPI document and against what the service sends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from payments_core_http.client import (
    EventMalformed,
    ReceivedEvent,
    UnknownEvent,
    events,
    parse_event,
    verify_webhook,
)
from payments_core_http.client.events import PaymentPayload, PaymentSucceeded, RefundSucceeded
from payments_core_http.openapi.document import build_document
from payments_core_http.testing import PaymentsSandbox
from tests.http.client.test_operations import with_news

EXAMPLES: Mapping[str, tuple[str, Any]] = {
    name: (
        entry["post"]["operationId"],
        entry["post"]["requestBody"]["content"]["application/json"]["example"],
    )
    for name, entry in build_document()["webhooks"].items()
}


def received(envelope: Any) -> ReceivedEvent:
    return msgspec.convert(envelope, ReceivedEvent)


def test_every_event_of_the_document_has_its_struct() -> None:
    assert list(events.BY_NAME) == list(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_event_is_read_whole_and_tolerates_what_is_new(name: str) -> None:
    operation, example = EXAMPLES[name]
    event = parse_event(received(example))
    assert type(event).__name__ == operation.removeprefix("on")
    same_times = json.loads(json.dumps(example).replace(".000Z", "Z"))  # as msgspec writes them
    assert msgspec.to_builtins(event) == same_times
    later = {**example, "apiVersion": "2031-01-01", "payload": with_news(example["payload"])}
    assert type(parse_event(received(later))) is type(event)


def test_an_event_of_a_later_service_stays_readable() -> None:
    example = {**EXAMPLES["payment.succeeded"][1], "name": "payment.celebrated"}
    event = parse_event(received(example))
    assert isinstance(event, UnknownEvent)
    assert (event.name, event.payload) == ("payment.celebrated", example["payload"])


@pytest.mark.parametrize("payload", [{}, {"paymentId": 7}])
def test_a_payload_of_another_form_is_not_an_event(payload: Any) -> None:
    with pytest.raises(EventMalformed, match=r"^payment\.succeeded evt_"):
        parse_event(received({**EXAMPLES["payment.succeeded"][1], "payload": payload}))


def test_every_delivery_of_a_sandbox_is_an_event_with_its_payload(
    payments_sandbox: PaymentsSandbox,
) -> None:
    for status in ("refunded", "action_required", "expired"):
        payments_sandbox.make_payment(status)
    secret, now = payments_sandbox.events.signing_secret, payments_sandbox.clock.now().timestamp()
    found = [
        parse_event(verify_webhook(one.body, one.headers, secret, now=now, tolerance_s=10**6))
        for one in payments_sandbox.events.deliveries
    ]
    assert [one.name for one in found if isinstance(one, UnknownEvent)] == []
    [refund] = [one for one in found if isinstance(one, RefundSucceeded)]
    [paid] = [one for one in found if isinstance(one, PaymentSucceeded)]
    assert isinstance(paid.payload, PaymentPayload)
    assert (paid.payload.payment_id, paid.payload.settled_amount_atomic) == (
        refund.payload.payment_id,
        "25000000",
    )
