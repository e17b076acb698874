"""Is SQLite's group commit worth its code? Plain and grouped commits, as ratios.

`python -m benchmarks.sqlite_group_commit [SECONDS]`

A work reads and replaces a record and inserts two. Plain means groups of one. Since the disk of
a laptop or a cloud machine may answer a sync in 0.1 ms where others take several, the same is
measured with a pause before each COMMIT.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import attrs

from payments_core.conformance.storage.harness import lock_existing
from payments_core.conformance.storage.records import RECORD_TYPES, Counter, Mark, Note
from payments_core.storage.port import Transaction
from payments_core.storage.sqlite.adapter import SqliteStorage

PARTITION = "env_bench"
THREADS = (1, 4, 8)
DELAYS_S = (0.0, 0.003)


@attrs.frozen
class Figures:
    """What one run measured."""

    per_second: float
    p50_ms: float
    p99_ms: float


class Delayed(SqliteStorage):
    """As on a disk that takes its time."""

    delay_s = 0.0

    def _commit(self, connection: sqlite3.Connection) -> None:
        if self.delay_s:
            time.sleep(self.delay_s)
        super()._commit(connection)


def measured(threads: int, delay_s: float, seconds: float, **options: Any) -> Figures:
    """Commits of that many threads on a new file."""
    with tempfile.TemporaryDirectory() as place:
        storage = Delayed(Path(place) / "bench.db", RECORD_TYPES, **options)
        storage.migrate()
        counters = [Counter(id=f"c{n}") for n in range(threads)]
        storage.transact(PARTITION, lambda tx: tx.write(counters, (), ()))
        storage.delay_s = delay_s
        times: list[list[float]] = [[] for _ in range(threads)]
        start = threading.Barrier(threads)

        def run(thread: int) -> None:
            start.wait()
            end = time.perf_counter() + seconds
            while (begun := time.perf_counter()) < end:
                number = len(times[thread])

                def work(tx: Transaction, number: int = number) -> None:
                    counter = lock_existing(tx, Counter, f"c{thread}")
                    tx.replace(attrs.evolve(counter, total=counter.total + 1))
                    tx.insert(Mark(id=f"m{thread}_{number}"))
                    tx.insert(Note(id=f"n{thread}_{number}", rank=number, text="x" * 400))

                storage.transact(PARTITION, work)
                times[thread].append(time.perf_counter() - begun)

        workers = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        storage.close()
    every = sorted(taken * 1_000 for taken_by in times for taken in taken_by)
    return Figures(
        per_second=len(every) / seconds,
        p50_ms=statistics.median(every),
        p99_ms=every[int(len(every) * 0.99)],
    )


def main(seconds: float) -> None:
    """Print a table of both, and the ratio."""
    sys.setswitchinterval(0.0005)  # as the servers do
    print("delay  threads |  plain/s  p50 ms  p99 ms | grouped/s  p50 ms  p99 ms | ratio")
    for delay_s in DELAYS_S:
        for threads in THREADS:
            plain = measured(threads, delay_s, seconds, group_limit=1)
            grouped = measured(threads, delay_s, seconds)
            print(
                f"{delay_s * 1_000:4.0f}ms {threads:8} | {plain.per_second:8.0f} "
                f"{plain.p50_ms:7.2f} {plain.p99_ms:7.2f} | {grouped.per_second:9.0f} "
                f"{grouped.p50_ms:7.2f} {grouped.p99_ms:7.2f} | "
                f"{grouped.per_second / plain.per_second:5.2f}"
            )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 3.0)
