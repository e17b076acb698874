"""The judge: what a transaction proves of an expected transfer. Pure.

The order of the checks is the order of the reasons in contract §6: the first failed check is
reported.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Literal

import attrs

from payments_core.acceptance import Acceptance
from payments_core.chains.port import Block, Heads, TransactionView, TransferLog
from payments_core.evolve import evolve

Reason = Literal[
    "wrong_chain",
    "wrong_token",
    "wrong_recipient",
    "wrong_amount",
    "transaction_failed",
    "not_final",
    "already_used",
]


@attrs.frozen
class ExpectedTransfer:
    """The transfer that would count: a token's pinned address, to one recipient, on one chain.

    Transfers from `not_from` are ignored.
    """

    chain_id: int
    token_address: str
    recipient: str
    not_from: str | None = None


@attrs.frozen
class Verdict:
    """The verdict on one transfer log, or on the lack of any. No reason: it is proven and final."""

    log: TransferLog | None
    reason: Reason | None

    @property
    def is_pending(self) -> bool:
        """Valid but not final: it may still become proof."""
        return self.reason == "not_final"


def lacks_transfer(
    view: TransactionView,
    recipient: str,
    *,
    token_address: str | None = None,
    amount_atomic: int | None = None,
) -> bool:
    """Whether a transaction is in a block, succeeded, and shows no transfer to this recipient, of
    this token and amount if they are given.

    Where there must be one, as in a transaction of our own contracts or where a scan has found
    one, the node has not read the logs yet: that proves nothing, and is no failure.
    """
    is_done = view.block is not None and view.succeeded
    return is_done and not any(
        log.recipient == recipient
        and token_address in (None, log.token_address)
        and amount_atomic in (None, log.amount_atomic)
        for log in view.logs
    )


def apply_acceptance(heads: Heads, early: Acceptance | None, confirmations: int) -> Heads:
    """The heads as they count for a Payment: its final block is the newest that it accepts.

    With an `early` row of the network's policy that is at least the chain's own final block;
    `confirmations` are blocks that must be on top of it in any case. A block that is not the
    chain's final one has only its number.
    """
    height = heads.final.number
    if early is not None:
        tagged = {"safe": heads.safe_height, "finalized": height}.get(early.tag or "latest")
        if tagged is not None or early.tag in (None, "latest"):
            height = max(height, early.find_height(heads.latest.number, tagged))
    height = min(height, heads.latest.number - confirmations)
    return heads if height == heads.final.number else evolve(heads, final=Block(height, ""))


def judge(
    expectation: ExpectedTransfer,
    chain_id: int,
    view: TransactionView,
    heads: Heads,
    consumed: Set[int],
) -> tuple[Verdict, ...]:
    """A verdict for every transfer that could have been meant, and at least one.

    `consumed` holds the positions of this transaction's logs that other receipts already count.
    """
    fitting = tuple(
        log
        for log in view.logs
        if log.recipient == expectation.recipient and log.sender != expectation.not_from
    )
    if chain_id != expectation.chain_id:
        return tuple(Verdict(log, "wrong_chain") for log in fitting or (None,))
    if view.block is None:  # it has no logs yet, and may get any
        return (Verdict(None, "not_final"),)
    is_final = view.block.number <= heads.final.number
    if not view.succeeded:  # a failed transaction has no logs to be judged
        return (Verdict(None, "transaction_failed" if is_final else "not_final"),)
    if not fitting:
        return (Verdict(None, "wrong_recipient"),)
    return tuple(_judge_log(expectation, log, is_final, consumed) for log in fitting)


def _judge_log(
    expectation: ExpectedTransfer, log: TransferLog, is_final: bool, consumed: Set[int]
) -> Verdict:
    if log.token_address != expectation.token_address:
        return Verdict(log, "wrong_token")
    if log.amount_atomic == 0:
        return Verdict(log, "wrong_amount")
    if not is_final:
        return Verdict(log, "not_final")
    if log.position in consumed:
        return Verdict(log, "already_used")
    return Verdict(log, None)
