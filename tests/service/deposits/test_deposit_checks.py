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
from tests.service.faults import FaultyChain
from tests.service.payments.test_concurrency import at_once
from tests.service.till import STORY, Till, armed
from tests.service.world import BASE, USDC, World, answer_of, atomic, once


class BehindInBalances(FaultyChain):
    """A chain whose balances come from an old block."""

    def __init__(self, world: World) -> None:
        super().__init__(world.chain, at=0, fault=lambda call: call(), until=-1)

    def balances(self, token_address: str, holders: Sequence[str]) -> FinalBalances:
        return attrs.evolve(super().balances(token_address, holders), height=1)


def sweep_as_stranger(till: Till, amount: str) -> None:
    """On a real chain anybody may call `sweepAll`, and the vault gets what is there then."""
    spec = AddressSpec(till.world.environment_id, "vault", till.account.id)
    intent = TransferIntent(
        "sweep-all",
        "env_stranger",
        USDC.address,
        Contract("deposit", till.account.id, till.address),
        till.chain().derive(spec),
        atomic(amount),
    )
    till.chain().broadcast(till.chain().prepare(intent, 0))


class TestChecks:
    def test_a_check_finds_what_no_scan_has_reported(self, till: Till) -> None:
        world = till.world
        world.service.worker("sandbox")
        till.send("5.00")
        checked = world.resources.deposits.check(till.account.id)
        assert (checked.account_id, checked.checked_at) == (till.account.id, world.clock.now())
        [deposit] = checked.deposits
        assert (deposit.status, deposit.amount) == ("detected", atomic("5"))
        till.finish()
        again = world.resources.deposits.check(till.account.id, BASE)
        assert [deposit.status for deposit in again.deposits] == ["settled"]
        assert till.reported_events == STORY

    def test_it_shows_the_newest_fifty_first(self, memory_till: Till) -> None:
        till = memory_till
        for place in range(53):
            till.send(f"1.{place:02}")
            till.world.system.advance(1)
            till.world.resources.deposits.check(till.account.id, BASE)
        checked = till.world.resources.deposits.check(till.account.id, BASE)
        amounts = [deposit.amount for deposit in checked.deposits]
        assert amounts == [atomic(f"1.{place:02}") for place in range(52, 2, -1)]
        assert len(till.all()) == 53

    def test_a_failed_sweep_is_sent_again_and_the_funds_arrive_once(self, till: Till) -> None:
        world, before = till.world, till.available
        armed(world, "transfer")
        till.send("5.00")
        till.finish()
        assert till.story == [("failed", "transaction_failed")]
        assert till.reported_events == ["detected", "confirmed", "failed"]
        assert (till.available, till.left) == (before, atomic("5"))
        failed = till.only
        till.scan()  # nothing but a check asks for it again
        assert till.only == failed
        checked = world.resources.deposits.check(till.account.id)
        assert [deposit.status for deposit in checked.deposits] == ["confirmed"]
        assert checked.deposits[0].sweep_id != failed.sweep_id
        world.resources.deposits.check(till.account.id)
        till.finish()
        assert till.reported_events == ["detected", "confirmed", "failed", "confirmed", "settled"]
        assert (till.available, till.left) == (before + atomic("5"), 0)
        assert world.sent() == 2

    @pytest.mark.parametrize("swept", ["1.00", "4.99", "5.00"])
    def test_what_a_stranger_has_swept_of_it_is_in_the_vault(
        self, memory_till: Till, swept: str
    ) -> None:
        till, world = memory_till, memory_till.world
        before = till.available
        armed(world, "transfer")
        till.send("5.00")
        till.finish()
        assert till.story == [("failed", "transaction_failed")]
        sweep_as_stranger(till, swept)
        world.advance(10)
        world.resources.deposits.check(till.account.id)
        till.finish()
        assert till.story == [("settled", None)]
        assert (till.available, till.left) == (before + atomic("5"), 0)

    def test_a_balance_from_a_node_that_is_behind_is_no_answer(self, memory_till: Till) -> None:
        till, world = memory_till, memory_till.world
        armed(world, "transfer")
        till.send("5.00")
        till.finish()
        world.service = world.restarted(chains={BASE: BehindInBalances(world)})
        with pytest.raises(DependencyFailed):
            world.resources.deposits.check(till.account.id)
        assert till.story == [("failed", "transaction_failed")]

    def test_checks_at_once_send_it_once(self, till: Till) -> None:
        world, before, server = till.world, till.available, till.world.server
        armed(world, "transfer", 2)
        till.send("5.00")
        till.send("6.00")
        till.finish()
        assert [status for status, _ in till.story] == ["failed", "failed"]
        outcomes = at_once(
            [lambda: world.service.acting_as(server).deposits.check(till.account.id, BASE)] * 6
        )
        refused = [item for item in outcomes if isinstance(item, Exception)]
        assert len(refused) < len(outcomes)
        # On a slow storage a check may have no turn to ask the chain.
        assert all(isinstance(item.__cause__, TooManyCalls) for item in refused)
        till.finish()
        assert till.available == before + atomic("11")
        assert world.sent() == 4
        assert Counter(till.reported_events)["confirmed"] == 4

    def test_a_failed_one_that_is_gone_is_not_sent_again(self, till: Till) -> None:
        armed(till.world, "transfer")
        till.send("5.00")
        till.send("6.00")
        till.finish()
        before = [status for status, _ in till.story]
        assert sorted(before) == ["failed", "settled"]
        till.world.chain.reorg(50)
        till.world.resources.deposits.check(till.account.id)
        assert [status for status, _ in till.story] == before

    def test_a_check_that_is_repeated_is_answered_as_it_was(self, till: Till) -> None:
        server, key = till.world.server, once("check")

        def check() -> Any:
            return till.world.service.acting_as(server).deposits.check(
                till.account.id, idempotency_key=key
            )

        first = check()
        assert first.deposits == ()
        till.send("5.00")
        again = answer_of(check)
        assert again is not None
        assert till.all() == []

    def test_an_account_without_addresses_has_nothing_to_look_for(self, world: World) -> None:
        armed(world, "any")
        checked = world.resources.deposits.check(world.merchant.id)
        assert checked.deposits == ()
        with pytest.raises(UnsupportedChain):
            world.resources.deposits.check(world.merchant.id, 2)

    def test_a_silent_chain_during_a_retry_leaves_all_as_it_was(self, till: Till) -> None:
        armed(till.world, "transfer")
        till.send("5.00")
        till.finish()
        failed = till.only

        class Silent(FaultyChain):
            def transaction(self, hash: str) -> TransactionView | None:
                raise ChainUnavailable("asked of one transaction")

        silent = Silent(till.world.chain, at=0, fault=lambda call: call(), until=-1)
        service = till.world.restarted(chains={BASE: silent})
        with pytest.raises(DependencyFailed) as caught:
            service.acting_as(till.world.server).deposits.check(till.account.id, BASE)
        assert isinstance(caught.value.__cause__, ChainUnavailable)
        assert till.only == failed


def test_deposits_are_listed_newest_first_and_by_status(till: Till) -> None:
    armed(till.world, "transfer")
    for amount in ("1.00", "2.00", "3.00"):
        till.send(amount)
        till.scan()
        till.world.system.advance(1)
    till.finish()
    till.send("4.00")
    till.scan()
    server = till.world.server
    first = till.world.service.acting_as(server).deposits.list(till.account.id, limit=3)
    rest = till.world.service.acting_as(server).deposits.list(
        till.account.id, limit=3, after=first.next
    )
    amounts = [deposit.amount for deposit in (*first.records, *rest.records)]
    assert amounts == [atomic(text) for text in ("4", "3", "2", "1")]
    for status, expected in (("failed", 1), ("settled", 2), ("detected", 1), ("confirmed", 0)):
        found, after = 0, None
        while True:
            page = till.world.service.acting_as(server).deposits.list(
                till.account.id, status=status, after=after
            )  # type: ignore[arg-type]
            found += len(page.records)
            after = page.next
            if after is None:
                break
        assert found == expected
