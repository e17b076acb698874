"""Threads lost to hanging jobs: a thread can only be ended with its process.

A hanging job keeps its thread permanently. Other jobs continue in the remaining threads, until
too few are left: then this process should be replaced by a new one, which loses nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from payments_core.engine.jobs.leases import LeaseKeeper
from payments_core.engine.jobs.parking import Queue
from payments_core.storage.port import ClaimedJob

CHECK_S = 0.2
"""How often a waiter for a thread checks whether it hangs."""

_log = logging.getLogger(__name__)


class HungThreads:
    """The job of each thread, and whether too many of a worker's threads hang."""

    def __init__(self, leases: LeaseKeeper) -> None:
        self._leases = leases
        self._running: dict[int | None, tuple[Queue, Sequence[ClaimedJob]]] = {}
        self.on_stuck: Callable[[], object] = lambda: None
        """Called when the worker is found to be stuck, from the thread that keeps the leases."""
        self.is_stuck: bool = False
        """Whether more than half of the threads hang, or all that a queue may have."""

    @contextmanager
    def observe(self, queue: Queue, claimed: Sequence[ClaimedJob]) -> Iterator[None]:
        """Record that this thread runs the jobs."""
        thread = threading.get_ident()
        around = self._running.get(thread)  # a handler may run others' jobs in its own thread
        self._running[thread] = queue, claimed
        try:
            yield
        finally:
            if around is None:
                del self._running[thread]
            else:
                self._running[thread] = around

    def join(self, thread: threading.Thread, deadline: float) -> None:
        """Wait for a thread's end, but not past the deadline, nor for a hanging thread."""
        while (left_s := deadline - time.monotonic()) > 0 and thread.is_alive():
            thread.join(min(left_s, CHECK_S))
            _, claimed = self._running.get(thread.ident, (None, ()))
            if any(map(self._leases.is_hung, claimed)):
                return

    def look(self, threads: Collection[threading.Thread]) -> None:
        """Check a worker's threads. It alarms once, until fewer hang again."""
        hung = self._count_by_queue({thread.ident for thread in threads})
        stuck = 2 * hung.total() > len(threads) or any(
            count >= min(queue.threads, len(threads))
            for queue, count in hung.items()
            if queue.threads
        )
        if stuck == self.is_stuck:
            return
        self.is_stuck = stuck
        if stuck:
            _log.error(
                "ALARM: %d of %d threads of this worker hang in jobs, and no thread can be ended: "
                "replace this process",
                hung.total(), len(threads),
            )  # fmt: skip
            self.on_stuck()
        else:
            _log.warning("enough threads of this worker run jobs again")

    def _count_by_queue(self, threads: Collection[int | None]) -> Counter[Queue]:
        return Counter(
            queue
            for thread, (queue, claimed) in list(self._running.items())
            if thread in threads and any(map(self._leases.is_hung, claimed))
        )
