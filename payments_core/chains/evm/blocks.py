"""Blocks of one node by their height, and what contracts return at one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from payments_core.chains.evm import answers
from payments_core.chains.evm.answers import BadAnswer
from payments_core.chains.evm.endpoints import Behind, Session
from payments_core.chains.evm.rpc import Call
from payments_core.chains.port import Block


def block_call(number: int) -> Call:
    """Ask for the block of that height, without its transactions."""
    return Call("eth_getBlockByNumber", (hex(number), False))


def block_of(raw: msgspec.Raw, number: int) -> Block | None:
    """The block of that height, or None above the node's newest."""
    block = answers.block(raw)
    if block is not None and block.number != number:
        raise BadAnswer("another block than was asked for")
    return block


def blocks_at(session: Session, numbers: Sequence[int]) -> tuple[Block | None, ...]:
    """The blocks of these heights; None for those above the node's newest."""
    results = session.results([block_call(number) for number in numbers])
    return tuple(block_of(raw, number) for raw, number in zip(results, numbers, strict=True))


def called_at(
    session: Session, calls: Sequence[Mapping[str, str]], block: Block
) -> Sequence[msgspec.Raw]:
    """What contracts return at a block, which the node must have before and after."""
    around = block_call(block.number)
    asked = [Call("eth_call", (call, hex(block.number))) for call in calls]
    before, *results, after = session.results([around, *asked, around])
    if not block_of(before, block.number) == block_of(after, block.number) == block:
        raise Behind(f"{session.name}: does not have block {block.number} of the others")
    return results
