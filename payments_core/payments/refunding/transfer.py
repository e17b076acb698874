"""The transfer of a refund, owned by the refund. `chains.outbox.jobs` sends it and follows it."""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.accounts.vaults.operations import Vaults
from payments_core.accounts.vaults.reservations import (
    BalanceReading,
    Reservation,
    settle_reservation,
)
from payments_core.chains.outbox.owners import TransferToSend
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    TransferOutcome,
    TransferPurpose,
    TransferToWatch,
    lock_transfer,
    watch_job,
    withdraw_unsigned,
)
from payments_core.chains.port import SignedTransaction
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.step import Step
from payments_core.payments import lifecycle as payments
from payments_core.payments.details import lock_payment
from payments_core.payments.record import Payment
from payments_core.payments.refunds import lifecycle
from payments_core.payments.refunds.record import Refund
from payments_core.payments.refunds.waiting import SEND_REFUND
from payments_core.payments.refunds.withdrawal import withdraw_unsigned_refunds
from payments_core.payments.reversals import reverse_refund
from payments_core.screening.judging import Judgement, ScreenedTransfer, pay_out
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get

WATCH_REFUND = "refunds.watch"

_LockedRefund = tuple[Payment, Refund]


class RefundOwner:
    """A refund with its Payment. `withdrawal.py` withdraws refunds."""

    purpose: TransferPurpose = "refund"
    record_type = Refund
    send_kind = SEND_REFUND
    watch_kind = WATCH_REFUND
    on_unsent = None

    def __init__(self, vaults: Vaults) -> None:
        self._vaults = vaults

    def find_to_send(self, record: Refund) -> TransferToSend | None:
        """Unless it was sent before a crash, or what it returns is not final."""
        if record.status != "created" or record.waits_for:
            return None
        screened = ScreenedTransfer(
            resource=record.payment_id,
            owner=record.id,
            asset=record.asset,
            amount_atomic=record.amount_atomic,
            concerns=(pay_out(record.chain_id, record.destination),),
            is_held=record.in_review,
        )
        return TransferToSend(record.chain_id, record.outgoing_id, screened=screened)

    def on_screened(
        self, tx: Transaction, record: Refund, judgement: Judgement, *, now: Instant
    ) -> Decision[bool] | None:
        """Held, or `failed`: its amount can be refunded again, to another destination."""
        payment, refund = _lock_refund(tx, record)
        if refund.status != "created":
            return None
        if withdraw_unsigned(lock_transfer(tx, refund.outgoing_id)) is None:
            return None
        if judgement.finding != "blocked":
            step = lifecycle.end_hold if judgement.finding == "clear" else lifecycle.hold
            return step(refund, payment, now=now).as_decision(True)
        after, ended = withdraw_unsigned_refunds(
            tx, Step(payment), [refund],
            now=now, trigger="block", failure=judgement.blocked_reason,
        )  # fmt: skip
        return after.as_decision(False).merge(ended)

    def locks(self, record: Refund, transaction_hash: str) -> Sequence[Get]:
        """The Payment and the refund."""
        return (
            Get(Payment, record.payment_id, "exclusive"),
            Get(Refund, record.id, "exclusive"),
        )

    def on_sent(
        self, tx: Transaction, record: Refund, signed: SignedTransaction, *, now: Instant
    ) -> Decision[None]:
        """The refund is `submitted`."""
        payment, refund = _lock_refund(tx, record)
        if refund.status != "created":
            return Decision(None)
        sent = lifecycle.apply_trigger(
            refund, "submit", payment, now=now, transaction_hash=signed.hash
        )
        watch = watch_job(WATCH_REFUND, f"payment:{payment.id}", refund.id, now=now)
        return sent.as_decision().merge(Decision(None, jobs=(watch,)))

    def find_to_watch(self, record: Refund, job: Job) -> TransferToWatch | None:
        """While the refund is `submitted`.

        A vault's is believed when it is final: the balance that ends its reservation is final too.
        """
        if record.status != "submitted":
            return None
        return TransferToWatch(record.outgoing_id, early_acceptance=record.early_acceptance)

    def read_chain(
        self, partition: str, record: Refund, outcome: TransferOutcome
    ) -> BalanceReading | None:
        """The balance of the vault that it is paid from, if it is not paid from escrow."""
        if record.vault_id is None:
            return None
        return self._vaults.read_balance_by_id(
            partition, record.vault_id, record.asset, min_height=outcome.height
        )

    def lock(self, tx: Transaction, record: Refund, outgoing_id: str) -> _LockedRefund | None:
        """The Payment, and the refund if it is still `submitted`."""
        payment, refund = _lock_refund(tx, record)
        return (payment, refund) if refund.status == "submitted" else None

    def on_final(
        self,
        tx: Transaction,
        locked: _LockedRefund,
        outcome: TransferOutcome,
        facts: BalanceReading | None,
        *,
        now: Instant,
    ) -> Decision[None]:
        """The books lose it, or it may be requested again; the vault's reservation ended."""
        if outcome.reason is None:
            decision = _confirm_refund(*locked, outcome, now=now)
        else:
            decision = _fail_refund(*locked, outcome.reason, now=now)
        if facts is None:
            return decision
        succeeded = outcome.reason is None
        return decision.merge(
            settle_reservation(
                tx, _reservation_of_refund(locked[1]), facts, succeeded=succeeded, now=now
            )
        )

    def on_reversed(
        self, tx: Transaction, outgoing: OutboundTransfer, reason: str, *, now: Instant
    ) -> Decision[None]:
        """The sender does not have the funds back: the books get them, and the refund failed."""
        known = tx.get(Refund, outgoing.owner_id)
        assert known is not None
        payment, refund = _lock_refund(tx, known)
        if refund.status != "succeeded":
            return Decision(None)
        return _reverse_refund(payment, refund, reason, now=now)


def _confirm_refund(
    payment: Payment, refund: Refund, outcome: TransferOutcome, *, now: Instant
) -> Decision[None]:
    trigger = lifecycle.payment_trigger(payment, refund)
    step = payments.apply_refund(
        payment, trigger, refund.id, refund.destination,
        now=now, note=refund.reason, **refund.sources,
    )  # fmt: skip
    claimed = any(item.address == refund.destination for item in payment.paid_by)
    done = lifecycle.apply_trigger(
        refund, "confirm", step.record, now=now, claimed=claimed, transaction_hash=outcome.hash
    )
    return done.as_decision().merge(step.as_decision())


def _fail_refund(payment: Payment, refund: Refund, reason: str, *, now: Instant) -> Decision[None]:
    failed = lifecycle.apply_trigger(refund, "fail", payment, now=now, failure=reason)
    forgetting = payments.drop_refund(payment, refund.id, now=now)
    return failed.as_decision().merge(forgetting.as_decision())


def _reverse_refund(
    payment: Payment, refund: Refund, reason: str, *, now: Instant
) -> Decision[None]:
    step = reverse_refund(
        payment, refund.id, refund.destination, claimed=refund.claimed, now=now, **refund.sources
    )
    failed = lifecycle.apply_trigger(
        refund, "reorg", step.record, now=now, failure=reason, claimed=False, succeeded_at_ms=None
    )
    return failed.as_decision().merge(step.as_decision())


def _reservation_of_refund(refund: Refund) -> Reservation:
    assert refund.vault_id is not None
    return Reservation(
        vault_id=refund.vault_id,
        asset=refund.asset,
        amount_atomic=refund.amount_atomic,
        counted_at_ms=None,
    )


def _lock_refund(tx: Transaction, known: Refund) -> _LockedRefund:
    payment = lock_payment(tx, known.payment_id)
    refund = tx.get(Refund, known.id, for_update=True)
    assert refund is not None
    return payment, refund
