"""Writers and claimers over many partitions, that remember what was answered."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import attrs

from payments_core.conformance.storage.records import RECORD_TYPES, Counter, Mark
from payments_core.storage.jobs import Job
from payments_core.storage.port import (
    ClaimedJob,
    CommitUnknown,
    StorageUnavailable,
    Transaction,
    VersionConflict,
)
from payments_core.storage.postgres.adapter import PostgresStorage

QUEUE = "load"
LEASE_MS = 2_000
MAX_BACKLOG = 20
DRAIN_S = 120.0
PROGRESS_S = 60.0


class Load:
    """Each writer counts in its own partitions; each count leaves a mark, and a job for another."""

    def __init__(self, url: str, partitions: Sequence[str], writers: int = 3) -> None:
        self.storage = PostgresStorage(f"{url}&pool=16&failover_s=1", RECORD_TYPES)
        self.partitions = partitions
        self.answered: dict[str, list[tuple[float, str]]] = defaultdict(list)
        """The marks of each partition whose commit was answered, and when (monotonic)."""
        self.done: dict[str, list[float]] = defaultdict(list)
        """When jobs of each partition were done."""
        self.unknown = 0
        self.failures: list[BaseException] = []
        self._writing = threading.Event()
        self._claiming = threading.Event()
        self._writers = [
            threading.Thread(target=self._run, args=(self._write, partitions[n::writers]))
            for n in range(writers)
        ]
        self._claimers = [threading.Thread(target=self._run, args=(self._claim, ()))]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run, and at the end let the claimers finish what is there."""
        for partition in self.partitions:
            self.storage.transact(partition, lambda tx: tx.insert(Counter(id="c")))
        for thread in (*self._writers, *self._claimers):
            thread.start()
        try:
            yield
        finally:
            self._writing.set()
            for thread in self._writers:
                thread.join()
            until = time.monotonic() + DRAIN_S
            while self._has_jobs() and time.monotonic() < until:
                time.sleep(0.1)
            self._claiming.set()
            for thread in self._claimers:
                thread.join()

    def close(self) -> None:
        """Close the storage, once all was looked at."""
        self.storage.close()

    def await_progress(self, partitions: Sequence[str]) -> None:
        """Return when in some of these something was written, and a job was done, from now on."""
        began = time.monotonic()

        def is_new(instants: Iterable[float]) -> bool:
            return any(at > began for at in instants)

        while not (
            is_new(at for name in partitions for at, _ in list(self.answered[name]))
            and is_new(at for name in partitions for at in list(self.done[name]))
        ):
            if time.monotonic() > began + PROGRESS_S:
                raise AssertionError(f"nothing went on in {partitions}")
            time.sleep(0.02)

    def wrong(self) -> list[str]:
        """What was lost or doubled; nothing, if all is well."""
        found = [f"a thread failed: {error!r}" for error in self.failures]
        marks = self._marks()
        for partition in self.partitions:
            written = {id for id in marks[partition] if id.startswith("w")}
            worked = {id[5:] for id in marks[partition] if id.startswith("done ")}
            lost = {id for _, id in self.answered[partition]} - written
            counter = self.storage.read(partition, lambda snapshot: snapshot.get(Counter, "c"))
            total = None if counter is None else counter.total
            if lost:
                found.append(f"{partition}: lost {sorted(lost)}")
            if total != len(written):
                found.append(f"{partition}: counted {total}, marked {len(written)}")
            if worked != written:
                found.append(f"{partition}: jobs not done {sorted(written - worked)}")
        return found

    def _run(self, work: Callable[[Sequence[str]], None], partitions: Sequence[str]) -> None:
        try:
            work(partitions)
        except BaseException as error:
            self.failures.append(error)

    def _write(self, partitions: Sequence[str]) -> None:
        number = 0
        while not self._writing.is_set():
            number += 1
            for partition in partitions:
                if len(self.answered[partition]) - len(self.done[partition]) < MAX_BACKLOG:
                    self._count(partition, f"w{number:06d}")
            time.sleep(0.01)

    def _count(self, partition: str, id: str) -> None:
        job = Job(id=id, queue=QUEUE, lane=id, kind="load", due_at=0, subject=id)

        def work(tx: Transaction) -> None:
            counter = tx.get(Counter, "c", for_update=True)
            assert counter is not None
            tx.replace(attrs.evolve(counter, total=counter.total + 1))
            tx.insert(Mark(id=id))
            tx.insert(job)

        try:
            self.storage.transact(partition, work)
        except CommitUnknown:
            self.unknown += 1
        except StorageUnavailable:
            pass
        else:
            self.answered[partition].append((time.monotonic(), id))

    def _claim(self, _: Sequence[str]) -> None:
        while not self._claiming.is_set():
            now = time.time_ns() // 1_000_000
            try:
                claimed = self.storage.claim(
                    QUEUE, now, lease_ms=LEASE_MS, limit=16, lane_concurrency=1
                )
            except (StorageUnavailable, CommitUnknown):  # what it leased comes back in time
                time.sleep(0.05)
                continue
            for item in claimed:
                self._finish(item)
            if not claimed:
                time.sleep(0.02)

    def _finish(self, claimed: ClaimedJob) -> None:
        def work(tx: Transaction) -> None:
            job = tx.get(Job, claimed.job.id, for_update=True)
            if job is None or job.version != claimed.job.version:
                raise VersionConflict("another has it")
            tx.delete(job)
            tx.insert(Mark(id=f"done {job.id}"))

        try:
            self.storage.transact(claimed.partition, work)
        except (StorageUnavailable, CommitUnknown, VersionConflict):
            return
        self.done[claimed.partition].append(time.monotonic())

    def _has_jobs(self) -> bool:
        try:
            return self.storage.next_due(QUEUE) is not None
        except StorageUnavailable:
            return True

    def _marks(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = defaultdict(set)
        after = None
        while rows := self.storage.read_rows(Mark, after=after):
            after = (rows[-1].partition, rows[-1].id)
            for row in rows:
                found[row.partition].add(row.id)
        return found
