"""Deposits looked for on demand, and listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from payments_core.chains.port import (
    AddressSpec,
    ChainUnavailable,
    Contract,
    FinalBalances,
    TransactionView,
    TransferIntent,
)
from payments_core.engine.remote_calls import TooManyCalls
from payments_core.errors import (
    DependencyFailed,
    UnsupportedChain,
)
from tests.service.deposit_harness import STORY, DepositHarness, armed
from tests.service.faults import FaultyChain
from tests.service.payments.test_concurrency import at_once
from tests.service.world import BASE, USDC, World, answer_of, atomic, once


class BehindInBalances(FaultyChain):
    """A chain whose balances come from an old block."""

    def __init__(self, world: World) -> None:
        super().__init__(world.chain, at=0, fault=lambda call: call(), until=-1)

    def balances(self, token_address: str, holders: Sequence[str]) -> FinalBalances:
        return attrs.evolve(super().balances(token_address, holders), height=1)


def sweep_as_stranger(harness: DepositHarness, amount: str) -> None:
    """On a real chain anybody may call `sweepAll`, and the vault gets what is there then."""
    spec = AddressSpec(harness.world.environment_id, "vault", harness.account.id)
    intent = TransferIntent(
        "sweep-all",
        "env_stranger",
        USDC.address,
        Contract("deposit", harness.account.id, harness.address),
        harness.chain().derive(spec),
        atomic(amount),
    )
    harness.chain().broadcast(harness.chain().prepare(intent, 0))


class TestChecks:
    def test_a_check_finds_what_no_scan_has_reported(self, harness: DepositHarness) -> None:
        world = harness.world
        world.service.worker("sandbox")
        harness.send("5.00")
        checked = world.resources.deposits.check(harness.account.id)
        assert (checked.account_id, checked.checked_at_ms) == (
            harness.account.id,
            world.clock.now(),
        )
        [deposit] = checked.deposits
        assert (deposit.status, deposit.amount_atomic) == ("detected", atomic("5"))
        harness.finish()
        again = world.resources.deposits.check(harness.account.id, BASE)
        assert [deposit.status for deposit in again.deposits] == ["settled"]
        assert harness.reported_events == STORY

    def test_it_shows_the_newest_fifty_first(self, memory_harness: DepositHarness) -> None:
        harness = memory_harness
        for place in range(53):
            harness.send(f"1.{place:02}")
            harness.world.system.advance(1)
            harness.world.resources.deposits.check(harness.account.id, BASE)
        checked = harness.world.resources.deposits.check(harness.account.id, BASE)
        amounts = [deposit.amount_atomic for deposit in checked.deposits]
        assert amounts == [atomic(f"1.{place:02}") for place in range(52, 2, -1)]
        assert len(harness.all()) == 53

    def test_a_failed_sweep_is_sent_again_and_the_funds_arrive_once(
        self, harness: DepositHarness
    ) -> None:
        world, before = harness.world, harness.available
        armed(world, "transfer")
        harness.send("5.00")
        harness.finish()
        assert harness.story == [("failed", "transaction_failed")]
        assert harness.reported_events == ["detected", "confirmed", "failed"]
        assert (harness.available, harness.left) == (before, atomic("5"))
        failed = harness.only
        harness.scan()  # nothing but a check asks for it again
        assert harness.only == failed
        checked = world.resources.deposits.check(harness.account.id)
        assert [deposit.status for deposit in checked.deposits] == ["confirmed"]
        assert checked.deposits[0].sweep_id != failed.sweep_id
        world.resources.deposits.check(harness.account.id)
        harness.finish()
        assert harness.reported_events == [
            "detected",
            "confirmed",
            "failed",
            "confirmed",
            "settled",
        ]
        assert (harness.available, harness.left) == (before + atomic("5"), 0)
        assert world.sent() == 2

    @pytest.mark.parametrize("swept", ["1.00", "4.99", "5.00"])
    def test_what_a_stranger_has_swept_of_it_is_in_the_vault(
        self, memory_harness: DepositHarness, swept: str
    ) -> None:
        harness, world = memory_harness, memory_harness.world
        before = harness.available
        armed(world, "transfer")
        harness.send("5.00")
        harness.finish()
        assert harness.story == [("failed", "transaction_failed")]
        sweep_as_stranger(harness, swept)
        world.advance(10)
        world.resources.deposits.check(harness.account.id)
        harness.finish()
        assert harness.story == [("settled", None)]
        assert (harness.available, harness.left) == (before + atomic("5"), 0)

    def test_a_balance_from_a_node_that_is_behind_is_no_answer(
        self, memory_harness: DepositHarness
    ) -> None:
        harness, world = memory_harness, memory_harness.world
        armed(world, "transfer")
        harness.send("5.00")
        harness.finish()
        world.service = world.restarted(chains={BASE: BehindInBalances(world)})
        with pytest.raises(DependencyFailed):
            world.resources.deposits.check(harness.account.id)
        assert harness.story == [("failed", "transaction_failed")]

    def test_checks_at_once_send_it_once(self, harness: DepositHarness) -> None:
        world, before, server = harness.world, harness.available, harness.world.server
        armed(world, "transfer", 2)
        harness.send("5.00")
        harness.send("6.00")
        harness.finish()
        assert [status for status, _ in harness.story] == ["failed", "failed"]
        outcomes = at_once(
            [lambda: world.service.acting_as(server).deposits.check(harness.account.id, BASE)] * 6
        )
        refused = [item for item in outcomes if isinstance(item, Exception)]
        assert len(refused) < len(outcomes)
        # On a slow storage a check may have no turn to ask the chain.
        assert all(isinstance(item.__cause__, TooManyCalls) for item in refused)
        harness.finish()
        assert harness.available == before + atomic("11")
        assert world.sent() == 4
        assert Counter(harness.reported_events)["confirmed"] == 4

    def test_a_failed_one_that_is_gone_is_not_sent_again(self, harness: DepositHarness) -> None:
        armed(harness.world, "transfer")
        harness.send("5.00")
        harness.send("6.00")
        harness.finish()
        before = [status for status, _ in harness.story]
        assert sorted(before) == ["failed", "settled"]
        harness.world.chain.reorg(50)
        harness.world.resources.deposits.check(harness.account.id)
        assert [status for status, _ in harness.story] == before

    def test_a_check_that_is_repeated_is_answered_as_it_was(self, harness: DepositHarness) -> None:
        server, key = harness.world.server, once("check")

        def check() -> Any:
            return harness.world.service.acting_as(server).deposits.check(
                harness.account.id, idempotency_key=key
            )

        first = check()
        assert first.deposits == ()
        harness.send("5.00")
        again = answer_of(check)
        assert again is not None
        assert harness.all() == []

    def test_an_account_without_addresses_has_nothing_to_look_for(self, world: World) -> None:
        armed(world, "any")
        checked = world.resources.deposits.check(world.merchant.id)
        assert checked.deposits == ()
        with pytest.raises(UnsupportedChain):
            world.resources.deposits.check(world.merchant.id, 2)

    def test_a_silent_chain_during_a_retry_leaves_all_as_it_was(
        self, harness: DepositHarness
    ) -> None:
        armed(harness.world, "transfer")
        harness.send("5.00")
        harness.finish()
        failed = harness.only

        class Silent(FaultyChain):
            def transaction(self, hash: str) -> TransactionView | None:
                raise ChainUnavailable("asked of one transaction")

        silent = Silent(harness.world.chain, at=0, fault=lambda call: call(), until=-1)
        service = harness.world.restarted(chains={BASE: silent})
        with pytest.raises(DependencyFailed) as caught:
            service.acting_as(harness.world.server).deposits.check(harness.account.id, BASE)
        assert isinstance(caught.value.__cause__, ChainUnavailable)
        assert harness.only == failed


def test_deposits_are_listed_newest_first_and_by_status(harness: DepositHarness) -> None:
    armed(harness.world, "transfer")
    for amount in ("1.00", "2.00", "3.00"):
        harness.send(amount)
        harness.scan()
        harness.world.system.advance(1)
    harness.finish()
    harness.send("4.00")
    harness.scan()
    server = harness.world.server
    first = harness.world.service.acting_as(server).deposits.list(harness.account.id, limit=3)
    rest = harness.world.service.acting_as(server).deposits.list(
        harness.account.id, limit=3, after=first.next
    )
    amounts = [deposit.amount_atomic for deposit in (*first.records, *rest.records)]
    assert amounts == [atomic(text) for text in ("4", "3", "2", "1")]
    for status, expected in (("failed", 1), ("settled", 2), ("detected", 1), ("confirmed", 0)):
        found, after = 0, None
        while True:
            page = harness.world.service.acting_as(server).deposits.list(
                harness.account.id, status=status, after=after
            )  # type: ignore[arg-type]
            found += len(page.records)
            after = page.next
            if after is None:
                break
        assert found == expected
