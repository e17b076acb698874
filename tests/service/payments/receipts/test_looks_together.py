"""Looks that are due together: one question to the chain, and each its own outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from payments_core.chains.port import TransactionView
from tests.service.faults import FaultyChain
from tests.service.world import BASE, World

NEVER_FAILS = 10**9


class Counting(FaultyChain):
    """A node that notes how many transactions a question is about, and is silent about some."""

    def __init__(self, world: World) -> None:
        super().__init__(world.chain, NEVER_FAILS, lambda call: call())
        self.asked: list[int] = []
        self.missing: set[str] = set()

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        self.asked.append(len(hashes))
        reported = super().transactions(hashes)
        return {hash: view for hash, view in reported.items() if hash not in self.missing}


def counting(world: World) -> Counting:
    chain = Counting(world)
    world.service = world.restarted(chains={BASE: chain})
    return chain


def test_the_chain_is_asked_once_for_all_that_are_looked_at(memory_world: World) -> None:
    world = memory_world
    chain = counting(world)
    options = [world.authorized("10.00") for _ in range(4)]
    world.run()
    world.advance(30)
    assert {world.paid(option.payment.id).status for option in options} == {"succeeded"}
    assert chain.asked[0] == len(options), "they were sent at the same instant"


def test_a_transaction_that_cannot_be_read_holds_up_no_other(memory_world: World) -> None:
    world = memory_world
    chain = counting(world)
    options = [world.authorized("10.00") for _ in range(4)]
    world.run()
    chain.missing = {str(world.operation_now(options[1]).transaction_hash)}
    world.advance(30)
    statuses = [world.paid(option.payment.id).status for option in options]
    assert statuses == ["succeeded", "processing", "succeeded", "succeeded"]
    chain.missing.clear()
    world.advance(120)
    assert world.paid(options[1].payment.id).status == "succeeded"
