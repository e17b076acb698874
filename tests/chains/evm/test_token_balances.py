"""Balances of many tokens cost a node one request, and share the look at its heads."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from payments_core.chains.evm.reader import EvmReader
from payments_core.chains.port import ChainUnavailable
from payments_core.chains.shared_read import SharedRead
from tests.chains.evm.fake_node import (
    ESCROW,
    PAYER,
    TOKEN,
    VAULT,
    FakeChain,
    FakeNode,
    reading,
)

Nodes = Callable[..., list[FakeNode]]

OTHER = "0x" + "0f" * 20


class Clock:
    """Seconds that only the test moves."""

    def __init__(self, read: EvmReader) -> None:
        self.now = 0.0
        read._shared_heads = SharedRead(read.heads, read.heads_shared_for_s, lambda: self.now)


def test_the_balances_of_many_tokens_are_one_batch_at_the_final_block(fakes: Nodes) -> None:
    chain = FakeChain()
    chain.balances = {(TOKEN.lower(), ESCROW.lower()): 7, (OTHER, VAULT.lower()): 5}
    (node,) = fakes(chain)
    read = reading([node])
    read.heads()  # which asks for the chain's number, too
    node.requests.clear()
    found = read.token_balances([TOKEN, OTHER, TOKEN], [ESCROW, VAULT])
    assert {token: at.amounts for token, at in found.items()} == {
        TOKEN: {ESCROW: 7, VAULT: 0},
        OTHER: {ESCROW: 0, VAULT: 5},
    }
    assert {at.height for at in found.values()} == {12}
    assert len(node.requests) == 2
    assert read.token_balances([], [ESCROW]) == {}


def test_the_heads_are_looked_at_once_a_second(fakes: Nodes) -> None:
    (node,) = fakes(FakeChain())
    read = reading([node])
    clock = Clock(read)
    read.token_balances([TOKEN], [PAYER])
    node.requests.clear()
    for _ in range(100):
        read.token_balances([TOKEN, OTHER], [PAYER])
    assert len(node.requests) == 100
    clock.now = 1.0
    read.token_balances([TOKEN], [PAYER])
    assert len(node.requests) == 102
    node.requests.clear()
    read.balances(TOKEN, [PAYER])  # what decides about money looks for itself
    assert len(node.requests) == 2


def test_many_at_one_moment_share_one_look(fakes: Nodes) -> None:
    (node,) = fakes(FakeChain())
    read = reading([node])
    Clock(read)
    read.heads()
    node.requests.clear()
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(read.token_balances, [TOKEN], [PAYER]) for _ in range(8)]
        assert {one.result()[TOKEN].height for one in waiting} == {12}
    assert len(node.requests) == 9


def test_a_final_block_that_is_gone_is_not_an_answer_and_soon_another_is_looked_for(
    fakes: Nodes,
) -> None:
    chain = FakeChain()
    (node,) = fakes(chain)
    read = reading([node])
    clock = Clock(read)
    read.token_balances([TOKEN], [PAYER])
    node.chain = chain.forked(5, "other")
    with pytest.raises(ChainUnavailable):
        read.token_balances([TOKEN], [PAYER])
    clock.now = 1.0
    assert read.token_balances([TOKEN], [PAYER])[TOKEN].amounts == {PAYER: 0}


def test_a_node_that_hangs_hangs_one_look_for_all(fakes: Nodes) -> None:
    (node,) = fakes(FakeChain())
    read = reading([node])
    node.fault = "hang"
    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(read.token_balances, [TOKEN], [PAYER]) for _ in range(8)]
        for one in waiting:
            with pytest.raises(ChainUnavailable):
                one.result()
    assert time.monotonic() - began < 5
    assert len(node.requests) <= 2
