"""The pure steps of a Payment through its table of states (`machine.py`).

Each function takes a Payment and returns a Step: the Payment after it, its events, and the journal
entries of what it moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from payments_core.clock import Instant
from payments_core.engine.events import Happening
from payments_core.engine.step import Step
from payments_core.errors import InvalidState, PaymentExpired
from payments_core.money import Atomic
from payments_core.payments.journal.lifecycle import post
from payments_core.payments.journal.record import Cause
from payments_core.payments.machine import CLOSED_EMPTY, OPEN, PAYMENT
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment, Reconciliation, TimelineEntry
from payments_core.payments.senders import paid_more

MOST_SIGHTED = 100
"""So many transfers on their way are waited for; whoever sends more dust holds up nothing."""

MOST_TIMELINE = 200
"""A longer timeline loses its middle: a record must stay small, whatever strangers send."""

UNRELEASED: Mapping[str, Any] = {
    "can_retry": True,
    "release_id": None,
    "release_hash": None,
    "released": Atomic(0),
}
"""What a transfer to the recipient that came to nothing leaves behind."""

_RESOLUTIONS = {"reconcile_refund": "refund", "refund_excess": "refund_excess"}
_UNDECIDED = (*CLOSED_EMPTY, "failed", "action_required")
_MOMENTS = {"succeeded": "succeeded_at", "cancelled": "cancelled_at"}


def step(
    payment: Payment,
    /,
    trigger: str,
    *,
    now: Instant,
    reason: str | None = None,
    resolution: str | None = None,
    **changes: Any,
) -> Step[Payment]:
    """The Payment after `trigger`, with `changes`, and the event of the change.

    `resolution` is the partner's decision that the step carries out; it settles the reconciliation
    unless excess is still held, or another decision is still asked for. Raises InvalidState where
    the table has no row.
    """
    row = PAYMENT.step(payment.status, trigger)
    labels = payment.labels
    if row.label is not None and row.label not in labels:
        labels = (*labels, row.label)
    reconciliation = payment.reconciliation
    if row.target == "action_required" or row.label not in (None, "underpaid", "reorged"):
        reconciliation = Reconciliation(status="open")
    if resolution is not None and not payment.books.excess and row.target != "action_required":
        reconciliation = Reconciliation(status="resolved", resolution=resolution, resolved_at=now)
    if row.target in _MOMENTS and row.target != payment.status:
        changes[_MOMENTS[row.target]] = now
    entry = TimelineEntry(status=row.target, at=now, reason=reason)
    after = attrs.evolve(
        payment,
        status=row.target,
        status_version=payment.status_version + 1,
        labels=labels,
        reconciliation=reconciliation,
        timeline=_extended(payment.timeline, entry),
        updated_at=now,
        **changes,
    )
    return Step(after, (_happening(row.emits, after),) if row.emits else ())


def _extended(
    timeline: tuple[TimelineEntry, ...], entry: TimelineEntry
) -> tuple[TimelineEntry, ...]:
    if len(timeline) < MOST_TIMELINE:
        return (*timeline, entry)
    half = MOST_TIMELINE // 2
    return (*timeline[:half], *timeline[half + 1 :], entry)


# Its beginning and its end.


def created(payment: Payment, trigger: str = "create", *, now: Instant) -> Step[Payment]:
    """A new Payment in its first state."""
    row = PAYMENT.step(None, trigger)
    first = TimelineEntry(status=row.target, at=now)
    payment = attrs.evolve(payment, status=row.target, status_version=1, timeline=(first,))
    return Step(payment, (_happening("payment.created", payment),))


def check_payable(payment: Payment, *, now: Instant) -> None:
    """Raise PaymentExpired or InvalidState where a payer can no longer act."""
    if payment.intent != "receive":
        raise InvalidState("payment", payment.status, "pay")
    if payment.status == "expired" or (payment.status in OPEN and now >= payment.expires_at):
        raise PaymentExpired(payment.expires_at)
    if payment.status in ("cancelled", "failed", "refunded"):
        raise InvalidState("payment", payment.status, "pay")


def expire(payment: Payment, *, now: Instant) -> Step[Payment]:
    """The Payment's time ran out while nothing was under way."""
    return step(payment, "expire_short" if payment.received else "expire", now=now)


def cancel(payment: Payment, *, now: Instant) -> Step[Payment]:
    """The partner gives up a Payment that received nothing. Raises InvalidState.

    Its authorizations must be withdrawn with it; a stranger's transfer that was seen cannot be.
    """
    if payment.received or payment.sighted:
        raise InvalidState("payment", payment.status, "cancel")
    return step(payment, "cancel", now=now, authorized=())


# Attempts.


def authorize(payment: Payment, operation_id: str, *, now: Instant) -> Step[Payment]:
    """An authorization was recorded. A stranger's transfer on its way does not stand against it,
    or dust would keep every payer out. Raises InvalidState."""
    authorized = (*payment.authorized, operation_id)
    if payment.status == "processing" and not payment.authorized:
        return Step(attrs.evolve(payment, authorized=authorized, updated_at=now))
    return step(payment, "attempt", now=now, authorized=authorized)


def sight(payment: Payment, evidence_id: str, *, now: Instant) -> Step[Payment]:
    """A transfer to the escrow was seen that is not final."""
    if evidence_id in payment.sighted or len(payment.sighted) >= MOST_SIGHTED:
        return Step(payment)
    sighted = (*payment.sighted, evidence_id)
    if payment.status == "awaiting_payment":
        return step(payment, "attempt", now=now, sighted=sighted)
    return Step(attrs.evolve(payment, sighted=sighted, updated_at=now))


def fail_attempt(
    payment: Payment, operation_id: str, *, now: Instant, reason: str
) -> Step[Payment]:
    """An authorization came to nothing. A collect has no other: whatever strangers sent, it has
    failed."""
    if payment.intent == "collect" and payment.status == "processing":
        left = _without(payment, operation_id)
        return step(left, "draw_failed", now=now, reason=reason, failure=reason)
    return end_attempt(payment, operation_id, now=now, reason=reason)


def end_attempt(payment: Payment, id: str, *, now: Instant, reason: str) -> Step[Payment]:
    """An attempt is over: an operation, or a transfer that was seen."""
    left = _without(payment, id)
    if left == payment:
        return Step(payment)
    left = attrs.evolve(left, updated_at=now)
    if left.status != "processing" or left.is_pending:
        return Step(left)
    return step(left, "attempt_ended", now=now, reason=reason)


# Receipts.


def count(payment: Payment, receipt: Receipt, attempt: str, *, now: Instant) -> Step[Payment]:
    """A receipt was verified: its amount counts, once. `attempt` is what brought it.

    What the release cannot take any more, or never could, is excess.
    """
    room = _room(payment)
    kept = min(room, receipt.amount)
    over = receipt.amount - kept
    trigger = _excess_trigger(payment, receipt)
    counted = attrs.evolve(
        _without(payment, attempt),
        received=payment.received + receipt.amount,
        counted=payment.counted + kept,
        paid_by=paid_more(payment.paid_by, receipt.sender, receipt.amount, over),
    )
    change = posted(
        counted, "receipt", receipt.id, now=now, payer=-receipt.amount, escrow=kept, excess=over
    ).then(_counted, over, now=now)
    return change.then(step, trigger, now=now) if over else change


def _counted(payment: Payment, over: int, *, now: Instant) -> Step[Payment]:
    """The step that a receipt leads to, apart from the labels of its excess."""
    if payment.status in OPEN:
        if payment.counted >= payment.required:
            return step(payment, "covered", now=now)
        return step(payment, "short_and_pending" if payment.is_pending else "short", now=now)
    if payment.status in CLOSED_EMPTY and now < payment.monitoring_expires_at:
        return step(payment, "late_receipt", now=now)
    if payment.status in (*CLOSED_EMPTY, "failed"):
        return step(payment, "receipt_after_window", now=now)
    if payment.status == "action_required":
        if over and now < payment.expires_at:
            return Step(payment)
        return step(payment, "further_receipt", now=now)
    if over:
        return Step(payment)
    first = payment.status == "accepted" and payment.release_id is None
    return step(payment, "completed" if first else "receipt_returned", now=now)


def _excess_trigger(payment: Payment, receipt: Receipt) -> str:
    """What a receipt brings about that the release cannot take, or not all of it.

    Too much begins beyond the amount, also where less was enough and has been released.
    """
    if payment.release_id is not None and payment.received + receipt.amount <= payment.amount:
        return "missed_release"
    was_covered = payment.counted >= payment.required
    return "duplicate" if was_covered and receipt.amount == payment.amount else "overpaid"


def _room(payment: Payment) -> int:
    """How much of a receipt goes to escrow.

    Until there is a release, what is missing of the amount; then only what a reorg has taken from
    under it, and after all was refunded only what a reorg has taken from under the refunds.
    """
    escrow = payment.books.escrow
    if payment.release_id is not None:
        to_be_released = payment.released if payment.status in ("accepted", "executing") else 0
        return max(0, to_be_released - escrow)
    if payment.status == "refunded":
        return max(0, -escrow)
    return max(0, payment.amount - payment.counted)


def undo(
    payment: Payment, receipt: Receipt, *, now: Instant, release_stopped: bool
) -> Step[Payment]:
    """A verified receipt was reorged out: what it counted for is taken back.

    `release_stopped` says that a release not yet sent was withdrawn, since this receipt is missing
    for it. What was sent stays sent; the escrow is then short, and the books say so.
    """
    over = receipt.amount - receipt.counted
    less = attrs.evolve(
        payment,
        received=payment.received - receipt.amount,
        counted=payment.counted - receipt.counted,
        paid_by=paid_more(payment.paid_by, receipt.sender, -receipt.amount, -over),
    )
    if release_stopped:
        less = attrs.evolve(less, release_id=None, released=Atomic(0))
    change = posted(
        less,
        "receipt_reorged",
        receipt.id,
        now=now,
        payer=receipt.amount,
        escrow=-receipt.counted,
        excess=-over,
    )
    trigger = "cover_reorged" if release_stopped else "receipt_reorged"
    return change.then(step, trigger, now=now)


# The release.


def settle(payment: Payment, *, now: Instant) -> Step[Payment]:
    """The transfer to the recipient is final: the release, or a send's own."""
    assert payment.release_id is not None
    net = payment.released - payment.fee
    source = "payer" if payment.intent == "send" else "escrow"
    moved = {source: -payment.released, "recipient": net, "fees": payment.fee}
    cause: Cause = "send" if payment.intent == "send" else "release"
    change = posted(payment, cause, payment.release_id, now=now, **moved)
    return change.then(step, "settle", now=now, settled=net)


def fail_release(payment: Payment, reason: str, *, now: Instant) -> Step[Payment]:
    """The transfer to the recipient failed for good; the partner may ask for another."""
    return step(payment, "release_failed", now=now, reason=reason, failure=reason, **UNRELEASED)


# Reconciliation and refunds.


def accept(payment: Payment, *, now: Instant) -> Step[Payment]:
    """The partner takes what was received."""
    return step(payment, "reconcile_accept", now=now, resolution="accept")


def retry(payment: Payment, *, now: Instant) -> Step[Payment]:
    """The partner asks for the transfer to the recipient again."""
    return step(
        payment,
        "retry_execution",
        now=now,
        resolution="retry_execution",
        failure=None,
        can_retry=False,
    )


def write_off(payment: Payment, *, now: Instant) -> Step[Payment]:
    """The partner gives the Payment up; what is held stays held."""
    change = step(payment, "write_off", now=now)
    settled = Reconciliation(status="resolved", resolution="write_off", resolved_at=now)
    given_up = attrs.evolve(change.record, reconciliation=settled)
    return Step(given_up, (*change.events, _happening("payment.failed", given_up)))


def forget_refund(payment: Payment, refund_id: str, *, now: Instant) -> Step[Payment]:
    """A refund failed for good: what was set aside for it can be refunded again."""
    left = tuple(id for id in payment.refunding if id != refund_id)
    return Step(attrs.evolve(payment, refunding=left, updated_at=now))


def refunded(
    payment: Payment, trigger: str, refund_id: str, to: str, *, now: Instant, **sources: int
) -> Step[Payment]:
    """A refund is final. `sources` says out of which accounts of the books it went."""
    amount = sum(sources.values())
    paid_by = payment.paid_by
    if any(item.address == to for item in paid_by):
        paid_by = paid_more(paid_by, to, -amount, -sources.get("excess", 0))
    less = attrs.evolve(
        payment,
        refunded=payment.refunded + amount,
        refunding=tuple(id for id in payment.refunding if id != refund_id),
        paid_by=paid_by,
    )
    taken = {name: -part for name, part in sources.items()}
    change = posted(less, "refund", refund_id, now=now, payer=amount, **taken)
    resolution = _RESOLUTIONS.get(trigger)
    if payment.status in _UNDECIDED and not change.record.books.held:
        resolution = resolution or "refund"
    return change.then(step, trigger, now=now, resolution=resolution)


def posted(
    payment: Payment, cause: Cause, subject: str, *, now: Instant, **amounts: int
) -> Step[Payment]:
    """The Payment with its books after a movement, and the journal entry."""
    number = payment.entry_count + 1
    books, entry = post(payment.books, payment.id, number, cause, subject, now=now, **amounts)
    return Step(attrs.evolve(payment, books=books, entry_count=number), (), (entry,))


def _without(payment: Payment, id: str) -> Payment:
    return attrs.evolve(
        payment,
        authorized=tuple(item for item in payment.authorized if item != id),
        sighted=tuple(item for item in payment.sighted if item != id),
    )


def _happening(name: str, payment: Payment) -> Happening:
    return Happening(
        name,
        {
            "paymentId": payment.id,
            "accountId": payment.account_id,
            "status": payment.status,
            "statusVersion": payment.status_version,
            "labels": list(payment.labels),
            "assetSymbol": payment.asset_symbol,
            "chainId": payment.chain_id,
            "amountAtomic": str(payment.amount),
            "receivedAmountAtomic": str(payment.received),
            "excessAmountAtomic": str(payment.excess),
            "settledAmountAtomic": str(payment.settled),
            "refundedAmountAtomic": str(payment.refunded),
        },
        payment.api_version,
        payment.account_id,
        payment.external_user_id,
    )
