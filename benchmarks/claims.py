"""Claims of jobs by many workers on PostgreSQL: in batches and one at a time, beside a release.

    python -m benchmarks.claims [--before CHECKOUT]

Eight processes lease the due jobs of one queue, which are of two environments and each of a lane
of its own, until none is left. What counts is how many jobs are leased in a second by all of them,
one at a time and in batches. With a checkout of another release its claims are measured in turn
with these, in a database of their own on the same server.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import attrs
import psycopg

from payments_core.engine.jobs.batches import MAX_BATCH
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
ROOT = Path(__file__).resolve().parent.parent


@attrs.define
class Release:
    """A checkout, its database, its workers, and how many jobs a second they leased by size."""

    name: str
    checkout: Path
    url: str
    workers: list[subprocess.Popen[str]] = attrs.field(factory=list)
    rates: dict[int, list[float]] = attrs.field(factory=lambda: {size: [] for size in SIZES})

    def start(self) -> None:
        """Start the workers, each with a connection."""
        self.fill("warm-up", WORKERS)
        self.workers = [self._run("work", self.url) for _ in range(WORKERS)]
        self.lease_all("warm-up", 1)

    def fill(self, queue: str, jobs: int) -> None:
        """Add due jobs."""
        filling = self._run("_fill", self.url, queue, jobs)
        filling.communicate()
        assert filling.returncode == 0

    def lease_all(self, queue: str, size: int) -> int:
        """Have all workers lease the jobs of a queue; how many they got."""
        for worker in self.workers:
            assert worker.stdin is not None
            worker.stdin.write(f"{queue} {size}\n")
            worker.stdin.flush()
        return sum(int(worker.stdout.readline()) for worker in self.workers if worker.stdout)

    def measure(self, turn: int, size: int) -> None:
        """Lease the jobs of a round."""
        queue, jobs = f"bench-{turn}-{size}", SIZES[size]
        self.fill(queue, jobs)
        began = time.perf_counter()
        leased = self.lease_all(queue, size)
        self.rates[size].append(leased / (time.perf_counter() - began))
        assert leased == jobs, (self.name, leased, jobs)

    def median(self, size: int) -> float:
        """The middle of the rates."""
        return sorted(self.rates[size])[ROUNDS // 2]

    def _run(self, function: str, *arguments: object) -> subprocess.Popen[str]:
        given = ", ".join(repr(argument) for argument in arguments)
        code = f"import benchmarks.claims as claims; claims.{function}({given})"
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, "-c", code], cwd=self.checkout, stdin=pipe, stdout=pipe, text=True
        )


def main() -> None:
    """Print jobs leased a second, for each release and size of batch in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="a checkout of the release to compare with")
    before: Path | None = parser.parse_args().before
    with Cluster() as cluster:
        releases = [Release("now", ROOT, cluster.url())]
        if before is not None:
            with psycopg.connect(cluster.url(), autocommit=True) as connection:
                connection.execute("CREATE DATABASE before")
            releases.append(Release("before", before.resolve(), cluster.url("before")))
        for release in releases:
            release.start()
        for turn in range(ROUNDS):
            for size in SIZES:
                for release in releases:
                    release.measure(turn, size)
        for release in releases:
            for worker in release.workers:
                worker.communicate()
    for release in releases:
        for size, found in release.rates.items():
            reported = ", ".join(f"{rate:,.0f}" for rate in found)
            print(
                f"{release.name}: {size:2} at a time, {WORKERS} workers, "
                f"{len(ENVIRONMENTS)} environments: {reported} a s"
            )
    _compare(releases)


def _compare(releases: Sequence[Release]) -> None:
    now = releases[0]
    for other in releases:
        for size in SIZES:
            for theirs in SIZES:
                if (other is now) and size <= theirs:
                    continue
                ratio = now.median(size) / other.median(theirs)
                print(f"now {size} at a time: {ratio:.1f} times {theirs} at a time {other.name}")


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
                tx.write(mine)

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
    main()
