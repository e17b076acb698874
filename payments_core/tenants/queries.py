"""Queries for operators: all apps, and when an environment's keys were last used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from payments_core.clock import Instant
from payments_core.storage.damaged_records import load_listed
from payments_core.storage.documents import UnreadableDocument
from payments_core.storage.port import DIRECTORY, Position, Snapshot, Storage
from payments_core.storage.port import Page as StoredPage
from payments_core.tenants.record import App, Environment, KeyUse

_PAGE = 200


def iterate_apps(storage: Storage) -> Iterator[App]:
    """All apps, the oldest first. An app that cannot be read is skipped with an alarm."""
    after: Position | None = None
    while True:

        def look(snapshot: Snapshot, after: Position | None = after) -> StoredPage[App]:
            return snapshot.find(App, "by_created", after=after, limit=_PAGE, skip_damaged=True)

        page = storage.read(DIRECTORY, look)
        yield from page.records
        if page.next is None:
            return
        after = page.next


def has_apps(storage: Storage) -> bool:
    """Whether any app exists, even if it cannot be read any more."""
    try:
        return bool(storage.read(DIRECTORY, _load_first_app).records)
    except UnreadableDocument:
        return True


def load_key_uses(storage: Storage, environment: Environment) -> Mapping[str, Instant]:
    """When each key was last used, to the minute; unused keys are absent.

    Keys whose row of uses cannot be read are also absent, with an alarm.
    """

    def load(snapshot: Snapshot) -> dict[str, Instant]:
        ids = [key.id for key in environment.keys]
        found = load_listed(environment.id, KeyUse, ids, lambda id: snapshot.get(KeyUse, id))
        return {use.id: use.last_used_at_ms for use in found if use is not None}

    return storage.read(environment.id, load)


def _load_first_app(snapshot: Snapshot) -> StoredPage[App]:
    return snapshot.find(App, "by_created", limit=1)
