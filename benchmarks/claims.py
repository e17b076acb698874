"""Claims of jobs by many workers on PostgreSQL: in batches, and one at a time.

    python -m benchmarks.claims

Eight processes lease the due jobs of one queue, which are of two environments and each of a lane
of its own, until none is left. What counts is how many jobs are leased in a second by all of them:
one at a time, as worker threads claimed before, and in the batches of now, over the same ring.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing

from payments_core.engine.jobs.batches import MAX_BATCH
from payments_core.storage import bulk
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from payments_core.storage_loader import open_storage
from tests.servers.cluster import Cluster

WORKERS = 8
ENVIRONMENTS = ("env_a", "env_b")
NOW = 1_790_000_000_000
SIZES = {1: 400, MAX_BATCH: 3_200}
"""How many jobs there are, by how many of them a claim takes."""

ROUNDS = 3


def main() -> None:
    """Print jobs leased a second, for each size of batch in turn."""
    rates: dict[int, list[float]] = {size: [] for size in SIZES}
    with Cluster() as cluster:
        _fill(cluster.url(), "warm-up", WORKERS)
        command = [sys.executable, "-m", "benchmarks.claims", cluster.url()]
        workers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(WORKERS)
        ]
        _lease_all(workers, "warm-up", 1)
        for turn in range(ROUNDS):
            for size, jobs in SIZES.items():
                queue = f"bench-{turn}-{size}"
                _fill(cluster.url(), queue, jobs)
                began = time.perf_counter()
                leased = _lease_all(workers, queue, size)
                rates[size].append(leased / (time.perf_counter() - began))
                assert leased == jobs, (leased, jobs)
        for worker in workers:
            worker.communicate()
    for size, found in rates.items():
        told = ", ".join(f"{rate:,.0f}" for rate in found)
        print(
            f"{size:2} at a time, {WORKERS} workers, {len(ENVIRONMENTS)} environments: {told} a s"
        )
    medians = {size: sorted(found)[ROUNDS // 2] for size, found in rates.items()}
    print(f"in batches {medians[MAX_BATCH] / medians[1]:.1f} times as many")


def _lease_all(workers: Sequence[subprocess.Popen[str]], queue: str, size: int) -> int:
    """Have all workers lease the jobs of a queue; how many they got."""
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(f"{queue} {size}\n")
        worker.stdin.flush()
    return sum(int(worker.stdout.readline()) for worker in workers if worker.stdout is not None)


def _fill(url: str, queue: str, jobs: int) -> None:
    with closing(open_storage(url)) as storage:
        storage.migrate()
        for environment in ENVIRONMENTS:
            mine = [
                Job(
                    id=f"{queue} {number}", queue=queue, lane=f"{environment} {number}",
                    kind="bench", due_at=NOW, subject="bench",
                )
                for number in range(jobs // len(ENVIRONMENTS))
            ]  # fmt: skip

            def insert(tx: Transaction, mine: list[Job] = mine) -> None:
                bulk.write(tx, mine)

            storage.transact(environment, insert)


def work(url: str) -> None:
    """Lease all jobs of each queue that is asked for, and print how many it were."""
    with closing(open_storage(url)) as storage:
        for line in sys.stdin:
            queue, _, size = line.partition(" ")
            leased = empty = 0
            while empty < 3:
                claimed = storage.claim(
                    queue, NOW, lease_ms=10**9, limit=int(size), lane_concurrency=1
                )
                leased += len(claimed)
                empty = 0 if claimed else empty + 1
            print(leased, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(sys.argv[1])
    else:
        main()
