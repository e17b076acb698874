"""What the events of a Payment say about it, and how long they can become."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from payments_core.engine.events import CATALOGUE, MAX_PAYLOAD_BYTES, EventType
from payments_core.payments.events import build_event
from payments_core.payments.record import CreatedBy, Intent, Payment
from payments_core.payments.transitions import PAYMENT
from payments_core.validation.metadata import MAX_BYTES, validate_metadata
from tests.core.examples import a_payment

OF_PAYMENTS = [event for event in CATALOGUE if event.name.startswith("payment.")]
LABELS = tuple(sorted({row.label for row in PAYMENT.transitions if row.label}))
ARRIVED = {"receiptId": "receipt_1", "reason": "wrong_token", "tokenAddress": "0x1", "from": "0x2"}
NOTE = "\x01" * 512


@pytest.mark.parametrize("creator", [*get_args(CreatedBy), None])
def test_only_a_known_creators_reference_and_metadata_are_passed_on(
    creator: CreatedBy | None,
) -> None:
    payment = a_payment(created_by=creator, reference="order-1042", metadata={"order": 1042})
    is_known = creator in ("server", "client")
    for event in OF_PAYMENTS:
        payload = build_event(event.name, payment, **ARRIVED, note=NOTE).payload
        assert payload["createdBy"] == creator
        assert payload["externalUserId"] == payment.external_user_id
        assert payload["reference"] == ("order-1042" if is_known else None)
        assert payload["metadata"] == ({"order": 1042} if is_known else None)


def longest() -> Payment:
    """All its texts are as long as they may be, of characters that JSON makes longest."""
    metadata = {f"{number:02}": "\x01" * 100 for number in range(6)}
    spare = MAX_BYTES - len(msgspec.json.encode(metadata))
    metadata["06"] = "x" * (spare - len(',"06":""'))
    faults, kept = validate_metadata(metadata)
    assert (faults, len(msgspec.json.encode(kept))) == ([], MAX_BYTES)
    return a_payment(
        created_by="server",
        metadata=kept,
        reference="\x01" * 128,
        external_user_id="\x01" * 128,
        labels=LABELS,
        amount_atomic=10**78 - 1,
        received_atomic=10**78 - 1,
        status_version=2**53,
    )


@pytest.mark.parametrize("event", OF_PAYMENTS, ids=lambda event: event.name)
def test_the_longest_payload_leaves_half_of_the_room(event: EventType) -> None:
    payload = build_event(event.name, longest(), **ARRIVED, note=NOTE).payload
    assert len(msgspec.json.encode(payload)) < MAX_PAYLOAD_BYTES / 2


def test_the_intents_of_an_event_are_those_of_payments() -> None:
    for event in CATALOGUE:
        assert set(event.intents) <= set(get_args(Intent))
        assert event.differs.keys() <= event.fields.keys()
