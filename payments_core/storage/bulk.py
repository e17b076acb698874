"""Many records at once, for adapters that can do it in fewer statements.

An adapter's rows may offer `get_many`, `count` and `write` as declared here; without them each
record is read or written by itself, to the same effect. What costs is not the statement's work:
around each one a thread gives up the interpreter and has to wait for it again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

from payments_core.storage.port import Position, Snapshot, Transaction, Where
from payments_core.storage.records import R, Record, Value


@runtime_checkable
class ReadsMany(Protocol):
    """Rows that can be read by many ids in one go."""

    def get_many(
        self, kind: type[R], ids: Collection[str], *, for_update: bool = False
    ) -> Mapping[str, R]:
        """As `get`, for each of the ids; those that are absent are not in the answer."""


@runtime_checkable
class CountsRecords(Protocol):
    """Rows that can be counted without reading their documents."""

    def count(
        self,
        kind: type[R],
        index: str,
        key: Sequence[Value],
        *,
        where: Sequence[Where],
        after: Position | None,
        limit: int,
    ) -> int:
        """How many records a page has that `find` answers to the same question."""


@runtime_checkable
class WritesMany(Protocol):
    """A transaction that can write many records in one go."""

    def write(
        self, inserts: Sequence[Record], replaces: Sequence[Record], deletes: Sequence[Record]
    ) -> None:
        """As `replace`, `delete` and `insert` for each, in this order. Each record comes once."""


def get_many(snapshot: Snapshot, kind: type[R], ids: Collection[str]) -> Mapping[str, R]:
    """The records of those ids that there are."""
    if isinstance(snapshot, ReadsMany):
        return snapshot.get_many(kind, ids)
    found = ((id, snapshot.get(kind, id)) for id in ids)
    return {id: record for id, record in found if record is not None}


def count(
    snapshot: Snapshot,
    kind: type[R],
    index: str,
    key: Sequence[Value] = (),
    *,
    where: Sequence[Where] = (),
    after: Position | None = None,
    limit: int,
) -> int:
    """How many records `find` would answer with, damaged ones included: `limit` at most.

    As `find`, it looks at no more than SCAN_LIMIT rows.
    """
    if isinstance(snapshot, CountsRecords):
        return snapshot.count(kind, index, key, where=where, after=after, limit=limit)
    page = snapshot.find(kind, index, key, where=where, after=after, limit=limit, skip_damaged=True)
    return len(page.records)


def lock_many(tx: Transaction, kind: type[R], ids: Collection[str]) -> Mapping[str, R]:
    """The same, locked until the end and certainly current; always in one order."""
    if isinstance(tx, ReadsMany):
        return tx.get_many(kind, ids, for_update=True)
    found = ((id, tx.get(kind, id, for_update=True)) for id in sorted(ids))
    return {id: record for id, record in found if record is not None}


def write(
    tx: Transaction,
    inserts: Sequence[Record],
    replaces: Sequence[Record] = (),
    deletes: Sequence[Record] = (),
) -> None:
    """Replace, delete and insert, in this order. Raises VersionConflict, UniqueConflict."""
    if isinstance(tx, WritesMany):
        tx.write(inserts, replaces, deletes)
        return
    for record in replaces:
        tx.replace(record)
    for record in deletes:
        tx.delete(record)
    for record in inserts:
        tx.insert(record)
