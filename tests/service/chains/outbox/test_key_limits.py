"""How many keys an environment has, and which of the old ones make room."""

from __future__ import annotations

import pytest

from payments_core.clock import DAY, SECOND, to_datetime
from payments_core.errors import ResourceConflict, Unauthorized, ValidationFailed
from payments_core.tenants.keys import MAX_KEYS
from payments_core.tenants.record import SCOPE_PRODUCT, Key
from tests.service.world import World


@pytest.fixture
def full(memory_world: World) -> World:
    """An environment with as many keys as there may be."""
    while len(memory_world.environment.keys) < 100:
        key(memory_world)
    return memory_world


def key(world: World) -> Key:
    return world.service.tenants.create_key(world.environment_id, "standard", "another")[0]


def revoke(world: World, key_id: str) -> None:
    world.service.tenants.revoke_key(world.environment_id, key_id)


def test_an_environment_has_at_most_a_hundred_keys(full: World) -> None:
    assert MAX_KEYS == 100
    before = full.environment
    with pytest.raises(ResourceConflict, match="100"):
        key(full)
    assert full.environment == before


def test_every_key_can_be_revoked_at_the_limit(full: World) -> None:
    for item in full.environment.keys:
        revoke(full, item.id)
    assert all(item.revoked_at_ms for item in full.environment.keys)
    with pytest.raises(Unauthorized):
        assert full.server


@pytest.mark.parametrize("letter", ["x", "\N{GRINNING FACE}", "\x01"])
def test_the_largest_keys_can_be_revoked_at_the_limit_too(memory_world: World, letter: str) -> None:
    """They all live in one record, and a revocation makes it longer."""
    world, create = memory_world, memory_world.service.tenants.create_key
    with pytest.raises(ValidationFailed):
        create(world.environment_id, "standard", letter * 65)
    while len(world.environment.keys) < MAX_KEYS:
        create(
            world.environment_id,
            "restricted",
            letter * 64,
            scopes=tuple(SCOPE_PRODUCT),
            expires_at=to_datetime(world.clock.now() + DAY),
        )
    for item in world.environment.keys:
        revoke(world, item.id)
    assert all(item.revoked_at_ms for item in world.environment.keys)


def test_a_revoked_key_makes_room_after_two_days_and_not_before(full: World) -> None:
    old = full.environment.keys[50]
    revoke(full, old.id)
    with pytest.raises(ResourceConflict):
        key(full)
    full.system.advance(2 * DAY / SECOND)
    with pytest.raises(ResourceConflict):
        key(full)
    full.system.advance(0.001)
    new = key(full)
    ids = [item.id for item in full.environment.keys]
    assert len(ids) == 100
    assert new.id in ids
    assert old.id not in ids
    with pytest.raises(ResourceConflict):
        key(full)


def test_a_session_ends_with_a_key_that_was_forgotten(memory_world: World) -> None:
    """A key that is gone must not look like one that never was revoked."""
    world = memory_world
    payment, session = world.payment(), world.client
    revoke(world, world.key.id)
    world.system.advance(2 * DAY / SECOND + 1)
    key(world)
    assert world.environment.key(world.key.id) is None
    with pytest.raises(Unauthorized):
        world.option(payment, session)
