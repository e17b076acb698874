"""The log of native coin that is at an escrow: one transaction, which moves nothing.

Coin arrives without a log. When a Payment expires, its escrow is asked for such coin, and the
contracts make the log; from then on it is a misdirected receipt like any other (`misdirected.py`).
A stranger may have made the log before: then ours fails, and the scan has found the stranger's.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from payments_core.addresses import NATIVE_ADDRESS
from payments_core.chains.outbox.owners import TransferToSend
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    TransferOutcome,
    TransferPurpose,
    TransferToWatch,
    new_transfer,
    send_job,
    watch_job,
)
from payments_core.chains.port import Chain, SignedTransaction, UnloggedCoin
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.networks import Networks
from payments_core.payments.details import lock_payment
from payments_core.payments.receipts.discovery import track_transaction
from payments_core.payments.record import Payment
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get

_log = logging.getLogger(__name__)

REPORT_COIN = "payments.report_coin"
WATCH_COIN_REPORT = "payments.watch_coin_report"


def find_coin(
    chains: Mapping[int, Chain], networks: Networks, partition: str, payment: Payment
) -> int:
    """How much native coin without a log is at the Payment's escrow. Raises ChainUnavailable."""
    chain: object = chains.get(payment.chain_id)
    escrow = payment.escrow
    is_noticed = networks.identify_token(payment.chain_id, NATIVE_ADDRESS) is not None
    if escrow is None or not is_noticed or not isinstance(chain, UnloggedCoin):
        return 0
    return chain.find_unlogged_coin(partition, [escrow]).get(escrow.address, 0)


def decide_report(
    networks: Networks, partition: str, step: Step[Payment], id: str, amount: int, *, now: Instant
) -> Decision[None]:
    """The Payment's step, with the transaction that makes the log."""
    payment = step.record
    coin = networks.identify_token(payment.chain_id, NATIVE_ADDRESS)
    assert coin is not None
    assert payment.escrow is not None
    outgoing = new_transfer(
        id,
        coin,
        "sweep",
        payment.id,
        source=payment.escrow,
        recipient=payment.escrow.address,
        amount=amount,
        now=now,
    )
    reporting = evolve(step, record=evolve(payment, coin_report_id=id))
    job = send_job(REPORT_COIN, partition, outgoing, now)
    return reporting.as_decision().merge(Decision(None, inserts=(outgoing,), jobs=(job,)))


class CoinReportOwner:
    """A Payment at whose escrow there is native coin without a log."""

    purpose: TransferPurpose = "coin_report"
    record_type = Payment
    send_kind = REPORT_COIN
    watch_kind = WATCH_COIN_REPORT
    on_unsent = None

    def __init__(self, chains: Mapping[int, Chain], networks: Networks) -> None:
        self._chains = chains
        self._networks = networks

    def find_to_send(self, record: Payment) -> TransferToSend | None:
        """The report; there is never another of one Payment."""
        assert record.coin_report_id is not None
        return TransferToSend(record.chain_id, record.coin_report_id)

    def find_to_watch(self, record: Payment, job: Job) -> TransferToWatch | None:
        """The report."""
        assert record.coin_report_id is not None
        return TransferToWatch(record.coin_report_id)

    def locks(self, record: Payment, transaction_hash: str) -> Sequence[Get]:
        """The Payment."""
        return (Get(Payment, record.id, "exclusive"),)

    def on_sent(
        self, tx: Transaction, record: Payment, signed: SignedTransaction, *, now: Instant
    ) -> Decision[None]:
        """A job watches it."""
        lane = f"coin_report:{record.id}"
        return Decision(None, jobs=(watch_job(WATCH_COIN_REPORT, lane, record.id, now=now),))

    def read_chain(self, partition: str, record: Payment, outcome: TransferOutcome) -> int:
        """After a failure, how much coin still has no log."""
        if outcome.reason is None:
            return 0
        return find_coin(self._chains, self._networks, partition, record)

    def lock(self, tx: Transaction, record: Payment, outgoing_id: str) -> Payment | None:
        """The Payment."""
        return lock_payment(tx, record.id)

    def on_final(
        self,
        tx: Transaction,
        locked: Payment,
        outcome: TransferOutcome,
        facts: int,
        *,
        now: Instant,
    ) -> Decision[None]:
        """Its log is checked like any transfer to the escrow. Without one, a stranger has made it
        before, or the coin is gone with its block, or somebody must look."""
        if facts:
            _log.error(
                "ALARM: chain %d: native coin at %s was not noticed: %s of %s "
                "(docs/how-to/troubles/misdirected.md)",
                locked.chain_id,
                locked.escrow_address,
                outcome.reason,
                outcome.hash,
            )
        if outcome.reason is not None:
            return Decision(None)
        return track_transaction(tx, locked.id, locked.chain_id, outcome.hash, now=now, due_at=now)

    def on_reversed(
        self, tx: Transaction, outgoing: OutboundTransfer, reason: str, *, now: Instant
    ) -> Decision[None]:
        """Nothing: the receipt of its log has followed it."""
        return Decision(None)
