"""Adapters that each break one promise about snapshots, pages, documents or claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar
from unittest import mock

import attrs

from payments_core.conformance.storage.records import Letter
from payments_core.money import Atomic
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.memory.transaction import StoredRow
from payments_core.storage.port import (
    ClaimedJob,
    Page,
    Snapshot,
    Transaction,
)
from payments_core.storage.records import Record
from tests.broken_adapters.broken import Through, Wrapped

T = TypeVar("T")

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


class PositionsMayBeDigits(Wrapped):
    """A text is taken for the number that it shows, as a column of numbers may do by itself."""

    class through(Through):
        def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
            after = options.get("after")
            if index == "by_rank" and after is not None and len(after) == 2:
                options["after"] = (int(after[0]), after[1])
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


class DamagedRowRaises(Wrapped):
    class through(Through):
        def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
            return self.inner.find(kind, index, key, **{**options, "skip_damaged": False})


class DamagedRowIsAlwaysSkipped(Wrapped):
    class through(Through):
        def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
            return self.inner.find(kind, index, key, **{**options, "skip_damaged": True})


class DamagedRowEndsTheRows(Wrapped):
    """A page that is short of a damaged row looks like the last one."""

    class through(Through):
        def find(self, kind: Any, index: str, key: Any = (), **options: Any) -> Page[Any]:
            page = self.inner.find(kind, index, key, **options)
            full = len(page.records) == options.get("limit", 50)
            return page if full or options.get("where") else Page(page.records, None)


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

    def _lease(self, partition: str, row: StoredRow, until: int, holder: str) -> ClaimedJob:
        job = row.read(Job)
        if job.claims == 0:
            return super()._lease(partition, row, until, holder)
        columns = {**row.columns, "lease_until": until}
        self._tables[partition, "jobs"][job.id] = attrs.evolve(row, columns=columns)
        return ClaimedJob(partition, attrs.evolve(job, lease_until=until))


class LeaseNotStored(Wrapped):
    def _lease(self, partition: str, row: StoredRow, until: int, holder: str) -> ClaimedJob:
        job = row.read(Job)
        return ClaimedJob(partition, attrs.evolve(job, claims=job.claims + 1, lease_until=until))


class RenewalDoesNothing(Wrapped):
    def renew(self, claimed: Sequence[ClaimedJob], until: int) -> Sequence[ClaimedJob]:
        return [item for item in claimed if self._is_held(item)]


class RenewalTakesANewVersion(Wrapped):
    """What was claimed can then no longer be finished."""

    def renew(self, claimed: Sequence[ClaimedJob], until: int) -> Sequence[ClaimedJob]:
        held = [item for item in claimed if self._is_held(item)]
        for item in held:
            job = attrs.evolve(item.job, lease_until=until, version=item.job.version + 1)
            self._store_job(item.partition, job)
        return held


class RenewalStaysInOnePartition(Wrapped):
    def renew(self, claimed: Sequence[ClaimedJob], until: int) -> Sequence[ClaimedJob]:
        return super().renew([item for item in claimed if item.partition == "env_here"], until)


class RenewalTakesBackWhatWasLost(Wrapped):
    def _is_held(self, claimed: ClaimedJob) -> bool:
        return True


class EndedLeasesAreNotFenced(Wrapped):
    """A lease is ended without a new version, so that its holder does not lose it."""

    def end_leases(self, queue: str, holder: str, now: int) -> int:
        leased = [(p, row.read(Job)) for p, row in list(self._iter_jobs(queue))]
        ours = [item for item in leased if item[1].holder == holder and item[1].lease_until > now]
        for partition, job in ours:
            self._store_job(partition, attrs.evolve(job, lease_until=0, holder=""))
        return len(ours)


class EveryLeaseIsEnded(Wrapped):
    """Those of holders that live, too."""

    def end_leases(self, queue: str, holder: str, now: int) -> int:
        holders = {row.read(Job).holder for _, row in self._iter_jobs(queue)} - {""}
        return sum(super(EveryLeaseIsEnded, self).end_leases(queue, it, now) for it in holders)


class ParkedJobsAreFreed(Wrapped):
    def end_leases(self, queue: str, holder: str, now: int) -> int:
        with mock.patch("payments_core.storage.memory.adapter.NEVER", NEVER + 1):
            return super().end_leases(queue, holder, now)


class LeasesOfOnePartitionAreFound(Wrapped):
    def find_leases(self, queue: str, after: int, limit: int = 100) -> Sequence[ClaimedJob]:
        found = super().find_leases(queue, after, limit)
        return [item for item in found if item.partition == "env_here"]


class EarliestLeasesAreFound(Wrapped):
    """With many pauses of minutes, a lease of hours is not among the first."""

    def find_leases(self, queue: str, after: int, limit: int = 100) -> Sequence[ClaimedJob]:
        return super().find_leases(queue, after, 10_000)[::-1][:limit]


class ParkedJobsAreFound(Wrapped):
    def find_leases(self, queue: str, after: int, limit: int = 100) -> Sequence[ClaimedJob]:
        with mock.patch("payments_core.storage.claim_semantics.NEVER", NEVER + 1):
            return super().find_leases(queue, after, limit)


class JobsDueLaterAreFound(Wrapped):
    """As many as there are; they are asked for every few seconds."""

    def find_leases(self, queue: str, after: int, limit: int = 100) -> Sequence[ClaimedJob]:
        jobs = [(p, row.read(Job)) for p, row in self._iter_jobs(queue)]
        found = [ClaimedJob(p, job) for p, job in jobs if after < max(job.due_at, job.lease_until)]
        found = [item for item in found if item.job.lease_until < NEVER]
        return sorted(found, key=lambda item: -item.job.lease_until)[:limit]


class HolderIsForgotten(Wrapped):
    def _lease(self, partition: str, row: StoredRow, until: int, holder: str) -> ClaimedJob:
        return super()._lease(partition, row, until, "")


class SlotsIgnored(Wrapped):
    def claim(self, queue: str, now: int, **options: Any) -> Any:
        return super().claim(queue, now, **{**options, "lane_concurrency": 1_000})


class OwnSlotsIgnored(Wrapped):
    def claim(self, queue: str, now: int, **options: Any) -> Any:
        return super().claim(queue, now, **{**options, "lane_overrides": {}})


class LanesEmptyInTurn(Wrapped):
    """A lane gives all that it may before the next gives any."""

    def claim(self, queue: str, now: int, **options: Any) -> Any:
        def lane_by_lane(lists: Any, limit: int) -> Any:
            return [item for one in lists for item in one][:limit]

        with mock.patch("payments_core.storage.claim_semantics.interleave", lane_by_lane):
            return super().claim(queue, now, **options)


class LimitIgnored(Wrapped):
    def claim(self, queue: str, now: int, **options: Any) -> Any:
        return super().claim(queue, now, **{**options, "limit": options["limit"] + 2})


class RingStarves(Wrapped):
    """Every claim begins with the first lane."""

    def claim(self, queue: str, now: int, **options: Any) -> Any:
        self._rings.lanes.clear()
        return super().claim(queue, now, **options)


class LaneOutOfOrder(Wrapped):
    def claim(self, queue: str, now: int, **options: Any) -> Any:
        claimed = super().claim(queue, now, **options)
        return sorted(claimed, key=lambda item: item.job.id)


class FullLaneStopsTheRing(Wrapped):
    def claim(self, queue: str, now: int, **options: Any) -> Any:
        leased: dict[str, int] = {}
        for _, row in self._iter_jobs(queue):
            live = int(row.columns["lease_until"] or 0) > now
            leased[str(row.columns["lane"])] = leased.get(str(row.columns["lane"]), 0) + live
        if leased.get(min(leased, default=""), 0) >= options["lane_concurrency"]:
            return []
        return super().claim(queue, now, **options)


class QueuesMix(Wrapped):
    def _iter_jobs(self, queue: str) -> Iterator[tuple[str, StoredRow]]:
        for name in ("test.suite", "other"):
            yield from super()._iter_jobs(name)


class ClaimsStayInOnePartition(Wrapped):
    def _iter_jobs(self, queue: str) -> Iterator[tuple[str, StoredRow]]:
        return ((p, row) for p, row in super()._iter_jobs(queue) if p == "env_here")


class NextDueIgnoresLeases(Wrapped):
    def next_due(self, queue: str, after: int | None = None) -> Any:
        return min((row.columns["due_at"] for _, row in self._iter_jobs(queue)), default=None)


class ClosedStillAnswers(Wrapped):
    def close(self) -> None:
        pass
