"""What the commits of a Payment announce by `reads=` is what their decisions read."""

from __future__ import annotations

import pytest

from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.payment_settings.record import PaymentSettings
from payments_core.storage.jobs import Job
from payments_core.storage.reads import Get, Lock
from payments_core.tenants.record import Environment
from tests.announced_reads import AnnouncedStorage, require_as_announced
from tests.service.conftest import funded
from tests.service.world import World

OF_CALLERS = {Environment, Job, StoredResponse}


@pytest.fixture
def announced() -> tuple[World, AnnouncedStorage]:
    """A vault that has paid before: its first payment also marks it as deployed."""
    storage = AnnouncedStorage()
    world = funded(storage)
    world.authorized("1.00")
    world.advance(60)
    storage.comparisons = []
    return world, storage


def test_a_payment_reads_what_its_commits_announce(
    announced: tuple[World, AnnouncedStorage],
) -> None:
    world, storage = announced
    told = 0

    def compare() -> None:
        nonlocal told
        told += require_as_announced(storage.comparisons, OF_CALLERS)
        storage.comparisons = []

    option = world.option(world.payment())
    compare()
    world.authorize(option)
    compare()
    for _ in range(6):
        world.advance(10)
        compare()
    assert world.paid(option.option.payment_id).status == "succeeded"
    assert told > 5


@pytest.mark.parametrize("lock", ["none", "shared", "exclusive"])
def test_another_lock_than_announced_fails(
    announced: tuple[World, AnnouncedStorage], lock: Lock
) -> None:
    world, _ = announced

    def decide(tx: object, id_sequence: object) -> Decision[None]:
        tx.get(Environment, world.environment_id, for_update=lock != "exclusive")  # type: ignore[attr-defined]
        return Decision(None)

    with pytest.raises(AssertionError, match=f"announced with the lock {lock}"):
        world.service.parts.ports.committer.commit(
            WorkerAuthority(world.environment_id, "sandbox"),
            decide,
            reads=[Get(Environment, world.environment_id, lock), Get(PaymentSettings, "absent")],
        )
