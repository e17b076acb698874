"""The bytes that an environment stores: the hourly purge counts them, in parts."""

from __future__ import annotations

import json
import logging
from collections import Counter
from contextlib import suppress

import pytest

from payments_core.accounts.operations import NewAccount
from payments_core.accounts.record import Account
from payments_core.clock import DAY, HOUR, MINUTE
from payments_core.errors import StorageLimitReached, Unavailable, ValidationFailed
from payments_core.evolve import evolve
from payments_core.maintenance.record import COUNT_ID, StorageCount
from payments_core.maintenance.stored_bytes import COUNT_EVERY_MS, StoredBytesCounter
from payments_core.record_types import RECORD_TYPES
from payments_core.storage import documents
from payments_core.storage.port import Storage, StorageUnavailable
from payments_core.telemetry import NoopTelemetry
from payments_core.tenants.record import STORAGE_LIMIT_BYTES, Environment
from tests.maintenance.shop import Shop, all_rows
from tests.service.faults import Crashed, Fault, FaultyStorage, commit_lost, crash, storage_away
from tests.service.world import World, write

METADATA = {"note": "é" * 500}
OWN_BYTES = 200
"""A count changes two rows: its own, and the environment's."""


class Heard(NoopTelemetry):
    """What was reported."""

    def __init__(self) -> None:
        object.__setattr__(self, "counts", [])

    def record_stored_bytes(self, stored: int, limit: int) -> None:
        self.counts.append((stored, limit))  # type: ignore[attr-defined]


def stored_now(world: World) -> int:
    """The bytes of all bodies in the environment's partition."""
    rows = [row for _, row in all_rows(world.storage, RECORD_TYPES)]
    return sum(len(row.body.encode()) for row in rows if row.partition == world.environment_id)


def counter_of(world: World, storage: Storage | None = None, rows: int = 7) -> StoredBytesCounter:
    """A counter of pages of a few rows, in a process of its own."""
    ports = world.restarted(storage).parts.ports
    return StoredBytesCounter(ports, RECORD_TYPES, page_rows=rows)


def count_all(world: World, counter: StoredBytesCounter | None = None) -> int:
    """Count to the end."""
    counter = counter or counter_of(world)
    while counter.run(world.environment_id):
        pass
    assert world.environment.stored_bytes is not None
    return world.environment.stored_bytes


def count_again(world: World) -> int:
    world._move(world.clock.now() + COUNT_EVERY_MS)
    return count_all(world)


def test_the_count_is_what_is_stored(shop: Shop) -> None:
    shop.stock(6)
    before = stored_now(shop)
    counter = counter_of(shop, rows=5_000)
    ends = counter.run(shop.environment_id) is False
    counted = count_all(shop, counter)
    if ends:  # a weak storage may give short pages, and the count writes its own rows meanwhile
        assert counted == before
    assert abs(counted - before) < OWN_BYTES
    assert shop.environment.counted_at_ms == shop.clock.now()


@pytest.mark.parametrize("rows", [1, 2, 50])
def test_a_count_in_parts_is_what_is_stored(memory_shop: Shop, rows: int) -> None:
    """It is left between its parts, and its own rows are all that changes meanwhile."""
    memory_shop.stock(3)
    parts = 0
    while counter_of(memory_shop, rows=rows).run(memory_shop.environment_id):
        parts += 1
    assert (parts > 1) is (rows < 50)
    counted = memory_shop.environment.stored_bytes
    assert counted is not None
    assert abs(counted - stored_now(memory_shop)) < OWN_BYTES


def test_other_environments_do_not_count(memory_shop: Shop) -> None:
    alone = count_all(memory_shop)
    other = World(memory_shop.storage).open("other")
    for number in range(5):
        other.account(f"theirs {number}", metadata=METADATA)
    assert count_again(memory_shop) - alone < OWN_BYTES
    assert count_all(other) > 5 * 1_000


def test_metadata_that_comes_and_goes_is_counted(shop: Shop) -> None:
    empty = count_all(shop)
    account = shop.account("new", metadata=METADATA)
    assert count_again(shop) > empty + 2 * 1_000  # the account's own, and its event's
    shop.resources.accounts.change(account.id, metadata=None)
    full = count_again(shop)

    def forget(tx: object) -> None:
        found = tx.get(Account, account.id, for_update=True)  # type: ignore[attr-defined]
        tx.delete(found)  # type: ignore[attr-defined]

    gone = len(all_rows(shop.storage, [Account])[-1][1].body)
    write(shop.storage, shop.environment_id, forget)
    assert full - count_again(shop) >= min(gone, 100)


@pytest.mark.parametrize("fault", [crash, storage_away, commit_lost], ids=lambda it: it.__name__)
def test_a_count_that_is_killed_anywhere_continues(memory_shop: Shop, fault: Fault) -> None:
    memory_shop.stock(2)
    expected = count_all(memory_shop, counter_of(memory_shop, rows=3))
    calls, place = ("transact", "read"), 1
    while True:
        memory_shop._move(memory_shop.clock.now() + COUNT_EVERY_MS)
        kept = memory_shop.environment
        faulty = FaultyStorage(memory_shop.storage, place, fault, calls)
        if fault is commit_lost:
            faulty.count(["transact"])
        with suppress(Crashed, StorageUnavailable, Unavailable):
            counter = counter_of(memory_shop, faulty, rows=3)  # type: ignore[arg-type]
            while counter.run(memory_shop.environment_id):
                pass
        if not faulty.had_its_fault:
            break
        after = memory_shop.environment
        assert after.stored_bytes is not None
        if after.counted_at_ms == kept.counted_at_ms:  # it stopped before its end
            assert after == kept
        counted = count_all(memory_shop, counter_of(memory_shop, rows=3))
        assert abs(counted - expected) < OWN_BYTES
        place += 1
    assert place > (1 if fault is commit_lost else 5)


def test_two_counters_at_once_count_once(memory_shop: Shop) -> None:
    """A worker that lost its lease goes on counting, beside the one that took the job."""
    memory_shop.stock(2)
    late = counter_of(memory_shop, rows=2)
    partition = memory_shop.environment_id
    begun = late._begin_or_continue(None)
    assert begun is not None
    measured = late._measure(partition, begun)
    expected = count_all(memory_shop, counter_of(memory_shop, rows=2))
    before = stored_now(memory_shop)
    assert late._commit(partition, measured) is None
    assert stored_now(memory_shop) == before
    assert memory_shop.environment.stored_bytes == expected


def test_a_count_begins_once_in_half_an_hour(memory_shop: Shop) -> None:
    """The purge returns after a second while it has more to delete."""
    count_all(memory_shop)
    memory_shop.account("new", metadata=METADATA)
    at = memory_shop.environment.counted_at_ms
    memory_shop._move(memory_shop.clock.now() + COUNT_EVERY_MS - 1)
    count_all(memory_shop)
    assert memory_shop.environment.counted_at_ms == at
    memory_shop._move(memory_shop.clock.now() + 1)
    count_all(memory_shop)
    assert memory_shop.environment.counted_at_ms == memory_shop.clock.now()


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": None, "began_at_ms": 4_000_000_000_000},
        {"kind": "a_collection_that_is_gone", "after": "x", "bytes": 10**12},
    ],
    ids=["of a clock that was set back", "of another release"],
)
def test_a_count_that_cannot_go_on_begins_anew(
    memory_shop: Shop, changes: dict[str, object]
) -> None:
    expected = count_all(memory_shop)
    known = memory_shop.get(StorageCount, COUNT_ID)
    strange = evolve(known, **changes)
    write(memory_shop.storage, memory_shop.environment_id, lambda tx: tx.replace(strange))
    memory_shop._move(memory_shop.clock.now() + MINUTE)
    assert abs(count_all(memory_shop) - expected) < OWN_BYTES
    assert memory_shop.environment.counted_at_ms == memory_shop.clock.now()


def test_nothing_is_counted_of_an_environment_that_is_none(memory_shop: Shop) -> None:
    assert counter_of(memory_shop).run("env_nobody") is False
    assert "env_nobody" not in {
        row.partition for _, row in all_rows(memory_shop.storage, RECORD_TYPES)
    }


def test_the_worker_counts_every_hour_and_a_purge_ends_the_refusals(light_world: World) -> None:
    """Nobody runs a command: what is written fills the environment, and what ends empties it."""
    world = light_world
    tenants = world.service.tenants
    assert world.environment.stored_bytes is None
    world.advance_until(lambda: world.environment.stored_bytes is not None, 3_600)
    for number in range(12):
        new = NewAccount(subject_type="individual", metadata=METADATA)
        world.resources.accounts.create(new, idempotency_key=f"key {number}")
    held = world.system_authority
    first = world.environment.counted_at_ms
    world.advance_until(lambda: world.environment.counted_at_ms != first, 3_600)
    full = world.environment.stored_bytes
    assert full is not None
    tenants.set_storage_limit(world.environment_id, full)
    for authority in (held, world.server, world.system_authority):
        with pytest.raises(StorageLimitReached) as refused:
            world.service.acting_as(authority).accounts.create(
                NewAccount(subject_type="individual")
            )
        assert (refused.value.stored_bytes, refused.value.limit_bytes) == (full, full)
    replayed = NewAccount(subject_type="individual", metadata=METADATA)
    assert world.resources.accounts.create(replayed, idempotency_key="key 0").account.metadata
    stale = world.system_authority  # it still has the full environment
    world._move(world.clock.now() + 91 * DAY)  # events and answers have ended

    def has_room() -> bool:
        stored = world.environment.stored_bytes
        return stored is not None and stored < full - 12 * 1_000

    world.advance_until(has_room, 3_600)
    world.service.acting_as(stale).accounts.create(NewAccount(subject_type="individual"))


def test_money_goes_on_at_the_storage_limit(light_world: World) -> None:
    """A Payment from its creation to its refund, whose receipts and releases are found."""
    world = light_world
    world.service.tenants.set_storage_limit(world.environment_id, 0)
    count_all(world)
    with pytest.raises(StorageLimitReached):
        world.account("too late")
    payment = world.payment("25.00", metadata=METADATA)
    world.authorize(world.option(payment))
    world.advance_until(lambda: world.paid(payment.payment.id).status == "succeeded")
    refund = world.refund(payment, "5.00")
    world.advance_until(lambda: world.paid(payment.payment.id).status == "partially_refunded")
    assert refund.amount_atomic == 5_000_000
    names = Counter(event.name for event in world.events())
    assert names["payment.succeeded"] == names["payment.refunded"] == 1


def test_what_takes_no_room_goes_on_in_the_library(memory_world: World) -> None:
    world = memory_world
    account = world.account("full", metadata=METADATA)
    world.service.tenants.set_storage_limit(world.environment_id, 0)
    count_all(world)
    with pytest.raises(StorageLimitReached):
        memory_world.service.acting_as(world.server).accounts.change(account.id, metadata={"a": 1})
    memory_world.service.acting_as(world.server).accounts.change(
        account.id, email="new@shop.example"
    )
    assert (
        memory_world.service.acting_as(world.server)
        .accounts.change(account.id, metadata={})
        .account.metadata
        == {}
    )
    assert (
        memory_world.service.acting_as(world.server)
        .accounts.change(account.id, metadata=None)
        .account.metadata
        is None
    )
    closed = (
        memory_world.service.acting_as(world.server)
        .accounts.change(account.id, status="suspended")
        .account
    )
    assert closed.status == "suspended"


@pytest.mark.parametrize("share", [0.79, 0.8, 1.5])
def test_an_environment_that_is_nearly_full_is_named_in_the_log(
    memory_shop: Shop, share: float, caplog: pytest.LogCaptureFixture
) -> None:
    stored = count_all(memory_shop)
    limit = int(stored / share)
    memory_shop.service.tenants.set_storage_limit(memory_shop.environment_id, limit)
    ports = memory_shop.restarted().parts.ports
    heard = Heard()
    counter = StoredBytesCounter(evolve(ports, telemetry=heard), RECORD_TYPES)
    memory_shop._move(memory_shop.clock.now() + HOUR)
    with caplog.at_level(logging.WARNING):
        counted = count_all(memory_shop, counter)
    assert heard.counts == [(counted, limit)]  # type: ignore[attr-defined]
    warned = [one for one in caplog.messages if memory_shop.environment_id in one]
    assert len(warned) == (counted >= 0.8 * limit)


@pytest.mark.parametrize("limit", [-1, True, 1.5, "1", 2**70])
def test_a_storage_limit_that_is_no_number_of_bytes_is_refused(
    memory_shop: Shop, limit: object
) -> None:
    with pytest.raises(ValidationFailed):
        memory_shop.service.tenants.set_storage_limit(memory_shop.environment_id, limit)  # type: ignore[arg-type]
    assert memory_shop.environment.effective_storage_limit_bytes == STORAGE_LIMIT_BYTES


def test_an_environment_of_the_release_before_is_read_and_counted(memory_shop: Shop) -> None:
    """Its row has neither a count nor a limit."""
    partition = memory_shop.environment_id
    [row] = [row for _, row in all_rows(memory_shop.storage, [Environment]) if row.id == partition]
    document = json.loads(row.body)
    for name in ("storage_limit_bytes", "stored_bytes", "counted_at_ms"):
        del document[name]
    before = documents.decode(Environment, json.dumps({**document, "schema": 1}))
    assert (before.stored_bytes, before.counted_at_ms) == (None, None)
    assert before.effective_storage_limit_bytes == STORAGE_LIMIT_BYTES
    write(memory_shop.storage, partition, lambda tx: tx.replace(before))
    count_all(memory_shop)
    after = memory_shop.environment
    assert evolve(after, stored_bytes=None, counted_at_ms=None, version=1, schema=1) == evolve(
        before, version=1, schema=1
    )
