"""Settlements at one moment, crashes and lost answers."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from payments_core.accounts.vaults.record import VaultBalance
from payments_core.errors import (
    ActionAlreadyUsed,
    DependencyFailed,
    OptionLocked,
    PaymentsError,
)
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.storage.port import Storage, StorageUnavailable
from tests.service.faults import (
    EVERY_CALL,
    Crashed,
    Fault,
    FaultyChain,
    FaultyStorage,
    chain_away,
    commit_failed,
    commit_lost,
    crash,
    storage_away,
)
from tests.service.legacy.settlements.settlement_harness import SettlementHarness
from tests.service.world import BASE, World

SIDE_BY_SIDE = Weakness(
    stale_get=0, stale_find=0, short_page=0, rerun=0, lost_commit=0, short_claim=0, clock_ahead=0
)
"""A memory whose works run side by side, as those of a server do, and which is sound."""


class Overtaken(FaultyStorage):
    """A storage on which another process works after a transaction has looked for a balance."""

    def __init__(self, inner: Storage, meanwhile: Callable[[], object]) -> None:
        super().__init__(inner, 0, lambda call: call())
        self.pending = [meanwhile]

    def transact(self, partition: str, work: Callable[[Any], Any]) -> Any:
        def work_overtaken(tx: Any) -> Any:
            get = tx.get

            def get_overtaken(kind: Any, id: str, **more: Any) -> Any:
                found = get(kind, id, **more)
                if kind is VaultBalance and self.pending:
                    with ThreadPoolExecutor(1) as other:
                        other.submit(self.pending.pop()).result()
                return found

            tx.get = get_overtaken
            return work(tx)

        return super().transact(partition, work_overtaken)


@pytest.mark.parametrize("by_v2", [False, True])
def test_of_the_first_two_transfers_of_a_vault_at_one_moment_none_is_refused(by_v2: bool) -> None:
    """The vault has no row of a balance yet that one of them could lock."""
    harness = SettlementHarness(World(MemoryStorage(SIDE_BY_SIDE)).open())
    other = harness.world.option(harness.world.payment("25.00")) if by_v2 else harness.quote()
    quote = harness.quote()

    def meanwhile() -> object:
        return harness.world.authorize(other) if by_v2 else harness.settle(other, nonce=2)

    storage = Overtaken(harness.world.storage, meanwhile)
    harness.settle(quote, service=harness.world.restarted(storage))
    assert storage.pending == []
    assert harness.world.held()[1] == 50_000_000
    assert quote.id in [one.id for one in harness.settled()]


@pytest.mark.parametrize("same_nonce", [False, True])
def test_of_two_settles_at_one_moment_one_takes_place(
    harness: SettlementHarness, same_nonce: bool
) -> None:
    """Of one quote with two nonces, and of two quotes with one nonce."""
    quote = harness.quote()
    quotes = (quote, harness.quote()) if same_nonce else (quote, quote)
    nonces = (1, 1) if same_nonce else (1, 2)
    bodies = [harness.body(one, nonce=nonce) for one, nonce in zip(quotes, nonces, strict=True)] * 2

    def send(body: Any) -> str:
        try:
            harness.send(body, harness.world.restarted())
        except (ActionAlreadyUsed, OptionLocked) as error:
            return type(error).__name__
        return "settled"

    with ThreadPoolExecutor(4) as pool:
        answers = Counter(pool.map(send, bodies))
    assert answers["settled"] == 1
    assert harness.world.held()[1] == 25_000_000
    harness.world.finish()
    assert harness.world.held() == (75_000_000, 0, 75_000_000)
    assert len(harness.settled()) == 1


def test_a_settle_and_an_authorization_at_one_moment_spend_once(harness: SettlementHarness) -> None:
    quote, world = harness.quote(), harness.world
    offered = world.option(harness.service.acting_as(world.server).payments.read(quote.payment_id))
    body = harness.body(quote)

    def attempt(work: Any) -> bool:
        try:
            work()
        except PaymentsError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        done = list(
            pool.map(attempt, [lambda: harness.send(body), lambda: world.authorize(offered)])
        )
    assert sum(done) == 1
    world.finish()
    assert (harness.payment(quote).status, world.held()[0]) == ("succeeded", 75_000_000)


@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        (crash, EVERY_CALL),
        (storage_away, EVERY_CALL),
        (commit_lost, ("transact",)),
        (commit_failed, ("transact",)),
    ],
)
def test_a_process_that_dies_in_a_settle_leaves_all_or_nothing(
    fault: Fault, calls: tuple[str, ...]
) -> None:
    """Asked again by another process it takes place, or is found to have taken place; once."""
    for at in range(1, 40):
        harness = SettlementHarness(World(MemoryStorage()).open())
        quote = harness.quote()
        body = harness.body(quote)
        storage = FaultyStorage(harness.world.storage, at, fault, calls)
        with contextlib.suppress(Crashed, PaymentsError, StorageUnavailable):
            harness.send(body, harness.world.restarted(storage))
        assert harness.world.held()[1] == 25_000_000 * len(harness.settled())
        with contextlib.suppress(ActionAlreadyUsed):
            harness.send(body)
        check_story(harness, quote.payment_id)
        if not storage.had_its_fault:
            assert at > 1
            return
    raise AssertionError("the flow never ended")


def test_a_worker_may_die_before_any_call_it_makes_for_a_settlement() -> None:
    for at in range(1, 400, 4):
        harness = SettlementHarness(World(MemoryStorage()).open())
        quote = harness.quote()
        harness.settle(quote)
        world = harness.world
        storage = FaultyStorage(world.storage, at, crash, ("transact", "claim"))
        dying = world.restarted(storage)
        with contextlib.suppress(Crashed):
            dying.worker("sandbox").run_through(world.clock.now() + 9_000, world.clock.advance_to)
        world.advance(110)
        check_story(harness, quote.payment_id)
        if not storage.had_its_fault:
            assert at > 10
            return
    raise AssertionError("the flow never ended")


def test_a_chain_that_does_not_answer_settles_nothing(memory_harness: SettlementHarness) -> None:
    harness = memory_harness
    body = harness.body(harness.quote())
    chain = FaultyChain(harness.world.chain, 1, chain_away)
    with pytest.raises(DependencyFailed):
        harness.send(body, harness.world.restarted(chains={BASE: chain}))
    assert (harness.settled(), harness.world.held()[1]) == ([], 0)
    harness.send(body)


def check_story(harness: SettlementHarness, payment_id: str) -> None:
    """The quote is paid, once."""
    harness.world.finish()
    assert harness.world.paid(payment_id).status == "succeeded"
    assert harness.world.held() == (75_000_000, 0, 75_000_000)
    assert harness.world.held(harness.world.merchant)[0] == 25_000_000
    assert len(harness.settled()) == 1
    assert harness.world.sent() == 2
