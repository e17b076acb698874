"""Restricted keys, as the operator of an environment makes and revokes them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from payments_core.clock import to_datetime
from payments_core.errors import (
    IdempotencyConflict,
    NotFound,
    ResourceConflict,
    Unauthorized,
    Unavailable,
    ValidationFailed,
)
from payments_core.storage.port import DIRECTORY
from payments_core.tenants import keys as keys_module
from payments_core.tenants.record import CredentialIndexEntry, Environment
from tests.service.world import World

SCOPES = ("v2:payments",)


def environment(world: World) -> Environment:
    return world.service.tenants.get_environment(world.environment_id)


def rows_of(world: World, key_id: str) -> int:
    """How many rows of the directory lead to a key."""
    found = world.storage.read(
        DIRECTORY, lambda snapshot: snapshot.find(CredentialIndexEntry, "by_key", (key_id,))
    )
    return len(found.records)


def test_a_secret_opens_its_key_until_that_is_revoked(world: World) -> None:
    key, secret = world.resources.keys.create("reports", scopes=SCOPES)
    opened, found = world.service.tenants.authenticate(world.app.id, secret, mode="sandbox")
    assert (opened.id, found) == (world.environment_id, key)
    revoked = world.resources.keys.revoke(key.id)
    assert revoked == world.resources.keys.revoke(key.id)
    with pytest.raises(Unauthorized):
        world.service.tenants.authenticate(world.app.id, secret, mode="sandbox")
    assert rows_of(world, key.id) == 0


def test_one_key_of_a_caller_makes_one_key(world: World) -> None:
    first = world.resources.keys.create("reports", scopes=SCOPES, idempotency_key="k")
    assert world.resources.keys.create("reports", scopes=SCOPES, idempotency_key="k") == first
    with pytest.raises(IdempotencyConflict):
        world.resources.keys.create("others", scopes=SCOPES, idempotency_key="k")
    assert [key.name for key in environment(world).keys].count("reports") == 1


@pytest.mark.parametrize("scopes", [(), ("v2:everything",)])
def test_it_needs_scopes_that_there_are(world: World, scopes: tuple[str, ...]) -> None:
    with pytest.raises(ValidationFailed) as refused:
        world.resources.keys.create("reports", scopes=scopes)
    assert [field.path for field in refused.value.fields] == ["scopes"]


def test_it_needs_a_name_and_time_to_live(world: World) -> None:
    now = to_datetime(world.clock.now())
    with pytest.raises(ValidationFailed):
        world.resources.keys.create("", scopes=SCOPES)
    with pytest.raises(ValidationFailed):
        world.resources.keys.create("reports", scopes=SCOPES, expires_at=now)
    key, _ = world.resources.keys.create(
        "reports", scopes=SCOPES, expires_at=now + timedelta(days=1)
    )
    assert key.expires_at == now + timedelta(days=1)


def test_other_kinds_are_not_revoked(world: World) -> None:
    with pytest.raises(ResourceConflict):
        world.resources.keys.revoke(world.key.id)
    with pytest.raises(NotFound):
        world.resources.keys.revoke("key_" + "A" * 24)
    assert environment(world).key(world.key.id) == world.key


def test_a_refused_key_leaves_no_row(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_module, "MAX_KEYS", 1)
    made: list[str] = []
    add = keys_module.CredentialIndex.add_key

    def spy(index: keys_module.CredentialIndex, owner: Environment, key: keys_module.Key) -> None:
        made.append(key.id)
        add(index, owner, key)

    monkeypatch.setattr(keys_module.CredentialIndex, "add_key", spy)
    with pytest.raises(ResourceConflict):
        world.resources.keys.create("reports", scopes=SCOPES)
    [refused] = made
    assert rows_of(world, refused) == 0


def test_without_the_directory_no_secret_is_shown(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key whose secret nothing could find would be lost with the page that showed it."""

    def fail(*_: object) -> None:
        raise Unavailable()

    before = environment(world).keys
    monkeypatch.setattr(keys_module.CredentialIndex, "add_key", fail)
    with pytest.raises(Unavailable):
        world.resources.keys.create("reports", scopes=SCOPES)
    assert environment(world).keys == before


def test_each_change_of_a_key_is_in_the_audit_trail(world: World) -> None:
    key, _ = world.resources.keys.create("reports", scopes=SCOPES)
    world.system.advance(1_000)
    world.resources.keys.revoke(key.id)
    world.resources.keys.revoke(key.id)
    entries = world.resources.audit.list(object_id=key.id).records
    assert [one.operation for one in entries][:2] == ["keys.revoke", "keys.create"]
