"""What payers say that they have sent by an option, and how long that locks a Payment. Pure.

A submission moves nothing: it only says where to look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from payments_core.clock import MINUTE, Instant, is_ahead
from payments_core.engine.step import Step
from payments_core.errors import ResourceConflict
from payments_core.evolve import evolve
from payments_core.payments.options.record import PaymentOption, Submission
from payments_core.payments.receipts.record import TrackedTransaction, tracked_transaction_id
from payments_core.payments.record import Payment

MAX_SUBMISSIONS = 5
"""The maximum number of transactions that one option names; a scan finds all anyway."""

SUBMISSION_LOCK_MS = 2 * MINUTE
"""How long a submission locks its option while no node knows the transaction: it may be on its way
to the nodes, and a second payment would be excess. An invented transaction locks no longer."""

MIN_LOCKING_PARTS = 10
"""Pending transfers lock an option if they bring one of this many equal parts of the Payment's
amount, or all that is missing. A holder of the Payment's secret may send dust and name it, and one
lock after the other would block all other payers; thus ten locks pay the Payment. Less than such a
part locks nothing and may be paid twice: that is excess, and is returned."""

SUBMISSION_LOCK_EVERY_MS = 10 * MINUTE
"""How often at most such a lock begins for one Payment, across its options: with the Payment's
secret anybody may invent transactions, and one lock after the other would block all other
payers."""


def submit(
    option: PaymentOption, chain_id: int, transaction_hash: str, *, now: Instant
) -> Step[PaymentOption]:
    """The option with a submitted transaction; naming it twice changes nothing.

    Raises ResourceConflict if it has its maximum number of submissions.
    """
    if has_submitted(option, chain_id, transaction_hash):
        return Step(option)
    if len(option.submissions) >= MAX_SUBMISSIONS:
        raise ResourceConflict(
            f"An option accepts at most {MAX_SUBMISSIONS} submissions; "
            "transfers are also found without a submission."
        )
    submission = Submission(
        chain_id=chain_id, transaction_hash=transaction_hash, submitted_at_ms=now
    )
    submissions = (*option.submissions, submission)
    return Step(evolve(option, submissions=submissions, updated_at_ms=now))


def has_submitted(option: PaymentOption, chain_id: int, transaction_hash: str) -> bool:
    """Whether the payer named this transaction."""
    named = {(item.chain_id, item.transaction_hash) for item in option.submissions}
    return (chain_id, transaction_hash) in named


def min_locking_amount(payment: Payment) -> int:
    """The minimum that pending transfers must bring together to lock the option that they pay.

    The share is of the whole amount: a share of the remainder would let dust lock the last cent.
    """
    missing = payment.required_atomic - payment.counted_atomic
    return min(missing, -(-payment.amount_atomic // MIN_LOCKING_PARTS))


def list_submissions(option: PaymentOption) -> tuple[str, ...]:
    """The evidence ids of the payer's submissions."""
    return tuple(_tracked_id(option, item) for item in option.submissions)


def list_sighted_submissions(option: PaymentOption, payment: Payment) -> tuple[str, ...]:
    """The evidence ids of the payer's submissions that nodes know to be pending.

    Strangers' transfers do not count, or dust would block every choice.
    """
    return tuple(id for id in list_submissions(option) if id in payment.sighted)


def has_new_submission(option: PaymentOption, *, now: Instant) -> bool:
    """Whether a submission is new enough to lock although no node knows the transaction yet."""
    return any(
        now < item.submitted_at_ms + SUBMISSION_LOCK_MS and not is_ahead(item.submitted_at_ms, now)
        for item in option.submissions
    )


def list_locking_submissions(
    options: Iterable[PaymentOption],
    tracked: Mapping[str, TrackedTransaction],
    payment: Payment,
    *,
    now: Instant,
) -> frozenset[str]:
    """The evidence ids of submissions that lock a Payment although no node knows them yet.

    `options` are all options of the Payment, `tracked` the stored evidence of
    `list_submissions`. A submission begins a lock unless another began less than
    SUBMISSION_LOCK_EVERY_MS before, and the lock ends after SUBMISSION_LOCK_MS. A transfer that
    paid the Payment begins no lock; dust does, or a sender of dust after a lock would begin the
    next one at once.
    """
    minimum = min_locking_amount(payment)
    unpaid = sorted(
        (item.submitted_at_ms, id)
        for option in options
        for item, id in zip(option.submissions, list_submissions(option), strict=True)
        if not is_ahead(item.submitted_at_ms, now)
        and (id not in tracked or tracked[id].amount_atomic < minimum)
    )
    begun: Instant | None = None
    for submitted_at, _ in unpaid:
        if begun is None or submitted_at >= begun + SUBMISSION_LOCK_EVERY_MS:
            begun = submitted_at
    if begun is None or now >= begun + SUBMISSION_LOCK_MS:
        return frozenset()
    return frozenset(
        id
        for submitted_at, id in unpaid
        if submitted_at >= begun and id in tracked and _is_awaited(tracked[id])
    )


def _is_awaited(tracked: TrackedTransaction) -> bool:
    """Whether no node has shown the transaction's transfers, and one still may."""
    return tracked.watched and not tracked.receipt_ids


def _tracked_id(option: PaymentOption, item: Submission) -> str:
    return tracked_transaction_id(option.payment_id, item.chain_id, item.transaction_hash)
