"""The pure steps of a Payment through its table of states (`transitions.py`).

Each function takes a Payment and returns a Step: the Payment after it, its events, and the journal
entries of its movements.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payments_core.clock import Instant
from payments_core.engine.step import Step
from payments_core.errors import InvalidState, PaymentExpired
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.payments.events import build_event, describe_progress
from payments_core.payments.journal.posting import post
from payments_core.payments.journal.record import EntryCause
from payments_core.payments.payer_totals import add_payment_from
from payments_core.payments.receipts.progress import ReceiptProgress
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment, Reconciliation, TimelineEntry
from payments_core.payments.timeline import REPEAT_REASONS, append_entry, append_note
from payments_core.payments.transitions import CLOSED_EMPTY, IN_REVIEW, OPEN, PAYMENT

MAX_PENDING_TRANSFERS = 100
"""The maximum number of pending transfers that are waited for; more dust delays nothing."""

CLEARED_RELEASE: Mapping[str, Any] = {
    "can_retry": True,
    "release_id": None,
    "release_hash": None,
    "released_atomic": Atomic(0),
}
"""The state that a failed transfer to the recipient leaves."""

_RESOLUTIONS = {"reconcile_refund": "refund", "refund_excess": "refund_excess"}
AWAITING_DECISION = (*CLOSED_EMPTY, "failed", "action_required")
_TIMESTAMP_FIELDS = {"succeeded": "succeeded_at_ms", "cancelled": "cancelled_at_ms"}


def apply_trigger(
    payment: Payment,
    /,
    trigger: str,
    *,
    now: Instant,
    reason: str | None = None,
    resolution: str | None = None,
    note: str | None = None,
    details: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Step[Payment]:
    """The Payment after `trigger`, with `changes`, and the event of the change with its `details`.

    The label `in_review` ends with the status, and when screening clears.

    `resolution` is the partner's decision that the step carries out, with the partner's `note`; it
    settles the reconciliation unless excess or misdirected funds are held, or another decision is
    still needed. A settled reconciliation stays settled until there is something new to decide.
    Raises InvalidState if the table has no row.
    """
    row = PAYMENT.step(payment.status, trigger)
    labels = payment.labels
    if trigger == "pass" or row.target != payment.status:
        labels = tuple(label for label in labels if label != IN_REVIEW)
    if row.label is not None and row.label not in labels:
        labels = (*labels, row.label)
    reconciliation, last_note = payment.reconciliation, payment.reconciliation_note
    if row.opens:
        reconciliation, last_note = Reconciliation(status="open"), None
    if resolution is not None and reconciliation.status != "resolved":
        last_note = note
        is_held = payment.books.excess or payment.misdirected
        if row.closes == "always" or (row.closes == "unless_held" and not is_held):
            reconciliation = Reconciliation(
                status="resolved", resolution=resolution, resolved_at_ms=now
            )
    if row.target in _TIMESTAMP_FIELDS and row.target != payment.status:
        changes[_TIMESTAMP_FIELDS[row.target]] = now
    if reason is None and any(entry.status == row.target for entry in payment.timeline):
        reason = row.label or REPEAT_REASONS[trigger]
    entry = TimelineEntry(status=row.target, at_ms=now, reason=reason)
    after = evolve(
        payment,
        status=row.target,
        status_version=payment.status_version + 1,
        labels=labels,
        reconciliation=reconciliation,
        reconciliation_note=last_note,
        notes=append_note(payment, note, payment.status_version + 1),
        timeline=append_entry(payment.timeline, entry),
        updated_at_ms=now,
        **changes,
    )
    facts = {"note": note, **(details or {})}
    return Step(after, (build_event(row.emits, after, **facts),) if row.emits else ())


# Its beginning and its end.


def create(payment: Payment, trigger: str = "create", *, now: Instant) -> Step[Payment]:
    """A new Payment in its first state."""
    row = PAYMENT.step(None, trigger)
    first = TimelineEntry(status=row.target, at_ms=now)
    payment = evolve(payment, status=row.target, status_version=1, timeline=(first,))
    return Step(payment, (build_event(str(row.emits), payment),))


def require_payable(payment: Payment, *, now: Instant) -> None:
    """Raise PaymentExpired or InvalidState if a payer can no longer act."""
    if payment.intent != "receive":
        raise InvalidState("payment", payment.status, "pay")
    if payment.status == "expired" or (payment.status in OPEN and now >= payment.expires_at_ms):
        raise PaymentExpired(payment.expires_at_ms)
    if payment.status in ("cancelled", "failed", "refunded"):
        raise InvalidState("payment", payment.status, "pay")


def expire(payment: Payment, *, now: Instant) -> Step[Payment]:
    """The Payment's time ran out while nothing was in progress."""
    return apply_trigger(payment, "expire_short" if payment.received_atomic else "expire", now=now)


def cancel(payment: Payment, *, now: Instant) -> Step[Payment]:
    """The partner gives up a Payment that received nothing. Raises InvalidState.

    Its authorizations must be withdrawn with it; a transfer seen from elsewhere cannot be.
    """
    if payment.received_atomic or payment.sighted:
        raise InvalidState("payment", payment.status, "cancel")
    return apply_trigger(payment, "cancel", now=now, authorized=())


# Attempts.


def authorize(payment: Payment, operation_id: str, *, now: Instant) -> Step[Payment]:
    """An authorization was recorded. A pending transfer from elsewhere does not prevent it,
    or dust would block every payer. Raises InvalidState."""
    authorized = (*payment.authorized, operation_id)
    if payment.status == "processing" and not payment.authorized:
        return Step(evolve(payment, authorized=authorized, updated_at_ms=now))
    return apply_trigger(payment, "attempt", now=now, authorized=authorized)


def add_pending_transfer(
    payment: Payment, tracked_id: str, progress: ReceiptProgress | None = None, *, now: Instant
) -> Step[Payment]:
    """A transfer to the escrow was seen that does not count yet."""
    if tracked_id in payment.sighted or len(payment.sighted) >= MAX_PENDING_TRANSFERS:
        return Step(payment)
    sighted = (*payment.sighted, tracked_id)
    if payment.status == "awaiting_payment":
        facts = describe_progress(progress)
        return apply_trigger(payment, "attempt", now=now, sighted=sighted, details=facts)
    return Step(evolve(payment, sighted=sighted, updated_at_ms=now))


def fail_attempt(
    payment: Payment, operation_id: str, *, now: Instant, reason: str
) -> Step[Payment]:
    """An authorization failed. A collect has no other: even if strangers sent funds, it has
    failed."""
    if payment.intent == "collect" and payment.status == "processing":
        left = _remove_attempt(payment, operation_id)
        return apply_trigger(left, "draw_failed", now=now, reason=reason, failure=reason)
    return end_attempt(payment, operation_id, now=now, reason=reason)


def end_attempt(payment: Payment, id: str, *, now: Instant, reason: str) -> Step[Payment]:
    """An attempt is over: an operation, or a transfer that was seen."""
    left = _remove_attempt(payment, id)
    if left == payment:
        return Step(payment)
    left = evolve(left, updated_at_ms=now)
    if left.status != "processing" or left.is_pending:
        return Step(left)
    return apply_trigger(left, "attempt_ended", now=now, reason=reason)


# Receipts.


def apply_receipt(
    payment: Payment, receipt: Receipt, attempt: str, *, now: Instant, paid_at: Instant
) -> Step[Payment]:
    """A receipt was verified: its amount counts, once. `attempt` is the attempt that brought it.

    `paid_at` is the time of its block, which decides whether it is late: not when we saw it.

    The part that the release cannot take, or can no longer take, is excess.
    """
    room = _escrow_capacity(payment)
    kept = min(room, receipt.amount_atomic)
    over = receipt.amount_atomic - kept
    trigger = _excess_trigger(payment, receipt)
    counted = evolve(
        _remove_attempt(payment, attempt),
        received_atomic=payment.received_atomic + receipt.amount_atomic,
        counted_atomic=payment.counted_atomic + kept,
        paid_by=add_payment_from(payment.paid_by, receipt.payer, receipt.amount_atomic, over),
    )
    step = post_to_journal(
        counted,
        "receipt",
        receipt.id,
        now=now,
        payer=-receipt.amount_atomic,
        escrow=kept,
        excess=over,
    ).then(_advance_on_receipt, over, now=now, paid_at=paid_at)
    return step.then(apply_trigger, trigger, now=now) if over else step


def _advance_on_receipt(
    payment: Payment, over: int, *, now: Instant, paid_at: Instant
) -> Step[Payment]:
    """The step of a receipt, without the labels of its excess."""
    if payment.status in OPEN:
        if payment.counted_atomic >= payment.required_atomic:
            return apply_trigger(payment, "covered", now=now)
        return apply_trigger(
            payment, "short_and_pending" if payment.is_pending else "short", now=now
        )
    if payment.status in CLOSED_EMPTY and paid_at < payment.monitoring_expires_at_ms:
        return apply_trigger(payment, "late_receipt", now=now)
    if payment.status in (*CLOSED_EMPTY, "failed"):
        return apply_trigger(payment, "receipt_after_window", now=now)
    if payment.status == "action_required":
        if over and paid_at <= payment.expires_at_ms:
            return Step(payment)
        return apply_trigger(payment, "further_receipt", now=now)
    if over:
        return Step(payment)
    first = payment.status == "accepted" and payment.release_id is None
    return apply_trigger(payment, "completed" if first else "receipt_returned", now=now)


def _excess_trigger(payment: Payment, receipt: Receipt) -> str:
    """The labels of a receipt that the release cannot take, or not fully.

    An overpayment begins beyond the amount, even if less was enough and has been released.
    """
    if (
        payment.release_id is not None
        and payment.received_atomic + receipt.amount_atomic <= payment.amount_atomic
    ):
        return "missed_release"
    was_covered = payment.counted_atomic >= payment.required_atomic
    return (
        "duplicate"
        if was_covered and receipt.amount_atomic == payment.amount_atomic
        else "overpaid"
    )


def _escrow_capacity(payment: Payment) -> int:
    """How much of a receipt goes to escrow.

    Before the release: the missing part of the amount. Later: only what a reorg has removed from
    it, and after a full refund only what a reorg has removed from the refunds.
    """
    escrow = payment.books.escrow
    if payment.release_id is not None:
        to_be_released = (
            payment.released_atomic if payment.status in ("accepted", "executing") else 0
        )
        return max(0, to_be_released - escrow)
    if payment.status == "refunded":
        return max(0, -escrow)
    return max(0, payment.amount_atomic - payment.counted_atomic)


def reverse_receipt(
    payment: Payment, receipt: Receipt, *, now: Instant, release_stopped: bool
) -> Step[Payment]:
    """A verified receipt was reorged out: the amount that it counted for is taken back.

    `release_stopped` says that a release not yet sent was withdrawn, since this receipt is missing
    for it. A sent release stays sent; the escrow is then short, and the books show it.
    """
    over = receipt.amount_atomic - receipt.counted_atomic
    less = evolve(
        payment,
        received_atomic=payment.received_atomic - receipt.amount_atomic,
        counted_atomic=payment.counted_atomic - receipt.counted_atomic,
        paid_by=add_payment_from(payment.paid_by, receipt.payer, -receipt.amount_atomic, -over),
    )
    if release_stopped:
        less = evolve(less, release_id=None, released_atomic=Atomic(0))
    step = post_to_journal(
        less,
        "receipt_reorged",
        receipt.id,
        now=now,
        payer=receipt.amount_atomic,
        escrow=-receipt.counted_atomic,
        excess=-over,
    )
    trigger = "cover_reorged" if release_stopped else "receipt_reorged"
    return step.then(apply_trigger, trigger, now=now)


# The release.


def settle(payment: Payment, *, now: Instant) -> Step[Payment]:
    """The transfer to the recipient is final: the release, or a send's own."""
    assert payment.release_id is not None
    net = payment.released_atomic - payment.fee_atomic
    source = "payer" if payment.intent == "send" else "escrow"
    moved = {source: -payment.released_atomic, "recipient": net, "fees": payment.fee_atomic}
    cause: EntryCause = "send" if payment.intent == "send" else "release"
    step = post_to_journal(payment, cause, payment.release_id, now=now, **moved)
    return step.then(apply_trigger, "settle", now=now, settled_atomic=net)


def fail_release(payment: Payment, reason: str, *, now: Instant) -> Step[Payment]:
    """The transfer to the recipient failed permanently; the partner may request another."""
    return apply_trigger(
        payment, "release_failed", now=now, reason=reason, failure=reason, **CLEARED_RELEASE
    )


# Reconciliation and refunds.


def accept(payment: Payment, *, now: Instant, note: str | None = None) -> Step[Payment]:
    """The partner accepts the amount received."""
    return apply_trigger(payment, "reconcile_accept", now=now, resolution="accept", note=note)


def retry(payment: Payment, *, now: Instant, note: str | None = None) -> Step[Payment]:
    """The partner asks for the transfer to the recipient again."""
    return apply_trigger(
        payment,
        "retry_execution",
        now=now,
        resolution="retry_execution",
        note=note,
        failure=None,
        can_retry=False,
    )


def write_off(payment: Payment, *, now: Instant, note: str | None = None) -> Step[Payment]:
    """The partner gives the Payment up; held funds stay held."""
    step = apply_trigger(payment, "write_off", now=now, resolution="write_off", note=note)
    return Step(step.record, (*step.events, build_event("payment.failed", step.record)))


def drop_refund(payment: Payment, refund_id: str, *, now: Instant) -> Step[Payment]:
    """A refund failed permanently: the amount set aside for it can be refunded again."""
    left = tuple(id for id in payment.refunding if id != refund_id)
    return Step(evolve(payment, refunding=left, updated_at_ms=now))


def apply_refund(
    payment: Payment,
    trigger: str,
    refund_id: str,
    to: str,
    *,
    now: Instant,
    note: str | None = None,
    **sources: int,
) -> Step[Payment]:
    """A refund is final. `sources` gives the accounts of the books that it was taken from, and
    `note` is the note of the decision that it carries out."""
    amount = sum(sources.values())
    paid_by = payment.paid_by
    if any(item.address == to for item in paid_by):
        paid_by = add_payment_from(paid_by, to, -amount, -sources.get("excess", 0))
    less = evolve(
        payment,
        refunded_atomic=payment.refunded_atomic + amount,
        refunding=tuple(id for id in payment.refunding if id != refund_id),
        paid_by=paid_by,
    )
    taken = {name: -part for name, part in sources.items()}
    step = post_to_journal(less, "refund", refund_id, now=now, payer=amount, **taken)
    resolution = _RESOLUTIONS.get(trigger)
    if payment.status in AWAITING_DECISION and not step.record.books.held_atomic:
        resolution = resolution or "refund"
    decided = note if trigger in _RESOLUTIONS else None
    return step.then(apply_trigger, trigger, now=now, resolution=resolution, note=decided)


def post_to_journal(
    payment: Payment, cause: EntryCause, subject: str, *, now: Instant, **amounts: int
) -> Step[Payment]:
    """The Payment with its books after a movement, and the journal entry."""
    number = payment.entry_count + 1
    books, entry = post(payment.books, payment.id, number, cause, subject, now=now, **amounts)
    return Step(evolve(payment, books=books, entry_count=number), (), (entry,))


def _remove_attempt(payment: Payment, id: str) -> Payment:
    return evolve(
        payment,
        authorized=tuple(item for item in payment.authorized if item != id),
        sighted=tuple(item for item in payment.sighted if item != id),
    )


def note_return(payment: Payment, amount: int, *, now: Instant) -> Step[Payment]:
    """The recipient of a vault's payment sent so much back, or a reorg undid that (below zero).

    It is not in the Payment's books: it goes to the vault that paid.
    """
    trigger = "funds_returned" if amount > 0 else "return_reorged"
    returned = Atomic(payment.returned_atomic + amount)
    if not PAYMENT.allows(payment.status, trigger):
        return Step(evolve(payment, returned_atomic=returned, updated_at_ms=now))
    return apply_trigger(payment, trigger, now=now, reason=trigger, returned_atomic=returned)
