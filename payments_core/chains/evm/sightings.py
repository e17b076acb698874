"""What nodes say of transactions: each by itself, and enough of them together."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from payments_core.chains.evm import answers
from payments_core.chains.evm.answers import BadAnswer, Receipt
from payments_core.chains.evm.blocks import block_call, block_of
from payments_core.chains.evm.endpoints import Session, Settled, alike
from payments_core.chains.evm.rpc import Call, Refusal, Result
from payments_core.chains.port import Block, TransactionView


@attrs.frozen
class Sighting:
    """What a node says of a transaction: where it is, if in a block, and whether it is known."""

    view: TransactionView | None
    is_known: bool


NOWHERE = Sighting(None, is_known=False)
PENDING = Sighting(None, is_known=True)


def sightings(session: Session, hashes: Sequence[str]) -> tuple[Sighting | None, ...]:
    """What a node says of each transaction; None where that cannot be right, or is a refusal.

    A receipt counts in the block that the node itself has at that height. With another block
    there it answers from a fork that it has left, which says nothing; with none, the block is
    only being made, as with the early receipts of some rollups.
    """
    results = session.batch([Call("eth_getTransactionReceipt", (hash,)) for hash in hashes])
    receipts: dict[str, Receipt] = {}
    without: list[str] = []
    for hash, result in zip(hashes, results, strict=True):
        try:
            receipt = None if isinstance(result, Refusal) else answers.receipt(result, hash)
        except BadAnswer:
            continue
        if receipt is not None:
            receipts[hash] = receipt
        elif not isinstance(result, Refusal):
            without.append(hash)
    heights = sorted({receipt.block.number for receipt in receipts.values()})
    calls = [block_call(height) for height in heights]
    calls += [Call("eth_getTransactionByHash", (hash,)) for hash in without]
    more = session.batch(calls)
    seen = dict(zip(without, map(_without, more[len(heights) :], without), strict=True))
    blocks = dict(zip(heights, more, strict=False))
    seen |= {
        hash: _within(receipt, blocks[receipt.block.number]) for hash, receipt in receipts.items()
    }
    return tuple(seen.get(hash) for hash in hashes)


def settled(
    hash: str, sightings: Sequence[Sighting | None], enough: int
) -> Settled[TransactionView | None] | None:
    """What enough nodes say of a transaction, or None if too few say the same.

    Nodes that have it in no block agree on that much, though not every one may have heard of it:
    it is pending if enough have, and else unknown, which at worst sends it once more.
    """
    view = alike((sighting.view for sighting in sightings if sighting), enough)
    if view is not None:
        return Settled(view)
    nowhere = [sighting for sighting in sightings if sighting and sighting.view is None]
    if len(nowhere) < enough:
        return None
    is_pending = sum(sighting.is_known for sighting in nowhere) >= enough
    return Settled(TransactionView(hash, None, False, ()) if is_pending else None)


def _within(receipt: Receipt, result: Result) -> Sighting | None:
    if isinstance(result, Refusal):
        return None
    try:
        block: Block | None = block_of(result, receipt.block.number)
    except BadAnswer:
        return None
    if block is None:
        return PENDING
    return Sighting(answers.view(receipt), is_known=True) if block == receipt.block else None


def _without(result: Result, hash: str) -> Sighting | None:
    if isinstance(result, Refusal):
        return None
    try:
        return PENDING if answers.is_known(result, hash) else NOWHERE
    except BadAnswer:
        return None
