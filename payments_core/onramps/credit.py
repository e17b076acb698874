"""The credit: the stablecoins of a bank transfer, from its own escrow to the destination.

The bank delivers to an escrow that belongs to this transaction only. So a credit can move no more
than arrived for it, and what the outbox sends exactly once is paid exactly once.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from payments_core.chains.outbox.owners import TransferToSend
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    TransferOutcome,
    TransferPurpose,
    TransferToWatch,
    lock_transfer,
    new_transfer,
    send_job,
    watch_job,
    withdraw_unsigned,
)
from payments_core.chains.port import Contract, SignedTransaction
from payments_core.clock import DAY, MINUTE, Instant
from payments_core.engine.decision import Decision, NewJob
from payments_core.engine.step import Step
from payments_core.onramps import lifecycle
from payments_core.onramps.record import BankTransaction
from payments_core.screening.judging import Judgement, ScreenedTransfer, pay_out
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get

FOLLOW_TRANSFER = "onramps.follow_transfer"
CREDIT = "onramps.credit"
WATCH_CREDIT = "onramps.watch_credit"
ONRAMP_ARGUMENT = "onrampAccountId"

SCREENING_REVIEW = "screening_review"
SCREENING_REASONS = (SCREENING_REVIEW, "destination_blocked")
"""Why a credit is `in_review` whose stablecoins are in the escrow."""

_log = logging.getLogger(__name__)


def decide_credit(
    transaction: BankTransaction, credit_id: str, escrow: str, partition: str, *, now: Instant
) -> Decision[None]:
    """The intent of the credit, with its send job: the stablecoins are finally in the escrow."""
    step = lifecycle.begin_credit(transaction, credit_id, now=now)
    outgoing = new_transfer(
        credit_id,
        transaction.destination.asset,
        "release",
        transaction.id,
        source=Contract("escrow", transaction.id, escrow),
        recipient=transaction.destination.address,
        amount=transaction.amount_atomic,
        now=now,
    )
    job = send_job(CREDIT, partition, outgoing, now)
    return step.as_decision().merge(Decision(None, inserts=(outgoing,), jobs=(job,)))


class CreditOwner:
    """A bank transaction whose stablecoins go to the destination."""

    purpose: TransferPurpose = "onramp"
    record_type = BankTransaction
    send_kind = CREDIT
    watch_kind = WATCH_CREDIT
    on_unsent = None

    def find_to_send(self, record: BankTransaction) -> TransferToSend | None:
        """The credit, until it was handed to the chain."""
        is_held = record.status == "in_review" and record.reason in SCREENING_REASONS
        if record.credit_id is None or not (is_held or record.status == "received"):
            return None
        to = record.destination
        screened = ScreenedTransfer(
            resource=record.id,
            owner=record.id,
            asset=to.asset,
            amount_atomic=record.amount_atomic,
            concerns=(pay_out(to.chain_id, to.address),),
            is_held=is_held,
        )
        return TransferToSend(to.chain_id, record.credit_id, screened=screened)

    def on_screened(
        self, tx: Transaction, record: BankTransaction, judgement: Judgement, *, now: Instant
    ) -> Decision[bool] | None:
        """Held, also if it is blocked: nobody else can have the stablecoins, so an operator
        decides."""
        transaction = _lock(tx, record.id)
        if transaction.credit_id is None or transaction.credit_id != record.credit_id:
            return None
        if withdraw_unsigned(lock_transfer(tx, transaction.credit_id)) is None:
            return None
        if judgement.finding == "clear":
            return lifecycle.end_hold(transaction, now=now).as_decision(True)
        is_blocked = judgement.finding == "blocked"
        reason = judgement.blocked_reason if is_blocked else SCREENING_REVIEW
        return lifecycle.hold_credit(transaction, reason, now=now).as_decision(True)

    def locks(self, record: BankTransaction, transaction_hash: str) -> Sequence[Get]:
        """The transaction."""
        return (Get(BankTransaction, record.id, "exclusive"),)

    def on_sent(
        self, tx: Transaction, record: BankTransaction, signed: SignedTransaction, *, now: Instant
    ) -> Decision[None]:
        """Submitted; a job watches it from now on."""
        transaction = _lock(tx, record.id)
        if transaction.status != "received" or transaction.credit_id != record.credit_id:
            return Decision(None)
        of = {"creditId": str(record.credit_id)}
        lane = f"bank_transaction:{record.id}"
        watch = watch_job(WATCH_CREDIT, lane, record.id, of, now=now)
        step = lifecycle.submit(transaction, signed.hash, now=now)
        return step.as_decision().merge(Decision(None, jobs=(watch,)))

    def find_to_watch(self, record: BankTransaction, job: Job) -> TransferToWatch | None:
        """A transaction may meanwhile have another credit, so the job names its own."""
        return TransferToWatch(job.arguments["creditId"])

    def read_chain(self, partition: str, record: BankTransaction, outcome: TransferOutcome) -> None:
        """The outcome is all that it needs."""

    def lock(
        self, tx: Transaction, record: BankTransaction, outgoing_id: str
    ) -> BankTransaction | None:
        """The transaction, if it still waits for this credit."""
        transaction = _lock(tx, record.id)
        if transaction.status != "submitted" or transaction.credit_id != outgoing_id:
            return None
        return transaction

    def on_final(
        self,
        tx: Transaction,
        locked: BankTransaction,
        outcome: TransferOutcome,
        facts: None,
        *,
        now: Instant,
    ) -> Decision[None]:
        """At the destination, or failed: then it is repeated later, as another transfer."""
        if outcome.reason is None:
            return lifecycle.settle(locked, outcome.hash, now=now).as_decision()
        return _credit_again(lifecycle.fail_credit(locked, "credit_failed", now=now), now=now)

    def on_reversed(
        self, tx: Transaction, outgoing: OutboundTransfer, reason: str, *, now: Instant
    ) -> Decision[None]:
        """The stablecoins are in the escrow again."""
        transaction = _lock(tx, outgoing.owner_id)
        if transaction.status != "settled" or transaction.credit_id != outgoing.id:
            return Decision(None)
        return _credit_again(
            lifecycle.reverse_credit(transaction, "credit_reversed", now=now), now=now
        )


def _credit_again(step: Step[BankTransaction], *, now: Instant) -> Decision[None]:
    transaction = step.record
    _log.error("ALARM: the credit of %s failed %d times", transaction.id, transaction.credits)
    pause_ms = min(MINUTE << min(transaction.credits, 16), DAY)
    job = NewJob(
        "timers",
        FOLLOW_TRANSFER,
        f"bank_transaction:{transaction.id}",
        now + pause_ms,
        transaction.incoming_id,
        {ONRAMP_ARGUMENT: transaction.onramp_account_id},
    )
    return step.as_decision().merge(Decision(None, jobs=(job,)))


def _lock(tx: Transaction, transaction_id: str) -> BankTransaction:
    transaction = tx.get(BankTransaction, transaction_id, for_update=True)
    assert transaction is not None
    return transaction
