"""The transfer of an authorization, owned by its operation: sent once, with these bytes only.

`chains.outbox.jobs` sends it; `receipts.watching` finds its result, since it arrives in
our own escrow as a receipt.
"""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.accounts.vaults.reservations import void_reservation
from payments_core.chains.backoff import POLL_MS
from payments_core.chains.outbox.owners import Doubt, TransferToSend
from payments_core.chains.outbox.record import lock_transfer, withdraw
from payments_core.chains.port import SignedTransaction
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.step import Step
from payments_core.payments.details import lock_payment, lock_vault_option
from payments_core.payments.funding import lifecycle
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.paying.authorization import SEND_FUNDING
from payments_core.payments.paying.failure import fail_funding, reservation_of_operation
from payments_core.payments.receipts.discovery import track_transaction
from payments_core.payments.receipts.record import TrackedTransaction, tracked_transaction_id
from payments_core.payments.record import Payment
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get

_UNSENT = ("authorized", "unknown")


class FundingOwner:
    """An operation with its option and Payment. A lost answer makes it `unknown`."""

    record_type = FundingOperation
    send_kind = SEND_FUNDING
    on_screened = None

    def find_to_send(self, record: FundingOperation) -> TransferToSend | None:
        """Until it ended, or was sent before a crash."""
        if record.status not in _UNSENT:
            return None
        assert record.outgoing_id is not None
        return TransferToSend(record.chain_id, record.outgoing_id, record.status == "unknown")

    def locks(self, record: FundingOperation, transaction_hash: str) -> Sequence[Get]:
        """The Payment, option and operation, and the evidence that a scan may have found."""
        tracked_id = tracked_transaction_id(record.payment_id, record.chain_id, transaction_hash)
        return (
            Get(Payment, record.payment_id, "exclusive"),
            Get(PaymentOption, record.option_id, "exclusive"),
            Get(FundingOperation, record.id, "exclusive"),
            Get(TrackedTransaction, tracked_id, "exclusive", is_optional=True),
        )

    def on_sent(
        self, tx: Transaction, record: FundingOperation, signed: SignedTransaction, *, now: Instant
    ) -> Decision[None]:
        """The operation is `broadcast`, and its receipt is watched."""
        payment = lock_payment(tx, record.payment_id)
        option, operation = lock_vault_option(tx, record.option_id)
        if operation.status not in _UNSENT:
            return Decision(None)
        sent = lifecycle.apply_trigger(
            operation, "broadcast", payment, now=now, transaction_hash=signed.hash
        )
        watch = track_transaction(
            tx,
            payment.id,
            operation.chain_id,
            signed.hash,
            now=now,
            due_at=now + POLL_MS,
            option_id=option.id,
        )
        return sent.as_decision().merge(watch)

    def on_unsent(
        self,
        tx: Transaction,
        id_sequence: IdSequence,
        partition: str,
        record: FundingOperation,
        doubt: Doubt,
        *,
        now: Instant,
    ) -> Decision[None] | None:
        """`unknown` when the answer is lost, `authorized` again when the chain does not know it.

        While the chain does not answer, the operation waits until its authorization expires.
        """
        if doubt == "silent":
            return _expire_operation(tx, id_sequence, partition, record, now=now)
        payment = lock_payment(tx, record.payment_id)
        _, operation = lock_vault_option(tx, record.option_id)
        if operation.status != record.status:
            return None
        trigger = "lose" if doubt == "lost" else "reorg"
        return lifecycle.apply_trigger(operation, trigger, payment, now=now).as_decision()


def _expire_operation(
    tx: Transaction,
    id_sequence: IdSequence,
    partition: str,
    known: FundingOperation,
    *,
    now: Instant,
) -> Decision[None] | None:
    """The operation expired and its transfer withdrawn; None before that time, or if too late."""
    if known.expires_at_ms is None or now < known.expires_at_ms:
        return None
    payment = lock_payment(tx, known.payment_id)
    option, operation = lock_vault_option(tx, known.option_id)
    assert operation.outgoing_id is not None
    stopped = withdraw(lock_transfer(tx, operation.outgoing_id))
    if operation.status != "authorized" or stopped is None:
        return None
    return Decision(None, replaces=(stopped,)).merge(
        fail_funding(
            tx,
            id_sequence,
            partition,
            Step(payment),
            option,
            operation,
            "expire",
            lambda: void_reservation(tx, reservation_of_operation(operation, payment)),
            reason="expired",
            now=now,
        )
    )
