"""A complete storage adapter over LMDB: many readers, one writer, safe against kill -9.

Copy it for your own database: docs/how-to/write-a-storage-adapter.md explains it. One transaction
writes at a time, of any partition, thread or process, so locks need no code.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from heapq import merge
from itertools import groupby, islice, takewhile
from typing import Any, Generic, NoReturn
from weakref import WeakValueDictionary

import attrs
import lmdb
import msgspec

from payments_core.storage import (
    claim_semantics,
    documents,
    one_by_one,
    port,
    query_semantics,
    sort_keys,
)  # fmt: skip
from payments_core.storage.damaged_records import AlarmLimit, decode_located, decode_row
from payments_core.storage.jobs import Job, require_holder
from payments_core.storage.records import Index, R, Record, Value
from payments_core.storage.schema_fingerprint import compute_fingerprint
from payments_core.waiting import NO_WAITS, Waits

Values = Sequence[Value]
SORTED_BYTES, LONGEST_KEY = 479, 511  # LMDB's maximum key length: a digest ends longer keys
_open, _guard = WeakValueDictionary[str, lmdb.Environment](), threading.Lock()
ROWS = Index("id", order=("partition", "id"))
READY = Index("jobs: ready", ("queue",), ("ready_at", "partition", "id"))
LEASES = Index("jobs: leases", ("queue",), ("lease_until", "partition", "id"))


def _paths(kind: type[Record]) -> Mapping[str, Index]:
    """How records are found other than by id, by name; a path without order is a unique key."""
    own, mine, last = kind.collection, ("partition",), ("id",)
    paths = [READY, LEASES] if issubclass(kind, Job) else []
    paths += [Index(i.name, mine + i.key, i.order + last, i.descending) for i in own.indexes]
    paths += [Index(lookup.name, lookup.columns, mine + last) for lookup in own.lookups]
    paths += [Index(unique.name, mine + unique.columns) for unique in own.uniques]
    return {path.name: path for path in paths}


def _key(kind: type[Record], path: Index, key: Values, order: Values = ()) -> bytes:
    """A digest of the query, then bytes that sort like the path, as far as they fit."""
    asked = ascii((kind.collection.name, path.key, path.order, path.descending)).encode()
    whole = sha256(asked + sort_keys.make_sort_key(key)).digest()
    whole += sort_keys.make_sort_key(order, descending=path.descending)
    return whole if len(whole) <= LONGEST_KEY else whole[:SORTED_BYTES] + sha256(whole).digest()


class Row(Generic[R]):
    """A record, its index keys (any release can remove all), and the paths that make them."""

    def __init__(self, partition: str, record: R, entries: Sequence[bytes] = ()) -> None:
        self.partition, self.id, self.record, self.entries = partition, record.id, record, entries
        self.columns = record.collection.row(record) | {"partition": partition, "id": record.id}
        if isinstance(record, Job):
            self.ready_at = self.columns["ready_at"] = claim_semantics.ready_at(self)

    def at(self, names: Sequence[str]) -> port.Position:
        return tuple(self.columns[name] for name in names)


class Rows:
    """The operations of a work: the port's Snapshot, and its Transaction if `txn` may write."""

    def __init__(self, txn: lmdb.Transaction[bytes], partition: str, skip: bool = False) -> None:
        self.txn, self.partition = txn, partition
        self.decode: Any = partial(decode_row, skip_damaged=skip, alarms=AlarmLimit())
        self.conflict: port.Conflict | None = None

    def get(self, kind: type[R], id: str, *, for_update: bool = False) -> R | None:
        return row.record if (row := self._row(kind, self._place(kind, id))) else None

    def find(self, kind: type[R], index: str, key: Values = (), *, where: Sequence[port.Where] = (),
             after: port.Position | None = None, limit: int = 50,
             skip_damaged: bool = False) -> port.Page[R]:  # fmt: skip
        query_semantics.validate_query(kind.collection, index, key, after, limit)
        path, rows = _paths(kind)[index], Rows(self.txn, self.partition, skip_damaged)
        found, next = query_semantics.take_page(
            rows.scan(kind, path, (self.partition, *key), after or ()),
            lambda row: row.at(path.order), lambda row: row.columns, where, limit, port.SCAN_LIMIT,
        )  # fmt: skip
        return port.Page(tuple(row.record for row in found), next)

    def scan(self, kind: type[R], path: Index, key: Values, after: Values = ()) -> Iterator[Row[R]]:
        """The rows of a key, of any partition, in the path's order, after `after`."""
        for alike in self._runs(kind, path, key, after):
            rows = filter(None, (self._row(kind, item[path is not ROWS]) for item in alike))
            for row in sorted(rows, key=lambda row: row.at(path.order), reverse=path.descending):
                if query_semantics.is_behind(row.at(path.order), tuple(after), path):
                    yield row

    def sizes(self, kind: type[Record], after: tuple[str, ...]) -> Iterator[tuple[str, str, int]]:
        """The places after one, in order, and the bytes of each body, which is not decoded."""
        for alike in self._runs(kind, ROWS, (), after):
            for partition, id, body, _ in sorted(msgspec.msgpack.decode(item[1]) for item in alike):
                if (partition, id) > after:
                    yield partition, id, len(body)

    def _runs(self, kind: type[Record], path: Index, key: Values, after: Values) -> Iterator[Any]:
        """The items of a path from a place on; those whose keys were cut are together."""
        head, first = _key(kind, path, key), _key(kind, path, key, after)[:SORTED_BYTES]
        cursor = self.txn.cursor()
        items = cursor.iternext() if cursor.set_range(first) else iter(())
        ours = takewhile(lambda item: item[0].startswith(head), items)
        yield from (alike for _, alike in groupby(ours, lambda item: item[0][:SORTED_BYTES]))

    def hold(self, record: Record) -> None:
        self._entries(record)

    def insert(self, record: Record) -> None:
        if self.get(type(record), record.id):
            self._refuse(port.UniqueConflict(record.collection.name, "id"))
        self.put(documents.stamp(record, 1), ())

    def replace(self, record: Record) -> None:
        self.put(documents.stamp(record, record.version + 1), self._entries(record))

    def delete(self, record: Record) -> None:
        for key in (*self._entries(record), self._place(type(record), record.id)):
            self.txn.delete(key)

    get_many, count, read_ahead = one_by_one.get_many, one_by_one.count, one_by_one.read_ahead
    write = one_by_one.write

    def put(self, record: Record, before: Sequence[bytes], keep: Sequence[bytes] = ()) -> None:
        """Store a stamped record; its entries, and those to `keep`, replace those of `before`."""
        kind, row, entries = type(record), Row(self.partition, record), dict.fromkeys(keep, "")
        place, body = self._place(kind, record.id), documents.encode(record)
        for path in _paths(kind).values():
            if path.order or None not in row.at(path.key):  # a unique key ignores nulls
                entries[_key(kind, path, row.at(path.key), row.at(path.order))] = path.name
        for entry in set(before) - set(entries):
            self.txn.delete(entry)
        for entry, name in entries.items():  # only a unique key's can be another record's
            if entry not in before and not self.txn.put(entry, place, overwrite=False):
                self._refuse(port.UniqueConflict(kind.collection.name, name))
        self.txn.put(place, msgspec.msgpack.encode((row.partition, record.id, body, list(entries))))

    def _place(self, kind: type[Record], id: str) -> bytes:
        return _key(kind, ROWS, (), (self.partition, id))

    def _row(self, kind: type[R], place: bytes) -> Row[R] | None:
        if (stored := self.txn.get(place)) is None:
            return None
        partition, id, body, entries = msgspec.msgpack.decode(stored)
        record = self.decode(kind, partition, id, body)
        return None if record is None else Row(partition, record, entries)

    def _entries(self, record: Record) -> Sequence[bytes]:
        row = self._row(type(record), self._place(type(record), record.id))
        if row is None or row.record.version != record.version:
            self._refuse(port.VersionConflict(f"{record.collection.name}: {record.id} changed"))
        return row.entries

    def _refuse(self, conflict: port.Conflict) -> NoReturn:
        self.conflict = conflict  # it ends the transaction, even if the work swallows it
        raise conflict


class LmdbStorage:
    """The storage at `lmdb:///relative/path` or `lmdb:////absolute/path`."""

    def __init__(
        self, url: str, record_types: Sequence[type[Record]], *, waits: Waits = NO_WAITS
    ) -> None:
        self._kinds, path = record_types, os.path.realpath(url.partition(":///")[2])
        self._rings = claim_semantics.ClaimRings()
        try:
            with _guard:  # a process may open a file once: handles share it, the last closes it
                env = _open.get(path) or lmdb.open(path, 1 << 40, subdir=False, max_readers=1024)
                self._env: lmdb.Environment | None = _open.setdefault(path, env)
                env.reader_check()  # removes the readers that were killed
        except lmdb.Error as error:
            raise port.StorageUnavailable(str(error)) from error

    def transact(self, partition: str, work: Callable[[port.Transaction], port.T]) -> port.T:
        with self._rows(partition, write=True) as rows:
            return work(rows)

    def read(self, partition: str, work: Callable[[port.Snapshot], port.T]) -> port.T:
        with self._rows(partition) as rows:
            return work(rows)

    read_apart, fetch = one_by_one.read_apart, one_by_one.fetch

    def locate(self, kind: type[R], lookup: str, keys: Sequence[Values], *,
               where: Sequence[port.Where] = (), after: tuple[str, str] | None = None,
               limit: int = 100, on_damaged: port.OnDamaged | None = None,
               ) -> Sequence[port.LocatedRecord[R]]:  # fmt: skip
        own, path = kind.collection, _paths(kind)[lookup]
        wanted = query_semantics.valid_lookup_keys(own, own.lookup(lookup), keys, limit)
        with self._rows() as rows:
            rows.decode = partial(decode_located, on_damaged=on_damaged)
            scans = [rows.scan(kind, path, key, after or ()) for key in wanted]
            found = merge(*scans, key=lambda row: row.at(path.order))
            located = (row for row in found if query_semantics.matches(row.columns, where))
            return [port.LocatedRecord(row.partition, row.record) for row in islice(located, limit)]

    def claim(self, queue: str, now: int, *, lease_ms: int, limit: int, lane_concurrency: int,
              lane_overrides: Mapping[str, int] = port.NO_LANE_OVERRIDES, holder: str = ""
              ) -> list[port.ClaimedJob]:  # fmt: skip
        with self._rows(write=True, skip=True) as rows:  # a damaged job does not stop its queue
            live = rows.scan(Job, LEASES, (queue,), (now + 1,))
            ready = takewhile(lambda row: row.ready_at <= now, rows.scan(Job, READY, (queue,)))
            jobs = [(row.partition, row) for row in (*live, *ready)]
            claimed = list[port.ClaimedJob]()
            chosen = self._rings.choose(queue, jobs, now, limit, lane_concurrency, lane_overrides)
            for partition, row in chosen:
                job = claim_semantics.lease(row.record, now + lease_ms, holder)
                Rows(rows.txn, partition).put(job, row.entries)
                claimed.append(port.ClaimedJob(partition, job))
            return claimed

    def renew(self, claimed: Sequence[port.ClaimedJob], until: int) -> list[port.ClaimedJob]:
        with self._rows(write=True) as rows:
            held = list[port.ClaimedJob]()
            for item in claimed:
                job = (own := Rows(rows.txn, item.partition)).get(Job, item.job.id)
                if job and job.version == item.job.version:
                    own.put(attrs.evolve(job, lease_until=until), own._entries(job))
                    held.append(item)
            return held

    def end_leases(self, queue: str, holder: str, now: int) -> int:
        require_holder(holder)
        with self._rows(write=True) as rows:
            live = rows.scan(Job, LEASES, (queue,), (now + 1,))
            leased = [row for row in live if claim_semantics.is_leased_by(holder, row.record, now)]
            for row in leased:
                Rows(rows.txn, row.partition).replace(claim_semantics.free(row.record))
            return len(leased)

    def find_leases(self, queue: str, after: int, limit: int = 100) -> list[port.ClaimedJob]:
        with self._rows(skip=True) as rows:
            jobs = ((row.partition, row) for row in rows.scan(Job, LEASES, (queue,), (after + 1,)))
            found = claim_semantics.choose_latest_leases(jobs, after, limit)
            return [port.ClaimedJob(partition, row.record) for partition, row in found]

    def next_due(self, queue: str, after: int | None = None) -> int | None:
        with self._rows() as rows:
            ready = rows.scan(Job, READY, (queue,), () if after is None else (after + 1,))
            return next((row.ready_at for row in ready), None)

    def measure(self, partition: str, kind: type[Record], after: str | None, limit: int
                ) -> port.Measure:  # fmt: skip
        place = (partition,) if after is None else (partition, after)
        with self._rows() as rows:
            ours = takewhile(lambda size: size[0] == partition, rows.sizes(kind, place))
            sizes = list(islice(ours, limit))
            return port.Measure(sum(s[2] for s in sizes), sizes[-1][1] if sizes else None)

    def migrate(self) -> None:
        with self._rows(write=True) as rows:
            for kind in self._kinds:
                mark = f"migrated {compute_fingerprint([kind], {})}".encode()
                if rows.txn.put(mark, b"1", overwrite=False):
                    for row in list(rows.scan(kind, ROWS, ())):  # the previous release still reads
                        Rows(rows.txn, row.partition).put(row.record, row.entries, row.entries)

    def close(self) -> None:
        self._env = None

    @contextmanager
    def _rows(self, partition: str = "", write: bool = False, skip: bool = False) -> Iterator[Rows]:
        failure: type[port.StorageError] = port.StorageUnavailable
        if (env := self._env) is None:
            raise failure("closed")
        try:
            with env.begin(write=write) as txn:
                yield (rows := Rows(txn, partition, skip))
                if rows.conflict:
                    raise rows.conflict
                failure = port.CommitUnknown  # only the commit can still fail
        except lmdb.Error as error:
            raise failure(str(error)) from error
