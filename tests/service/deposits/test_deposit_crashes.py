"""Whatever goes wrong between any two calls, a deposit is reported once and swept once."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

import pytest

from payments_core.chains.simulated.failures import Failures
from payments_core.clock import MINUTE
from payments_core.service import PaymentsService
from payments_core.storage.memory.adapter import MemoryStorage
from tests.conftest import Opener
from tests.service.deposit_harness import DepositHarness
from tests.service.faults import (
    Crashed,
    Fault,
    FaultyChain,
    FaultyStorage,
    answer_lost,
    chain_away,
    commit_failed,
    commit_lost,
    crash,
    storage_away,
)
from tests.service.world import BASE, World, atomic

STORY = ["detected", "confirmed", "settled"]
AMOUNT = "1.00"


@pytest.fixture(autouse=True)
def _nothing_is_parked(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.CRITICAL)
    yield
    assert not caplog.records, "a job was parked, or the operator alarmed"


@pytest.fixture
def harness(opener: Opener) -> DepositHarness:
    world = World(opener()).open()
    world.fund("100.00")
    harness = DepositHarness(world)
    world.run()
    return harness


def work(harness: DepositHarness, service: PaymentsService) -> None:
    """Half a minute of a worker's life: enough to go from a transfer to the vault."""
    worker = service.worker("sandbox")
    service.parts.scanner("sandbox").wake(BASE)
    world = harness.world
    worker.run_through(world.clock.now() + MINUTE // 2, world.clock.advance_to)


def calm(harness: DepositHarness) -> None:
    """A healthy worker's turn, once the leases of a dead one have ended."""
    harness.world.advance(110)
    harness.scan()
    harness.world.advance(20)


def go_wrong_everywhere(
    harness: DepositHarness,
    broken: Callable[[int], tuple[PaymentsService, Callable[[], bool]]],
    step: int = 1,
) -> int:
    """A deposit for every call that may go wrong, until none does; how many calls there were."""
    if not isinstance(harness.world.storage, MemoryStorage):
        step = max(step, 7)  # a disk takes its time
    for at in range(1, 400, step):
        available, sent = harness.available, harness.world.sent()
        known = {deposit.id for deposit in harness.all()}
        hash = harness.send(AMOUNT)
        service, had_its_fault = broken(at)
        with contextlib.suppress(Crashed):
            try:
                work(harness, service)
            except Exception:  # what it could not claim, it claims later
                work(harness, service)
        calm(harness)
        [deposit] = [deposit for deposit in harness.all() if deposit.id not in known]
        assert (deposit.status, deposit.transaction_hash) == ("settled", hash)
        reported = [event.name.removeprefix("deposit.") for event in harness.events(deposit.id)]
        assert reported == STORY
        assert harness.available == available + atomic(AMOUNT)
        assert harness.world.sent() == sent + 1
        assert harness.left == 0
        if not had_its_fault():
            return at
    raise AssertionError("the deposit never ended")


@pytest.mark.parametrize("fault", [crash, commit_lost, commit_failed])
def test_a_worker_may_die_or_lose_an_answer_at_any_change(
    harness: DepositHarness, fault: Fault
) -> None:
    counted = ("transact", "claim") if fault is crash else ("transact",)

    def broken(at: int) -> tuple[PaymentsService, Callable[[], bool]]:
        storage = FaultyStorage(harness.world.storage, at, fault, counted)
        return harness.world.restarted(storage), lambda: storage.had_its_fault

    assert go_wrong_everywhere(harness, broken) > 10


def test_the_storage_may_be_out_of_reach_at_any_call(harness: DepositHarness) -> None:
    def broken(at: int) -> tuple[PaymentsService, Callable[[], bool]]:
        harness.world.service.worker("sandbox")
        storage = FaultyStorage(harness.world.storage, at, storage_away)
        return harness.world.restarted(storage), lambda: storage.had_its_fault

    go_wrong_everywhere(harness, broken, 3)


@pytest.mark.parametrize("fault", [chain_away, answer_lost])
def test_the_chain_may_be_out_of_reach_at_any_call(harness: DepositHarness, fault: Fault) -> None:
    def broken(at: int) -> tuple[PaymentsService, Callable[[], bool]]:
        chain = FaultyChain(harness.world.chain, at, fault)
        service = harness.world.restarted(chains={BASE: chain})
        return service, lambda: chain.had_its_fault

    assert go_wrong_everywhere(harness, broken) > 8


@pytest.mark.parametrize("fault", [commit_lost, commit_failed])
def test_the_answer_to_any_commit_of_a_check_may_be_lost(
    harness: DepositHarness, fault: Fault
) -> None:
    failures = Failures(harness.world.service.parts.ports)
    server = harness.world.server
    for at in range(1, 30):
        available, sent = harness.available, harness.world.sent()
        failures.arm("chain", "transfer", 1, BASE)
        harness.send(AMOUNT)
        harness.finish()
        assert harness.all()[-1].status == "failed"
        harness.send("2.00")
        storage = FaultyStorage(harness.world.storage, at, fault, ("transact",))
        checked = (
            harness.world.restarted(storage)
            .acting_as(server)
            .deposits.check(harness.account.id, BASE)
        )
        assert [deposit.status for deposit in checked.deposits[:2]] == ["detected", "confirmed"]
        harness.finish()
        assert [deposit.status for deposit in harness.all()[-2:]] == ["settled", "settled"]
        assert harness.available == available + atomic("3.00")
        assert harness.world.sent() == sent + 3
        if not storage.had_its_fault:
            return
    raise AssertionError("the check never ended")
