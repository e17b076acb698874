"""A storage that notes every commit, and can be set to fail at one of its calls.

`Gate` stands before a storage, one for each process. `Mirror` holds every record as it was
committed last, and knows what each commit changed: so invariants hold of commits, and not only of
what is left when a step is over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeVar

import attrs

from payments_core.clock import Instant
from payments_core.storage import one_by_one
from payments_core.storage.jobs import Job
from payments_core.storage.maintenance import (
    BATCH,
    ExclusiveAccess,
    PrimaryKey,
    RecordRow,
    require_maintenance_access,
)
from payments_core.storage.port import (
    ClaimedJob,
    CommitUnknown,
    LocatedRecord,
    Measure,
    OnDamaged,
    Page,
    Position,
    Snapshot,
    Storage,
    Transaction,
    Where,
)
from payments_core.storage.records import R, Record, Value

T = TypeVar("T")
Fault = Callable[[Callable[[], Any]], Any]
Key = tuple[type[Record], str]
Calls = Literal["all", "writes", "chain", "bank", "amid"]
"""All calls of a process, or its transactions alone, or its calls to the chains or to the bank; or
amid its transactions, between their work and their commit."""

MOST_CALLS = 60_000
"""So many calls of a process in one step: then it goes round in circles."""


class Circling(BaseException):
    """A process makes calls without end; nothing in it may catch that."""


@attrs.frozen
class Commit:
    """What one transaction changed: each record before and after, None where there was none."""

    partition: str
    changes: tuple[tuple[Record | None, Record | None], ...]

    def inserted(self, kind: type[R]) -> Iterator[R]:
        """The new records of a kind."""
        for before, after in self.changes:
            if before is None and isinstance(after, kind):
                yield after

    def replaced(self, kind: type[R]) -> Iterator[tuple[R, R]]:
        """The records of a kind before and after."""
        for before, after in self.changes:
            if isinstance(before, kind) and isinstance(after, kind):
                yield before, after

    def after(self, kind: type[R]) -> Iterator[R]:
        """The records of a kind that were written."""
        for _, after in self.changes:
            if isinstance(after, kind):
                yield after


class Mirror:
    """Every record of every partition as the last commit left it."""

    def __init__(self) -> None:
        self.records: dict[str, dict[type[Record], dict[str, Any]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        self.commits = 0
        self.on_commit: list[Callable[[Commit], None]] = []

    def all(self, partition: str, kind: type[R]) -> dict[str, R]:
        """The records of a kind by their ids, in the order of their creation."""
        return self.records[partition][kind]

    def note(self, storage: Storage, partition: str, touched: Sequence[Key]) -> None:
        """Take over what a transaction wrote, if it took place."""

        def look(snapshot: Snapshot) -> list[Record | None]:
            return [snapshot.get(kind, id) for kind, id in touched]

        changes = []
        for (kind, id), after in zip(touched, storage.read(partition, look), strict=True):
            known = self.records[partition][kind]
            before = known.get(id)
            if before is None and after is None:
                continue
            if before is not None and after is not None and before.version == after.version:
                continue
            if after is None:
                del known[id]
            else:
                known[id] = after
            changes.append((before, after))
        if not changes:
            return
        self.commits += 1
        commit = Commit(partition, tuple(changes))
        for reported in self.on_commit:
            reported(commit)


class _Recording:
    """A transaction that notes what it writes."""

    def __init__(self, tx: Transaction, touched: dict[Key, None]) -> None:
        self._tx = tx
        self._touched = touched

    def get(self, kind: type[R], id: str, *, for_update: bool = False) -> R | None:
        return self._tx.get(kind, id, for_update=for_update)

    def find(
        self,
        kind: type[R],
        index: str,
        key: Sequence[Value] = (),
        *,
        where: Sequence[Where] = (),
        after: Position | None = None,
        limit: int = 50,
        skip_damaged: bool = False,
    ) -> Page[R]:
        return self._tx.find(
            kind, index, key, where=where, after=after, limit=limit, skip_damaged=skip_damaged
        )

    def hold(self, record: Record) -> None:
        self._tx.hold(record)

    def insert(self, record: Record) -> None:
        self._touched[type(record), record.id] = None
        self._tx.insert(record)

    def replace(self, record: Record) -> None:
        self._touched[type(record), record.id] = None
        self._tx.replace(record)

    def delete(self, record: Record) -> None:
        self._touched[type(record), record.id] = None
        self._tx.delete(record)

    get_many, count, read_ahead = one_by_one.get_many, one_by_one.count, one_by_one.read_ahead
    write = one_by_one.write


class Gate:
    """The storage as one process reaches it."""

    def __init__(self, inner: Storage, mirror: Mirror) -> None:
        self._inner = inner
        self._mirror = mirror
        self._left = self._times = 0
        self._fault: Fault | None = None
        self._on: Calls = "all"
        self.calls = 0

    def arm(self, left: int, fault: Fault, *, on: Calls = "all", times: int = 1) -> None:
        """Let the call after `left` others have the fault, and those after it, `times` in all."""
        self._left, self._times, self._fault, self._on = left, times, fault, on

    def disarm(self) -> None:
        """No fault any more."""
        self._fault = None

    def through(self, call: Callable[[], T], kind: Calls = "all") -> T:
        """A call of the process to the world outside."""
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise Circling
        fault = self._fault
        if fault is None or self._on not in ("all", kind):
            return call()
        if self._left:
            self._left -= 1
            return call()
        self._times -= 1
        if not self._times:
            self._fault = None
        answer: T = fault(call)
        return answer

    # The port.

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        return self.through(lambda: self._noted(partition, work), "writes")

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        return self.through(lambda: self._inner.read(partition, work))

    read_apart, fetch = one_by_one.read_apart, one_by_one.fetch

    def locate(
        self,
        kind: type[R],
        lookup: str,
        keys: Sequence[Sequence[Value]],
        *,
        where: Sequence[Where] = (),
        after: tuple[str, str] | None = None,
        limit: int = 100,
        on_damaged: OnDamaged | None = None,
    ) -> Sequence[LocatedRecord[R]]:
        return self.through(
            lambda: self._inner.locate(
                kind, lookup, keys, where=where, after=after, limit=limit, on_damaged=on_damaged
            )
        )

    def claim(self, queue: str, now: Instant, **options: Any) -> Sequence[ClaimedJob]:
        return self.through(lambda: self._inner.claim(queue, now, **options))

    def renew(self, claimed: Sequence[ClaimedJob], until: Instant) -> Sequence[ClaimedJob]:
        return self.through(lambda: self._inner.renew(claimed, until))

    def end_leases(self, queue: str, holder: str, now: Instant) -> int:
        return self.through(lambda: self._inner.end_leases(queue, holder, now))

    def find_leases(self, queue: str, after: Instant, limit: int = 100) -> Sequence[ClaimedJob]:
        return self.through(lambda: self._inner.find_leases(queue, after, limit))

    def measure(self, partition: str, kind: type[R], after: str | None, limit: int) -> Measure:
        return self.through(lambda: self._inner.measure(partition, kind, after, limit))

    def next_due(self, queue: str, after: Instant | None = None) -> Instant | None:
        return self.through(lambda: self._inner.next_due(queue, after))

    def scan_page(
        self, kind: type[R], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[LocatedRecord[R]]:
        raise AssertionError("nothing of the model scans")

    def read_rows(
        self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[RecordRow]:
        whole = require_maintenance_access(self._inner)
        return self.through(lambda: whole.read_rows(kind, after=after, limit=limit))

    def lock_exclusively(self) -> AbstractContextManager[ExclusiveAccess]:
        raise AssertionError("nothing of the model locks others out")

    def migrate(self) -> None:
        self._inner.migrate()

    def close(self) -> None:
        self._inner.close()

    def _noted(self, partition: str, work: Callable[[Transaction], T]) -> T:
        touched: dict[Key, None] = {}

        def noted(tx: Transaction) -> T:
            touched.clear()
            done = work(_Recording(tx, touched))
            if self._on == "amid":
                self.through(lambda: None, "amid")
            return done

        try:
            result = self._inner.transact(partition, noted)
        except CommitUnknown:
            self._take_over(partition, touched)
            raise
        self._take_over(partition, touched)
        return result

    def _take_over(self, partition: str, touched: dict[Key, None]) -> None:
        keys = [key for key in touched if key[0] is not Job]
        if keys:
            self._mirror.note(self._inner, partition, keys)
