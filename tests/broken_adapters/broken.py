"""Adapters that each break one promise of the storage port."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from unittest import mock

import attrs

from payments_core.conformance.storage.records import Note
from payments_core.storage import one_by_one
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.storage.memory.transaction import MemoryTransaction, RerunRequired
from payments_core.storage.port import (
    CommitUnknown,
    Page,
    Snapshot,
    StorageUnavailable,
    Transaction,
    UniqueConflict,
    VersionConflict,
)
from payments_core.storage.records import Record

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

    get_many, count, read_ahead = one_by_one.get_many, one_by_one.count, one_by_one.read_ahead
    write = one_by_one.write


class Wrapped(MemoryStorage):
    """A memory whose transactions and snapshots go through `through`."""

    through: type[Through] = Through

    def __init__(self, record_types: Kinds, weakness: Weakness | None = None) -> None:
        super().__init__(weakness)

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        return super().transact(partition, lambda tx: work(self.through(tx)))

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        return super().read(partition, lambda snapshot: work(self.through(snapshot)))


class Interleaved(Wrapped):
    def __init__(self, record_types: Kinds) -> None:
        super().__init__(record_types, INTERLEAVED)


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
        def raise_failure(self) -> None:
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
    """Loses the next COMMIT on request; what it says then is what is broken."""

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
            raise RerunRequired

        if applied:
            return self.says(super().transact(partition, work))
        try:
            super().transact(partition, undone)
        except RerunRequired:
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
    def _apply(self, partition: str, tx: MemoryTransaction) -> None:
        taken = dict(self._uniques)
        super()._apply(partition, tx)
        self._uniques.update({**taken, **self._uniques})


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
