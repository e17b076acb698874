"""Claiming a batch of deliveries from SQLite behind one endpoint with an immense backlog.

    python -m benchmarks.webhook_claims

200,000 deliveries are due for one endpoint whose slots are all taken, and 1,000 other endpoints
have some each. A claim must find 64 of the others' at once, whatever waits beside them.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from payments_core.record_types import RECORD_TYPES
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from payments_core.storage.sqlite.adapter import SqliteStorage

BACKLOG = 200_000
OTHERS = 1_000
EACH = 10
BATCH = 64
SLOTS = 4
NOW = 1_790_000_000_000
QUEUE = "sandbox.webhooks"


def main() -> None:
    """Print the times of claims."""
    with tempfile.TemporaryDirectory() as folder:
        storage = SqliteStorage(Path(folder) / "claims.db", RECORD_TYPES)
        storage.migrate()
        _fill(storage)
        alone = _timed(storage, OTHERS * SLOTS // BATCH * 3 // 4)
        print(f"{BATCH} of {OTHERS} endpoints, {BACKLOG:,} due behind one more that is full")
        print(f"  median {statistics.median(alone):.2f} ms")
        print(f"  p99    {sorted(alone)[int(len(alone) * 0.99)]:.2f} ms")
        storage.close()


def _fill(storage: SqliteStorage) -> None:
    jobs = [_job(f"hot-{n}", "endpoint:hot", n) for n in range(BACKLOG)]
    jobs += [_job(f"{n}-{i}", f"endpoint:{n:04}", i) for n in range(OTHERS) for i in range(EACH)]
    for start in range(0, len(jobs), 5_000):
        batch = jobs[start : start + 5_000]

        def insert(tx: Transaction, batch: list[Job] = batch) -> None:
            for job in batch:
                tx.insert(job)

        storage.transact("env_bench", insert)
    taken = 0
    while taken < SLOTS:  # endpoints that hang have them
        claimed = storage.claim(
            QUEUE, NOW - BACKLOG + taken, lease_ms=10**9, limit=1, lane_concurrency=SLOTS
        )
        assert claimed[0].job.lane == "endpoint:hot"
        taken += len(claimed)


def _job(id: str, lane: str, ordinal: int) -> Job:
    ahead = BACKLOG if lane == "endpoint:hot" else 1_000
    return Job(
        id=f"job_{id}",
        queue=QUEUE,
        lane=lane,
        kind="webhooks.deliver",
        due_at=NOW - ahead + ordinal,
        subject=f"delivery_{id}",
        ordinal=0,
    )


def _timed(storage: SqliteStorage, rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        began = time.thread_time()
        claimed = storage.claim(QUEUE, NOW, lease_ms=60_000, limit=BATCH, lane_concurrency=SLOTS)
        times.append((time.thread_time() - began) * 1_000)
        assert len(claimed) == BATCH
    return times


if __name__ == "__main__":
    main()
