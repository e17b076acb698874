"""The status of transactions: at each node, and at enough of them together."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from payments_core.chains.evm import responses as answers
from payments_core.chains.evm.blocks import block_call, parse_block_at
from payments_core.chains.evm.quorum import NodeSession, QuorumResult, find_agreed_value
from payments_core.chains.evm.responses import BadResponse, Receipt
from payments_core.chains.evm.rpc import Refusal, Result, RpcCall
from payments_core.chains.port import Block, TransactionView
from payments_core.evolve import evolve


@attrs.frozen
class TransactionStatus:
    """A node's status of a transaction: its block, if any, and whether it is known."""

    view: TransactionView | None
    is_known: bool


UNKNOWN = TransactionStatus(None, is_known=False)
PENDING = TransactionStatus(None, is_known=True)


def read_statuses(
    session: NodeSession, hashes: Sequence[str]
) -> tuple[TransactionStatus | None, ...]:
    """A node's status of each transaction; None if its answer is impossible, or a refusal.

    A receipt counts in the block that the node itself has at that height. With another block
    there it answers from a fork that it has left, which proves nothing; with none, the block is
    still being made, as with the early receipts of some rollups.
    """
    results = session.batch([RpcCall("eth_getTransactionReceipt", (hash,)) for hash in hashes])
    receipts: dict[str, Receipt] = {}
    without: list[str] = []
    for hash, result in zip(hashes, results, strict=True):
        try:
            receipt = None if isinstance(result, Refusal) else answers.parse_receipt(result, hash)
        except BadResponse:
            continue
        if receipt is not None:
            receipts[hash] = receipt
        elif not isinstance(result, Refusal):
            without.append(hash)
    heights = sorted({receipt.block.number for receipt in receipts.values()})
    calls = [block_call(height) for height in heights]
    calls += [RpcCall("eth_getTransactionByHash", (hash,)) for hash in without]
    more = session.batch(calls)
    seen = dict(
        zip(without, map(_status_outside_blocks, more[len(heights) :], without), strict=True)
    )
    blocks = dict(zip(heights, more, strict=False))
    seen |= {
        hash: _status_in_block(receipt, blocks[receipt.block.number])
        for hash, receipt in receipts.items()
    }
    return tuple(seen.get(hash) for hash in hashes)


def agree_on_transaction(
    hash: str, sightings: Sequence[TransactionStatus | None], enough: int
) -> QuorumResult[TransactionView | None] | None:
    """The status on which enough nodes agree, or None if too few do.

    Nodes that have it in no block agree on that, though not every one may know it:
    it is pending if enough know it, else unknown, which at worst sends it again.
    """
    view = find_agreed_value((sighting.view for sighting in sightings if sighting), enough)
    if view is not None:
        return QuorumResult(view)
    nowhere = [sighting for sighting in sightings if sighting and sighting.view is None]
    if len(nowhere) < enough:
        return None
    is_pending = sum(sighting.is_known for sighting in nowhere) >= enough
    return QuorumResult(TransactionView(hash, None, False, ()) if is_pending else None)


def _status_in_block(receipt: Receipt, result: Result) -> TransactionStatus | None:
    if isinstance(result, Refusal):
        return None
    try:
        block: Block | None = parse_block_at(result, receipt.block.number)
    except BadResponse:
        return None
    if block is None:
        return PENDING
    if not block.is_same(receipt.block):
        return None
    view = answers.to_transaction_view(evolve(receipt, block=block))
    return TransactionStatus(view, is_known=True)


def _status_outside_blocks(result: Result, hash: str) -> TransactionStatus | None:
    if isinstance(result, Refusal):
        return None
    try:
        return PENDING if answers.is_known(result, hash) else UNKNOWN
    except BadResponse:
        return None
