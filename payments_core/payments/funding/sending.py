"""The transfer of an authorization, as its operation owns it: sent once, and never others' bytes.

`chains.outbox.jobs` sends it; `receipts.watching` finds out what became of it, since it arrives in
our own escrow as a receipt.
"""

from __future__ import annotations

from payments_core.accounts.vaults.reservations import withdrawn
from payments_core.chains.backoff import POLL_MS
from payments_core.chains.outbox.jobs import Doubt, TransferToSend
from payments_core.chains.outbox.record import locked_outgoing, withdraw
from payments_core.chains.port import Signed
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import Draw
from payments_core.engine.step import Step
from payments_core.payments.details import locked_option, locked_payment
from payments_core.payments.funding import lifecycle
from payments_core.payments.funding.failing import come_to_nothing, reservation_of
from payments_core.payments.funding.operations import SEND
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.receipts.discovery import watched
from payments_core.storage.port import Transaction

_UNSENT = ("authorized", "unknown")


class FundingOwner:
    """An operation with its option and Payment. A lost answer makes it `unknown`."""

    record_type = FundingOperation
    send_kind = SEND

    def find_to_send(self, record: FundingOperation) -> TransferToSend | None:
        """Until it ended, or was sent before a crash."""
        if record.status not in _UNSENT:
            return None
        assert record.outgoing_id is not None
        return TransferToSend(record.chain_id, record.outgoing_id, record.status == "unknown")

    def on_sent(
        self, tx: Transaction, record: FundingOperation, signed: Signed, *, now: Instant
    ) -> Decision[None]:
        """The operation is `broadcast`, and its receipt is watched."""
        payment = locked_payment(tx, record.payment_id)
        option, operation = locked_option(tx, record.option_id)
        if operation.status not in _UNSENT:
            return Decision(None)
        sent = lifecycle.step(
            operation, "broadcast", payment, now=now, transaction_hash=signed.hash
        )
        watch = watched(
            tx,
            payment.id,
            operation.chain_id,
            signed.hash,
            now=now,
            due_at=now + POLL_MS,
            option_id=option.id,
        )
        return sent.as_decision().joined(watch)

    def on_unsent(
        self,
        tx: Transaction,
        draw: Draw,
        partition: str,
        record: FundingOperation,
        doubt: Doubt,
        *,
        now: Instant,
    ) -> Decision[None] | None:
        """`unknown` when the answer is lost, `authorized` again when the chain denies it.

        While the chain is silent the operation waits no longer than its authorization lives.
        """
        if doubt == "silent":
            return _expired(tx, draw, partition, record, now=now)
        payment = locked_payment(tx, record.payment_id)
        _, operation = locked_option(tx, record.option_id)
        if operation.status != record.status:
            return None
        trigger = "lose" if doubt == "lost" else "reorg"
        return lifecycle.step(operation, trigger, payment, now=now).as_decision()


def _expired(
    tx: Transaction, draw: Draw, partition: str, known: FundingOperation, *, now: Instant
) -> Decision[None] | None:
    """The operation expired and its transfer withdrawn; None before its time, or if too late."""
    if known.expires_at is None or now < known.expires_at:
        return None
    payment = locked_payment(tx, known.payment_id)
    option, operation = locked_option(tx, known.option_id)
    assert operation.outgoing_id is not None
    stopped = withdraw(locked_outgoing(tx, operation.outgoing_id))
    if operation.status != "authorized" or stopped is None:
        return None
    return Decision(None, replaces=(stopped,)).joined(
        come_to_nothing(
            tx,
            draw,
            partition,
            Step(payment),
            option,
            operation,
            "expire",
            lambda: withdrawn(tx, reservation_of(operation, payment)),
            reason="expired",
            now=now,
        )
    )
