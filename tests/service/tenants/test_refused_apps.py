"""An app that is refused leaves nothing behind."""

from __future__ import annotations

import pytest

from payments_core.clock import DAY
from payments_core.errors import ResourceConflict, ValidationFailed
from payments_core.storage.jobs import Job
from payments_core.storage.port import Storage
from tests.service.faults import FaultyStorage
from tests.service.world import World


def timers(storage: Storage, mode: str, now: int) -> list[Job]:
    """Every timer of a mode, of whatever environment."""
    claimed = storage.claim(f"{mode}.timers", now, lease_ms=1, limit=100, lane_concurrency=100)
    return [item.job for item in claimed]


def test_a_taken_partner_id_leaves_no_environments_or_jobs_behind(memory_world: World) -> None:
    world = memory_world
    writes = FaultyStorage(world.storage, 10**9, lambda call: call(), ("transact",))
    with pytest.raises(ResourceConflict, match="acme"):
        world.restarted(writes).tenants.create_app("Copycat", "acme")
    assert writes.calls == 0
    for mode, environment_id in world.app.environments.items():
        [purge] = timers(world.storage, mode, world.clock.now() + DAY)
        assert purge.subject == environment_id


def test_an_app_refused_for_its_form_writes_nothing_either(memory_world: World) -> None:
    writes = FaultyStorage(memory_world.storage, 10**9, lambda call: call(), ("transact",))
    tenants = memory_world.restarted(writes).tenants
    with pytest.raises(ValidationFailed):
        tenants.create_app("Wrong", "-wrong-")
    with pytest.raises(ValidationFailed):
        tenants.create_app("Wrong", "wrong", products=("teleport",))
    assert writes.calls == 0


def test_the_refused_app_is_welcome_under_another_id(memory_world: World) -> None:
    tenants = memory_world.service.tenants
    with pytest.raises(ResourceConflict):
        tenants.create_app("Copycat", "acme")
    assert tenants.get_app(tenants.create_app("Copycat", "copycat").id).name == "Copycat"
