"""The pure steps of a Payment, branch by branch. Receipts in every status: `test_received.py`."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.engine.state_machine import Transition
from payments_core.engine.step import Step
from payments_core.errors import (
    InvalidState,
    PaymentExpired,
    PaymentsError,
)
from payments_core.payments import lifecycle as payments
from payments_core.payments.payer_totals import MAX_PAYERS
from payments_core.payments.record import Payment, Reconciliation, TimelineEntry
from payments_core.payments.timeline import MAX_NOTES, MAX_TIMELINE_ENTRIES, with_notes
from payments_core.payments.transitions import PAYMENT
from tests.core.examples import (
    ALICE,
    ARRIVED,
    BOB,
    NOW,
    a_payment,
    a_receipt,
    collect_stages,
    counted,
    releasing,
    stages,
)

LATER = NOW + 500
IN_THE_WINDOW, AFTER_IT = NOW + 1_500, NOW + 2_500


def names(change: Step[Payment]) -> list[str]:
    """The events of a change, without their resource."""
    return [event.name.removeprefix("payment.") for event in change.events]


def test_a_creation_starts_the_timeline_at_version_one() -> None:
    draft = a_payment(status="", status_version=0)
    for trigger, status in (("create", "awaiting_payment"), ("create_drawn", "processing")):
        change = payments.create(draft, trigger, now=NOW)
        payment, [event] = change.record, change.events
        assert (payment.status, payment.status_version) == (status, 1)
        assert [(entry.status, entry.at_ms) for entry in payment.timeline] == [(status, NOW)]
        assert (event.name, event.payload["statusVersion"]) == ("payment.created", 1)
        assert change.entries == ()


def test_a_status_that_is_in_the_timeline_again_says_why() -> None:
    first = payments.create(a_payment(status="", status_version=0), now=NOW).record
    attempted = payments.authorize(first, "op", now=LATER).record
    waiting = payments.end_attempt(attempted, "op", now=LATER, reason="reverted").record
    again = payments.authorize(waiting, "op2", now=LATER).record
    assert [(entry.status, entry.reason) for entry in again.timeline] == [
        ("awaiting_payment", None), ("processing", None), ("awaiting_payment", "reverted"),
        ("processing", "new_attempt"),
    ]  # fmt: skip


@pytest.mark.parametrize("row", [row for row in PAYMENT.transitions if row.source], ids=str)
def test_every_row_has_a_reason_for_a_repeated_status(row: Transition) -> None:
    been = TimelineEntry(status=row.target, at_ms=NOW)
    payment = a_payment(status=row.source, timeline=(been,))
    after = payments.apply_trigger(payment, row.trigger, now=LATER, details=ARRIVED).record
    reason = after.timeline[-1].reason
    assert reason and (row.label is None or reason == row.label)


def test_a_step_raises_the_version_and_reports_what_it_became() -> None:
    change = payments.authorize(a_payment(), "op", now=LATER)
    payment, [event] = change.record, change.events
    assert (payment.status, payment.status_version) == ("processing", 2)
    assert payment.authorized == ("op",)
    assert (payment.timeline[-1].status, payment.timeline[-1].at_ms) == ("processing", LATER)
    assert payment.updated_at_ms == LATER
    assert (event.payload["status"], event.payload["statusVersion"]) == ("processing", 2)
    assert (event.account_id, event.external_user_id) == ("acct_1", "user-1")
    with pytest.raises(InvalidState):
        payments.authorize(payment, "op-2", now=LATER)


def test_changes_follow_each_other_as_one() -> None:
    first, receipt = counted(a_payment(), a_receipt(1_300))
    second = payments.reverse_receipt(first.record, receipt, now=LATER, release_stopped=False)
    both = first.then(payments.reverse_receipt, receipt, now=LATER, release_stopped=False)
    assert both.record == second.record
    assert names(both) == ["accepted", "overpaid", "reorged"]
    assert [entry.number for entry in both.entries] == [1, 2]


# Attempts.


def test_a_transfer_is_seen_once() -> None:
    change = payments.add_pending_transfer(a_payment(), "evidence", now=LATER)
    assert (change.record.status, change.record.sighted) == ("processing", ("evidence",))
    assert names(change) == ["processing"]
    assert payments.add_pending_transfer(change.record, "evidence", now=LATER) == Step(
        change.record
    )
    more = payments.add_pending_transfer(change.record, "evidence-2", now=LATER + 1)
    assert (more.record.sighted, more.record.updated_at_ms) == (
        ("evidence", "evidence-2"), LATER + 1,
    )  # fmt: skip
    assert (more.events, more.record.status_version) == ((), 2)
    closed = payments.add_pending_transfer(a_payment(status="expired"), "evidence", now=LATER)
    assert (closed.record.status, closed.record.sighted) == ("expired", ("evidence",))


def test_the_last_attempt_to_end_sends_the_payment_back_to_waiting() -> None:
    processing = payments.add_pending_transfer(
        payments.authorize(a_payment(), "op", now=NOW).record, "evidence", now=NOW
    ).record
    still = payments.end_attempt(processing, "op", now=LATER, reason="r")
    assert (still.record.status, still.record.is_pending, still.events) == (
        "processing", True, (),
    )  # fmt: skip
    assert payments.end_attempt(still.record, "op", now=LATER, reason="r") == still
    waiting = payments.end_attempt(still.record, "evidence", now=LATER, reason="reverted")
    assert (waiting.record.status, waiting.record.is_pending) == ("awaiting_payment", False)
    assert waiting.record.timeline[-1].reason == "reverted"
    assert waiting.events == ()
    accepted = attrs.evolve(stages()["accepted"].payment, authorized=("op",))
    after = payments.end_attempt(accepted, "op", now=LATER, reason="r")
    assert (after.record.status, after.record.authorized, after.events) == ("accepted", (), ())


def test_a_collect_whose_draw_fails_needs_a_decision() -> None:
    failed = collect_stages(a_collect())["action_required, a collect"].payment
    assert (failed.status, failed.failure) == ("action_required", "transaction_failed")
    assert (failed.labels, failed.reconciliation.status) == (("execution_failed",), "open")


def test_a_collect_whose_draw_fails_has_failed_whatever_strangers_sent() -> None:
    change, _ = counted(a_collect(), a_receipt(400, BOB))
    assert (change.record.status, change.record.labels) == ("processing", ("underpaid",))
    failed = payments.fail_attempt(change.record, "op", now=LATER, reason="reverted").record
    assert (failed.status, failed.failure, failed.authorized) == ("action_required", "reverted", ())
    assert failed.labels == ("underpaid", "execution_failed")


def test_the_failed_attempt_of_a_payer_only_ends() -> None:
    processing = stages()["processing"].payment
    failed = payments.fail_attempt(processing, "pay_funding_1", now=LATER, reason="reverted")
    ended = payments.end_attempt(processing, "pay_funding_1", now=LATER, reason="reverted")
    assert failed == ended
    assert (failed.record.status, failed.record.failure) == ("awaiting_payment", None)


def a_collect() -> Payment:
    return a_payment(intent="collect", status="processing", authorized=("op",))


# Receipts.


@given(
    amount=st.integers(1, 10**30),
    parts=st.lists(st.integers(1, 10**30), min_size=1, max_size=4),
    tolerance=st.integers(0, 10_000),
)
def test_receipts_add_up_to_covered_short_or_over(
    amount: int, parts: list[int], tolerance: int
) -> None:
    waiting = tuple(f"op-{place}" for place in range(len(parts)))
    payment = a_payment(
        amount_atomic=amount, tolerance_bps=tolerance, status="processing", authorized=waiting
    )
    required = amount - amount * tolerance // 10_000
    for place, part in enumerate(parts):
        change, _ = counted(payment, a_receipt(part), f"op-{place}", now=LATER)
        payment = change.record
        total = sum(parts[: place + 1])
        assert payment.received_atomic == total
        assert payment.excess_atomic == max(0, total - amount)
        assert payment.remaining.amount_atomic == max(0, amount - total)
        assert payment.authorized == waiting[place + 1 :]
        if total < required:
            is_last = place + 1 == len(parts)
            assert payment.status == ("awaiting_payment" if is_last else "processing")
            assert (names(change), payment.labels) == (["underpaid"], ("underpaid",))
            assert payment.reconciliation == Reconciliation()  # nothing to decide while it waits
            continue
        over = ["overpaid"] if total > amount else []
        assert (payment.status, names(change)) == ("accepted", ["accepted", *over])
        assert ("overpaid" in payment.labels) == bool(over)
        assert payment.releasable_atomic == min(total, amount)
        break


def test_what_came_counts_towards_its_sender_the_newest_last() -> None:
    payment = a_payment(amount_atomic=10_000)
    for amount, sender in ((100, ALICE), (200, BOB), (300, ALICE)):
        payment = counted(payment, a_receipt(amount, sender))[0].record
    assert paid_by(payment) == {BOB: 200, ALICE: 400}
    assert [item.address for item in payment.paid_by] == [BOB, ALICE]
    held = payments.expire(payment, now=LATER).record
    back = payments.apply_refund(held, "refund_part", "r", BOB, now=LATER, escrow=150).record
    assert paid_by(back) == {ALICE: 400, BOB: 50}
    gone = payments.apply_refund(back, "refund_part", "r", BOB, now=LATER, escrow=50).record
    assert paid_by(gone) == {ALICE: 400}


def test_so_many_senders_are_distinguished_and_dust_makes_none_forgotten() -> None:
    payment = counted(a_payment(amount_atomic=10_000), a_receipt(500, BOB))[0].record
    for number in range(MAX_PAYERS + 20):
        payment = counted(payment, a_receipt(1 + number % 2, f"0x{number}"))[0].record
    assert len(payment.paid_by) == MAX_PAYERS
    assert paid_by(payment)[BOB] == 500
    assert payment.received_atomic == 500 + (MAX_PAYERS + 20) * 3 // 2
    last = counted(payment, a_receipt(300, ALICE))[0].record
    assert (paid_by(last)[ALICE], paid_by(last)[BOB]) == (300, 500)


def test_what_went_back_to_a_sender_does_not_return_with_its_receipt() -> None:
    """A receipt is refunded, then reorged out, then included again: it is refunded still."""
    change, _ = counted(a_payment(), a_receipt(500, BOB))
    change, receipt = counted(change.record, a_receipt(100, ALICE, id="receipt_2"))
    held = payments.expire(change.record, now=LATER).record
    back = payments.apply_refund(held, "refund_part", "r", ALICE, now=LATER, escrow=100).record
    undone = payments.reverse_receipt(back, receipt, now=LATER, release_stopped=False).record
    again, _ = counted(undone, a_receipt(100, ALICE, id="receipt_2"))
    assert again.record.books == back.books
    assert paid_by(again.record) == {BOB: 500}


def paid_by(payment: Payment) -> dict[str, int]:
    """What could still go back to each sender."""
    return {item.address: item.amount_atomic for item in payment.paid_by if item.amount_atomic > 0}


# The end.


@given(
    received=st.integers(1, 2_000),
    fee_bps=st.integers(0, 10_000),
    tolerance=st.integers(0, 10_000),
)
def test_what_is_settled_and_the_fee_make_up_what_is_released(
    received: int, fee_bps: int, tolerance: int
) -> None:
    fresh = a_payment(fee_bps=fee_bps, tolerance_bps=tolerance)
    covered = counted(fresh, a_receipt(received))[0].record
    if covered.status != "accepted":
        return
    executing = payments.apply_trigger(releasing(covered), "release", now=NOW).record
    change = payments.settle(executing, now=LATER)
    settled, [event], [entry] = change.record, change.events, change.entries
    released = min(received, 1_000)
    fee = released * fee_bps // 10_000
    assert (settled.settled_atomic, settled.fee_atomic, settled.releasable_atomic) == (
        released - fee,
        fee,
        released,
    )
    assert (settled.books.recipient, settled.books.fees) == (released - fee, fee)
    assert settled.books.held_atomic == settled.excess_atomic == received - released
    assert settled.succeeded_at_ms == LATER
    assert (entry.cause, entry.subject) == ("release", "out_1")
    assert event.payload["settledAmountAtomic"] == str(settled.settled_atomic)


def test_the_fee_of_a_release_stays_when_later_receipts_are_undone() -> None:
    fresh = a_payment(fee_bps=100)
    change, receipt = counted(fresh, a_receipt(1_000))
    executing = payments.apply_trigger(releasing(change.record), "release", now=NOW).record
    undone = payments.reverse_receipt(executing, receipt, now=LATER, release_stopped=False).record
    assert (undone.releasable_atomic, undone.fee_atomic) == (1_000, 10)
    settled = payments.settle(undone, now=LATER).record
    assert (settled.settled_atomic, settled.books.escrow) == (990, -1_000)


def test_a_payment_expires_with_or_without_a_part() -> None:
    assert payments.expire(a_payment(), now=LATER).record.status == "expired"
    change = payments.expire(stages()["awaiting_payment, part received"].payment, now=LATER)
    assert (change.record.status, change.record.labels) == ("action_required", ("underpaid",))
    assert names(change) == ["action_required"]


def test_only_what_received_nothing_and_expects_nothing_is_cancelled() -> None:
    cancelled = payments.cancel(stages()["processing"].payment, now=LATER).record
    assert (cancelled.status, cancelled.authorized, cancelled.cancelled_at_ms) == (
        "cancelled", (), LATER,
    )  # fmt: skip
    for name in ("awaiting_payment, part received", "processing, a transfer seen"):
        with pytest.raises(InvalidState):
            payments.cancel(stages()[name].payment, now=LATER)


# Labels and reconciliation.


def test_labels_add_up_and_are_never_lost_nor_doubled() -> None:
    """First short, then out of time, then overpaid too late, then taken, paid out, paid again."""
    payment = counted(a_payment(), a_receipt(600))[0].record
    assert payment.labels == ("underpaid",)
    payment = payments.expire(payment, now=NOW + 1_000).record
    assert payment.labels == ("underpaid",)
    payment = counted(payment, a_receipt(600), now=IN_THE_WINDOW)[0].record
    assert payment.labels == ("underpaid", "late", "overpaid")
    payment = releasing(payments.accept(payment, now=AFTER_IT).record)
    payment = payments.apply_trigger(payment, "release", now=AFTER_IT).record
    payment = payments.settle(payment, now=AFTER_IT).record
    payment = counted(payment, a_receipt(1_000), now=AFTER_IT)[0].record
    assert payment.labels == ("underpaid", "late", "overpaid", "duplicate")
    payment = payments.apply_refund(
        payment, "refund_excess", "r", ALICE, now=AFTER_IT, excess=1_200
    ).record
    assert payment.labels == ("underpaid", "late", "overpaid", "duplicate")
    again = counted(payment, a_receipt(7), now=AFTER_IT)[0]
    assert again.record.labels == payment.labels
    assert again.events[-1].payload["labels"] == list(payment.labels)


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("awaiting_payment, part received", "none"),  # it waits: there is nothing to decide
        ("succeeded", "none"),
        ("succeeded, overpaid", "open"),
        ("action_required, short", "open"),
        ("action_required, late", "open"),
        ("action_required, release failed", "open"),
        ("action_required, reorged", "open"),
        ("expired", "none"),
        ("expired, received after the window", "open"),
        ("cancelled, received after the window", "open"),
    ],
)
def test_a_reconciliation_opens_when_there_is_something_to_decide(name: str, status: str) -> None:
    assert stages()[name].payment.reconciliation == Reconciliation(status=status)  # type: ignore[arg-type]


def refunding(trigger: str, **sources: int) -> Callable[[Payment], Step[Payment]]:
    return lambda payment: payments.apply_refund(payment, trigger, "r", ALICE, now=LATER, **sources)


@pytest.mark.parametrize(
    ("name", "step", "resolution"),
    [
        ("action_required, short", lambda it: payments.accept(it, now=LATER), "accept"),
        ("action_required, short", lambda it: payments.write_off(it, now=LATER), "write_off"),
        ("action_required, short", refunding("reconcile_refund", escrow=600), "refund"),
        ("action_required, short", refunding("refund_part", escrow=500), None),
        ("action_required, overpaid", lambda it: payments.accept(it, now=LATER), None),
        ("action_required, overpaid", lambda it: payments.write_off(it, now=LATER), "write_off"),
        ("action_required, overpaid", refunding("refund_excess", excess=300), None),
        (
            "action_required, release failed",
            lambda it: payments.retry(it, now=LATER),
            "retry_execution",
        ),
        ("succeeded, overpaid", refunding("refund_excess", excess=300), "refund_excess"),
        ("succeeded, overpaid", refunding("refund_excess", excess=200), None),
        ("succeeded, overpaid", refunding("refund_part", recipient=200), None),
        (
            "expired, received after the window",
            refunding("reconcile_refund", escrow=1_000),
            "refund",
        ),
        ("expired, received after the window", refunding("refund_part", escrow=100), None),
    ],
)
def test_a_decision_resolves_it_unless_another_is_still_asked_for(
    name: str, step: Callable[[Payment], Step[Payment]], resolution: str | None
) -> None:
    after = step(stages()[name].payment).record.reconciliation
    if resolution is None:
        assert after == Reconciliation(status="open")
    else:
        assert after == Reconciliation(
            status="resolved", resolution=resolution, resolved_at_ms=LATER
        )


def test_what_was_resolved_opens_again_for_the_next_cause() -> None:
    failed = stages()["failed"].payment
    assert failed.reconciliation.status == "resolved"
    again = counted(failed, a_receipt(10), now=AFTER_IT)[0].record
    assert again.reconciliation == Reconciliation(status="open")


@pytest.mark.parametrize(
    "later",
    [refunding("refund_part", escrow=600), refunding("reconcile_refund", escrow=600)],
)
def test_a_later_refund_leaves_a_write_off_as_it_was_resolved(
    later: Callable[[Payment], Step[Payment]],
) -> None:
    short = stages()["action_required, short"].payment
    given_up = payments.write_off(short, now=NOW + 400, note="no answer").record
    after = later(given_up).record
    assert (after.status, after.books.held_atomic) == ("failed", 0)
    assert after.reconciliation == Reconciliation(
        status="resolved", resolution="write_off", resolved_at_ms=NOW + 400
    )
    assert after.reconciliation_note == "no answer"


@pytest.mark.parametrize(
    ("name", "decide"),
    [
        ("action_required, short", payments.accept),
        ("action_required, short", payments.write_off),
        ("action_required, overpaid", payments.accept),
        ("action_required, release failed", payments.retry),
    ],
)
def test_a_decision_keeps_its_note_and_reports_it(
    name: str, decide: Callable[..., Step[Payment]]
) -> None:
    payment = stages()[name].payment
    change = decide(payment, now=LATER, note="agreed by phone")
    after = change.record
    assert after.reconciliation_note == "agreed by phone"
    assert change.events[0].payload["note"] == "agreed by phone"
    assert [entry.reason for entry in with_notes(after)][-1] == "agreed by phone"
    assert with_notes(after)[:-1] == payment.timeline
    assert "agreed by phone" not in [entry.reason for entry in after.timeline]  # others see it
    silent = decide(payment, now=LATER)
    assert (silent.record.reconciliation_note, silent.events[0].payload["note"]) == (None, None)


def test_a_note_goes_with_the_decision_that_is_open_again() -> None:
    failed = payments.write_off(stages()["action_required, short"].payment, now=LATER, note="n")
    again = counted(failed.record, a_receipt(10), now=AFTER_IT)[0].record
    assert again.reconciliation == Reconciliation(status="open")
    assert again.reconciliation_note is None
    assert "n" in [entry.reason for entry in with_notes(again)]


def test_the_notes_of_many_decisions_are_found_in_a_timeline_without_its_middle() -> None:
    payment = stages()["action_required, release failed"].payment
    for number in range(MAX_TIMELINE_ENTRIES):
        payment = payments.retry(payment, now=LATER, note=f"note {number}").record
        payment = payments.fail_release(payment, "transaction_failed", now=LATER).record
    assert len(payment.timeline) == MAX_TIMELINE_ENTRIES
    noted = [(entry.status, entry.reason) for entry in with_notes(payment)][-2 * MAX_NOTES :]
    first = MAX_TIMELINE_ENTRIES - MAX_NOTES
    assert noted == [
        entry
        for number in range(first, MAX_TIMELINE_ENTRIES)
        for entry in (("executing", f"note {number}"), ("action_required", "transaction_failed"))
    ]
    assert len(payment.notes) == MAX_NOTES


def test_a_write_off_reports_the_decision_and_the_end() -> None:
    change = payments.write_off(stages()["action_required, short"].payment, now=LATER)
    assert (change.record.status, names(change)) == ("failed", ["reconciled", "failed"])
    assert change.record.books.escrow == 600


def test_a_retry_forgets_the_failure() -> None:
    failed = stages()["action_required, release failed"].payment
    assert (failed.failure, failed.release_id, failed.released_atomic) == (
        "transaction_failed",
        None,
        0,
    )
    assert failed.timeline[-1].reason == "transaction_failed"
    again = payments.retry(failed, now=LATER).record
    assert (again.status, again.failure, again.releasable_atomic) == ("executing", None, 1_000)


def test_a_moment_is_stamped_once() -> None:
    succeeded = stages()["succeeded"].payment
    after = payments.apply_trigger(succeeded, "overpaid", now=LATER).record
    assert after.succeeded_at_ms == succeeded.succeeded_at_ms == NOW


@pytest.mark.parametrize(
    ("error", "status", "now"),
    [
        (PaymentExpired, "expired", NOW),
        (PaymentExpired, "awaiting_payment", NOW + 1_000),
        (PaymentExpired, "processing", NOW + 1_000),
        (InvalidState, "cancelled", NOW),
        (InvalidState, "failed", NOW),
        (InvalidState, "refunded", NOW),
        (None, "awaiting_payment", NOW + 999),
        (None, "accepted", NOW + 5_000),
    ],
)
def test_who_may_still_pay(error: type[PaymentsError] | None, status: str, now: int) -> None:
    payment = a_payment(status=status)
    if error is None:
        payments.require_payable(payment, now=now)
    else:
        with pytest.raises(error):
            payments.require_payable(payment, now=now)
