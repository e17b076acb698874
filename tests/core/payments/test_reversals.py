"""What a reorg takes back of a Payment's own transfers: the books are as if they had never been."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.payments import lifecycle as payments
from payments_core.payments.record import Payment
from payments_core.payments.reversals import reverse_refund, reverse_release
from tests.core.examples import ALICE, BOB, NOW, a_payment, a_receipt, counted, releasing

LATER = NOW + 1_500
REASON = "transaction_failed"


def released(amount: int = 1_000, **given: int) -> Payment:
    """A Payment of which the recipient has what was received."""
    payment, _ = counted(a_payment(**given), a_receipt(amount))
    executing = payments.apply_trigger(
        releasing(payment.record), "release", now=NOW, release_hash="0xr"
    )
    return payments.settle(executing.record, now=NOW).record


def refunded(payment: Payment, trigger: str, to: str = ALICE, **sources: int) -> Payment:
    return payments.apply_refund(payment, trigger, "refund_1", to, now=NOW, **sources).record


@given(st.integers(1_000, 5_000), st.integers(0, 9_999))
def test_a_release_taken_back_leaves_what_was_before_it(amount: int, fee_bps: int) -> None:
    before, _ = counted(a_payment(fee_bps=fee_bps), a_receipt(amount))
    change = reverse_release(released(amount, fee_bps=fee_bps), REASON, now=LATER)
    after = change.record
    assert after.books == before.record.books
    assert (after.status, after.settled_atomic, after.succeeded_at_ms) == (
        "action_required",
        0,
        None,
    )
    assert (after.release_id, after.release_hash, after.released_atomic) == (None, None, 0)
    assert (after.can_retry, after.failure) == (True, REASON)
    assert (after.reconciliation.status, "reorged" in after.labels) == ("open", True)
    assert [event.name for event in change.events] == ["payment.action_required"]
    [entry] = change.entries
    assert (entry.cause, entry.subject) == ("release_reorged", "out_1")


def test_a_release_taken_back_after_refunds_leaves_the_recipient_owed() -> None:
    part = refunded(released(), "refund_part", recipient=300)
    after = reverse_release(part, REASON, now=LATER).record
    assert (after.books.escrow, after.books.recipient) == (1_000, -300)
    again = attrs.evolve(payments.retry(after, now=LATER).record, release_id="out_2")
    again = attrs.evolve(again, released_atomic=again.books.escrow)
    done = payments.settle(again, now=LATER).record
    assert (done.books.recipient, done.settled_atomic, done.status) == (700, 1_000, "succeeded")


def held(amount: int = 600) -> Payment:
    """A Payment that came short and expired."""
    short, _ = counted(a_payment(), a_receipt(amount))
    return payments.expire(short.record, now=LATER).record


@pytest.mark.parametrize(
    ("before", "trigger", "sources", "status", "event"),
    [
        (held(), "refund_all", {"escrow": 600}, "action_required", "payment.action_required"),
        (held(), "refund_part", {"escrow": 200}, "action_required", "payment.reorged"),
        (released(), "refund_all", {"recipient": 1_000}, "succeeded", "payment.reorged"),
        (released(), "refund_part", {"recipient": 400}, "succeeded", "payment.reorged"),
        (released(1_500), "refund_excess", {"excess": 500}, "succeeded", "payment.reorged"),
    ],
)
def test_a_refund_taken_back_leaves_what_was_before_it(
    before: Payment, trigger: str, sources: dict[str, int], status: str, event: str
) -> None:
    done = refunded(before, trigger, **sources)
    change = reverse_refund(done, "refund_1", ALICE, claimed=True, now=LATER, **sources)
    after = change.record
    assert (after.status, after.refunded_atomic) == (status, 0)
    assert (after.books, after.paid_by) == (before.books, before.paid_by)
    assert [item.name for item in change.events] == [event]
    assert "reorged" in after.labels
    [entry] = change.entries
    assert (entry.cause, entry.subject) == ("refund_reorged", "refund_1")


@pytest.mark.parametrize("trigger", ["refund_part", "refund_all"])
def test_one_refund_of_two_taken_back_leaves_the_other(trigger: str) -> None:
    two = refunded(refunded(released(), "refund_part", recipient=300), trigger, recipient=700)
    after = reverse_refund(two, "refund_2", ALICE, claimed=True, now=LATER, recipient=700).record
    assert (after.status, after.refunded_atomic) == ("partially_refunded", 300)
    assert after.books.recipient == 700


def test_a_stranger_who_got_a_refund_has_nothing_to_claim_when_it_is_taken_back() -> None:
    done = refunded(held(), "refund_part", BOB, escrow=100)
    after = reverse_refund(done, "refund_1", BOB, claimed=False, now=LATER, escrow=100).record
    assert [item.address for item in after.paid_by] == [ALICE]


@pytest.mark.parametrize(
    ("amount", "event", "labels"),
    [(200, "payment.late", ("returned",)), (-200, "payment.reorged", ())],
)
def test_what_a_recipient_sends_back_is_reported_and_is_in_no_books(
    amount: int, event: str, labels: tuple[str, ...]
) -> None:
    before = attrs.evolve(released(), returned_atomic=300)
    change = payments.note_return(before, amount, now=LATER)
    after = change.record
    assert (after.status, after.returned_atomic, after.books) == (
        "succeeded",
        300 + amount,
        before.books,
    )
    assert (tuple(after.labels), [item.name for item in change.events]) == (labels, [event])
    assert (change.entries, after.updated_at_ms) == ((), LATER)


def test_funds_sent_back_before_a_release_are_kept_without_an_event() -> None:
    change = payments.note_return(a_payment(), 200, now=LATER)
    assert (change.record.status, change.record.returned_atomic) == ("awaiting_payment", 200)
    assert (change.events, change.record.updated_at_ms) == ((), LATER)
