"""The receipts of a transaction after an observation. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from payments_core.chains.judge import ExpectedTransfer, Verdict, judge
from payments_core.chains.port import Block, Heads, TransactionView, TransferLog
from payments_core.clock import Instant
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.networks import Asset, Network
from payments_core.payments.receipts import lifecycle
from payments_core.payments.receipts.record import Receipt, TrackedTransaction

MAX_RECEIPTS_PER_TRANSACTION = 200
"""The maximum number of logs of one transaction to one escrow; a record must stay small."""


@attrs.frozen
class ObservedTransaction:
    """A transaction as the chain knew it, and the heads that were read before it.

    The final block of `heads` is the newest that the Payment accepts, and `final_height` the
    chain's own. `network` is its chain's; None if that is no longer registered. `asset` is the
    Payment's, if it is on this chain: the network may have it no more, or by another name.
    """

    view: TransactionView | None
    heads: Heads
    network: Network | None
    final_height: int = attrs.field(
        default=attrs.Factory(lambda self: self.heads.final.number, takes_self=True)
    )
    asset: Asset | None = None

    def identify_token(self, address: str) -> Asset | None:
        """The Payment's token, or a noticed one, at an address; None for any other."""
        own = () if self.asset is None else (self.asset,)
        tokens = own if self.network is None else (*own, *self.network.noticed_tokens)
        return next((token for token in tokens if token.address == address), None)

    @property
    def block(self) -> Block | None:
        """The block of the transaction."""
        return self.view.block if self.view is not None else None

    @property
    def is_final(self) -> bool:
        """Whether it is in a block that the Payment accepts, successful or not."""
        return self.block is not None and self.block.number <= self.heads.final.number

    @property
    def is_settled(self) -> bool:
        """Whether it is in a block that is final on the chain too."""
        return self.is_final and self.block is not None and self.block.number <= self.final_height

    @property
    def has_failed(self) -> bool:
        """Whether it is final and failed."""
        return self.is_final and self.view is not None and not self.view.succeeded


@attrs.frozen
class Evaluation:
    """The changes to a transaction's receipts.

    `proven` are valid and final and wait to be counted; `reorged` are as they were when they
    counted. Both are among `receipts`, the proven still observed, the reorged no longer verified.
    `has_pending_transfer` says that a transfer is valid but not final; `amount_atomic` is the valid
    amount, final or not.
    """

    receipts: tuple[Receipt, ...]
    proven: tuple[Receipt, ...]
    reorged: tuple[Receipt, ...]
    has_pending_transfer: bool
    amount_atomic: int


def evaluate(
    tracked: TrackedTransaction,
    known: Sequence[Receipt],
    observed: ObservedTransaction,
    expectation: ExpectedTransfer,
    new_id: Callable[[], str],
    *,
    now: Instant,
) -> Evaluation:
    """The receipts after an observation: seen, proven, rejected or undone."""
    verdicts = _judge_logs(tracked, observed, expectation)
    receipts: list[Receipt] = []
    undone: list[Receipt] = []
    positions = {verdict.log.position for verdict in verdicts if verdict.log is not None}
    for receipt in known:
        if receipt.position in positions:
            continue
        if receipt.status == "verified":
            undone.append(receipt)
        receipts.append(_update_missing(receipt, observed))
    by_position = {receipt.position: receipt for receipt in known}
    proven: list[Receipt] = []
    for verdict in verdicts:
        log, block = verdict.log, observed.block
        if log is None or block is None:
            continue
        before = by_position.get(log.position)
        if before is None:
            before = _new_receipt(new_id(), tracked, observed, block, log, now)
        receipt = _update_location(before, tracked, observed, block, log)
        if before.status == "verified" and receipt.status != "verified":
            undone.append(before)
        if receipt.status == "observed" and observed.is_final:
            if verdict.reason is None:
                proven.append(receipt)
            elif observed.is_settled:  # what is rejected may go back, from the same escrow
                receipt = lifecycle.mark_rejected(receipt, verdict.reason).record
        receipts.append(receipt)
    has_pending_transfer = any(
        verdict.is_pending and verdict.log is not None for verdict in verdicts
    )
    amount = sum(
        verdict.log.amount_atomic
        for verdict in verdicts
        if verdict.log is not None and (verdict.reason is None or verdict.is_pending)
    )
    return Evaluation(tuple(receipts), tuple(proven), tuple(undone), has_pending_transfer, amount)


def _judge_logs(
    tracked: TrackedTransaction, observed: ObservedTransaction, expectation: ExpectedTransfer
) -> tuple[Verdict, ...]:
    if observed.view is None or observed.block is None:
        return ()
    verdicts = judge(
        expectation, tracked.chain_id, observed.view, observed.heads, consumed=frozenset()
    )
    return verdicts[:MAX_RECEIPTS_PER_TRANSACTION]


def _update_missing(receipt: Receipt, observed: ObservedTransaction) -> Receipt:
    """A receipt whose log the transaction no longer has."""
    if receipt.status == "rejected" and not receipt.is_misdirected:
        return receipt
    if receipt.status in ("verified", "rejected"):
        receipt = lifecycle.mark_reorged(receipt).record
    if observed.has_failed:
        return lifecycle.mark_rejected(receipt, "transaction_failed").record
    return receipt if receipt.status == "reorged" else lifecycle.mark_reorged(receipt).record


def _update_location(
    receipt: Receipt,
    tracked: TrackedTransaction,
    observed: ObservedTransaction,
    block: Block,
    log: TransferLog,
) -> Receipt:
    """The receipt at its log's present place.

    A log that came back in another block is compared again: a log that differs, that is
    not final there, or that was rejected before, is judged again.
    """
    moved = receipt.block_hash != block.hash
    again = receipt.status == "rejected" or (receipt.status == "verified" and not observed.is_final)
    had_failed = receipt.rejection_reason == "transaction_failed"
    if receipt.status == "reorged":
        receipt = _copy_log_fields(lifecycle.mark_reobserved(receipt).record, observed, log)
    elif not _is_same(receipt, log) or (moved and again) or had_failed:
        receipt = _copy_log_fields(
            lifecycle.mark_reorged(receipt).then(lifecycle.mark_reobserved).record, observed, log
        )
    return evolve(
        receipt,
        option_id=tracked.option_id,  # the sender may have become known since
        block_number=block.number,
        block_hash=block.hash,
        log_index=log.log_index,
    )


def _is_same(receipt: Receipt, log: TransferLog) -> bool:
    return (receipt.token_address, receipt.sender, receipt.recipient, receipt.amount_atomic) == (
        log.token_address,
        log.sender,
        log.recipient,
        log.amount_atomic,
    )


def _copy_log_fields(receipt: Receipt, observed: ObservedTransaction, log: TransferLog) -> Receipt:
    return evolve(
        receipt,
        **_token_fields(observed, log),
        sender=log.sender,
        recipient=log.recipient,
        amount_atomic=Atomic(log.amount_atomic),
    )


def _token_fields(observed: ObservedTransaction, log: TransferLog) -> dict[str, Any]:
    token = observed.identify_token(log.token_address)
    return {
        "token_address": log.token_address,
        "asset_symbol": token.symbol if token else None,
        "decimals": token.decimals if token else 0,
    }


def _new_receipt(
    id: str,
    tracked: TrackedTransaction,
    observed: ObservedTransaction,
    block: Block,
    log: TransferLog,
    now: Instant,
) -> Receipt:
    return Receipt(
        id=id,
        payment_id=tracked.payment_id,
        option_id=tracked.option_id,
        chain_id=tracked.chain_id,
        transaction_hash=tracked.transaction_hash,
        position=log.position,
        log_index=log.log_index,
        **_token_fields(observed, log),
        sender=log.sender,
        recipient=log.recipient,
        amount_atomic=Atomic(log.amount_atomic),
        block_number=block.number,
        block_hash=block.hash,
        status=lifecycle.RECEIPT.step(None, "observe").target,
        observed_at_ms=now,
    )
