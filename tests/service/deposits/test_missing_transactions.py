"""Transfers that a scan finds, and whose transaction no node can return yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from payments_core.chains.port import ChainUnavailable, TransactionView
from tests.service.deposit_harness import DepositHarness
from tests.service.faults import FaultyChain
from tests.service.world import BASE


class IncompleteChain(FaultyChain):
    """A chain that cannot return some transactions, for a while."""

    def __init__(self, harness: DepositHarness, how: str) -> None:
        super().__init__(harness.world.chain, at=0, fault=lambda call: call(), until=-1)
        self.how = how
        self.hashes: set[str] = set()

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        found = dict(super().transactions(hashes))
        for hash in self.hashes & found.keys():
            if self.how == "silent":
                raise ChainUnavailable("too much to be read")
            if self.how == "left out":
                del found[hash]
            else:
                found[hash] = None
        return found


@pytest.fixture(params=["silent", "left out", "not known"])
def incomplete_chain(harness: DepositHarness, request: pytest.FixtureRequest) -> IncompleteChain:
    chain = IncompleteChain(harness, request.param)
    harness.world.service = harness.world.restarted(chains={BASE: chain})
    return chain


def test_it_is_asked_for_until_it_is_known_and_others_do_not_wait(
    harness: DepositHarness, incomplete_chain: IncompleteChain
) -> None:
    incomplete_chain.hashes = {harness.send("5.00")}
    harness.send("7.00")
    harness.world.service.parts.scanner("sandbox").ensure_scheduled()
    harness.world.advance(120)
    if incomplete_chain.how != "silent":  # in one question with the other, both are silent
        assert [str(deposit.amount_atomic) for deposit in harness.all()] == ["7000000"]
    incomplete_chain.hashes = set()
    harness.world.advance(180)
    harness.finish()
    assert sorted(deposit.amount_atomic for deposit in harness.all()) == [5_000_000, 7_000_000]
    assert {deposit.status for deposit in harness.all()} == {"settled"}


def test_what_is_undone_meanwhile_is_not_asked_for_any_more(
    harness: DepositHarness, incomplete_chain: IncompleteChain
) -> None:
    incomplete_chain.hashes = {harness.send("5.00")}
    harness.world.service.parts.scanner("sandbox").ensure_scheduled()
    harness.world.advance(1)
    harness.world.chain.reorg(3)
    harness.world.advance(180)
    assert harness.all() == []
    incomplete_chain.hashes = set()
    harness.finish()
    assert harness.all() == []
    assert harness.reported_events == []
