"""The worker: claims due jobs, runs their handlers, keeps failing jobs from spinning.

A handler does its I/O outside any transaction and commits its outcome, the job's end included,
by `Committer.commit(..., claimed=claimed)`. Nothing here assumes that this process is alone: a
lease saves work but proves nothing; only the claim counter does (architecture "Jobs").

Two ways to run: `run_due` and its relatives in the caller's thread, for tests, for "do all due
work now" and for a clock that is advanced; or `start`, for threads that sleep until something
falls due or `wake` is called after a commit.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType

from payments_core.clock import SECOND, Clock, Instant
from payments_core.engine.jobs.batches import MAX_BATCH, MAX_BATCH_WAIT_S, Batches
from payments_core.engine.jobs.execution import (
    BatchHandler,
    Handler,
    JobExecutor,
    LookBack,
    do_not_look_back,
)
from payments_core.engine.jobs.hung_threads import HungThreads
from payments_core.engine.jobs.job_runner import JobRunner
from payments_core.engine.jobs.leases import CHECKS_PER_LEASE, LeaseKeeper
from payments_core.engine.jobs.parking import ParkingPolicy, Queue, describe_error
from payments_core.errors import Unavailable
from payments_core.storage.jobs import NEVER
from payments_core.storage.port import ClaimedJob, Storage, StorageError
from payments_core.telemetry import NOOP_TELEMETRY, Telemetry

NO_BATCH_HANDLERS: Mapping[str, BatchHandler] = MappingProxyType({})
MAX_JOBS_PER_RUN = 1_000_000
MAX_EMPTY_PASSES = 3
EXCLUSIVE_WAIT_S = 5.0

_log = logging.getLogger(__name__)


class Worker:
    """Runs the jobs of one mode."""

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        mode: str,
        handlers: Mapping[str, Handler],
        queues: Iterable[Queue],
        *,
        batch_handlers: Mapping[str, BatchHandler] = NO_BATCH_HANDLERS,
        poll_s: float = 0.5,
        refresh: Callable[[], None] = lambda: None,
        telemetry: Telemetry = NOOP_TELEMETRY,
        look_back: LookBack = do_not_look_back,
    ) -> None:
        """`handlers` by the kind of job; `batch_handlers` are for kinds that are done together.
        `poll_s` is the maximum time that work committed by another process, which cannot `wake`
        this one, waits to be seen. `refresh` is called before the clock is read for a claim:
        another process may have moved a sandbox's clock. The clock raises StorageUnavailable while
        this machine's is wrong (`GuardedClock`). `look_back` is called before each claim."""
        self._storage = storage
        self._clock = clock
        self._mode = mode
        self._executor = JobExecutor(
            storage, clock, mode, handlers, batch_handlers, refresh, telemetry, look_back
        )
        self.parking: ParkingPolicy = self._executor.parking
        self.leases: LeaseKeeper = self._executor.leases
        self.hung: HungThreads = self._executor.hung
        self._companions: list[JobRunner] = []
        self._queues = tuple(queues)
        if len({queue.name for queue in self._queues}) != len(self._queues):
            raise ValueError("two queues have the same name")
        self._poll_s = poll_s
        self._refresh = refresh
        self._threads: list[threading.Thread] = []
        # State shared by the threads; all of it under the condition's lock.
        self._alone = threading.Lock()
        self._changed = threading.Condition()
        self._nudges = 0
        self._pauses = 0
        self._running = dict.fromkeys((queue.name for queue in self._queues), 0)
        self._batches = Batches(self._running, self._executor.split_together)
        self._ended = threading.Event()
        self._keeper: threading.Thread | None = None
        self._watched = False
        self._stopping = False
        self._count = 1

    def attach(self, companion: JobRunner) -> None:
        """Start, stop, wake and pause a companion with this worker, from now on."""
        self._companions.append(companion)

    def take_over(self, holder: str) -> int:
        """Claim jobs under a name from now on, and take over the jobs that the last process of that
        name left; return how many. Call it before `start`.

        One process at a time may have a name: it must know that the last one is dead. If that one
        still lives, it loses its jobs, and they are run twice; their outcomes still
        count once. Jobs that cannot be taken over now are due when their leases end.
        """
        self._refresh()
        self.leases.holder = holder
        return sum(self._end_leases(queue) for queue in self._queues)

    def _end_leases(self, queue: Queue) -> int:
        name, holder = queue.full_name(self._mode), self.leases.holder
        try:
            return self._storage.end_leases(name, holder, self._clock.now())
        except StorageError as error:
            _log.warning("cannot end the leases of %s: %s", name, describe_error(error))
            return 0

    # In the caller's thread.

    def run_due(self, limit: int = MAX_JOBS_PER_RUN, *, now: Instant | None = None) -> int:
        """Run the due jobs, queue by queue, in one pass; return how many were run.

        Jobs that a run adds to the same queue are run too. `now` is by default the clock's.
        """
        return self._run_pass(self._queues, limit, now)

    def run_until_idle(self, now: Instant | None = None, limit: int = MAX_JOBS_PER_RUN) -> int:
        """Run passes over the queues that have due jobs until none has one; return how many jobs
        were run.

        A claim may return fewer jobs than exist while others claim too, so one empty pass proves
        nothing; and jobs behind a parked job of their lane stay due forever, so a third empty pass
        in a row is the end.
        """
        ran = empty = 0
        while ran < limit and empty < MAX_EMPTY_PASSES and (queues := self._find_due_queues(now)):
            done = self._run_pass(queues, limit - ran, now)
            ran += done
            empty = 0 if done else empty + 1
        return ran

    def _find_due_queues(self, now: Instant | None) -> Sequence[Queue]:
        """The queues that have a job to claim, checked at less cost than a claim."""
        self._refresh()
        if now is None:
            now = self._clock.now()
        self._executor.look_back(now)
        for queue in self._queues:
            self.leases.end_impossible(queue, self._mode, now)
        dues = [self._storage.next_due(queue.full_name(self._mode)) for queue in self._queues]
        found = zip(self._queues, dues, strict=True)
        return [queue for queue, due in found if due is not None and due <= now]

    def _run_pass(self, queues: Sequence[Queue], limit: int, now: Instant | None) -> int:
        ran = 0
        for queue in queues:
            while ran < limit and (
                claimed := self._executor.claim(queue, now, min(MAX_BATCH, limit - ran))
            ):
                ran += self._run_claimed(queue, claimed)
        return ran

    def _run_claimed(self, queue: Queue, claimed: Sequence[ClaimedJob]) -> int:
        """Run the jobs of a claim. Only the first ones certainly have their leases still."""
        together, others = self._executor.split_together(claimed)
        ran = self._executor.run(queue, together)
        while others:
            together, others = self._executor.split_together(others)
            if ours := self._leave_out_ended(together):
                ran += self._executor.run(queue, ours)
        return ran

    def run_through(self, until: Instant, move: Callable[[Instant], None]) -> int:
        """Advance a clock to `until` and run each job at the instant at which it falls due.

        A due job that was not run waits for its lane, which nothing frees before the next job
        falls due or the next lease ends: the clock steps to that. `move` sets the clock. Pause
        the threads first. Returns how many jobs were run.
        """
        ran = self.run_until_idle()
        while (now := self._clock.now()) < until:
            due = self.next_due()
            if due is not None and due <= now:
                due = self._earliest_due(partial(self._storage.next_due, after=now))
            move(until if due is None else min(due, until))
            ran += self.run_until_idle()
        return ran

    def next_due(self) -> Instant | None:
        """The earliest instant at which a job may be claimed, or None. It may be too early."""
        return self._earliest_due(self._storage.next_due)

    def _earliest_due(
        self, of_queue: Callable[[str], Instant | None], *, served: bool = False
    ) -> Instant | None:
        """The earliest in all queues, or in those that the worker's own threads serve."""
        queues = [queue for queue in self._queues if not served or queue.threads != 0]
        found = [of_queue(queue.full_name(self._mode)) for queue in queues]
        return min((due for due in found if due is not None and due < NEVER), default=None)

    # In its own threads.

    def start(self, threads: int = 4) -> None:
        """Start the threads; they run until `stop`."""
        if self._threads or self._keeper:
            raise RuntimeError("the worker is already started")
        self._stopping = False
        self._ended.clear()
        self._count = threads
        self._keeper = threading.Thread(
            target=self._keep_leases, name="payments-leases", daemon=True
        )
        self._keeper.start()
        self._threads = [
            threading.Thread(
                target=self._serve, args=(n,), name=f"payments-worker-{n}", daemon=True
            )
            for n in range(threads)
        ]
        for thread in self._threads:
            thread.start()
        for companion in self._companions:
            companion.start()

    def stop(self, timeout_s: float = 30.0) -> bool:
        """Claim no more, finish what is running, end the threads. False if some did not end.

        A thread that hangs in a job is not waited for.
        """
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        deadline = time.monotonic() + timeout_s
        quiet = [companion.stop(timeout_s) for companion in self._companions]
        for thread in self._threads:
            self.hung.join(thread, deadline)
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        self._give_back()
        if self._threads or not all(quiet):  # running jobs keep their leases
            return False
        self._ended.set()
        if self._keeper is not None:
            self._keeper.join(max(1.0, deadline - time.monotonic()))
            self._keeper = None
        return True

    def wake(self) -> None:
        """Look for work now; call it after a commit that added jobs. It never blocks for long."""
        with self._changed:
            self._nudges += 1
            self._changed.notify()
        for companion in self._companions:
            companion.wake()

    def pause(self, timeout_s: float = 30.0) -> bool:
        """Claim no more in the threads, and wait for the jobs that they run.

        False if one still ran after `timeout_s`. Pauses add up; each needs its `resume`.
        `run_due` and its relatives still run, in the thread that calls them.
        """
        with self._changed:
            self._pauses += 1
            quiet = self._changed.wait_for(lambda: not any(self._running.values()), timeout_s)
        self._give_back()
        return all([quiet, *(companion.pause(timeout_s) for companion in self._companions)])

    def resume(self) -> None:
        """Undo one `pause`."""
        with self._changed:
            self._pauses -= 1
            self._nudges += 1
            self._changed.notify_all()
        for companion in self._companions:
            companion.resume()

    @contextmanager
    def pause_exclusively(self, timeout_s: float = 30.0) -> Iterator[None]:
        """Exclusive use of the worker: one caller at a time, its threads paused.

        For callers that run jobs in their own thread. Raises Unavailable if a running job does
        not end in time, or another caller has it: a waiting caller would hold a server thread.
        """
        if not self._alone.acquire(timeout=min(timeout_s, EXCLUSIVE_WAIT_S)):
            raise Unavailable()
        try:
            quiet = self.pause(timeout_s)
            try:
                if not quiet:
                    raise Unavailable()
                yield
            finally:
                self.resume()
        finally:
            self._alone.release()

    def _serve(self, turn: int) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or not self._pauses)
                if self._stopping:
                    return
                nudges = self._nudges
            turn += 1  # begin with another queue each time: no queue starves behind a busy one
            start = turn % len(self._queues) if self._queues else 0
            try:
                served = any(
                    self._serve_one(queue)
                    for queue in (*self._queues[start:], *self._queues[:start])
                )
                if not served:
                    self._wait_for_work(nudges)
            except Exception as error:  # no storage: the thread must continue
                _log.error("cannot query the due jobs: %s", describe_error(error))
                self._sleep_for(self._poll_s)

    def _serve_one(self, queue: Queue) -> bool:
        """Claim a job and run it; False if there was none, or no spare thread for its queue."""
        if not self._reserve_thread(queue):
            return False
        try:
            claimed = self._take(queue)
            if claimed:
                self.wake()  # after one job, there may be another for another thread
                began = time.monotonic()
                ran = self._executor.run(queue, claimed)
                self._batches.record_run(queue.name, (time.monotonic() - began) / ran)
            return bool(claimed)
        finally:
            self._release_thread(queue)

    def _reserve_thread(self, queue: Queue) -> bool:
        with self._changed:
            if self._stopping or self._pauses:
                return False
            if queue.threads is not None and self._running[queue.name] >= queue.threads:
                return False
            self._running[queue.name] += 1
            return True

    def _release_thread(self, queue: Queue) -> None:
        with self._changed:
            self._running[queue.name] -= 1
            if self._pauses:
                self._changed.notify_all()

    def _wait_for_work(self, nudges: int) -> None:
        """Wait until something falls due, or for a nudge later than `nudges`.

        One thread watches the storage; the others sleep until one that found work wakes them.
        """
        with self._changed:
            watch = not self._watched
            self._watched = True
        try:
            wait_s = self._poll_s
            if watch:
                self._refresh()
                due = self._earliest_due(self._storage.next_due, served=True)
                ahead_ms = NEVER if due is None else due - self._clock.now()
                # A due job that cannot be claimed waits for its lane: check again at the next poll.
                wait_s = min(self._poll_s, ahead_ms / SECOND) if ahead_ms > 0 else self._poll_s
            else:
                wait_s = 10 * self._poll_s
            with self._changed:
                self._changed.wait_for(
                    lambda: self._stopping or self._pauses or self._nudges != nudges, wait_s
                )
        finally:
            if watch:
                with self._changed:
                    self._watched = False

    def _sleep_for(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, seconds)

    # Running jobs, and those claimed with them.

    def _take(self, queue: Queue) -> Sequence[ClaimedJob]:
        """Jobs of the queue to run now: claimed before, or the first of a new batch."""
        while waiting := self._batches.take(queue.name):
            if ours := self._leave_out_ended(waiting):
                return ours
        threads = self._count if queue.threads is None else min(queue.threads, self._count)
        size = self._batches.next_size(queue.name, threads)
        together, others = self._executor.split_together(self._executor.claim(queue, None, size))
        self._batches.put(queue.name, others)
        return together

    def _leave_out_ended(self, claimed: Sequence[ClaimedJob]) -> Sequence[ClaimedJob]:
        """The jobs whose leases have not ended. Another worker may have the others: this process
        or the storage was away, or a pass, which renews no leases, took long."""
        now = self._clock.now()
        ours = [item for item in claimed if now < self.leases.lease_end(item)]
        self._release([item for item in claimed if item not in ours])
        return ours

    def _give_back(self, waited_s: float = 0.0) -> None:
        """Release the jobs that have waited too long for a thread."""
        self._release(self._batches.withdraw(waited_s))

    def _release(self, unstarted: Sequence[ClaimedJob]) -> None:
        self.leases.remove(unstarted)
        self.parking.release_unstarted(unstarted)

    def _keep_leases(self) -> None:
        shortest_ms = min((queue.lease_ms for queue in self._queues), default=SECOND)
        while not self._ended.wait(shortest_ms / SECOND / CHECKS_PER_LEASE):
            try:
                self.leases.renew()  # first, since the release waits for each partition in turn
                self.hung.look(self._threads)
                self._give_back(MAX_BATCH_WAIT_S)
            except Exception as error:  # the leases end by themselves; the thread must continue
                _log.error("cannot renew the leases: %s", describe_error(error))
