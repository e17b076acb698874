"""What senders have is read in the batch of the heads, and enough nodes must agree on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from payments_core.chains.evm.addresses import Deployment
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.fees import (
    GAS_MARGIN,
    MEASURED_GAS,
    Action,
    count_affordable,
    gas_limit,
    initial_fees,
)
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.gas import READ_AGAIN_MS, GasReadings
from payments_core.networks import FeePolicy, shipped_networks
from tests.chains.evm.fake_node import FakeChain, FakeNode, Refuse
from tests.chains.scenes import signer

BASE = 8453
SENDER, OTHER = "0x" + "1" * 40, "0x" + "2" * 40
BASE_FEE = 10**9
FEES = shipped_networks()[BASE].fees
assert FEES is not None
COST = GAS_MARGIN * MEASURED_GAS["fund"] * initial_fees(BASE_FEE, 0, FEES).max_fee


class PricedNode(FakeNode):
    """A node that knows prices, and what senders have."""

    def __init__(self, chain: FakeChain) -> None:
        self.wei = 5 * COST
        self.base_fee = BASE_FEE
        self.gas_fault: str | None = None
        super().__init__(chain)

    def _serve(self, handler: BaseHTTPRequestHandler, request: Any) -> None:
        if self.gas_fault is not None:
            calls = request if isinstance(request, list) else [request]
            asks_gas = any(one["method"] in GAS for one in calls)
            self.fault = self.gas_fault if asks_gas else None
        super()._serve(handler, request)

    def eth_feeHistory(self, count: str, tag: str, shares: list[int]) -> dict[str, list[str]]:
        return {"baseFeePerGas": ["0x1", hex(self.base_fee)]}

    def eth_maxPriorityFeePerGas(self) -> str:
        return "0x0"

    def eth_getBalance(self, address: str, tag: str) -> str:
        return hex(self.wei)


@pytest.fixture
def nodes() -> Iterator[list[PricedNode]]:
    chain = FakeChain()
    opened = [PricedNode(chain) for _ in range(3)]
    yield opened
    for node in opened:
        node.close()


class Clock:
    """Milliseconds, which a test moves."""

    now_ms = 0

    def __call__(self) -> int:
        return self.now_ms


def opened(nodes: list[PricedNode], clock: Clock | None = None) -> EvmChain:
    quorum = NodeQuorum([node.url for node in nodes], BASE)
    chain = EvmChain(quorum, Deployment("0x" + "a" * 40), signer())
    chain._gas = GasReadings(clock or Clock())
    return chain


def read(nodes: list[PricedNode]) -> int | None:
    chain = opened(nodes)
    chain.follow_senders([SENDER])
    chain.heads()
    return chain.count_affordable(SENDER, "fund")


def methods(node: FakeNode) -> list[list[str]]:
    """The methods of each batch."""
    batches = [request for request in node.requests if isinstance(request, list)]
    return [[one["method"] for one in batch] for batch in batches]


HEADS = ["eth_chainId", "eth_getBlockByNumber", "eth_getBlockByNumber"]
GAS = ["eth_feeHistory", "eth_maxPriorityFeePerGas", "eth_getBalance"]


def test_without_a_sender_the_heads_cost_what_they_did(nodes: list[PricedNode]) -> None:
    chain = opened(nodes[:1])
    chain.heads()
    assert methods(nodes[0]) == [HEADS]


def test_the_gas_is_read_in_the_batch_of_the_heads_every_ten_seconds(
    nodes: list[PricedNode],
) -> None:
    clock = Clock()
    chain = opened(nodes[:1], clock)
    chain.follow_senders([SENDER])
    for _ in range(100):  # ten a second
        chain.heads()
        clock.now_ms += READ_AGAIN_MS // 100
    chain.heads()
    with_gas = [request == HEADS + GAS for request in methods(nodes[0])]
    assert with_gas == [True, *[False] * 99, True]


def test_what_a_sender_has_is_counted_in_each_kind_of_transfer(nodes: list[PricedNode]) -> None:
    chain = opened(nodes)
    assert chain.count_affordable(SENDER, "fund") is None
    chain.follow_senders([SENDER])
    assert chain.count_affordable(SENDER, "fund") is None
    chain.heads()
    assert chain.count_affordable(SENDER, "fund") == 5
    assert chain.count_affordable(SENDER, "pay_out") == 3
    assert chain.list_affordable() == {SENDER: 3}


@pytest.mark.parametrize(("wei", "count"), [(0, 0), (COST - 1, 0), (COST, 1), (2 * COST, 2)])
def test_a_sender_needs_the_whole_limit_at_the_whole_price(
    nodes: list[PricedNode], wei: int, count: int
) -> None:
    for node in nodes:
        node.wei = wei
    assert read(nodes) == count


def garble(params: Any, result: object) -> object:
    return {"not": "a number"}


def refuse(params: Any, result: object) -> object:
    raise Refuse("method not found")


@pytest.mark.parametrize("method", GAS)
@pytest.mark.parametrize("lie", [garble, refuse])
def test_nodes_that_do_not_say_it_still_count_for_the_heads(
    nodes: list[PricedNode], method: str, lie: Callable[[Any, object], object]
) -> None:
    nodes[0].lies[method] = lie
    assert read(nodes) == 5  # by the other two
    nodes[1].lies[method] = lie
    assert read(nodes) is None


@pytest.mark.parametrize("method", GAS)
@pytest.mark.parametrize("lie", [garble, refuse])
def test_a_node_alone_has_the_same_heads_whatever_it_says_of_gas(
    nodes: list[PricedNode], method: str, lie: Callable[[Any, object], object]
) -> None:
    chain = opened(nodes[:1])
    heads = chain.heads()
    nodes[0].lies[method] = lie
    chain.follow_senders([SENDER])
    assert chain.heads() == heads
    assert chain.count_affordable(SENDER, "fund") is None
    assert methods(nodes[0]) == [HEADS, HEADS + GAS]


@pytest.mark.parametrize(
    "fault",
    [
        "one missing",
        "wrong ids",
        "garbage",
        "empty",
        "truncated",
        "cut",
        "status 429",
        "status 500",
    ],
)
def test_a_node_alone_that_fails_on_the_gas_has_the_same_heads(
    nodes: list[PricedNode], fault: str
) -> None:
    chain = opened(nodes[:1])
    heads = chain.heads()
    nodes[0].gas_fault = fault
    chain.follow_senders([SENDER])
    assert chain.heads() == heads
    assert chain.heads() == heads  # no pause of the node has begun
    assert chain.count_affordable(SENDER, "fund") is None
    assert methods(nodes[0])[-2:] == [HEADS, HEADS]


@pytest.mark.parametrize(("poor", "count"), [(1, 5), (2, 0)])
def test_fewer_nodes_than_must_agree_make_no_sender_poor(
    nodes: list[PricedNode], poor: int, count: int
) -> None:
    for node in nodes[:poor]:
        node.wei = 0
    assert read(nodes) == count


@pytest.mark.parametrize("dear", [1, 2])
def test_fewer_nodes_than_must_agree_make_no_transfer_dear(
    nodes: list[PricedNode], dear: int
) -> None:
    assert FEES is not None
    for node in nodes[:dear]:
        node.base_fee = 3 * BASE_FEE
    at_their_price = count_affordable("fund", 5 * COST, 3 * BASE_FEE, 0, FEES)
    assert at_their_price == 1
    assert read(nodes) == (5 if dear == 1 else at_their_price)


def test_a_node_that_takes_no_batches_is_asked_one_by_one(nodes: list[PricedNode]) -> None:
    nodes[0].fault = "no batches"
    assert read(nodes[:1]) == 5


def test_a_sender_that_is_forgotten_is_not_known(nodes: list[PricedNode]) -> None:
    clock = Clock()
    chain = opened(nodes, clock)
    chain.follow_senders([SENDER, OTHER])
    chain.heads()
    clock.now_ms += 60_000
    assert chain.count_affordable(SENDER, "fund") is None
    assert sorted(chain.list_affordable()) == [SENDER, OTHER]


@pytest.mark.parametrize("action", ["fund", "pay", "pay_out", "sweep"])
@pytest.mark.parametrize("margin", [1, 2, 20])
def test_no_transfer_has_a_lower_limit_than_it_is_counted_with(action: Action, margin: int) -> None:
    policy = FeePolicy(
        min_priority=1,
        max_initial_priority=1,
        max_priority=2,
        fee_ceiling=10**12,
        unestimated_margin=margin,
    )
    price = initial_fees(BASE_FEE, 0, policy).max_fee
    for estimate in (0, 1, MEASURED_GAS[action], 3 * MEASURED_GAS[action]):
        limit = gas_limit(action, estimate, policy)
        assert count_affordable(action, limit * price, BASE_FEE, 0, policy) != 0
    lowest = min(gas_limit(action, estimate, policy) for estimate in (0, 1))
    assert count_affordable(action, lowest * price - 1, BASE_FEE, 0, policy) == 0


def test_a_chain_without_fees_counts_nothing() -> None:
    free = FeePolicy(min_priority=0, max_initial_priority=0, max_priority=0, fee_ceiling=0)
    assert count_affordable("fund", 0, 0, 0, free) is None
