"""Whatever goes wrong between any two calls, what does not count goes back once."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator

import pytest

from payments_core.clock import MINUTE
from payments_core.misdirected.record import SentBack
from payments_core.service import PaymentsService
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.deposits.test_misdirected_deposits import deposit_wrongly
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
)
from tests.service.payments.receipts.test_misdirected import AT_BASE, receipts_of, send
from tests.service.world import BASE, OTHER_WALLET, World

Broken = Callable[[World, int], tuple[PaymentsService, Callable[[], bool]]]
Look = Callable[[], SentBack | None]


@pytest.fixture(autouse=True)
def _nothing_is_parked(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.CRITICAL)
    yield
    assert not caplog.records, "a job was parked, or the operator alarmed"


def begin_with_payment(world: World) -> Look:
    """A return of a receipt that was requested a moment ago."""
    payment = world.payment("25.00")
    send(world, payment, AT_BASE, 1_000)
    world.finish()
    [receipt] = receipts_of(world, payment)
    world.reconcile(payment, "return_misdirected", receipt_id=receipt.id, destination=OTHER_WALLET)
    return lambda: receipts_of(world, payment)[0].sent_back


def begin_with_deposit(world: World) -> Look:
    """A return of a deposit that was requested a moment ago."""
    deposits = world.resources.deposits
    deposit_wrongly(world, AT_BASE, 1_000)
    world.finish()
    newest = deposits.list(world.payer.id, limit=1).records[0]
    deposits.send_back(world.payer.id, newest.id, OTHER_WALLET)

    def look() -> SentBack | None:
        return deposits.list(world.payer.id, limit=1).records[0].sent_back

    return look


def with_faulty_storage(fault: Fault) -> Broken:
    counted = ("transact", "claim") if fault is crash else ("transact",)

    def broken(world: World, at: int) -> tuple[PaymentsService, Callable[[], bool]]:
        storage = FaultyStorage(world.storage, at, fault, counted)
        return world.restarted(storage), lambda: storage.had_its_fault

    return broken


def with_faulty_chain(fault: Fault) -> Broken:
    def broken(world: World, at: int) -> tuple[PaymentsService, Callable[[], bool]]:
        chain = FaultyChain(world.chain, at, fault)
        return world.restarted(chains={BASE: chain}), lambda: chain.had_its_fault

    return broken


FAULTS = {
    "crash": with_faulty_storage(crash),
    "commit lost": with_faulty_storage(commit_lost),
    "commit failed": with_faulty_storage(commit_failed),
    "chain away": with_faulty_chain(chain_away),
    "answer lost": with_faulty_chain(answer_lost),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("begin", "transfers"), [(begin_with_payment, 1), (begin_with_deposit, 2)])
def test_it_goes_back_once_whatever_fails(
    begin: Callable[[World], Look], transfers: int, fault: str
) -> None:
    world = World(MemoryStorage()).open()
    for at in range(1, 200):
        look = begin(world)
        sent, before = world.sent(), held(world)
        service, had_its_fault = FAULTS[fault](world, at)
        with contextlib.suppress(Crashed):
            work(world, service)
        for seconds in (110, 60, 60):  # the leases of a dead worker end meanwhile
            world.advance(seconds)
        sent_back = look()
        assert sent_back is not None
        assert sent_back.status == "succeeded"
        assert (world.sent() - sent, held(world) - before) == (transfers, 1_000)
        if not had_its_fault():
            assert at > 5
            return
    raise AssertionError("it never ended")


def held(world: World) -> int:
    world.chain.mine(3)
    return int(world.chain.balances(AT_BASE.address, [OTHER_WALLET]).amounts[OTHER_WALLET])


def work(world: World, service: PaymentsService) -> None:
    """Half a minute of a worker's life: enough to go from a request to the end."""
    worker = service.worker("sandbox")
    worker.run_through(world.clock.now() + MINUTE // 2, world.clock.advance_to)
