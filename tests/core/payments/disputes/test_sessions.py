"""Sessions: every status of a Payment in the older vocabulary, and which may be disputed."""

from __future__ import annotations

from typing import get_args

import pytest

from payments_core.errors import InvalidState
from payments_core.payments.disputes import lifecycle
from payments_core.payments.disputes.lifecycle import (
    PAYMENT_SESSION_STATUSES,
    PaymentSession,
    PaymentSessionStatus,
)
from payments_core.payments.disputes.record import Dispute
from payments_core.payments.transitions import PAYMENT
from tests.core.examples import NOW, a_payment

# As the contract writes them (§6 "Sessions and disputes").
CONTRACT = {
    "open": {"awaiting_payment"},
    "pending": {"processing"},
    "routing": {"accepted", "executing", "action_required"},
    "settled": {"succeeded", "partially_refunded"},
    "refunded": {"refunded"},
    "failed": {"failed"},
    "expired": {"cancelled", "expired"},
}
LATER = NOW + 5_000


def a_dispute(**given: object) -> Dispute:
    facts = {"nonce": "n", "status": "flagged", "reason": "broken", "created_at_ms": NOW, **given}
    return Dispute(id="ses_1", payment_id="payment_1", **facts)  # type: ignore[arg-type]


def test_every_status_of_a_payment_is_one_of_its_session() -> None:
    assert set(PAYMENT_SESSION_STATUSES) == PAYMENT.states
    reported = {name: set[str]() for name in get_args(PaymentSessionStatus)}
    for payment_status, session_status in PAYMENT_SESSION_STATUSES.items():
        reported[session_status].add(payment_status)
    assert reported == CONTRACT


@pytest.mark.parametrize("status", sorted(PAYMENT_SESSION_STATUSES))
def test_only_a_settled_session_can_be_disputed(status: str) -> None:
    session = PaymentSession(a_payment(status=status))
    if status in CONTRACT["settled"]:
        flagged = lifecycle.flag(session, "broken", None, nonce="n", now=LATER)
        dispute, [happened] = flagged.record, flagged.events
        assert (dispute.id, dispute.status, dispute.created_at_ms) == ("ses_1", "flagged", LATER)
        payload = {"sessionId": "ses_1", "paymentId": "payment_1", "status": "flagged"}
        assert (happened.name, happened.payload) == ("dispute.flagged", payload)
        assert (happened.account_id, happened.api_version) == ("acct_1", "2026-09-09")
    else:
        with pytest.raises(InvalidState) as caught:
            lifecycle.flag(session, "broken", None, nonce="n", now=LATER)
        assert caught.value.details == {
            "resource": "session", "status": PAYMENT_SESSION_STATUSES[status], "action": "dispute",
        }  # fmt: skip


@pytest.mark.parametrize("status", sorted(PAYMENT_SESSION_STATUSES))
@pytest.mark.parametrize("disputed", ["flagged", "resolved"])
def test_no_session_is_disputed_twice(status: str, disputed: str) -> None:
    session = PaymentSession(a_payment(status=status), a_dispute(status=disputed))
    with pytest.raises(InvalidState) as caught:
        lifecycle.flag(session, "broken", None, nonce="n", now=LATER)
    assert (caught.value.resource, caught.value.status) == ("dispute", disputed)


@pytest.mark.parametrize("status", sorted(PAYMENT_SESSION_STATUSES))
def test_a_flagged_dispute_ends_whatever_became_of_the_payment(status: str) -> None:
    session = PaymentSession(a_payment(status=status), a_dispute())
    resolved = lifecycle.resolve(session, "lost", "refunded", now=LATER)
    dispute, [happened] = resolved.record, resolved.events
    assert (dispute.status, dispute.resolution, dispute.note) == ("resolved", "lost", "refunded")
    assert (dispute.created_at_ms, dispute.resolved_at_ms) == (NOW, LATER)
    assert (happened.name, happened.payload["status"]) == ("dispute.resolved", "resolved")
    assert PaymentSession(session.payment, dispute).status == PAYMENT_SESSION_STATUSES[status]


@pytest.mark.parametrize(
    ("dispute", "resource", "status"),
    [(None, "session", "undisputed"), (a_dispute(status="resolved"), "dispute", "resolved")],
)
def test_what_is_not_flagged_cannot_be_resolved(
    dispute: Dispute | None, resource: str, status: str
) -> None:
    session = PaymentSession(a_payment(status="succeeded"), dispute)
    with pytest.raises(InvalidState) as caught:
        lifecycle.resolve(session, "won", None, now=LATER)
    assert caught.value.details == {"resource": resource, "status": status, "action": "resolve"}


def test_a_session_changed_when_its_payment_or_its_dispute_did() -> None:
    payment = a_payment(status="succeeded", updated_at_ms=NOW + 100)
    assert PaymentSession(payment).updated_at_ms == NOW + 100
    assert PaymentSession(payment, a_dispute()).updated_at_ms == NOW + 100
    assert PaymentSession(payment, a_dispute(created_at_ms=NOW + 200)).updated_at_ms == NOW + 200
    assert PaymentSession(payment, a_dispute(resolved_at_ms=NOW + 300)).updated_at_ms == NOW + 300
