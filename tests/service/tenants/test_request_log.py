"""The log of requests: bounded, in order, and kept whole when processes add at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from payments_core.errors import NotFound
from payments_core.tenants.request_log import (
    MAX_PAGES,
    PAGE_REQUESTS,
    LoggedRequest,
    RequestLogPage,
)
from tests.service.world import World


def requests(world: World, count: int) -> list[LoggedRequest]:
    made = []
    for _ in range(count):
        world.system.advance(0.01)
        made.append(
            LoggedRequest(
                id=world.service.parts.ports.identifiers.new("req"),
                at_ms=world.clock.now(), method="GET",
                path="/v2/accounts", credential="server_key", status=200, body="é" * 1_000,
            )
        )  # fmt: skip
    return made


def append(world: World, made: Sequence[LoggedRequest]) -> None:
    world.service.parts.request_log.append(world.environment_id, "sandbox", made)


def read(world: World) -> Sequence[LoggedRequest]:
    authority = world.service.tenants.system_authority(world.environment_id)
    return world.service.parts.request_log.list(authority)


def find_pages(world: World) -> Sequence[RequestLogPage]:
    return world.storage.read(
        world.environment_id,
        lambda snapshot: snapshot.find(RequestLogPage, "newest", limit=1_000).records,
    )


def test_they_are_listed_newest_first_and_share_a_record(world: World) -> None:
    made = requests(world, 5)
    append(world, made[:2])
    append(world, made[2:])
    assert list(read(world)) == made[::-1]
    assert len(find_pages(world)) == 1
    authority = world.service.tenants.system_authority(world.environment_id)
    assert world.service.acting_as(authority).requests.read(made[3].id) == made[3]


def test_the_oldest_make_room(memory_world: World) -> None:
    world = memory_world
    batches = []
    for _ in range(MAX_PAGES + 2):
        batches.append(requests(world, PAGE_REQUESTS))
        append(world, batches[-1])
    assert len(find_pages(world)) == MAX_PAGES
    assert list(read(world)) == [one for batch in batches[2:] for one in batch][::-1]
    authority = world.service.tenants.system_authority(world.environment_id)
    with pytest.raises(NotFound):
        world.service.acting_as(authority).requests.read(batches[0][0].id)


def test_what_another_process_adds_meanwhile_is_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, theirs, ours = (requests(world, 8) for _ in range(3))
    append(world, first)
    committer = world.service.parts.ports.committer
    commit = committer.commit

    def commit_behind_another(*given: Any, **more: Any) -> Any:
        monkeypatch.setattr(committer, "commit", commit)
        append(world, theirs)
        return commit(*given, **more)

    monkeypatch.setattr(committer, "commit", commit_behind_another)
    append(world, ours)
    assert list(read(world)) == [*first, *theirs, *ours][::-1]
