"""Whatever fails between any two calls, a provider is asked for one offer, and delivers once."""

from __future__ import annotations

import contextlib

import pytest

from payments_core.clock import MINUTE
from payments_core.errors import PaymentsError
from payments_core.payments.options.offer import Offer
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import CommitUnknown, StorageUnavailable
from tests.conftest import Opener
from tests.service.faults import (
    Crashed,
    Fault,
    FaultyStorage,
    commit_failed,
    commit_lost,
    crash,
    storage_away,
)
from tests.service.payments.offers.shopper import FULL, PRICE, Shopper, fail, terms_of
from tests.service.world import World, atomic

CHANGING_CALLS = ("transact", "claim")
FAULTS = pytest.mark.parametrize("fault", [crash, storage_away, commit_lost, commit_failed])
METHODS = pytest.mark.parametrize("method", ["routing", "hosted_onramp"])


@pytest.fixture
def world(opener: Opener) -> World:
    return World(opener()).open()


def every(world: World, most: int) -> range:
    """The calls that go wrong, one after the other; where a disk takes its time, some of them."""
    return range(1, most, 1 if isinstance(world.storage, MemoryStorage) else 5)


def wanted(shopper: Shopper, method: str, key: str | None = None) -> Offer:
    option = shopper.routed if method == "routing" else shopper.bought
    offer = option(idempotency_key=key).offer
    assert offer is not None
    return offer


def ask_over(world: World, shopper: Shopper, method: str, at: int, fault: Fault) -> bool:
    """Ask for an offer in a process on a storage with a fault; whether the fault came."""
    storage = FaultyStorage(world.storage, at, fault, CHANGING_CALLS)
    healthy, world.service = world.service, world.restarted(storage)
    try:
        with contextlib.suppress(Crashed, PaymentsError):
            wanted(shopper, method, "one")
    finally:
        world.service = healthy
    return storage.had_its_fault


def work_over(world: World, storage: FaultyStorage) -> None:
    """Half a minute of the life of a worker on a storage with a fault."""
    with contextlib.suppress(Crashed, StorageUnavailable, CommitUnknown):
        worker = world.restarted(storage).worker("sandbox")
        worker.run_through(world.clock.now() + MINUTE // 2, world.clock.advance_to)


@METHODS
@FAULTS
def test_a_request_that_fails_anywhere_is_repeated_for_one_offer(
    world: World, method: str, fault: Fault
) -> None:
    for at in every(world, 40):
        shopper = Shopper(world)
        had_its_fault = ask_over(world, shopper, method, at, fault)
        offer = wanted(shopper, method, "one")
        assert offer.terms is not None
        [option_id] = shopper.paid().option_ids
        assert offer.id == f"{option_id}/1"
        assert wanted(shopper, method, "one").terms == offer.terms
        if not had_its_fault:
            break
    else:
        raise AssertionError("the request never ended")
    assert at > 2


@METHODS
def test_a_request_that_nobody_repeats_is_ended_by_the_job(world: World, method: str) -> None:
    for at in every(world, 40):
        shopper = Shopper(world)
        had_its_fault = ask_over(world, shopper, method, at, crash)
        world.advance(150)  # the job is due, also after the lease of a worker that died
        for option in shopper.details().options:
            assert option.option.status == "pending"
            assert terms_of(option)
        if not had_its_fault:
            break
    else:
        raise AssertionError("the request never ended")


@METHODS
@FAULTS
def test_a_worker_that_fails_anywhere_delivers_once(
    world: World, method: str, fault: Fault
) -> None:
    for at in every(world, 400)[:: 7 if fault is not crash else 3]:
        shopper = Shopper(world)
        option = shopper.routed() if method == "routing" else shopper.bought()
        before = shopper.wallet_holds()
        if method == "routing":
            shopper.pay_router(option)
        else:
            shopper.buy(option)
        storage = FaultyStorage(world.storage, at, fault, CHANGING_CALLS)
        work_over(world, storage)
        world.advance(110)  # the lease of what the dead worker had claimed
        world.advance(90)
        payment = shopper.paid()
        assert (payment.status, payment.received_atomic) == ("succeeded", FULL)
        assert payment.settled_atomic == FULL
        assert shopper.status(option)[0] == "succeeded"
        assert shopper.wallet_holds() == before
        if not storage.had_its_fault:
            break
    else:
        raise AssertionError("the flow never ended")
    assert at > 10


def test_a_return_that_fails_anywhere_comes_back_once(world: World) -> None:
    for at in every(world, 400)[::5]:
        shopper = Shopper(world)
        option = shopper.routed()
        fail(world, "router", "return")
        before = shopper.wallet_holds()
        shopper.pay_router(option)
        storage = FaultyStorage(world.storage, at, crash, CHANGING_CALLS)
        work_over(world, storage)
        world.advance(200)
        assert shopper.status(option)[0] == "failed"
        assert shopper.paid().received_atomic == 0
        assert shopper.wallet_holds() - before == atomic(PRICE)
        if not storage.had_its_fault:
            break
    else:
        raise AssertionError("the flow never ended")
