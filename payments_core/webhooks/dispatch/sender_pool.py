"""The threads that send: they take from a backlog, and report the outcomes.

As few as necessary are awake: many at once contend for the interpreter, and one serves quick
endpoints faster. If a delivery waits, or all awake senders are held up, another is woken.
Senders that are held up for long are replaced by new ones, up to a maximum.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

import attrs

from payments_core.clock import Instant
from payments_core.storage.port import ClaimedJob
from payments_core.webhooks.dispatch.attempt import AttemptRunner, PreparedDelivery
from payments_core.webhooks.dispatch.endpoint_concurrency import MAX_SPARE_SENDERS
from payments_core.webhooks.lifecycle import AttemptResult

WAKE_AFTER_S = 0.005
"""A delivery that waits longer wakes another sender; an attempt that takes longer may hold its
sender up permanently."""


BLOCKED_AFTER_S = 0.25
"""A sender whose attempt takes longer is replaced by another."""

STALE_AFTER_S = 0.25
"""A delivery and its endpoint that were read longer ago are read again before sending: the
secret may have been rotated since, or the endpoint closed."""


@attrs.frozen
class FinishedAttempt:
    """An attempt that was made, or our own error that prevented it.

    Without either the delivery was not sent, since its lease had ended, or it was `stale`.
    """

    prepared: PreparedDelivery
    result: AttemptResult | Exception | None
    duration_s: float | None
    stale: bool = False


class SenderPool:
    """A pool of threads. Its methods are for one thread, the coordinator, except
    `find_lanes_in_flight_over`."""

    def __init__(
        self,
        attempts: AttemptRunner,
        count: int,
        on_finished: Callable[[FinishedAttempt], None],
        *,
        name: str,
        lease_end: Callable[[ClaimedJob], Instant] = lambda claimed: claimed.job.lease_until,
    ) -> None:
        """`on_finished` is called at each end, in the thread of its sender. `lease_end` says until
        when a job is ours."""
        self._lease_end = lease_end
        self._attempts = attempts
        self._count = count
        self._on_finished = on_finished
        self._name = name
        self._backlog: deque[tuple[PreparedDelivery, float]] = deque()
        self._in_flight: dict[str, tuple[PreparedDelivery, float]] = {}
        self._calls = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._awake = 0
        self._over = False
        self.threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads, only once: an ended pool stays ended."""
        for _ in range(self._count):
            self._start_thread()

    def _start_thread(self) -> None:
        name = f"{self._name}-{len(self.threads)}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        thread.start()
        self.threads.append(thread)

    def shut_down(self) -> None:
        """Let the threads end when they are done."""
        self._over = True
        self._calls.release(len(self.threads))

    @property
    def blocked_count(self) -> int:
        """How many attempts hold a sender up, as far as other senders can replace them."""
        since = time.monotonic() - BLOCKED_AFTER_S
        blocked = sum(began < since for _, began in tuple(self._in_flight.values()))
        return min(blocked, MAX_SPARE_SENDERS)

    def submit(self, prepared: PreparedDelivery) -> None:
        """Give a delivery to be sent; `wake_enough` afterwards."""
        self._backlog.append((prepared, time.monotonic()))

    def wake_enough(self) -> bool:
        """Wake senders if those awake do not keep up; True if it should be called
        again soon."""
        oldest = next(iter(self._backlog.copy()), None)  # a sender may take it meanwhile
        if oldest is None:
            return False
        since = time.monotonic() - WAKE_AFTER_S
        blocked = sum(began < since for _, began in tuple(self._in_flight.values()))
        with self._lock:
            if self._awake > blocked and oldest[1] > since:
                return True
            if self._awake == len(self.threads):
                spare = len(self.threads) - self._count
                if spare >= self.blocked_count:
                    return spare < MAX_SPARE_SENDERS
                self._start_thread()
            self._awake += 1
        self._calls.release()
        return True

    def withdraw_unstarted(self, lane: str | None = None) -> list[PreparedDelivery]:
        """The deliveries that have not begun, of a lane or of all."""
        back: list[tuple[PreparedDelivery, float]] = []
        rest: list[tuple[PreparedDelivery, float]] = []
        while True:
            try:
                item = self._backlog.popleft()
            except IndexError:
                break
            (back if lane in (None, item[0].claimed.job.lane) else rest).append(item)
        self._backlog.extendleft(reversed(rest))
        return [prepared for prepared, _ in back]

    def find_lanes_in_flight_over(self, longer_than_s: float) -> set[str]:
        """The lanes with an attempt that has taken longer."""
        since = time.monotonic() - longer_than_s
        in_flight = tuple(self._in_flight.values())
        return {prepared.claimed.job.lane for prepared, began in in_flight if began < since}

    def _run(self) -> None:
        while True:
            self._calls.acquire()
            while True:
                try:
                    prepared, handed_at = self._backlog.popleft()
                except IndexError:
                    break
                if time.monotonic() - handed_at > STALE_AFTER_S:
                    self._on_finished(FinishedAttempt(prepared, None, None, stale=True))
                else:
                    self._on_finished(self._send(prepared))
            with self._lock:
                self._awake -= 1
            if self._over:
                return

    def _send(self, prepared: PreparedDelivery) -> FinishedAttempt:
        job_id, began = prepared.claimed.job.id, time.monotonic()
        self._in_flight[job_id] = (prepared, began)
        try:
            attempt = self._attempts.send(prepared, self._lease_end(prepared.claimed))
        except Exception as error:  # our own error, which must not count against the endpoint
            return FinishedAttempt(prepared, error, None)
        finally:
            self._in_flight.pop(job_id, None)
        took_s = time.monotonic() - began
        unsent = attempt is None or attempt.postponed or prepared.abandon_reason
        return FinishedAttempt(prepared, attempt, None if unsent else took_s)
