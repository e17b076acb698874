"""The worker: claims due jobs, runs their handlers, keeps what fails from spinning.

A handler does its I/O outside any transaction and commits its outcome, the job's end included,
by `Ledger.commit(..., claimed=claimed)`. Nothing here assumes that this process is alone: a lease
saves work and proves nothing, the claim counter is what counts (architecture "Jobs").

Two ways to run: `run_due` and its relatives in the caller's thread, for tests, for "do all due
work now" and for a clock that is advanced; or `start`, for threads that sleep until something
falls due or `wake` is called after a commit.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import attrs

from payments_core.clock import MINUTE, SECOND, Clock, Instant
from payments_core.decision import LeaseLost
from payments_core.errors import PaymentsError, Unavailable
from payments_core.jobs.record import FOREVER, Job
from payments_core.storage.port import Claimed, Storage, StorageError, Transaction

Handler = Callable[[Claimed], None]
"""Does a job and commits its outcome; what it raises counts as no outcome."""

CLAIMS_BEFORE_PARKING = 20
FIRST_BACK_OFF_MS = 1 * SECOND
LONGEST_BACK_OFF_MS = 10 * MINUTE
UNKNOWN_KIND_MS = 30 * SECOND
"""How long a job waits that this release has no handler for; another process may have one."""

LONGEST_RUN = 1_000_000
EMPTY_PASSES = 3

_log = logging.getLogger(__name__)


@attrs.frozen
class Queue:
    """A queue of jobs, named without its mode.

    `slots` jobs of a lane may run at once. `lease_ms` must outlast the slowest handler. With
    `stops`, a job that fails holds up its lane, since those behind it rest on it (a Payment, a
    sender); without, the others go on (a webhook endpoint). At most `threads` of a process serve
    it at once, so that slow work there leaves threads for the other queues; None is no limit.
    """

    name: str
    slots: int = 1
    lease_ms: int = 1 * MINUTE
    stops: bool = True
    threads: int | None = None


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
        poll_s: float = 0.5,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        """`handlers` by the kind of job. `poll_s` is the longest that work committed by another
        process, which cannot `wake` this one, waits to be seen. `refresh` is called before the
        clock is read for a claim: another process may have moved a sandbox's clock."""
        self._storage = storage
        self._clock = clock
        self._mode = mode
        self._handlers = dict(handlers)
        self._queues = tuple(queues)
        if len({queue.name for queue in self._queues}) != len(self._queues):
            raise ValueError("two queues share a name")
        self._poll_s = poll_s
        self._refresh = refresh
        self._threads: list[threading.Thread] = []
        # What the threads share; all of it under the condition's lock.
        self._alone = threading.Lock()
        self._changed = threading.Condition()
        self._nudges = 0
        self._pauses = 0
        self._running = dict.fromkeys((queue.name for queue in self._queues), 0)
        self._watched = False
        self._stopping = False

    # In the caller's thread.

    def run_due(self, limit: int = LONGEST_RUN, *, now: Instant | None = None) -> int:
        """Run what is due, queue by queue, in one pass; return how many jobs were run.

        Jobs that a run adds to the same queue are run too. `now` is the clock's unless given.
        """
        ran = 0
        for queue in self._queues:
            while ran < limit and (claimed := self._claim(queue, now)) is not None:
                self._run(queue, claimed)
                ran += 1
        return ran

    def run_until_idle(self, now: Instant | None = None, limit: int = LONGEST_RUN) -> int:
        """Run passes until nothing is left that is due; return how many jobs were run.

        A claim may give less than there is while others claim too, so one empty pass proves
        nothing; and what waits for a parked job of its lane stays due for ever, so a third of
        them in a row is the end.
        """
        ran = empty = 0
        while ran < limit and empty < EMPTY_PASSES:
            done = self.run_due(limit - ran, now=now)
            ran += done
            empty = 0 if done else empty + 1
            if not done:
                due = self.next_due()
                if due is None or due > (self._clock.now() if now is None else now):
                    break
        return ran

    def run_through(self, until: Instant, move: Callable[[Instant], None]) -> int:
        """Advance a clock to `until` and run each job at the instant at which it falls due.

        What is due and was not run waits for its lane, which nothing frees before the next job
        falls due or the next lease ends: the clock steps to that. `move` sets the clock. Pause
        the threads first. Returns how many jobs were run.
        """
        ran = self.run_until_idle()
        while (now := self._clock.now()) < until:
            due = self.next_due()
            if due is not None and due <= now:
                due = self._earliest(partial(self._storage.next_due, after=now))
            move(until if due is None else min(due, until))
            ran += self.run_until_idle()
        return ran

    def next_due(self) -> Instant | None:
        """The earliest instant at which a job may be claimed, or None. It may be too early."""
        return self._earliest(self._storage.next_due)

    def _earliest(self, of_queue: Callable[[str], Instant | None]) -> Instant | None:
        found = [of_queue(self._full_name(queue)) for queue in self._queues]
        return min((due for due in found if due is not None and due < FOREVER), default=None)

    # In threads of its own.

    def start(self, threads: int = 4) -> None:
        """Start the threads; they run until `stop`."""
        if self._threads:
            raise RuntimeError("the worker has been started")
        self._stopping = False
        self._threads = [
            threading.Thread(
                target=self._serve, args=(n,), name=f"payments-worker-{n}", daemon=True
            )
            for n in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float = 30.0) -> bool:
        """Claim no more, finish what is running, end the threads. False if some did not end."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        return not self._threads

    def wake(self) -> None:
        """Look for work now; call it after a commit that added jobs. It never blocks for long."""
        with self._changed:
            self._nudges += 1
            self._changed.notify()

    def pause(self, timeout_s: float = 30.0) -> bool:
        """Claim no more in the threads, and wait for the jobs that they run.

        False if one still ran after `timeout_s`. Pauses add up; each needs its `resume`.
        `run_due` and its relatives still run, in the thread that calls them.
        """
        with self._changed:
            self._pauses += 1
            return self._changed.wait_for(lambda: not any(self._running.values()), timeout_s)

    def resume(self) -> None:
        """Take back one `pause`."""
        with self._changed:
            self._pauses -= 1
            self._nudges += 1
            self._changed.notify_all()

    @contextmanager
    def alone(self, timeout_s: float = 30.0) -> Iterator[None]:
        """Have the worker to oneself: one caller at a time, its threads paused.

        For those who run jobs in their own thread. Raises Unavailable where a running job does
        not end in time.
        """
        with self._alone:
            quiet = self.pause(timeout_s)
            try:
                if not quiet:
                    raise Unavailable()
                yield
            finally:
                self.resume()

    def _serve(self, turn: int) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or not self._pauses)
                if self._stopping:
                    return
                nudges = self._nudges
            turn += 1  # begin with another queue each time: none starves behind a busy one
            start = turn % len(self._queues) if self._queues else 0
            try:
                served = any(
                    self._serve_one(queue)
                    for queue in (*self._queues[start:], *self._queues[:start])
                )
                if not served:
                    self._sleep(nudges)
            except Exception as error:  # storage is out of reach: the thread must outlive that
                _log.error("the worker could not look for jobs: %s", described(error))
                self._sleep_s(self._poll_s)

    def _serve_one(self, queue: Queue) -> bool:
        """Claim a job and run it; False if there was none, or no thread to spare for its queue."""
        if not self._enter(queue):
            return False
        try:
            claimed = self._claim(queue, None)
            if claimed is not None:
                self.wake()  # where one job was, there may be another for another thread
                self._run(queue, claimed)
            return claimed is not None
        finally:
            self._leave(queue)

    def _enter(self, queue: Queue) -> bool:
        with self._changed:
            if self._stopping or self._pauses:
                return False
            if queue.threads is not None and self._running[queue.name] >= queue.threads:
                return False
            self._running[queue.name] += 1
            return True

    def _leave(self, queue: Queue) -> None:
        with self._changed:
            self._running[queue.name] -= 1
            if self._pauses:
                self._changed.notify_all()

    def _sleep(self, nudges: int) -> None:
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
                due = self.next_due()
                ahead_ms = FOREVER if due is None else due - self._clock.now()
                # What is due and cannot be claimed waits for its lane: look again at the next poll.
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

    def _sleep_s(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, seconds)

    # One job.

    def _claim(self, queue: Queue, now: Instant | None) -> Claimed | None:
        self._refresh()
        claimed = self._storage.claim(
            self._full_name(queue),
            self._clock.now() if now is None else now,
            lease_ms=queue.lease_ms,
            limit=1,
            slots=queue.slots,
        )
        return claimed[0] if claimed else None

    def _run(self, queue: Queue, claimed: Claimed) -> None:
        job = claimed.job
        if job.claims > CLAIMS_BEFORE_PARKING:  # those before took the process down with them
            self._park(queue, claimed)
            return
        handler = self._handlers.get(job.kind)
        if handler is None:
            _log.error("no handler for jobs of kind %s: %s waits", job.kind, job.id)
            # It was not tried, so this claim does not count towards parking.
            until = self._clock.now() + UNKNOWN_KIND_MS
            self._rewrite(claimed, _not_before(queue, attrs.evolve(job, claims=0), until))
            return
        try:
            handler(claimed)
        except LeaseLost:
            _log.debug("job %s was claimed by another worker meanwhile", job.id)
        except Exception as error:
            _log.warning(
                "job %s (%s of %s) failed at claim %d: %s",
                job.id, job.kind, job.subject, job.claims, described(error),
            )  # fmt: skip
            if job.claims >= CLAIMS_BEFORE_PARKING:
                self._park(queue, claimed)
            else:
                doubled = FIRST_BACK_OFF_MS << min(job.failures, CLAIMS_BEFORE_PARKING)
                self._put_off(queue, claimed, min(doubled, LONGEST_BACK_OFF_MS))

    def _park(self, queue: Queue, claimed: Claimed) -> None:
        job = claimed.job
        _log.critical(
            "ALARM: job %s (%s of %s) is parked after %d claims without an outcome; %s",
            job.id, job.kind, job.subject, job.claims,
            f"its lane {job.lane} stops" if queue.stops else "its lane goes on",
        )  # fmt: skip
        self._rewrite(claimed, _not_before(queue, job, FOREVER))

    def _put_off(self, queue: Queue, claimed: Claimed, delay_ms: int) -> None:
        job = attrs.evolve(claimed.job, failures=claimed.job.failures + 1)
        self._rewrite(claimed, _not_before(queue, job, self._clock.now() + delay_ms))

    def _rewrite(self, claimed: Claimed, changed: Job) -> None:
        """Write the job's row, if it is still ours; if that fails, its lease runs out."""

        def work(tx: Transaction) -> None:
            stored = tx.get(Job, changed.id, for_update=True)
            if stored is not None and stored.version == claimed.job.version:
                tx.replace(changed)

        try:
            self._storage.transact(claimed.partition, work)
        except StorageError as error:
            _log.warning("job %s waits for its lease to end: %s", changed.id, described(error))

    def _full_name(self, queue: Queue) -> str:
        return f"{self._mode}.{queue.name}"


def _not_before(queue: Queue, job: Job, until: Instant) -> Job:
    """How a job waits: a live lease holds up its lane, a later due time lets the others pass."""
    if queue.stops:
        return attrs.evolve(job, lease_until=until)
    return attrs.evolve(job, due_at=until, lease_until=0)


def described(error: BaseException) -> str:
    """What may be logged of an error: its type and place, and its text only where it is ours.

    A stranger's text may quote what it choked on, a secret for instance.
    """
    text = f": {error.message}" if isinstance(error, PaymentsError) else ""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))
    cause = f", from {type(error.__cause__).__name__}" if error.__cause__ else ""
    return f"{type(error).__name__}{text}{cause} ({places})"
