"""Adapters that each break one promise of the storage port."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from unittest import mock

import attrs

from payments_core.conformance.storage.records import Letter, Note
from payments_core.jobs.record import Job
from payments_core.money import Atomic
from payments_core.storage import sqlite_schema
from payments_core.storage.memory import MemoryStorage, Weakness
from payments_core.storage.memory_rows import MemoryTransaction, Rerun, Row
from payments_core.storage.port import (
    Claimed,
    CommitUnknown,
    Page,
    Snapshot,
    StorageUnavailable,
    Transaction,
    UniqueConflict,
    VersionConflict,
)
from payments_core.storage.records import Record
from payments_core.storage.sqlite import SqliteStorage

T = TypeVar("T")
Kinds = Sequence[type[Record]]

INTERLEAVED = Weakness(
    stale_get=0, stale_find=0, short_page=0, rerun=0, lost_commit=0, short_claim=0, clock_ahead=0
)
"""A memory whose works run side by side, as those of a server do, and which is sound."""


class Through:
    """Hands everything on; what a subclass overrides is broken."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def get(self, kind: Any, id: str, *, for_update: bool = False) -> Any:
        return self.inner.get(kind, id, for_update=for_update)

    def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
        return self.inner.find(kind, index, key, **options)

    def hold(self, record: Record) -> None:
        self.inner.hold(record)

    def insert(self, record: Record) -> None:
        self.inner.insert(record)

    def replace(self, record: Record) -> None:
        self.inner.replace(record)

    def delete(self, record: Record) -> None:
        self.inner.delete(record)


class Wrapped(MemoryStorage):
    """A memory whose transactions and snapshots go through `through`."""

    through: type[Through] = Through

    def __init__(self, kinds: Kinds, weakness: Weakness | None = None) -> None:
        super().__init__(weakness)

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        return super().transact(partition, lambda tx: work(self.through(tx)))

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        return super().read(partition, lambda snapshot: work(self.through(snapshot)))


class Interleaved(Wrapped):
    def __init__(self, kinds: Kinds) -> None:
        super().__init__(kinds, INTERLEAVED)


# Versions, holds and locks.


class HoldDoesNothing(Wrapped):
    class through(Through):
        def hold(self, record: Record) -> None:
            pass


class HoldChecksButDoesNotLock(Interleaved):
    class through(Through):
        def hold(self, record: Record) -> None:
            found = self.inner.get(type(record), record.id)
            if found is None or found.version != record.version:
                raise VersionConflict(record.id)


class ForUpdateDoesNotLock(Interleaved):
    class through(Through):
        def get(self, kind: Any, id: str, *, for_update: bool = False) -> Any:
            return self.inner.get(kind, id)


class ForUpdateReadsTheFirstLook(Interleaved):
    """The lock comes, and the record is the one that was read before it."""

    class through(Through):
        def __init__(self, inner: Any) -> None:
            super().__init__(inner)
            self.seen: dict[str, Any] = {}

        def get(self, kind: Any, id: str, *, for_update: bool = False) -> Any:
            if id not in self.seen:
                self.seen[id] = self.inner.get(kind, id, for_update=for_update)
            return self.seen[id]


class StaleVersionAccepted(Wrapped):
    class through(Through):
        def replace(self, record: Record) -> None:
            found = self.inner.get(type(record), record.id)
            self.inner.replace(attrs.evolve(record, version=found.version if found else 0))


class DeleteIgnoresTheVersion(Wrapped):
    class through(Through):
        def delete(self, record: Record) -> None:
            found = self.inner.get(type(record), record.id)
            self.inner.delete(attrs.evolve(record, version=found.version if found else 0))


class MissingMayBeHeld(Wrapped):
    class through(Through):
        def hold(self, record: Record) -> None:
            if self.inner.get(type(record), record.id) is not None or record.version:
                self.inner.hold(record)


class OwnWritesUnseen(Wrapped):
    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        tables = {place: dict(rows) for place, rows in self._tables.items()}

        class Behind(Through):
            def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
                before = MemoryStorage()
                before._tables.update(tables)
                return before.read(partition, lambda s: s.find(kind, index, key, **options))

        return MemoryStorage.transact(self, partition, lambda tx: work(Behind(tx)))


# All or nothing.


class ErrorsLeaveTheirWrites(Wrapped):
    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        raised: list[Exception] = []

        def kept(tx: Transaction) -> Any:
            try:
                return work(tx)
            except ArithmeticError as error:
                raised.append(error)

        result = super().transact(partition, kept)
        for error in raised:
            raise error
        return result


class ErrorsAreWrapped(Wrapped):
    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        try:
            return super().transact(partition, work)
        except ArithmeticError as error:
            raise ArithmeticError("in a transaction") from error


class SwallowedConflictCommits(Wrapped):
    class _Forgiving(MemoryTransaction):
        def finish(self) -> None:
            pass

    def _begin(self, partition: str) -> MemoryTransaction:
        return self._Forgiving(self._tables, self._uniques, partition)


class RerunLeaksWrites(Wrapped):
    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        class Unfinished(Through):
            def insert(self, record: Record) -> None:
                pass

        # What the work was about to insert is not there when it reads it again.
        with suppress(AssertionError, VersionConflict):
            MemoryStorage.transact(self, partition, lambda tx: work(Unfinished(tx)))
        return super().transact(partition, work)


class Losing(Wrapped):
    """Loses the next COMMIT as it is told to; what it says then is what is broken."""

    lost: bool | None = None

    def says(self, result: T) -> T:
        raise CommitUnknown("lost")

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        if self.lost is None:
            return super().transact(partition, work)
        applied, self.lost = self.lost, None
        results: list[T] = []

        def undone(tx: Transaction) -> None:
            results.append(work(tx))
            raise Rerun

        if applied:
            return self.says(super().transact(partition, work))
        try:
            super().transact(partition, undone)
        except Rerun:
            return self.says(results[0])
        raise AssertionError


class LostCommitIsSuccess(Losing):
    def says(self, result: T) -> T:
        return result


class LostCommitIsUnavailable(Losing):
    def says(self, result: T) -> T:
        raise StorageUnavailable("nothing was written")


# Unique keys.


class UniqueNotEnforcedOnReplace(Wrapped):
    class _Lax(MemoryTransaction):
        def replace(self, record: Record) -> None:
            with mock.patch.object(self, "_stored_owner", return_value=None):
                super().replace(record)

    def _begin(self, partition: str) -> MemoryTransaction:
        return self._Lax(self._tables, self._uniques, partition)


class UniqueNeverReleased(Wrapped):
    def _remember(self, partition: str, collection: str, id: str) -> tuple[Any, ...]:
        return ()


class UniqueCheckedTooEarly(Interleaved):
    """Checked when the work inserts, and not again when it commits."""

    class _Early(MemoryTransaction):
        def verify(self) -> None:
            self._taken.clear()
            super().verify()

    def _begin(self, partition: str) -> MemoryTransaction:
        return self._Early(self._tables, self._uniques, partition)


class IdCheckedTooEarly(Interleaved):
    class _Early(MemoryTransaction):
        def verify(self) -> None:
            self._relied = {key: version for key, version in self._relied.items() if version}
            super().verify()

    def _begin(self, partition: str) -> MemoryTransaction:
        return self._Early(self._tables, self._uniques, partition)


class NullsCollide(Wrapped):
    class through(Through):
        def insert(self, record: Record) -> None:
            if isinstance(record, Note) and record.left and record.right is None:
                for other in self.inner.find(Note, "all").records:
                    if (other.left, other.right) == (record.left, None):
                        raise UniqueConflict("suite_notes", "pair")
            self.inner.insert(record)


class UniqueIsNotNamed(Wrapped):
    class through(Through):
        def insert(self, record: Record) -> None:
            try:
                self.inner.insert(record)
            except UniqueConflict as error:
                raise UniqueConflict(error.collection, "id") from error


# Snapshots.


class SnapshotTorn(Wrapped):
    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        sound = super().read

        class Torn(Through):
            def get(self, kind: Any, id: str, *, for_update: bool = False) -> Any:
                return sound(partition, lambda snapshot: snapshot.get(kind, id))

            def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
                return sound(partition, lambda s: s.find(kind, index, key, **options))

        return work(Torn(None))


class SnapshotStale(Wrapped):
    """Every third read looks again; the others see what it saw."""

    reads = 0

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        with self._lock:
            self.reads += 1
            if self.reads % 3 == 1:
                self.old = MemoryStorage()
                for place, rows in self._tables.items():
                    self.old._tables[place] = dict(rows)
        return self.old.read(partition, work)


class SnapshotDirty(Wrapped):
    """A reader sees what the writer has not committed."""

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        undo = {place: dict(rows) for place, rows in self._tables.items()}

        class Shown(Through):
            def replace(inner, record: Record) -> None:
                inner.inner.replace(record)
                for (collection, id), row in inner.inner.writes.items():
                    if row is not None:
                        table = {**self._tables[partition, collection], id: row}
                        self._shown[partition, collection] = table

        self._shown = undo
        return MemoryStorage.transact(self, partition, lambda tx: work(Shown(tx)))

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        dirty = MemoryStorage()
        dirty._tables.update({**self._tables, **getattr(self, "_shown", {})})
        return dirty.read(partition, work)


# Pages.


class PagingDropsTies(Wrapped):
    class through(Through):
        def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
            after = options.get("after")
            if after is not None and len(after) > 1:
                descending = kind.collection.index(index).descending
                options["after"] = (*after[:-1], "" if descending else "\U0010ffff")
            return self.inner.find(kind, index, key, **options)


class PagingRepeats(Wrapped):
    class through(Through):
        def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
            after = options.get("after")
            if after is not None:
                options["after"] = (*after[:-1], after[-1][:-1])
            return self.inner.find(kind, index, key, **options)


class CollationWrong(Wrapped):
    class through(Through):
        def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
            page = self.inner.find(kind, index, key, **options)
            if index != "by_name":
                return page
            inorder = sorted(page.records, key=lambda note: note.name.casefold())
            return attrs.evolve(page, records=tuple(inorder))


class NullIsUnequal(Wrapped):
    class through(Through):
        def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
            where = options.get("where", ())
            options["where"] = [item for item in where if item.operator != "!="]
            unequal = [item for item in where if item.operator == "!="]
            page = self.inner.find(kind, index, key, **options)
            kept = tuple(
                record
                for record in page.records
                if all(getattr(record, item.column) != item.value for item in unequal)
            )
            return attrs.evolve(page, records=kept)


class NullKeyFindsNothing(Wrapped):
    class through(Through):
        def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
            if None in key:
                return Page((), None)
            return self.inner.find(kind, index, key, **options)


class DescendingIdsAscend(Wrapped):
    class through(Through):
        def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
            page = self.inner.find(kind, index, key, **options)
            if not kind.collection.index(index).descending:
                return page
            return attrs.evolve(
                page, records=tuple(sorted(page.records, key=lambda note: (-note.rank, note.id)))
            )


class ScanLimitIgnored(Wrapped):
    class through(Through):
        def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
            page = self.inner.find(kind, index, key, **options)
            while page.next is not None and not page.records:
                options["after"] = page.next
                page = self.inner.find(kind, index, key, **options)
            return page


class ScanLimitEndsTheRows(Wrapped):
    """Reaching the scan limit looks like the end."""

    class through(Through):
        def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
            page = self.inner.find(kind, index, key, **options)
            return page if page.records else Page((), None)


# Documents and partitions.


class UnknownFieldsDropped(Wrapped):
    class through(Through):
        def replace(self, record: Record) -> None:
            self.inner.replace(attrs.evolve(record, unknown={}))


class SchemaGoesBack(Wrapped):
    class through(Through):
        def replace(self, record: Record) -> None:
            self.inner.replace(attrs.evolve(record, schema=0))


class AmountsAreFloats(Wrapped):
    class through(Through):
        def insert(self, record: Record) -> None:
            if isinstance(record, Letter):
                rounded = Atomic(int(float(record.amount_atomic)))
                record = attrs.evolve(record, amount_atomic=rounded)
            self.inner.insert(record)


class LongBodiesAreCut(Wrapped):
    class through(Through):
        def insert(self, record: Record) -> None:
            if isinstance(record, Letter) and len(record.text) < 60_000:
                record = attrs.evolve(record, text=record.text[:32_767])
            self.inner.insert(record)


class TextsAreStripped(Wrapped):
    class through(Through):
        def insert(self, record: Record) -> None:
            if isinstance(record, Letter):
                record = attrs.evolve(record, text=record.text.strip())
            self.inner.insert(record)


class PartitionsLeak(Wrapped):
    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        return super().transact("env_here", work)

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        return super().read("env_here", work)


# Claims.


class LeaseNotFenced(Wrapped):
    """A job claimed again keeps its counter, and its version."""

    def _lease(self, partition: str, row: Row, until: int) -> Claimed:
        job = row.read(Job)
        if job.claims == 0:
            return super()._lease(partition, row, until)
        columns = {**row.columns, "lease_until": until}
        self._tables[partition, "jobs"][job.id] = attrs.evolve(row, columns=columns)
        return Claimed(partition, attrs.evolve(job, lease_until=until))


class LeaseNotStored(Wrapped):
    def _lease(self, partition: str, row: Row, until: int) -> Claimed:
        job = row.read(Job)
        return Claimed(partition, attrs.evolve(job, claims=job.claims + 1, lease_until=until))


class SlotsIgnored(Wrapped):
    def claim(self, queue: str, now: int, *, lease_ms: int, limit: int, slots: int) -> Any:
        return super().claim(queue, now, lease_ms=lease_ms, limit=limit, slots=1_000)


class LimitIgnored(Wrapped):
    def claim(self, queue: str, now: int, *, lease_ms: int, limit: int, slots: int) -> Any:
        return super().claim(queue, now, lease_ms=lease_ms, limit=limit + 2, slots=slots)


class RingStarves(Wrapped):
    """Every claim begins with the first lane."""

    def claim(self, queue: str, now: int, *, lease_ms: int, limit: int, slots: int) -> Any:
        self._rings.clear()
        return super().claim(queue, now, lease_ms=lease_ms, limit=limit, slots=slots)


class LaneOutOfOrder(Wrapped):
    def claim(self, queue: str, now: int, *, lease_ms: int, limit: int, slots: int) -> Any:
        claimed = super().claim(queue, now, lease_ms=lease_ms, limit=limit, slots=slots)
        return sorted(claimed, key=lambda item: item.job.id)


class FullLaneStopsTheRing(Wrapped):
    def claim(self, queue: str, now: int, *, lease_ms: int, limit: int, slots: int) -> Any:
        leased: dict[str, int] = {}
        for _, row in self._jobs(queue):
            live = int(row.columns["lease_until"] or 0) > now
            leased[str(row.columns["lane"])] = leased.get(str(row.columns["lane"]), 0) + live
        if leased.get(min(leased, default=""), 0) >= slots:
            return []
        return super().claim(queue, now, lease_ms=lease_ms, limit=limit, slots=slots)


class QueuesMix(Wrapped):
    def _jobs(self, queue: str) -> Iterator[tuple[str, Row]]:
        for name in ("test.suite", "other"):
            yield from super()._jobs(name)


class ClaimsStayInOnePartition(Wrapped):
    def _jobs(self, queue: str) -> Iterator[tuple[str, Row]]:
        return ((p, row) for p, row in super()._jobs(queue) if p == "env_here")


class NextDueIgnoresLeases(Wrapped):
    def next_due(self, queue: str) -> Any:
        return min((row.columns["due_at"] for _, row in self._jobs(queue)), default=None)


class ClosedStillAnswers(Wrapped):
    def close(self) -> None:
        pass


# Crashes and migrations, on a file.


class CommitForgotten(SqliteStorage):
    """Now and then the answer leaves before the COMMIT, which then does not come."""

    commits = 0

    def _commit(self, connection: sqlite3.Connection) -> None:
        self.commits += 1
        if self.commits % 7:
            super()._commit(connection)


class EveryStatementCommits(SqliteStorage):
    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._write_lock:
            if self._writer is None:
                self._writer = self._connect()
            yield self._writer

    def _commit(self, connection: sqlite3.Connection) -> None:
        pass


class UniqueIndexesForgotten(SqliteStorage):
    def migrate(self) -> None:
        super().migrate()
        with self._writing() as connection:
            connection.execute("ROLLBACK")
            names = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '%UNIQUE%'"
            for (name,) in connection.execute(names).fetchall():
                connection.execute(f'DROP INDEX "{name}"')


class MigrationRaces(SqliteStorage):
    """Looks first, and takes the lock for each statement by itself."""

    def migrate(self) -> None:
        connection = self._connect()
        try:
            if not sqlite_schema.is_current(connection, self._kinds):
                sqlite_schema.bring_up_to_date(connection, self._kinds)
        finally:
            connection.close()


class MigrationFillsNothing(SqliteStorage):
    def migrate(self) -> None:
        with mock.patch.object(sqlite_schema, "_fill"):
            super().migrate()


class NothingOutlivesTheHandle(SqliteStorage):
    def migrate(self) -> None:
        super().migrate()
        with self._writing() as connection:
            connection.execute("ROLLBACK")
            for table in ("suite_marks", "suite_notes", "suite_counters"):
                connection.execute(f"DELETE FROM {table}")


def open_commit_forgotten(url: str, kinds: Kinds) -> CommitForgotten:
    return CommitForgotten(url, kinds)


def open_every_statement_commits(url: str, kinds: Kinds) -> EveryStatementCommits:
    return EveryStatementCommits(url, kinds)
