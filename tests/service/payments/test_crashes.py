"""Whatever fails between any two calls, the funds move once and everything is reported once."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Iterator

import attrs
import pytest

from payments_core.clock import MINUTE
from payments_core.payments.destinations import ToAccount
from payments_core.payments.operations import NewPayment
from payments_core.service import PaymentsService
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import Storage
from payments_core.storage.records import Record
from tests.conftest import Opener
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

AMOUNT = "1.00"
CHANGING_CALLS = ("transact", "claim")
"""Between two of these a crash leaves the same behind, whatever was read meanwhile."""

STORY = Counter(
    [
        *("payment.created", "payment.processing", "payment.accepted"),
        *("payment.executing", "payment.succeeded"),
        *("vault_funding.authorized", "vault_funding.broadcast", "vault_funding.confirmed"),
    ]
)


@pytest.fixture(autouse=True)
def _expect_warnings(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.CRITICAL, "payments_core.engine.jobs.worker")
    yield
    assert not caplog.records, "a job was parked"


@pytest.fixture
def world(opener: Opener) -> World:
    world = World(opener()).open()
    world.fund("5000.00")
    return world


def over(world: World, storage: Storage, chain: FaultyChain | None = None) -> PaymentsService:
    """Another process, on ports with a fault."""
    return world.restarted(storage, {BASE: chain} if chain else None)


def work(world: World, service: PaymentsService) -> None:
    """Half a minute of a worker's life: enough to go from an authorization to the end."""
    worker = service.worker("sandbox")
    worker.run_through(world.clock.now() + MINUTE // 2, world.clock.advance_to)


def check_story(world: World, payment_id: str, before: tuple[int, int]) -> None:
    sent, total = before
    payment = world.paid(payment_id)
    assert payment.status == "succeeded"
    assert payment.received_atomic == payment.settled_atomic == atomic(AMOUNT)
    assert payment.status_version == 5
    assert world.event_names(payment_id) == STORY
    assert world.sent() == sent + 2
    assert world.held() == (total - atomic(AMOUNT), 0, total - atomic(AMOUNT))
    assert world.on_chain(payment.escrow_address) == 0


def content(record: Record) -> dict[str, object]:
    """What a record says, however often it was written."""
    return attrs.asdict(record, filter=lambda field, _: field.name not in ("version", "schema"))


def state(world: World) -> tuple[int, int]:
    return world.sent(), world.held()[0]


def every(world: World, most: int) -> range:
    """The calls that go wrong, one after the other; where a disk takes its time, some of them."""
    return range(1, most, 1 if isinstance(world.storage, MemoryStorage) else 7)


def test_a_worker_may_die_before_any_call_it_makes(world: World) -> None:
    for at in every(world, 400):
        before = state(world)
        option = world.authorized(AMOUNT)
        storage = FaultyStorage(world.storage, at, crash, CHANGING_CALLS)
        with contextlib.suppress(Crashed):
            work(world, over(world, storage))
        world.advance(110)  # the lease of what the dead worker had claimed, by a clock ahead
        world.advance(20)
        check_story(world, option.payment.id, before)
        if not storage.had_its_fault:
            break
    else:
        raise AssertionError("the flow never ended")
    assert at > 40, "there are more steps than this"


def test_the_storage_may_be_out_of_reach_at_any_call_of_a_worker(world: World) -> None:
    for at in every(world, 400)[:: 3 if isinstance(world.storage, MemoryStorage) else 1]:
        before = state(world)
        option = world.authorized(AMOUNT)
        storage = FaultyStorage(world.storage, at, storage_away)
        service = over(world, storage)
        try:
            work(world, service)
        except Exception:  # what it could not claim, it claims later
            work(world, service)
        world.advance(110)
        world.advance(20)
        check_story(world, option.payment.id, before)
        if not storage.had_its_fault:
            return
    raise AssertionError("the flow never ended")


@pytest.mark.parametrize("fault", [commit_lost, commit_failed])
def test_the_answer_to_any_commit_may_be_lost(world: World, fault: Fault) -> None:
    to = ToAccount(account_id=world.merchant.id)
    for at in every(world, 200):
        before = state(world)
        storage = FaultyStorage(world.storage, at, fault, ("transact",))
        service = over(world, storage)
        created = service.acting_as(world.server).payments.receive(
            NewPayment(amount=AMOUNT, destination=to)
        )
        assert content(created.payment) == content(world.paid(created.payment.id))
        option = service.acting_as(world.client).options.create(created.payment.id)
        option = service.acting_as(world.client).options.refresh(
            created.payment.id, option.option.id
        )
        assert content(option.option) == content(world.option_now(option))
        authorized = service.acting_as(world.client).options.authorize(
            created.payment.id,
            option.option.id,
            action_id=str(option.option.action_id),
        )
        assert content(authorized.operation) == content(world.operation_now(option))
        assert content(authorized.payment) == content(world.paid(created.payment.id))
        work(world, service)
        world.advance(110)
        check_story(world, created.payment.id, before)
        if not storage.had_its_fault:
            return
    raise AssertionError("the flow never ended")


@pytest.mark.parametrize("fault", [chain_away, answer_lost])
def test_the_chain_may_be_out_of_reach_at_any_call_of_a_worker(world: World, fault: Fault) -> None:
    for at in every(world, 100):
        before = state(world)
        option = world.authorized(AMOUNT)
        chain = FaultyChain(world.chain, at, fault)
        work(world, over(world, world.storage, chain))
        check_story(world, option.payment.id, before)
        if not chain.had_its_fault:
            return
    raise AssertionError("the flow never ended")


def test_a_chain_away_for_hours_parks_nothing(world: World) -> None:
    before = state(world)
    option = world.authorized(AMOUNT, expires_in_s=300)
    chain = FaultyChain(world.chain, 1, chain_away, until=10**9)
    service = over(world, world.storage, chain)
    worker = service.worker("sandbox")
    for _ in range(30):
        worker.run_until_idle()
        world.system.advance(600)
    assert world.paid(option.payment.id).status == "processing"
    chain.heal()
    work(world, service)
    check_story(world, option.payment.id, before)
