"""The transfer to the recipient, owned by its Payment: the release from escrow, or a send's own.

A send to a bank account has a transfer to the off-ramp address: when that is final, the payout
begins.

`chains.outbox.jobs` sends it and follows it.
"""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.reservations import (
    BalanceReading,
    Reservation,
    settle_reservation,
    void_reservation,
)
from payments_core.chains.outbox.owners import Doubt, TransferToSend
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    TransferOutcome,
    TransferPurpose,
    TransferToWatch,
    lock_transfer,
    new_transfer,
    watch_job,
    withdraw_unsigned,
)
from payments_core.chains.port import SignedTransaction
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.evolve import evolve
from payments_core.payments import lifecycle, routing, screening
from payments_core.payments.details import lock_payment
from payments_core.payments.expiry import end_expiry, expiry_job_id
from payments_core.payments.payouts import lifecycle as payouts
from payments_core.payments.payouts.jobs import payout_job
from payments_core.payments.record import Payment
from payments_core.payments.refunds.withdrawal import withdraw_unfunded_refunds
from payments_core.payments.reversals import reverse_release
from payments_core.payments.transitions import IN_REVIEW
from payments_core.screening.judging import Judgement, ScreenedTransfer
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get

SEND_RELEASE = "payments.release"
WATCH_RELEASE = "payments.watch_release"
_SUBMIT_TRIGGERS = {"accepted": "release", "processing": "submit"}


class ReleaseOwner:
    """A Payment that pays its recipient.

    The first time it is `accepted`, or a send's `processing`; a transfer that the partner requested
    again finds it `executing`.
    """

    purpose: TransferPurpose = "release"
    record_type = Payment
    send_kind = SEND_RELEASE
    watch_kind = WATCH_RELEASE

    def __init__(self, vaults: Vaults) -> None:
        self._vaults = vaults

    def find_to_send(self, record: Payment) -> TransferToSend | None:
        """Find the transfer to send; None after a reorg of its receipt or a cancelled send."""
        if record.release_id is None or record.status not in ("executing", *_SUBMIT_TRIGGERS):
            return None
        if _has_funded_payout(record):
            return None
        screened = ScreenedTransfer(
            resource=record.id,
            owner=record.id,
            asset=record.asset,
            amount_atomic=record.released_atomic,
            concerns=screening.find_concerns(record),
            is_held=IN_REVIEW in record.labels,
            read_more=screening.find_more_senders(record),
        )
        return TransferToSend(record.chain_id, record.release_id, screened=screened)

    def locks(self, record: Payment, transaction_hash: str) -> Sequence[Get]:
        """The job at its expiry, if it settles, and the Payment."""
        settles = record.status == "executing" and _has_expiry(record)
        expiry = (Get(Job, expiry_job_id(record.id), "exclusive"),) if settles else ()
        return (*expiry, Get(Payment, record.id, "exclusive"))

    def on_sent(
        self, tx: Transaction, record: Payment, signed: SignedTransaction, *, now: Instant
    ) -> Decision[None]:
        """The Payment is `executing`, perhaps again."""
        current = lock_payment(tx, record.id)
        if current.release_id != record.release_id:
            return Decision(None)
        job = watch_job(WATCH_RELEASE, f"payment:{current.id}", current.id, now=now)
        watch = Decision(None, jobs=(job,))
        if current.status not in _SUBMIT_TRIGGERS:
            sent = evolve(current, release_hash=signed.hash)
            return watch.merge(Decision(None, replaces=(sent,)))
        trigger = _SUBMIT_TRIGGERS[current.status]
        sent_step = lifecycle.apply_trigger(current, trigger, now=now, release_hash=signed.hash)
        return sent_step.as_decision().merge(watch)

    def on_unsent(
        self,
        tx: Transaction,
        id_sequence: IdSequence,
        partition: str,
        record: Payment,
        doubt: Doubt,
        *,
        now: Instant,
    ) -> Decision[None] | None:
        """A node may have it from the first broadcast on: the Payment shows its hash."""
        current = lock_payment(tx, record.id)
        if doubt != "lost" or current.release_hash is not None:
            return None
        if current.release_id is None or current.release_id != record.release_id:
            return None
        outgoing = lock_transfer(tx, current.release_id)
        offered = evolve(current, release_hash=outgoing.transaction_hash)
        return Decision(None, replaces=(offered,))

    def on_screened(
        self, tx: Transaction, record: Payment, judgement: Judgement, *, now: Instant
    ) -> Decision[bool] | None:
        """Held in its status, or `action_required`: a send's reservation is free again."""
        current = lock_payment(tx, record.id)
        if current.release_id is None or current.release_id != record.release_id:
            return None
        stopped = withdraw_unsigned(lock_transfer(tx, current.release_id))
        if stopped is None:
            return None
        if judgement.finding != "blocked":
            step = screening.end_hold if judgement.finding == "clear" else screening.hold
            return step(current, now=now).as_decision(True)
        reason = judgement.blocked_reason
        block = screening.block if current.payout is None else payouts.block_funding
        blocked: Decision[bool] = block(current, reason, now=now).as_decision(False)
        blocked = blocked.merge(Decision(None, replaces=(stopped,)))
        if current.intent != "send":
            return blocked
        return blocked.merge(void_reservation(tx, reservation_of_send(current)))

    def find_to_watch(self, record: Payment, job: Job) -> TransferToWatch | None:
        """While the Payment is `executing`, and its payout waits for these funds if it has one."""
        if record.status != "executing" or record.release_id is None:
            return None
        if _has_funded_payout(record):
            return None
        return TransferToWatch(record.release_id, record.confirmations, record.early_acceptance)

    def read_chain(
        self, partition: str, record: Payment, outcome: TransferOutcome
    ) -> BalanceReading | None:
        """The balance of the vault that a send pays from. A release reserves nothing."""
        if record.intent != "send":
            return None
        assert record.source is not None
        return self._vaults.read_balance_by_id(
            partition, record.source.vault_id, record.asset, min_height=outcome.height
        )

    def lock(self, tx: Transaction, record: Payment, outgoing_id: str) -> Payment | None:
        """The Payment, if it still executes this transfer."""
        current = lock_payment(tx, record.id)
        if current.status != "executing" or current.release_id != outgoing_id:
            return None
        return None if _has_funded_payout(current) else current

    def on_final(
        self,
        tx: Transaction,
        locked: Payment,
        outcome: TransferOutcome,
        facts: BalanceReading | None,
        *,
        now: Instant,
    ) -> Decision[None]:
        """The Payment succeeded, continues at the bank or the router, or needs the partner; a
        send's reservation ended."""
        if outcome.reason is None:
            # Of all signed versions, this one is in a block.
            decision = _complete(tx, evolve(locked, release_hash=outcome.hash), now=now)
        else:
            fail = lifecycle.fail_release if locked.payout is None else payouts.fail_funding
            decision = fail(locked, outcome.reason, now=now).as_decision()
        if facts is None:
            return decision
        succeeded = outcome.reason is None
        return decision.merge(
            settle_reservation(tx, reservation_of_send(locked), facts, succeeded=succeeded, now=now)
        )

    def on_reversed(
        self, tx: Transaction, outgoing: OutboundTransfer, reason: str, *, now: Instant
    ) -> Decision[None]:
        """The recipient does not have the funds: the partner may send them again.

        A payout continues, since nothing stops it; the off-ramp address is short then. Refunds from
        there, or from the recipient's vault, are withdrawn, while they are not signed.
        """
        payment = lock_payment(tx, outgoing.owner_id)
        if payment.release_id == outgoing.id and _has_funded_payout(payment):
            if not payouts.is_drawn(payment):  # another reorg's job has reported it
                return Decision(None)
            return withdraw_unfunded_refunds(tx, payouts.reverse_funding(payment, now=now), now=now)
        if payment.release_id != outgoing.id:
            return Decision(None)
        if payment.status == "executing":
            if payment.route is None:
                return Decision(None)
            return routing.undo_hand_over(payment, reason, now=now).as_decision()
        return withdraw_unfunded_refunds(tx, reverse_release(payment, reason, now=now), now=now)


def _complete(tx: Transaction, payment: Payment, *, now: Instant) -> Decision[None]:
    """The next step when the transfer is final."""
    if payment.route is not None:
        return routing.hand_over(payment, now=now)
    if payment.payout is None:
        settled = lifecycle.settle(payment, now=now).as_decision()
        return settled.merge(end_expiry(tx, payment)) if _has_expiry(payment) else settled
    step = payouts.fund(payment, now=now)
    return step.as_decision().merge(Decision(None, jobs=(payout_job(step.record, now),)))


def _has_expiry(payment: Payment) -> bool:
    """Whether it waited for a payer."""
    return payment.intent != "send"


def _has_funded_payout(payment: Payment) -> bool:
    """Whether the transfer of this payout is done, and the bank is next."""
    return payment.payout is not None and payment.payout.funded_at_ms is not None


def reservation_of_send(payment: Payment) -> Reservation:
    """The amount that a send has reserved of its vault."""
    assert payment.source is not None
    return Reservation(
        vault_id=payment.source.vault_id,
        asset=payment.asset,
        amount_atomic=payment.amount_atomic,
        counted_at_ms=payment.source.reserved_at_ms,
    )


def new_release(payment: Payment, id: str, *, now: Instant) -> OutboundTransfer:
    """The transfer of the funds in escrow to the recipient, less the recipient's fee."""
    assert payment.escrow is not None
    return new_transfer(
        id,
        payment.asset,
        "release",
        payment.id,
        source=payment.escrow,
        recipient=payment.payout_address,
        amount=payment.releasable_atomic - payment.fee_atomic,
        now=now,
    )
