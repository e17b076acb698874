"""Jobs that were claimed together: they wait for a thread of this process, or are done at once."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import attrs

from payments_core.storage.port import ClaimedJob

SplitTogether = Callable[[Sequence[ClaimedJob]], tuple[Sequence[ClaimedJob], Sequence[ClaimedJob]]]

MAX_BATCH = 64
"""More are hardly cheaper: with 128 a Payment takes 5 % fewer round trips, and no less time."""
MAX_BATCH_WAIT_S = 1.0
"""A claimed job that waits for a thread this long is released for another process."""

TARGET_S = 0.25
"""A batch is sized to run this long, if its jobs take as long as the last ones did."""
INITIAL_RUN_S = 0.05


@attrs.define
class _Batch:
    """`waiting` has each job with the instant of its claim, by the monotonic clock."""

    waiting: deque[tuple[ClaimedJob, float]] = attrs.field(factory=deque)
    run_s: float = INITIAL_RUN_S


class Batches:
    """The batches of each queue. A slow job does not hold up the jobs claimed with it."""

    def __init__(self, queues: Iterable[str], split_together: SplitTogether) -> None:
        """`split_together` returns the jobs that are run with the first of some."""
        self._split_together = split_together
        self._lock = threading.Lock()
        self._batches = {name: _Batch() for name in queues}

    def put(self, queue: str, claimed: Iterable[ClaimedJob]) -> None:
        """Add jobs that wait for a thread."""
        now = time.monotonic()
        with self._lock:
            self._batches[queue].waiting.extend((item, now) for item in claimed)

    def take(self, queue: str) -> Sequence[ClaimedJob]:
        """The job of the queue that has waited for longest, and the jobs that are run with it."""
        with self._lock:
            batch = self._batches[queue]
            taken, _ = self._split_together([item for item, _ in batch.waiting])
            batch.waiting = deque(entry for entry in batch.waiting if entry[0] not in taken)
            return taken

    def withdraw(self, waited_s: float = 0.0) -> list[ClaimedJob]:
        """Remove the jobs that have waited at least this long."""
        before = time.monotonic() - waited_s
        found: list[ClaimedJob] = []
        with self._lock:
            for batch in self._batches.values():
                while batch.waiting and batch.waiting[0][1] <= before:
                    found.append(batch.waiting.popleft()[0])
        return found

    def record_run(self, queue: str, took_s: float) -> None:
        """Record how long a job of the queue took, or its share of a batch."""
        with self._lock:
            batch = self._batches[queue]
            batch.run_s += 0.2 * (took_s - batch.run_s)

    def next_size(self, queue: str, threads: int) -> int:
        """How many jobs of the queue this many threads can begin soon."""
        with self._lock:
            run_s = self._batches[queue].run_s
        return max(1, min(MAX_BATCH, int(threads * TARGET_S / max(run_s, 0.001))))
