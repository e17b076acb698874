"""Blocks of one node by height, and the results of contracts at a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from payments_core.chains.evm import responses as answers
from payments_core.chains.evm.quorum import NodeLagging, NodeSession
from payments_core.chains.evm.responses import BadResponse
from payments_core.chains.evm.rpc import Result, RpcCall, require_results
from payments_core.chains.port import Block


def block_call(number: int) -> RpcCall:
    """Ask for the block of that height, without its transactions."""
    return RpcCall("eth_getBlockByNumber", (hex(number), False))


def parse_block_at(raw: msgspec.Raw, number: int) -> Block | None:
    """The block of that height, or None above the node's newest."""
    block = answers.parse_block(raw)
    if block is not None and block.number != number:
        raise BadResponse("the block is not the requested block")
    return block


def read_blocks(session: NodeSession, numbers: Sequence[int]) -> tuple[Block | None, ...]:
    """The blocks of these heights; None for those above the node's newest."""
    results = session.call_all([block_call(number) for number in numbers])
    return tuple(parse_block_at(raw, number) for raw, number in zip(results, numbers, strict=True))


def call_at_block(
    session: NodeSession, calls: Sequence[Mapping[str, str]], block: Block
) -> Sequence[msgspec.Raw]:
    """The results of contracts at a block, which the node must have before and after."""
    results = try_at_block(session, calls, block)
    return require_results(session.name, _eth_calls(calls, block), results)


def try_at_block(
    session: NodeSession, calls: Sequence[Mapping[str, str]], block: Block
) -> Sequence[Result]:
    """As `call_at_block`, with a Refusal for each refused call."""
    around = block_call(block.number)
    asked = [around, *_eth_calls(calls, block), around]
    before, *results, after = session.batch(asked)
    first, last = require_results(session.name, [around, around], [before, after])
    if not parse_block_at(first, block.number) == parse_block_at(last, block.number) == block:
        raise NodeLagging(f"{session.name}: does not have block {block.number} of the other nodes")
    return results


def _eth_calls(calls: Sequence[Mapping[str, str]], block: Block) -> list[RpcCall]:
    return [RpcCall("eth_call", (call, hex(block.number))) for call in calls]
