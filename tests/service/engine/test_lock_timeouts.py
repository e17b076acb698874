"""A lock that does not come in time: most likely the same request is under way elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from payments_core.engine.idempotency.record import StoredResponse
from payments_core.errors import IdempotencyInProgress, Unavailable
from payments_core.payments.destinations import ToAccount
from payments_core.payments.operations import NewPayment
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.storage.port import LockTimeout, StorageUnavailable, Transaction
from payments_core.storage.postgres.adapter import PostgresStorage
from tests.service.conftest import funded
from tests.service.faults import Fault, FaultyStorage
from tests.service.world import World, answer_of, once

T = TypeVar("T")


def locked(call: Callable[[], Any]) -> Any:
    """Another transaction holds the row for too long."""
    raise LockTimeout("canceling statement due to lock timeout")


def away(call: Callable[[], Any]) -> Any:
    raise StorageUnavailable("no route to host")


def new(world: World) -> NewPayment:
    return NewPayment(amount="5", destination=ToAccount(account_id=world.merchant.id))


def faulty(world: World, fault: Fault) -> PaymentsService:
    """A process whose next transaction goes wrong."""
    return world.restarted(FaultyStorage(world.storage, 1, fault, ("transact",)))


def test_with_an_idempotency_key_it_is_in_progress(memory_world: World) -> None:
    service = faulty(memory_world, locked)
    server = memory_world.server
    with pytest.raises(IdempotencyInProgress) as caught:
        service.acting_as(server).payments.receive(new(memory_world), idempotency_key=once("k"))
    assert isinstance(caught.value.__cause__, LockTimeout)
    assert caught.value.code == "idempotency_in_progress"
    assert service.acting_as(server).payments.receive(new(memory_world), idempotency_key=once("k"))


def test_without_one_it_is_unavailable(memory_world: World) -> None:
    service = faulty(memory_world, locked)
    with pytest.raises(Unavailable):
        service.acting_as(memory_world.server).payments.receive(new(memory_world))


@pytest.mark.parametrize("key", [None, "k"])
def test_a_storage_out_of_reach_is_unavailable_with_a_key_and_without(
    memory_world: World, key: str | None
) -> None:
    service = faulty(memory_world, away)
    with pytest.raises(Unavailable):
        service.acting_as(memory_world.server).payments.receive(
            new(memory_world), idempotency_key=once(key) if key else None
        )


class HeldOpen(PostgresStorage):
    """A database whose transactions wait before their COMMIT, once the test asks for it."""

    waits = False

    def __init__(self, url: str) -> None:
        super().__init__(url, RECORD_TYPES)
        self.inside, self.go = threading.Event(), threading.Event()

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        def held(tx: Transaction) -> T:
            result = work(tx)
            if self.waits:
                tx.get(StoredResponse, "none")  # what was written goes with the next question
                self.inside.set()
                assert self.go.wait(10)
            return result

        return super().transact(partition, held)


@pytest.fixture
def held(emptied_schema: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[World, HeldOpen]]:
    """A world on PostgreSQL, and another process's storage on the same schema."""
    monkeypatch.setattr("payments_core.storage.postgres.adapter.LOCK_TIMEOUT_MS", 200)
    storage, slow = PostgresStorage(emptied_schema, RECORD_TYPES), HeldOpen(emptied_schema)
    yield funded(storage), slow
    slow.close()
    storage.close()


@pytest.mark.postgres
def test_a_second_caller_with_the_key_of_an_open_transaction_must_wait(
    held: tuple[World, HeldOpen],
) -> None:
    world, slow = held
    first, server, outcomes = world.restarted(slow), world.server, list[Any]()
    slow.waits = True

    def create() -> None:
        outcomes.append(
            first.acting_as(server)
            .payments.receive(new(world), idempotency_key=once("k"))
            .payment.id
        )

    thread = threading.Thread(target=create)
    thread.start()
    try:
        assert slow.inside.wait(10)
        with pytest.raises(IdempotencyInProgress):
            world.service.acting_as(server).payments.receive(new(world), idempotency_key=once("k"))
    finally:
        slow.go.set()
        thread.join(10)
    again = answer_of(
        lambda: world.service.acting_as(server).payments.receive(
            new(world), idempotency_key=once("k")
        )
    )
    assert again is not None
    assert [
        item.payment.id for item in world.service.acting_as(server).payments.list().records
    ] == outcomes
