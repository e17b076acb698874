"""The transfers of a way back, as the outbox asks for them: the same for receipts and deposits.

What differs is in their owners: which rows they lock, what a transfer's end means for them, and
that a deposit's funds take two transfers.
"""

from __future__ import annotations

from typing import Protocol

from payments_core.chains.outbox.owners import TransferToSend
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    TransferToWatch,
    lock_transfer,
    withdraw_unsigned,
)
from payments_core.chains.port import SignedTransaction
from payments_core.misdirected import lifecycle
from payments_core.misdirected.record import SentBack
from payments_core.networks import Asset
from payments_core.screening.judging import Judgement, ScreenedTransfer, pay_out
from payments_core.storage.port import Transaction


class HoldsMisdirected(Protocol):
    """The record of misdirected funds: a receipt or a deposit."""

    @property
    def id(self) -> str:
        """The record's id."""

    @property
    def chain_id(self) -> int:
        """The chain that the funds are on."""

    @property
    def sent_back(self) -> SentBack | None:
        """The way back of the funds, if it was requested."""


def find_to_send(
    record: HoldsMisdirected, resource: str, asset: Asset, amount_atomic: int
) -> TransferToSend | None:
    """The transfer that was requested, unless it was sent before a crash, or withdrawn.

    It is screened for its destination, also while a deposit's funds are brought to the vault.
    """
    sent_back = record.sent_back
    if sent_back is None or sent_back.status != "created":
        return None
    screened = ScreenedTransfer(
        resource=resource,
        owner=record.id,
        asset=asset,
        amount_atomic=amount_atomic,
        concerns=(pay_out(record.chain_id, sent_back.destination),),
        is_held=sent_back.in_review,
    )
    return TransferToSend(record.chain_id, sent_back.outgoing_id, screened=screened)


def take_judgement(
    tx: Transaction, record: HoldsMisdirected, judgement: Judgement
) -> tuple[SentBack, OutboundTransfer | None] | None:
    """The way back of a locked record after a verdict, and its transfer if that was withdrawn.

    None if it waits for no transfer, or if that is signed.
    """
    sent_back = record.sent_back
    if sent_back is None or sent_back.status != "created":
        return None
    withdrawn = withdraw_unsigned(lock_transfer(tx, sent_back.outgoing_id))
    if withdrawn is None:
        return None
    if judgement.finding == "blocked":
        reason = judgement.blocked_reason
        return lifecycle.apply_trigger(sent_back, "block", failure=reason), withdrawn
    holds = judgement.finding != "clear"
    if holds == sent_back.in_review:
        return sent_back, None
    return lifecycle.apply_trigger(sent_back, "hold" if holds else "pass"), None


def find_to_watch(record: HoldsMisdirected) -> TransferToWatch | None:
    """The transfer that was sent, while its outcome is open."""
    sent_back = record.sent_back
    if sent_back is None or sent_back.status != "submitted":
        return None
    return TransferToWatch(sent_back.outgoing_id)


def submit(record: HoldsMisdirected, signed: SignedTransaction) -> SentBack | None:
    """The way back of a locked record after its transfer was sent; None if it waits for none."""
    sent_back = record.sent_back
    if sent_back is None or sent_back.status != "created":
        return None
    return lifecycle.apply_trigger(sent_back, "submit", transaction_hash=signed.hash)


def awaits(record: HoldsMisdirected, outgoing_id: str) -> bool:
    """Whether a locked record still waits for the outcome of this transfer."""
    sent_back = record.sent_back
    return (
        sent_back is not None
        and sent_back.status == "submitted"
        and sent_back.outgoing_id == outgoing_id
    )


def withdraw_unfunded(
    tx: Transaction, sent_back: SentBack
) -> tuple[SentBack, OutboundTransfer] | None:
    """The end of a way back whose funds a reorg undid, with its withdrawn transfer.

    None if its transfer is signed: a node may have it, so it continues, and fails without funds.
    """
    if sent_back.status != "created":
        return None
    withdrawn = withdraw_unsigned(lock_transfer(tx, sent_back.outgoing_id))
    if withdrawn is None:
        return None
    ended = lifecycle.apply_trigger(sent_back, "withdraw", failure="funds_reorged")
    return ended, withdrawn
