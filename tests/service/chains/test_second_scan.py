"""Blocks whose logs a node finds late: they are scanned again when they are final."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from payments_core.chains import scanner, second_scan
from payments_core.chains.port import Block, Heads, ScannedTransfer
from payments_core.chains.scanner import ScanCursor
from payments_core.storage.port import DIRECTORY
from tests.service.deposit_harness import DepositHarness
from tests.service.faults import FaultyChain
from tests.service.world import BASE, USDC, WALLET, World, atomic

EXPIRES_S = 300


class LateIndex(FaultyChain):
    """A chain with every block, that finds no logs above `indexed`, and says nothing of that."""

    def __init__(self, world: World) -> None:
        super().__init__(world.chain, at=0, fault=lambda call: call(), until=-1)
        self.indexed: int | None = None
        self.hidden_block: int | None = None
        self.final: Block | None = None
        self.most_blocks = 2_000
        self.spans: list[tuple[int, int]] = []

    @property
    def max_scan_blocks(self) -> int:
        return self.most_blocks

    def heads(self) -> Heads:
        found = super().heads()
        return found if self.final is None else Heads(found.latest, self.final)

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        self.spans.append((first, last))
        found = super().scan(tokens, recipients, first, last)
        indexed = self.indexed
        return tuple(one for one in found if indexed is None or one.block.number <= indexed)

    def block(self, number: int) -> Block | None:
        return None if number == self.hidden_block else super().block(number)

    @property
    def newest(self) -> int:
        return self.heads().latest.number


@pytest.fixture
def world(memory_world: World) -> World:
    return memory_world


@pytest.fixture
def chain(world: World) -> LateIndex:
    chain = LateIndex(world)
    world.service = world.restarted(chains={BASE: chain})
    world.chain.mint(USDC.address, WALLET, atomic("100"), "wallet")
    world.run()
    scan(world)
    return chain


def scan(world: World) -> None:
    world.service.parts.scanner("sandbox").wake(BASE)
    world.run()


def cursor(world: World) -> ScanCursor:
    found = world.storage.read(
        DIRECTORY, lambda snapshot: snapshot.get(ScanCursor, f"sandbox:{BASE}")
    )
    assert found is not None
    return found


def pay(world: World, escrow: Any, name: str = "paid") -> None:
    world.chain.transfer(USDC.address, WALLET, str(escrow), atomic("25"), name)


def test_a_payment_whose_logs_are_found_late_is_in_time(world: World, chain: LateIndex) -> None:
    payment = world.payment(expires_in_s=EXPIRES_S)
    chain.indexed = chain.newest
    pay(world, payment.payment.escrow_address)
    scan(world)
    assert cursor(world).tip == chain.newest
    assert world.paid(payment.payment.id).status == "awaiting_payment"
    chain.indexed = None
    world.advance(2 * EXPIRES_S)
    assert world.paid(payment.payment.id).status == "succeeded"
    assert world.event_names(payment.payment.id)["payment.expired"] == 0


def test_deposits_whose_logs_are_found_late_settle(
    world: World, chain: LateIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanner, "MAX_OWN_TRANSFERS", 1)
    harness = DepositHarness(world)
    scan(world)
    chain.indexed = chain.newest
    for _ in range(3):
        harness.send("1.00")
    scan(world)
    assert harness.all() == []
    chain.indexed = None
    world.advance(10)
    harness.finish()
    assert [deposit.status for deposit in harness.all()] == ["settled"] * 3


def test_what_the_first_scan_found_is_not_reported_again(world: World, chain: LateIndex) -> None:
    harness = DepositHarness(world)
    harness.send("1.00")
    scan(world)
    (height, _), = cursor(world).found  # fmt: skip
    assert height == harness.only.block_number > cursor(world).final_height
    before = harness.only
    world.stop_scans()
    harness.finish()
    assert harness.only.status == "settled"
    done = harness.only
    world.service.parts.scanner("sandbox").ensure_scheduled()
    world.run()
    assert cursor(world).final_height > height
    assert cursor(world).found == ()
    assert harness.only == done
    assert done.block_hash == before.block_hash


def test_transfers_whose_digests_are_not_kept_are_reported_twice_and_count_once(
    world: World, chain: LateIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_scan, "MAX_BLOCKS", 1)
    harness = DepositHarness(world)
    harness.send("1.00")
    harness.send("1.00")
    scan(world)
    assert len(cursor(world).found) == 1
    harness.finish()
    world.advance(10)
    harness.finish()
    assert [deposit.status for deposit in harness.all()] == ["settled"] * 2
    assert world.sent() == 2


def test_a_chain_whose_blocks_become_final_all_at_once_is_scanned_in_pieces(
    world: World, chain: LateIndex
) -> None:
    chain.most_blocks = 10
    payment = world.payment(expires_in_s=EXPIRES_S)
    chain.final = final = chain.heads().final
    chain.indexed = chain.newest
    pay(world, payment.payment.escrow_address)
    world.advance(60)
    assert cursor(world).final_height <= final.number
    assert cursor(world).tip >= final.number + 60
    chain.indexed = chain.final = None
    chain.spans.clear()
    scan(world)
    assert max(last - first + 1 for first, last in chain.spans) <= 10
    assert cursor(world).final_height == chain.heads().final.number
    world.advance(60)
    assert world.paid(payment.payment.id).status == "succeeded"


def test_a_final_block_that_a_node_does_not_return_is_noted_later(
    world: World, chain: LateIndex
) -> None:
    chain.most_blocks = 10
    world.stop_scans()
    before = cursor(world)
    world.system.advance(100)
    chain.hidden_block = before.tip + 10  # where the next scan ends
    world.service.parts.scanner("sandbox").ensure_scheduled()
    worker = world.service.worker("sandbox")
    worker.run_due(1)
    assert cursor(world).final_height == before.final_height
    assert cursor(world).tip == before.tip
    chain.hidden_block = None
    scan(world)
    world.advance(60)
    assert cursor(world).final_height > before.tip + 10
