"""Storage in memory: the reference model of the port, for tests and for trying things out.

With a `Weakness` it keeps only what the port promises, and breaks on purpose whatever a caller
might lean on besides: works interleave and run again, `find` is stale, answers to COMMIT are
lost, and claims are made by clocks that run ahead. What passes on it does not depend on luck.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import attrs

from payments_core.clock import SECOND, Instant
from payments_core.jobs.record import Job
from payments_core.storage import documents
from payments_core.storage.matching import page_of
from payments_core.storage.port import (
    SCAN_LIMIT,
    Claimed,
    CommitUnknown,
    Page,
    Position,
    Snapshot,
    StorageUnavailable,
    Transaction,
    UniqueConflict,
    VersionConflict,
    Where,
)
from payments_core.storage.records import R, Record, Value

T = TypeVar("T")
Key = tuple[str, str, str]  # partition, collection, id
UniqueKey = tuple[str, str, str, tuple[Value, ...]]  # partition, collection, unique, values


@attrs.frozen
class Weakness:
    """How often the weak mode does what the port does not forbid; each a share of 1."""

    seed: int = 0
    stale_find: float = 0.3
    rerun: float = 0.1
    lost_commit: float = 0.03
    clock_ahead_ms: int = 40 * SECOND
    clock_ahead: float = 0.1


@attrs.frozen
class _Row:
    record: type[Record]
    version: int
    body: bytes
    values: tuple[Value, ...]

    def read(self, kind: type[R]) -> R:
        return documents.decode(kind, self.body)


class _Rerun(Exception):
    """What the work was allowed to rely on has changed; it runs again."""


class MemoryStorage:
    """Everything in dictionaries under one lock. Nothing outlives the process."""

    def __init__(self, weakness: Weakness | None = None) -> None:
        self._lock = threading.RLock()
        self._rows: dict[Key, _Row] = {}
        self._tables: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        self._uniques: dict[UniqueKey, str] = {}
        self._rings: dict[str, str] = {}
        self._recent: list[tuple[Key, _Row | None]] = []
        self._weakness = weakness
        self._random = random.Random(weakness.seed if weakness else 0)
        self._closed = False

    # The port.

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        if self._weakness is None:
            with self._lock:
                self._require_open()
                return self._attempt(partition, work)
        if self._chance(self._weakness.rerun):
            work(_Transaction(self, partition))
        while True:
            self._require_open()
            try:
                return self._attempt(partition, work)
            except _Rerun:
                continue

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        with self._lock:
            self._require_open()
            return work(_Transaction(self, partition, snapshot=True))

    def claim(
        self, queue: str, now: Instant, *, lease_ms: int, limit: int, slots: int
    ) -> Sequence[Claimed]:
        with self._lock:
            self._require_open()
            if self._weakness and self._chance(self._weakness.clock_ahead):
                now += self._weakness.clock_ahead_ms
            lanes: dict[str, list[tuple[str, Job]]] = defaultdict(list)
            for partition, job in self._jobs(queue):
                lanes[job.lane].append((partition, job))
            last = self._rings.get(queue, "")
            ring = sorted(lanes, key=lambda lane: (lane <= last, lane))
            claimed: list[Claimed] = []
            for lane in ring:
                if len(claimed) == limit:
                    break
                self._rings[queue] = lane
                jobs = sorted(lanes[lane], key=lambda item: _job_order(item[1]))
                live = sum(job.lease_until > now for _, job in jobs)
                room = min(slots - live, limit - len(claimed))
                ready = [(p, j) for p, j in jobs if j.due_at <= now and j.lease_until <= now]
                for partition, job in ready[: max(0, room)]:
                    leased = documents.stamp(
                        attrs.evolve(job, claims=job.claims + 1, lease_until=now + lease_ms),
                        job.version + 1,
                    )
                    self._put(partition, leased)
                    claimed.append(Claimed(partition, leased))
            return claimed

    def next_due(self, queue: str) -> Instant | None:
        with self._lock:
            self._require_open()
            return min(
                (max(job.due_at, job.lease_until) for _, job in self._jobs(queue)), default=None
            )

    def migrate(self) -> None:
        self._require_open()

    def close(self) -> None:
        self._closed = True

    # Under the port.

    def _require_open(self) -> None:
        if self._closed:
            raise StorageUnavailable("the storage is closed")

    def _chance(self, share: float) -> bool:
        with self._lock:
            return self._random.random() < share

    def _attempt(self, partition: str, work: Callable[[Transaction], T]) -> T:
        tx = _Transaction(self, partition)
        try:
            result = work(tx)
        except Exception:
            with self._lock:
                tx.verify()
            raise
        if self._weakness:
            time.sleep(0)  # let another thread in between the work and its commit
        with self._lock:
            tx.verify()
            lost = bool(self._weakness and tx.writes and self._chance(self._weakness.lost_commit))
            if lost and self._chance(0.5):
                raise CommitUnknown("the answer to COMMIT was lost, and so was the commit")
            for key, record in tx.writes.items():
                if record is None:
                    self._drop(key)
                else:
                    self._put(partition, record)
        if lost:
            raise CommitUnknown("the answer to COMMIT was lost")
        return result

    def _put(self, partition: str, record: Record) -> None:
        collection = type(record).collection
        key = (partition, collection.name, record.id)
        self._remember(key)
        self._forget_uniques(key)
        values = collection.values(record)
        self._rows[key] = _Row(type(record), record.version, documents.encode(record), values)
        self._tables[partition, collection.name][record.id] = None
        for unique in unique_keys(partition, record):
            self._uniques[unique] = record.id

    def _drop(self, key: Key) -> None:
        self._remember(key)
        self._forget_uniques(key)
        del self._rows[key]
        del self._tables[key[0], key[1]][key[2]]

    def _forget_uniques(self, key: Key) -> None:
        if (row := self._rows.get(key)) is not None:
            for unique in unique_keys(key[0], row.read(row.record)):
                del self._uniques[unique]

    def _remember(self, key: Key) -> None:
        if self._weakness:
            self._recent = [*self._recent[-20:], (key, self._rows.get(key))]

    def _stale_rows(self, partition: str, collection: str) -> dict[str, _Row]:
        """The rows as they were some writes ago, or as they are."""
        rows = {
            id: self._rows[partition, collection, id] for id in self._ids(partition, collection)
        }
        if self._weakness and self._chance(self._weakness.stale_find):
            ago = self._random.randint(1, 20)
            for key, before in reversed(self._recent[-ago:]):
                if key[:2] == (partition, collection):
                    rows.pop(key[2], None)
                    if before is not None:
                        rows[key[2]] = before
        return rows

    def _ids(self, partition: str, collection: str) -> Iterable[str]:
        return self._tables[partition, collection]

    def _jobs(self, queue: str) -> Iterator[tuple[str, Job]]:
        for (partition, collection), ids in self._tables.items():
            if collection == Job.collection.name:
                for id in list(ids):
                    job = self._rows[partition, collection, id].read(Job)
                    if job.queue == queue:
                        yield partition, job


class _Transaction:
    """Reads through its own writes; what it must be able to rely on is verified at the end."""

    def __init__(self, storage: MemoryStorage, partition: str, *, snapshot: bool = False) -> None:
        self._storage = storage
        self._partition = partition
        self._snapshot = snapshot
        self._relied: dict[Key, int] = {}
        self._taken: dict[UniqueKey, str] = {}
        self.writes: dict[Key, Record | None] = {}

    def get(self, kind: type[R], id: str, *, for_update: bool = False) -> R | None:
        key = (self._partition, kind.collection.name, id)
        if key in self.writes:
            return _as(kind, self.writes[key])
        with self._storage._lock:
            row = self._storage._rows.get(key)
        if for_update:
            self._rely(key, row.version if row else 0)
        return row.read(kind) if row else None

    def find(
        self,
        kind: type[R],
        index: str,
        key: Sequence[Value] = (),
        *,
        where: Sequence[Where] = (),
        after: Position | None = None,
        limit: int = 50,
    ) -> Page[R]:
        collection = kind.collection
        with self._storage._lock:
            if self._snapshot:
                rows = {
                    id: self._storage._rows[self._partition, collection.name, id]
                    for id in self._storage._ids(self._partition, collection.name)
                }
            else:
                rows = self._storage._stale_rows(self._partition, collection.name)
        named = {
            id: dict(zip(collection.columns, row.values, strict=True)) for id, row in rows.items()
        }
        records: dict[str, R] = {}
        for (_, name, id), record in self.writes.items():
            if name == collection.name:
                named.pop(id, None)
                if record is not None:
                    records[id] = _known(kind, record)
                    named[id] = dict(
                        zip(collection.columns, collection.values(record), strict=True)
                    )
        chosen, after = page_of(
            collection.index(index), key, named, where, after, limit, SCAN_LIMIT
        )
        found = [records[id] if id in records else rows[id].read(kind) for id in chosen]
        return Page(tuple(found), after)

    def hold(self, record: Record) -> None:
        key = self._key(record)
        if key in self.writes:
            return
        if self._stored_version(key) != record.version:
            raise VersionConflict(f"{key[1]}: {record.id} has changed")
        self._rely(key, record.version)

    def insert(self, record: Record) -> None:
        key = self._key(record)
        stored = key in self.writes and self.writes[key] is not None
        if stored or (key not in self.writes and self._stored_version(key)):
            raise UniqueConflict(key[1], "id")
        self._rely(key, self._stored_version(key))
        self._write(key, documents.stamp(record, 1))

    def replace(self, record: Record) -> None:
        key = self._key(record)
        self._expect(key, record)
        self._write(key, documents.stamp(record, record.version + 1))

    def delete(self, record: Record) -> None:
        key = self._key(record)
        self._expect(key, record)
        self._release_uniques(key)
        self.writes[key] = None

    def verify(self) -> None:
        """Raise _Rerun unless all that the work relied on still holds. Under the lock."""
        for key, version in self._relied.items():
            if self._stored_version(key) != version:
                raise _Rerun
        for unique, id in self._taken.items():
            if self._owner(unique) not in (None, id):
                raise _Rerun

    def _key(self, record: Record) -> Key:
        return (self._partition, type(record).collection.name, record.id)

    def _rely(self, key: Key, version: int) -> None:
        self._relied.setdefault(key, version)

    def _stored_version(self, key: Key) -> int:
        row = self._storage._rows.get(key)
        return row.version if row else 0

    def _expect(self, key: Key, record: Record) -> None:
        if key in self.writes:
            written = self.writes[key]
            version = written.version if written else 0
        else:
            version = self._stored_version(key)
            self._rely(key, version)
        if version != record.version or version == 0:
            raise VersionConflict(f"{key[1]}: {record.id} has changed")

    def _write(self, key: Key, record: Record) -> None:
        self._release_uniques(key)
        for unique in unique_keys(self._partition, record):
            if self._taken.get(unique, self._owner(unique)) not in (None, record.id):
                raise UniqueConflict(key[1], unique[2])
            self._taken[unique] = record.id
        documents.encode(record)  # a record that cannot be stored fails here, in the work
        self.writes[key] = record

    def _release_uniques(self, key: Key) -> None:
        for unique in [u for u, id in self._taken.items() if (u[0], u[1], id) == key]:
            del self._taken[unique]

    def _owner(self, unique: UniqueKey) -> str | None:
        """Who holds a unique key in the store, unless this transaction moved or deleted them."""
        owner = self._storage._uniques.get(unique)
        if owner is not None and (unique[0], unique[1], owner) in self.writes:
            return None
        return owner


def unique_keys(partition: str, record: Record) -> Iterator[UniqueKey]:
    """The unique keys that a record occupies; a null among the columns occupies none."""
    collection = type(record).collection
    for unique in collection.uniques:
        values = tuple(getattr(record, column) for column in unique.columns)
        if None not in values:
            yield partition, collection.name, unique.name, values


def open_url(url: str, kinds: Sequence[type[Record]]) -> MemoryStorage:
    """`memory:`, or `memory:weak` and `memory:weak?seed=7` for the weak mode.

    It learns the kinds of records as they come, so it has no use for the list.
    """
    rest = url.removeprefix("memory:").lstrip("/")
    if not rest:
        return MemoryStorage()
    mode, _, query = rest.partition("?")
    if mode != "weak" or not (query == "" or query.startswith("seed=")):
        raise ValueError("expected memory:, memory:weak or memory:weak?seed=N")
    return MemoryStorage(Weakness(seed=int(query.removeprefix("seed=") or 0)))


def _job_order(job: Job) -> tuple[int, int, str]:
    return job.due_at, job.ordinal, job.id


def _as(kind: type[R], record: Record | None) -> R | None:
    return None if record is None else _known(kind, record)


def _known(kind: type[R], record: Record) -> R:
    assert isinstance(record, kind)
    return documents.decode(kind, documents.encode(record))
