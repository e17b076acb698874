"""What nodes say about the prices of gas, in wei for one unit; `fees.py` makes offers of it."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import msgspec

from payments_core.chains.evm import responses as answers
from payments_core.chains.evm.quorum import NodeQuorum, NodeSession, QuorumResult
from payments_core.chains.evm.rpc import Refusal, RpcCall

MARKET_CALLS = (
    RpcCall("eth_feeHistory", ("0x1", "latest", [])),
    RpcCall("eth_maxPriorityFeePerGas"),
)
"""The calls whose results `parse_market` takes."""


@attrs.frozen
class FeeMarket:
    """A node's prices: the next block's base fee, and the tip that it suggests."""

    base_fee: int
    priority: int


def parse_market(history: msgspec.Raw, tip: msgspec.Raw) -> FeeMarket:
    """The prices of a node. Raises BadResponse."""
    return FeeMarket(answers.parse_next_base_fee(history), answers.parse_wei(tip))


def estimate_market(endpoints: NodeQuorum) -> FeeMarket:
    """The median of each price over enough nodes: a lying node changes little.

    Raises ChainUnavailable.
    """
    enough = endpoints.enough

    def ask(session: NodeSession) -> FeeMarket:
        history, tip = session.call_all(MARKET_CALLS)
        return parse_market(history, tip)

    replies = endpoints.query_until_decided(
        ask,
        lambda replies, is_last: QuorumResult(tuple(replies)) if len(replies) >= enough else None,
    )
    return FeeMarket(
        median([market.base_fee for market in replies]),
        median([market.priority for market in replies]),
    )


def estimate_gas(endpoints: NodeQuorum, sender: str, to: str, data: bytes) -> int:
    """The gas that nodes estimate; 0 if they say that it would fail, which is possible.

    Raises ChainUnavailable.
    """
    call = {"from": sender, "to": to, "data": "0x" + data.hex()}

    def ask(session: NodeSession) -> int:
        (result,) = session.batch([RpcCall("eth_estimateGas", (call,))])
        return 0 if isinstance(result, Refusal) else answers.parse_number(result)

    return median(endpoints.query_all(ask))


def median(numbers: Sequence[int]) -> int:
    """The median: among three, one lying node cannot choose it."""
    return sorted(numbers)[len(numbers) // 2]
