"""All partitions at once, for tools that must see everything: an optional protocol beyond the port.

An adapter that offers it can be walked through while the service runs (`scan_page`; `read_rows` for
what is stored, damaged rows too), and can be had alone (`lock_exclusively`): nobody else writes
then, and what is loaded is there as a whole or not at all. SQLite, PostgreSQL and memory offer it.
A damaged row does not end a walk: it is told, and passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

import attrs

from payments_core.storage import documents
from payments_core.storage.damaged_records import log_damaged_row, try_decode
from payments_core.storage.port import LocatedRecord, Storage, StorageError
from payments_core.storage.records import R, Record, Value

BATCH = 1_000

PrimaryKey = tuple[str, str]
"""Where a record lies: its partition and its id."""


@attrs.frozen
class RecordRow:
    """A record at rest: `columns` in the order of its collection's, `body` as it was stored."""

    partition: str
    id: str
    version: int
    columns: tuple[Value, ...]
    body: str = attrs.field(repr=False)

    @property
    def primary_key(self) -> PrimaryKey:
        """Where it lies."""
        return self.partition, self.id

    def read(self, kind: type[R]) -> R:
        """The record, as the kind knows it."""
        return documents.decode(kind, self.body)


class ExclusiveAccess(Protocol):
    """A storage that nobody else writes to meanwhile."""

    def read_rows(
        self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[RecordRow]:
        """Rows of every partition by (partition, id); none are the end."""

    def load(self, kind: type[Record], rows: Sequence[RecordRow]) -> None:
        """Store rows exactly as they are: versions, schemas and unknown fields too.

        Raises UniqueConflict for what is there already, or breaks a unique key; the whole then
        ends, and nothing is stored.
        """


@runtime_checkable
class Retirable(Protocol):
    """A storage, had alone, that can be made to refuse every later write, of any release."""

    def is_retired(self) -> bool:
        """Whether it refuses them."""

    def retire(self, note: str) -> None:
        """Refuse all writes from the end of this on; their errors say the note."""

    def reinstate(self) -> bool:
        """Take writes again; whether it had been retired."""


@runtime_checkable
class MaintenanceAccess(Protocol):
    """An adapter that can be walked through, and had alone."""

    def scan_page(
        self, kind: type[R], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[LocatedRecord[R]]:
        """The records of every partition by (partition, id), behind `after`; none are the end.

        Each call sees what is committed. A row that cannot be read, or whose record says another
        id, is passed over with an alarm. Raises StorageUnavailable.
        """

    def read_rows(
        self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[RecordRow]:
        """Rows of every partition by (partition, id), as they are stored; none are the end.

        Each call sees what is committed. Raises StorageUnavailable.
        """

    def lock_exclusively(self) -> AbstractContextManager[ExclusiveAccess]:
        """Keep everybody else from writing. What was loaded is committed at the end, durably.

        An exception undoes it, and comes out unchanged; one of `load`'s that was swallowed comes
        out at the end. Others who write meanwhile get
        StorageUnavailable when their patience ends. Raises StorageUnavailable where others do not
        stop writing, and CommitUnknown.
        """


class NoMaintenanceAccess(StorageError):
    """This adapter cannot be walked through."""


def require_maintenance_access(storage: Storage) -> MaintenanceAccess:
    """The storage as one that can be walked through. Raises NoMaintenanceAccess."""
    if not isinstance(storage, MaintenanceAccess):
        raise NoMaintenanceAccess(f"a {type(storage).__name__} does not offer maintenance access")
    return storage


Progress = Callable[[str, int], None]
"""Told which collection is being walked through, and how many records it is at."""


def scan_all(
    storage: Storage, kind: type[R], *, batch: int = BATCH, progress: Progress | None = None
) -> Iterator[LocatedRecord[R]]:
    """All records of a kind, in every partition. Raises NoMaintenanceAccess, StorageUnavailable.

    Others go on writing: what changes behind the walk is not seen, what comes before it is. What
    cannot be read is missing, and told by an alarm each. `progress` is told after each batch.
    """
    whole = require_maintenance_access(storage)
    after: PrimaryKey | None = None
    count = 0
    while found := whole.scan_page(kind, after=after, limit=batch):
        yield from found
        after = (found[-1].partition, found[-1].record.id)
        count += len(found)
        if progress is not None:
            progress(kind.collection.name, count)


def to_record_row(partition: str, record: Record) -> RecordRow:
    """The row of a record that has its version and schema, to be loaded."""
    return RecordRow(
        partition,
        record.id,
        record.version,
        type(record).collection.values(record),
        documents.encode(record).decode(),
    )


def decode_page(
    kind: type[R],
    after: PrimaryKey | None,
    behind: Callable[[PrimaryKey | None], Sequence[tuple[str, str, str | bytes]]],
) -> list[LocatedRecord[R]]:
    """What a walk gives of the rows behind a place: partition, id and body, a batch at a time.

    An alarm is given as the walk passes a row. What lies behind the last record is left to the
    next call, which begins there, so each is told once.
    """
    while rows := behind(after):
        found: list[LocatedRecord[R]] = []
        passed: list[PrimaryKey] = []
        for partition, id, body in rows:
            record = try_decode(kind, body)
            if record is None or record.id != id:
                passed.append((partition, id))
                continue
            _log_damaged_rows(kind, passed)
            passed.clear()
            found.append(LocatedRecord(partition, record))
        if found:
            return found
        _log_damaged_rows(kind, passed)
        after = passed[-1]
    return []


def _log_damaged_rows(kind: type[Record], passed: Sequence[PrimaryKey]) -> None:
    for partition, id in passed:
        log_damaged_row(kind, partition, id)
