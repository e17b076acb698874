"""All partitions at once, for tools that must see everything: an optional protocol beyond the port.

An adapter that offers it can be scanned while the service runs (`scan_page`; `read_rows` for
stored rows, damaged ones too), and can be locked exclusively (`lock_exclusively`): nobody else
writes then, and a load is complete or has no effect. SQLite, PostgreSQL and memory offer it. A
damaged row does not end a scan: it is reported, and skipped.
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
"""The place of a record: its partition and its id."""


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
        """The partition and the id of the row."""
        return self.partition, self.id

    def read(self, kind: type[R]) -> R:
        """The record, decoded."""
        return documents.decode(kind, self.body)


class ExclusiveAccess(Protocol):
    """A storage that nobody else writes to meanwhile."""

    def read_rows(
        self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[RecordRow]:
        """Rows of every partition by (partition, id); an empty page is the end."""

    def load(self, kind: type[Record], rows: Sequence[RecordRow]) -> None:
        """Store rows exactly as they are: including versions, schemas and unknown fields.

        Raises UniqueConflict for a row that exists, or breaks a unique key; the whole load then
        ends, and nothing is stored.
        """


@runtime_checkable
class Retirable(Protocol):
    """An exclusively locked storage that can be made to refuse all later writes."""

    def is_retired(self) -> bool:
        """Whether it refuses writes."""

    def retire(self, note: str) -> None:
        """Refuse all writes after this lock ends; their errors contain the note."""

    def reinstate(self) -> bool:
        """Accept writes again; return whether it was retired."""


@runtime_checkable
class MaintenanceAccess(Protocol):
    """An adapter that can be scanned, and locked exclusively."""

    def scan_page(
        self, kind: type[R], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[LocatedRecord[R]]:
        """The records of every partition by (partition, id), after `after`; an empty page is the
        end.

        Each call sees committed rows. A row that cannot be read, or whose record says another
        id, is skipped with an alarm. Raises StorageUnavailable.
        """

    def read_rows(
        self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[RecordRow]:
        """Rows of every partition by (partition, id), as they are stored; an empty page is the end.

        Each call sees committed rows. Raises StorageUnavailable.
        """

    def lock_exclusively(self) -> AbstractContextManager[ExclusiveAccess]:
        """Lock out all other writers. The loaded rows are committed at the end, durably.

        An exception undoes it, and is raised unchanged; a swallowed error of `load` is raised at
        the end. Other writers get StorageUnavailable after their time-out. Raises
        StorageUnavailable if others do not stop writing, and CommitUnknown.
        """


class NoMaintenanceAccess(StorageError):
    """The adapter offers no maintenance access."""


def require_maintenance_access(storage: Storage) -> MaintenanceAccess:
    """The storage with maintenance access. Raises NoMaintenanceAccess."""
    if not isinstance(storage, MaintenanceAccess):
        raise NoMaintenanceAccess(f"a {type(storage).__name__} does not offer maintenance access")
    return storage


Progress = Callable[[str, int], None]
"""Called with what is being read or deleted, such as a collection, and how many of it were."""


def scan_all(
    storage: Storage, kind: type[R], *, batch: int = BATCH, progress: Progress | None = None
) -> Iterator[LocatedRecord[R]]:
    """All records of a kind, in every partition. Raises NoMaintenanceAccess, StorageUnavailable.

    Others continue writing: changes behind the scan are not seen, changes ahead of it are. Records
    that cannot be read are skipped, each with an alarm. `progress` is called after each batch.
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
    """The row of a record with version and schema, to be loaded."""
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
    """A scan of the rows after a place: partition, id and body, a batch at a time.

    The alarm comes when the scan skips a row. Rows after the last record are left to the
    next call, which begins there, so each is reported once.
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
