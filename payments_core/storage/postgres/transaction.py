"""The writes of a transaction in PostgreSQL.

Nothing here waits for an answer. A row that differs from the caller's version must therefore cause
an error of the server, or COMMIT, which may be sent right after it, would keep half of the work: a
guard divides by the number of rows that it found and locked at the expected version. (The server's
log shows it as a division by zero.) Rows that the transaction has locked itself are known, and need
no guard.
"""

from __future__ import annotations

from collections.abc import Collection as Ids
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain

import attrs
import psycopg

from payments_core.clock import Instant
from payments_core.storage import documents
from payments_core.storage.jobs import Job
from payments_core.storage.port import Conflict, StorageError, UniqueConflict, VersionConflict
from payments_core.storage.postgres.errors import DIVISION_BY_ZERO, UNIQUE_VIOLATION, storage_error
from payments_core.storage.postgres.hints import FOREVER, QueueKey, move_earlier
from payments_core.storage.postgres.pending_transaction import PendingTransaction
from payments_core.storage.postgres.snapshot import (
    PostgresSnapshot,
    is_possible,
    split_reads,
    unique_key_of,
)
from payments_core.storage.postgres.statements import split_inserts, statements_of
from payments_core.storage.reads import Find, Get, Read
from payments_core.storage.records import Collection, R, Record, group_by_collection

RecordKey = tuple[str, str]


@attrs.frozen
class _Answer:
    """The result of a query made ahead; None means no row."""

    read: Get
    body: bytes | None

    def answers(self, for_update: bool) -> bool:
        """Whether it equals the result of `get`: absence is certain at the second read."""
        if self.body is None:
            return not for_update or (self.read.lock != "none" and self.read.is_optional)
        return not for_update or self.read.lock == "exclusive"


class PostgresTransaction(PostgresSnapshot):
    """The operations of the work of a `transact`."""

    def __init__(self, transaction: PendingTransaction, partition: str) -> None:
        super().__init__(transaction, partition)
        self._locked: dict[RecordKey, int | None] = {}
        """Versions that only this transaction can change; None means deleted."""
        self._held: dict[RecordKey, int] = {}
        self._read: dict[RecordKey, Record] = {}
        """Records that are locked, as long as this transaction has not written them."""
        self._ahead: dict[RecordKey, _Answer] = {}
        self._due: dict[str, Instant] = {}
        """When each queue may first have one of the written jobs."""

    def get(self, kind: type[R], id: str, *, for_update: bool = False) -> R | None:
        known = self._read.get((kind.collection.name, id))
        if isinstance(known, kind):
            self._transaction.raise_failure()
            return known
        ahead = self._ahead.get((kind.collection.name, id))
        if ahead is not None and ahead.answers(for_update):
            self._transaction.raise_failure()
            return self._take_answer(kind, ahead)
        record = super().get(kind, id, for_update=for_update)
        if for_update and record is not None:
            self._note_locked(record)
        return record

    def read_ahead(self, *reads: Read) -> None:
        """See `Snapshot.read_ahead`; pages are kept until the transaction writes.

        A record that is absent, but was to be locked, is read twice, as in `get`. Unlocked reads
        must not be older than the locks: they come with the second read, and are repeated
        if that locked something.
        """
        if len(reads) < 2:  # it may have to be read twice, and `get` waits no longer
            return
        wanted = [one for one in reads if isinstance(one, Get) and is_possible(one)]
        locked = [one for one in wanted if one.lock != "none"]
        again = [one for one in locked if one.is_optional]
        unlocked = [one for one in wanted if one.lock == "none"]
        together = [*split_reads(locked), *split_reads([*again, *unlocked])]
        pages = [
            self._find_query(one) for one in reads if isinstance(one, Find) and is_possible(one)
        ]
        queries = [several.build(self._partition, locked=True) for several in together]
        if not queries and not pages:
            return
        answers = self._transaction.query_many(*queries, *pages)
        self._answers.update(zip(pages, answers[len(queries) :], strict=True))
        has_appeared = False
        for several, rows in zip(together, answers, strict=False):
            for read, body in several.split(rows):
                key = (read.kind.collection.name, read.id)
                earlier = self._ahead.get(key)
                has_appeared |= body is not None and earlier is not None and earlier.body is None
                self._ahead[key] = _Answer(read, body)
        if has_appeared:
            for one in unlocked:
                self._ahead.pop((one.kind.collection.name, one.id), None)

    def get_many(
        self, kind: type[R], ids: Ids[str], *, for_update: bool = False
    ) -> Mapping[str, R]:
        found = super().get_many(kind, ids, for_update=for_update)
        if for_update:
            for record in found.values():
                self._note_locked(record)
        return found

    def hold(self, record: Record) -> None:
        place = _record_key(record)
        for known in (self._locked, self._held):
            if place in known:
                self._require_version(record, known[place])
                return
        self._guard(record, statements_of(type(record).collection).hold)
        self._held[place] = record.version

    def insert(self, record: Record) -> None:
        self._insert_rows(type(record).collection, [record])

    def replace(self, record: Record) -> None:
        self._lock(record)
        self._update_rows(type(record).collection, [record])

    def delete(self, record: Record) -> None:
        self._lock(record)
        self._delete_rows(type(record).collection, [record])

    def write(
        self,
        inserts: Sequence[Record],
        replaces: Sequence[Record] = (),
        deletes: Sequence[Record] = (),
    ) -> None:
        # A statement for the records of a kind, after all are locked in the given order.
        seen: set[RecordKey] = set()
        for record in (*replaces, *deletes):
            self._lock(record)
            if _record_key(record) in seen:  # by two callers that do not know of each other
                raise self._transaction.fail(_version_conflict(record))
            seen.add(_record_key(record))
        for collection, records in group_by_collection(replaces):
            self._update_rows(collection, records)
        for collection, records in group_by_collection(deletes):
            self._delete_rows(collection, records)
        for collection, records in group_by_collection(inserts):
            for together in split_inserts(records):
                self._insert_rows(collection, together)

    def move_hints(self, known: Ids[QueueKey]) -> dict[QueueKey, Instant]:
        """Have claims look for the written jobs; the last step before COMMIT.

        Returns when each changed queue may first have one of these jobs, FOREVER if it lost some.
        """
        ready = {queue: at for queue, at in self._due.items() if at < FOREVER}
        move_earlier(self._transaction, self._partition, ready, known)
        return {(self._partition, queue): at for queue, at in self._due.items()}

    def _insert_rows(self, collection: Collection, records: Sequence[Record]) -> None:
        """Insert a number of records for which there is a statement."""
        sql = statements_of(collection).inserts[len(records)]
        rows = [_row_of(documents.stamp(record, 1)) for record in records]
        values = (self._partition, *chain.from_iterable(rows))
        self._transaction.enqueue(sql, values, partial(_translate_unique_error, collection))
        for record in records:
            self._note_written(record, 1)
            self._note_job(record)

    def _update_rows(self, collection: Collection, records: Sequence[Record]) -> None:
        """Write records that are locked."""
        rows = [_row_of(documents.stamp(record, record.version + 1)) for record in records]
        sql = statements_of(collection)
        translate = partial(_translate_unique_error, collection)
        if len(rows) == 1 or not collection.is_replaced_in_any_order:
            for row in rows:
                self._transaction.enqueue(sql.update, (self._partition, *row), translate)
        else:
            columns = zip(*rows, strict=True)
            self._transaction.enqueue(sql.update_many, (self._partition, *columns), translate)
        for record in records:
            self._note_written(record, record.version + 1)
            self._note_job(record)

    def _delete_rows(self, collection: Collection, records: Sequence[Record]) -> None:
        """Delete records that are locked."""
        sql = statements_of(collection)
        if len(records) == 1:
            [one] = records
            self._transaction.enqueue(sql.delete, (self._partition, one.id, one.version))
        else:
            ids = [record.id for record in records]
            self._transaction.enqueue(sql.delete_many, (self._partition, ids))
        for record in records:
            self._note_written(record, None)
            if isinstance(record, Job):  # its lane may have room for another
                self._due.setdefault(record.queue, FOREVER)

    def _take_answer(self, kind: type[R], answer: _Answer) -> R | None:
        if answer.body is None:
            return None
        record = documents.decode(kind, answer.body)
        if answer.read.lock == "exclusive":
            self._note_locked(record)
        elif answer.read.lock == "shared":
            self._held[_record_key(record)] = record.version
        return record

    def _note_job(self, record: Record) -> None:
        if isinstance(record, Job):
            ready = max(record.due_at, record.lease_until)
            self._due[record.queue] = min(ready, self._due.get(record.queue, FOREVER))

    def _note_locked(self, record: Record) -> None:
        place = _record_key(record)
        self._locked[place], self._read[place] = record.version, record

    def _note_written(self, record: Record, version: int | None) -> None:
        place = _record_key(record)
        self._locked[place] = version
        self._read.pop(place, None)
        self._ahead.pop(place, None)
        self._answers.clear()

    def _lock(self, record: Record) -> None:
        """Ensure that the row is at the record's version, and locked by this transaction only."""
        place = _record_key(record)
        if place in self._locked:
            self._require_version(record, self._locked[place])
        else:
            self._guard(record, statements_of(type(record).collection).lock)

    def _guard(self, record: Record, sql: str) -> None:
        if "\0" in record.id:
            raise self._transaction.fail(_version_conflict(record))
        values = (self._partition, record.id, record.version)
        self._transaction.enqueue(sql, values, partial(_translate_guard_error, record))

    def _require_version(self, record: Record, known: int | None) -> None:
        self._transaction.raise_failure()
        if known != record.version:
            raise self._transaction.fail(_version_conflict(record))


def _row_of(stored: Record) -> tuple[str | int | bytes | None, ...]:
    """The row of a record, after its partition."""
    columns = type(stored).collection.values(stored)
    return (stored.id, stored.version, *columns, documents.encode(stored))


def _record_key(record: Record) -> RecordKey:
    return type(record).collection.name, record.id


def _version_conflict(record: Record) -> Conflict:
    return VersionConflict(f"{type(record).collection.name}: {record.id} has changed")


def _translate_guard_error(record: Record, error: psycopg.Error) -> StorageError:
    return _version_conflict(record) if error.sqlstate == DIVISION_BY_ZERO else storage_error(error)


def _translate_unique_error(collection: Collection, error: psycopg.Error) -> StorageError:
    if error.sqlstate != UNIQUE_VIOLATION:
        return storage_error(error)
    named = unique_key_of(collection, error.diag.constraint_name, error.diag.message_primary or "")
    return UniqueConflict(collection.name, named)
