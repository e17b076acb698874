"""Transfers that a scan finds, and whose transaction no node can return yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from payments_core.chains.port import ChainUnavailable, TransactionView
from tests.service.faults import FaultyChain
from tests.service.till import Till
from tests.service.world import BASE


class Untelling(FaultyChain):
    """A chain that cannot return some transactions, for a while."""

    def __init__(self, till: Till, how: str) -> None:
        super().__init__(till.world.chain, at=0, fault=lambda call: call(), until=-1)
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
def untelling(till: Till, request: pytest.FixtureRequest) -> Untelling:
    chain = Untelling(till, request.param)
    till.world.service = till.world.restarted(chains={BASE: chain})
    return chain


def test_it_is_asked_for_until_it_is_known_and_others_do_not_wait(
    till: Till, untelling: Untelling
) -> None:
    untelling.hashes = {till.send("5.00")}
    till.send("7.00")
    till.world.service.parts.scanner("sandbox").ensure_scheduled()
    till.world.advance(120)
    if untelling.how != "silent":  # in one question with the other, both are silent
        assert [str(deposit.amount) for deposit in till.all()] == ["7000000"]
    untelling.hashes = set()
    till.world.advance(180)
    till.finish()
    assert sorted(deposit.amount for deposit in till.all()) == [5_000_000, 7_000_000]
    assert {deposit.status for deposit in till.all()} == {"settled"}


def test_what_is_undone_meanwhile_is_not_asked_for_any_more(
    till: Till, untelling: Untelling
) -> None:
    untelling.hashes = {till.send("5.00")}
    till.world.service.parts.scanner("sandbox").ensure_scheduled()
    till.world.advance(1)
    till.world.chain.reorg(3)
    till.world.advance(180)
    assert till.all() == []
    untelling.hashes = set()
    till.finish()
    assert till.all() == []
    assert till.reported_events == []
