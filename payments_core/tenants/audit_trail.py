"""Reads the audit trail of an environment: its own entries, and the directory's about it.

An operator is a row of the directory, so that the entry of a change of one is there too: it was
written in the same transaction. A list merges both, by time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from msgspec import Meta

from payments_core.engine.audit import ActorType, AuditEntry
from payments_core.engine.ports import Ports
from payments_core.storage.newest import find_newest, where_matches
from payments_core.storage.port import DIRECTORY, Page, Position, Where
from payments_core.storage.query_semantics import validate_position
from payments_core.storage.records import Value
from payments_core.tenants.authorization import Authority
from payments_core.validation.fields import PageLimit

Filter = Annotated[str, Meta(min_length=1, max_length=256)]


class AuditTrail:
    """Lists entries, newest first.

    >>> shop.audit.list(actor_type="program", limit=1).records[0].operation
    'payments.cancel'
    """

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage

    def list(
        self,
        authority: Authority,
        *,
        actor_type: ActorType | None = None,
        actor_id: Filter | None = None,
        operation: Filter | None = None,
        object_id: Filter | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        limit: PageLimit = 50,
        after: Position | None = None,
    ) -> Page[AuditEntry]:
        """The entries of the environment that match every filter, newest first.

        A page may be short and still have a `next`. An entry that cannot be read is skipped with
        an alarm. Raises ValidationFailed.
        """
        if after is not None:
            validate_position(after, int, str)
        where = where_matches(
            actor_type=actor_type,
            actor_id=actor_id,
            operation=operation,
            created_after=created_after,
            created_before=created_before,
        )
        partition = authority.partition
        pages = [
            self._find(partition, None, where, object_id, after, limit),
            self._find(DIRECTORY, partition, where, object_id, after, limit),
        ]
        return _merge(pages, limit)

    def list_deployment(
        self, *, limit: PageLimit = 50, after: Position | None = None
    ) -> Page[AuditEntry]:
        """The entries that belong to no environment, newest first: refused log-ins by names that
        nobody has, and repairs of what belongs to none."""
        return self._find(DIRECTORY, None, (), None, after, limit)

    def _find(
        self,
        partition: str,
        environment_id: str | None,
        where: Sequence[Where],
        object_id: str | None,
        after: Position | None,
        limit: int,
    ) -> Page[AuditEntry]:
        index: str = "newest"
        key: tuple[Value, ...] = (environment_id,)
        if object_id is not None:
            index, key = "of_object", (object_id,)
            if environment_id is not None:
                where = (*where, Where("environment_id", "=", environment_id))
        return self._storage.read(
            partition,
            lambda snapshot: find_newest(
                snapshot, AuditEntry, index, key, where=where, after=after, limit=limit
            ),
        )


def _merge(pages: Sequence[Page[AuditEntry]], limit: int) -> Page[AuditEntry]:
    """One page of several, newest first. It ends where the first of them ends, since what follows
    there is not known yet."""
    ends = [page.next for page in pages if page.next is not None]
    end = max(ends, key=_order) if ends else None
    found = [
        entry
        for page in pages
        for entry in page.records
        if end is None or _order(_position(entry)) >= _order(end)
    ]
    found.sort(key=lambda entry: _order(_position(entry)), reverse=True)
    if len(found) > limit:
        found, end = found[:limit], _position(found[limit - 1])
    return Page(tuple(found), end)


def _position(entry: AuditEntry) -> Position:
    return entry.created_at_ms, entry.id


def _order(position: Position) -> tuple[int, str]:
    """The order of positions; the storage orders ids by code point, as Python does."""
    created_at, id = position
    return int(created_at or 0), str(id)
