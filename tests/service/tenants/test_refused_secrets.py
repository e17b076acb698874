"""What opens nothing is refused at the directory: the time that it takes is measured elsewhere
(`make timing`); here is what that rests on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from payments_core.clock import to_datetime
from payments_core.credentials.secrets import DIGEST_PURPOSE
from payments_core.errors import Unauthorized, Unavailable
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import DIRECTORY, Storage, StorageUnavailable
from payments_core.tenants.record import CredentialIndexEntry
from tests.service.world import World


def listed(world: World, secret: str) -> CredentialIndexEntry | None:
    digest = world.service.parts.ports.key_ring.digest(DIGEST_PURPOSE, secret)
    return world.storage.read(
        DIRECTORY, lambda snapshot: snapshot.get(CredentialIndexEntry, digest)
    )


def refused(world: World, app_id: str, secret: str, mode: str = "sandbox") -> None:
    with pytest.raises(Unauthorized):
        world.service.tenants.authenticate(app_id, secret, mode=mode)


def test_a_revoked_key_leaves_the_directory(world: World) -> None:
    tenants, environment_id = world.service.tenants, world.environment_id
    key, secret = tenants.create_key(environment_id, "standard", "spare")
    app_id = world.environment.app_id
    assert listed(world, secret) is not None
    tenants.authenticate(app_id, secret, mode="sandbox")
    tenants.revoke_key(environment_id, key.id)
    assert listed(world, secret) is None
    refused(world, app_id, secret)
    refused(world, app_id, secret)


def test_a_revocation_holds_though_the_directory_is_out_of_reach_and_is_finished_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenants, environment_id = world.service.tenants, world.environment_id
    key, secret = tenants.create_key(environment_id, "standard", "spare")
    transact = world.storage.transact

    def without_directory(partition: str, work: Callable[..., object]) -> object:
        if partition == DIRECTORY:
            raise StorageUnavailable("no route to host")
        return transact(partition, work)

    with monkeypatch.context() as patch:
        patch.setattr(world.storage, "transact", without_directory)
        with pytest.raises(Unavailable):
            tenants.revoke_key(environment_id, key.id)
    assert listed(world, secret) is not None
    refused(world, world.environment.app_id, secret)
    tenants.revoke_key(environment_id, key.id)
    assert listed(world, secret) is None


def test_what_opens_nothing_reads_no_environment(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(storage).open()
    tenants, environment_id = world.service.tenants, world.environment_id
    app_id = world.environment.app_id
    other = tenants.create_app("Other", "other")
    _, secret = tenants.create_key(environment_id, "standard", "spare")
    _, brief = tenants.create_key(
        environment_id, "standard", "brief", expires_at=to_datetime(world.clock.now() + 1_000)
    )
    _, live = tenants.create_key(other.environments["production"], "standard", "live")
    for used in (secret, brief):
        tenants.authenticate(app_id, used, mode="sandbox")
    world.system.advance(1)
    seen: list[str] = []

    def note(name: str) -> None:
        asked: Callable[..., object] = getattr(world.storage, name)

        def noted(partition: str, *questions: object) -> object:
            seen.append(partition)
            return asked(partition, *questions)

        monkeypatch.setattr(world.storage, name, noted)

    note("read")
    if not isinstance(storage, MemoryStorage):  # whose `fetch` is a `read`
        note("fetch")
    refused(world, other.id, secret)
    refused(world, app_id, brief)  # the process remembers where it belongs, until now
    seen.clear()
    refused(world, other.id, secret)
    refused(world, "app_" + "A" * 24, secret)
    refused(world, app_id, brief)
    assert seen == [DIRECTORY] * 3
    seen.clear()
    refused(world, other.id, live)
    assert seen == []
    tenants.authenticate(app_id, secret, mode="sandbox")
    assert seen == [environment_id]
