"""Balances of vaults while the chain's node hangs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from payments_core.chains.port import Chain, FinalBalances, Heads
from payments_core.chains.token_balances import read_token_balances
from payments_core.errors import DependencyFailed
from payments_core.settings import Settings
from tests.service.faults import FaultyChain
from tests.service.world import BASE, World

ETHEREUM = 1


class HangingChain(FaultyChain):
    """A node that answers no balance until it is released."""

    def __init__(self, inner: Chain) -> None:
        super().__init__(inner, 10**9, lambda call: call())
        self.released = threading.Event()
        self.asked = threading.Semaphore(0)
        self.heads_read = 0

    def balances(self, token_address: str, holders: Sequence[str]) -> FinalBalances:
        self.asked.release()
        assert self.released.wait(30)
        return super().balances(token_address, holders)

    def heads(self) -> Heads:
        self.heads_read += 1
        return super().heads()


def test_few_requests_wait_for_a_node_that_hangs_and_the_others_are_refused(
    light_world: World,
) -> None:
    chain = HangingChain(light_world.chain)
    service = light_world.restarted(chains={BASE: chain}, settings=Settings(max_remote_calls=4))
    server, account_id = light_world.server, light_world.payer.id
    accounts = service.acting_as(server).accounts
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(accounts.read_balances, account_id) for _ in range(2)]
        for _ in waiting:
            assert chain.asked.acquire(timeout=30)
        for _ in range(3):
            with pytest.raises(DependencyFailed) as refused:
                service.acting_as(server).accounts.read_balances(account_id)
            assert "too many requests" in str(refused.value.__cause__)
        chain.released.set()
        assert waiting[0].result() == waiting[1].result()
    assert service.acting_as(server).accounts.read_balances(account_id) == waiting[0].result()


class BatchingChain(HangingChain):
    """One that reads several tokens at once."""

    def __init__(self, inner: Chain) -> None:
        super().__init__(inner)
        self.batches: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def token_balances(
        self, token_addresses: Sequence[str], holders: Sequence[str]
    ) -> Mapping[str, FinalBalances]:
        self.batches.append((tuple(token_addresses), tuple(holders)))
        return read_token_balances(self._inner, token_addresses, holders)


def test_one_reading_of_balances_asks_each_chain_once(light_world: World) -> None:
    chain = BatchingChain(light_world.service.chains[ETHEREUM])
    service = light_world.restarted(chains={ETHEREUM: chain})
    found = service.acting_as(light_world.server).accounts.read_balances(light_world.payer.id)
    assert len(found) > 1
    assert [len(tokens) for tokens, _ in chain.batches] == [len(found)]
    assert not chain.heads_read


def test_a_chain_that_reads_one_token_at_a_time_is_asked_for_each(light_world: World) -> None:
    chain = HangingChain(light_world.service.chains[ETHEREUM])
    chain.released.set()
    service = light_world.restarted(chains={ETHEREUM: chain})
    found = service.acting_as(light_world.server).accounts.read_balances(light_world.payer.id)
    assert found == tuple(
        holding
        for holding in light_world.resources.accounts.read_balances(light_world.payer.id)
        if holding.asset.chain_id == ETHEREUM
    )
