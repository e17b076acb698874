"""The log of native coin that is at an address of ours: one transaction, which moves nothing.

Coin arrives without a log. Where it is looked for and found, the contracts make the log; from then
on a scan finds it, and it is misdirected like any other token. A stranger may have made the log
before: then ours fails, and the scan has found the stranger's.

A report has no owner but itself: whoever is at the address learns of it from the scan.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import attrs

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
from payments_core.chains.port import Chain, Contract, SignedTransaction, UnloggedCoin
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.networks import Asset, Networks
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get

_log = logging.getLogger(__name__)

REPORT_COIN = "misdirected.report_coin"
WATCH_COIN_REPORT = "misdirected.watch_coin_report"


@attrs.frozen
class FoundCoin:
    """Native coin without a log, at a contract of ours."""

    coin: Asset
    contract: Contract
    amount_atomic: int


def find_coin(
    chains: Mapping[int, Chain],
    networks: Networks,
    partition: str,
    chain_id: int,
    contract: Contract,
) -> FoundCoin | None:
    """The native coin without a log that is at a contract, if any. Raises ChainUnavailable."""
    chain: object = chains.get(chain_id)
    coin = networks.identify_token(chain_id, NATIVE_ADDRESS)
    if coin is None or not isinstance(chain, UnloggedCoin):
        return None
    amount = chain.find_unlogged_coin(partition, [contract]).get(contract.address)
    return None if amount is None else FoundCoin(coin, contract, amount)


def request_report(partition: str, id: str, found: FoundCoin, *, now: Instant) -> Decision[None]:
    """The transaction that makes the log, which the outbox sends."""
    outgoing = new_transfer(
        id,
        found.coin,
        "sweep",
        id,
        source=found.contract,
        recipient=found.contract.address,
        amount=found.amount_atomic,
        now=now,
    )
    job = send_job(REPORT_COIN, partition, outgoing, now)
    return Decision(None, inserts=(outgoing,), jobs=(job,))


def is_under_way(tx: Transaction, report_id: str | None) -> bool:
    """Whether the outcome of a report is not final yet: another one would fail."""
    report = None if report_id is None else tx.get(OutboundTransfer, report_id)
    return report is not None and report.status != "failed" and report.block_number is None


class CoinReportOwner:
    """A report, which is its own owner. `chains.outbox.jobs` sends and follows it."""

    purpose: TransferPurpose = "coin_report"
    record_type = OutboundTransfer
    send_kind = REPORT_COIN
    watch_kind = WATCH_COIN_REPORT
    on_unsent = None
    on_screened = None

    def __init__(self, chains: Mapping[int, Chain], networks: Networks) -> None:
        self._chains = chains
        self._networks = networks

    def find_to_send(self, record: OutboundTransfer) -> TransferToSend:
        """The report, which is never withdrawn."""
        return TransferToSend(record.chain_id, record.id)

    def find_to_watch(self, record: OutboundTransfer, job: Job) -> TransferToWatch:
        """The report."""
        return TransferToWatch(record.id)

    def locks(self, record: OutboundTransfer, transaction_hash: str) -> Sequence[Get]:
        """Nothing but the transfer, which is locked anyway."""
        return ()

    def on_sent(
        self, tx: Transaction, record: OutboundTransfer, signed: SignedTransaction, *, now: Instant
    ) -> Decision[None]:
        """A job watches it."""
        lane = f"coin_report:{record.id}"
        return Decision(None, jobs=(watch_job(WATCH_COIN_REPORT, lane, record.id, now=now),))

    def read_chain(
        self, partition: str, record: OutboundTransfer, outcome: TransferOutcome
    ) -> FoundCoin | None:
        """After a failure, the coin that still has no log."""
        if outcome.reason is None:
            return None
        chains, source = self._chains, record.source
        return find_coin(chains, self._networks, partition, record.chain_id, source)

    def lock(self, tx: Transaction, record: OutboundTransfer, outgoing_id: str) -> OutboundTransfer:
        """The report, which is locked with its outcome."""
        return record

    def on_final(
        self,
        tx: Transaction,
        locked: OutboundTransfer,
        outcome: TransferOutcome,
        facts: FoundCoin | None,
        *,
        now: Instant,
    ) -> Decision[None]:
        """The scan has its log. Without one, a stranger has made it before, or the coin is gone
        with its block, or somebody must look."""
        if facts is not None:
            _log.error(
                "ALARM: chain %d: native coin at %s was not noticed: %s of %s "
                "(docs/how-to/troubles/misdirected.md)",
                locked.chain_id,
                locked.recipient,
                outcome.reason,
                outcome.hash,
            )
        return Decision(None)

    def on_reversed(
        self, tx: Transaction, outgoing: OutboundTransfer, reason: str, *, now: Instant
    ) -> Decision[None]:
        """Nothing: what the scan has found of its log has followed it."""
        return Decision(None)
