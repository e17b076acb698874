"""A look at a transaction, and the records that it is about: the inputs of `observation.py`."""

from __future__ import annotations

import attrs

from payments_core.accounts.vaults.reservations import BalanceReading
from payments_core.clock import Instant
from payments_core.engine.identifiers import IdSequence
from payments_core.payments.details import lock_vault_option
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.receipts.evaluation import ObservedTransaction
from payments_core.payments.receipts.record import Receipt, TrackedTransaction
from payments_core.payments.record import Payment
from payments_core.payments.transitions import OPEN
from payments_core.storage.port import Transaction
from payments_core.storage.records import R


@attrs.frozen
class Observation:
    """The result of a look, and the balance of the operation's vault if it ends a reservation.

    `settled_to` is how far the chain was final and had been scanned. `included_hash` is the hash of
    the transaction that is in a block instead of this one: the same with other fees;
    `nonce_was_taken` means that a foreign transaction has finally taken its nonce. `contracts` are
    the senders that are contracts; None if that is not known.
    """

    observed: ObservedTransaction
    reading: BalanceReading | None
    settled_to: int
    included_hash: str | None = None
    nonce_was_taken: bool = False
    contracts: frozenset[str] | None = None


@attrs.frozen
class FundingAttempt:
    """The operation that sent the transaction, and its option, as the look finds them."""

    option: PaymentOption
    operation: FundingOperation


@attrs.frozen
class Case:
    """All inputs of a look's meaning: the look, and the records it is about, locked.

    `option` is the public option that a stranger's transaction pays by, and `receipts` are those
    of the evidence, as they were before.
    """

    tx: Transaction
    id_sequence: IdSequence
    partition: str
    observation: Observation
    now: Instant
    payment: Payment
    tracked: TrackedTransaction
    attempt: FundingAttempt | None
    option: PaymentOption | None
    receipts: tuple[Receipt, ...]

    @property
    def live(self) -> FundingAttempt | None:
        """The attempt, if the look may still decide it."""
        is_live = self.attempt is not None and self.attempt.operation.status in funding.LIVE
        return self.attempt if is_live else None

    @property
    def paid_at(self) -> Instant:
        """When the transaction happened, by the time of its block."""
        block = self.observation.observed.block
        return self.now if block is None or block.time is None else block.time

    @property
    def is_too_late(self) -> bool:
        """Whether the transaction came after the expiry of a Payment that has not expired yet.

        What was authorized in time is in time, whenever its transfer gets into a block.
        """
        return (
            self.payment.status in OPEN
            and self.live is None
            and self.tracked.chain_id == self.payment.chain_id
            and self.observation.observed.block is not None
            and self.paid_at > self.payment.expires_at_ms
        )


def lock_attempt(tx: Transaction, tracked: TrackedTransaction) -> FundingAttempt | None:
    option_id = tracked.sending_option_id
    return None if option_id is None else FundingAttempt(*lock_vault_option(tx, option_id))


def lock_row(tx: Transaction, kind: type[R], id: str) -> R:
    record = tx.get(kind, id, for_update=True)
    assert record is not None, f"no {kind.__name__} {id}"
    return record
