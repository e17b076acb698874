"""Sending deliveries in bulk: one thread claims and commits, many send.

The coordinator claims a batch of due deliveries, reads their contents, hands them to the senders,
and commits the finished ones together; no sender touches the storage. A failure stays
in its environment, or with its record. `EndpointConcurrency` limits the attempts of each.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from payments_core.clock import SECOND
from payments_core.engine.fan_out import FAN_OUT
from payments_core.engine.jobs.leases import LeaseKeeper
from payments_core.engine.jobs.parking import ParkingPolicy, Queue, describe_error
from payments_core.engine.ports import Ports
from payments_core.errors import Unavailable
from payments_core.storage.jobs import NEVER
from payments_core.storage.port import ClaimedJob, StorageError
from payments_core.webhooks.dispatch.attempt import AttemptRunner, PreparedDelivery
from payments_core.webhooks.dispatch.endpoint_concurrency import SLOW_AFTER_S, EndpointConcurrency
from payments_core.webhooks.dispatch.fan_out_limits import FAN_OUT_BATCH, FanOutLimits
from payments_core.webhooks.dispatch.job_handlers import (
    DELIVERY_QUEUE,
    FAN_OUT_QUEUE,
    WebhookJobHandlers,
)
from payments_core.webhooks.dispatch.jobs_in_hand import JobsInHand
from payments_core.webhooks.dispatch.sender_pool import (
    BLOCKED_AFTER_S,
    WAKE_AFTER_S,
    FinishedAttempt,
    SenderPool,
)
from payments_core.webhooks.lifecycle import AttemptResult

SENDER_THREADS = 64
PREFETCH_COUNT = 64
"""The number claimed beyond the senders, so that no sender waits for the storage."""

POLL_S = 0.5
"""The maximum time until work committed by another process is seen."""

BATCH = 128

_log = logging.getLogger(__name__)


class Dispatcher:
    """Sends one mode's deliveries in its own threads; the worker starts and stops it."""

    def __init__(
        self,
        ports: Ports,
        attempts: AttemptRunner,
        delivery: WebhookJobHandlers,
        parking: ParkingPolicy,
        mode: str,
        *,
        senders: int = SENDER_THREADS,
        leases: LeaseKeeper | None = None,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        """`leases` are the worker's, which renews them."""
        self._leases = leases or LeaseKeeper(ports.storage, ports.guarded_clock)
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.guarded_clock
        self._attempts = attempts
        self._delivery = delivery
        self._parking = parking
        self._mode = mode
        self._count = senders
        self._refresh = refresh
        self._threads: list[threading.Thread] = []
        self._reset()

    def _reset(self) -> None:
        # Used by the coordinator only.
        self._senders = SenderPool(
            self._attempts,
            self._count,
            self._on_finished,
            name="payments-webhook",
            lease_end=self._leases.lease_end,
        )
        self._concurrency = EndpointConcurrency(self._count)
        self._fan_out_limits = FanOutLimits()
        self._jobs = JobsInHand(self._parking, self._leases, self._mode)
        self._waiting: list[PreparedDelivery] = []
        self._in_flight = 0
        self._uncommitted: list[FinishedAttempt] = []
        self._commit_at = 0.0
        # State shared by the threads; all of it under the condition's lock.
        self._changed = threading.Condition()
        self._ended: list[FinishedAttempt] = []
        self._wakeups = 0
        self._pauses = 0
        self._idle = True
        self._stopping = False

    # From other threads.

    def start(self) -> None:
        """Start the threads. Raises RuntimeError if threads of an earlier start still run."""
        if self._threads:
            raise RuntimeError("the dispatcher is already started")
        pauses = self._pauses
        self._reset()
        self._pauses, self._idle = pauses, False
        coordinator = threading.Thread(target=self._run, name="payments-webhooks", daemon=True)
        self._threads = [coordinator]
        self._senders.start()
        coordinator.start()

    def stop(self, timeout_s: float) -> bool:
        """Begin nothing more, commit what ends in time, end the threads. False if some did not."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        deadline = time.monotonic() + timeout_s
        for thread in (*self._threads, *self._senders.threads):
            thread.join(max(0.0, deadline - time.monotonic()))
        threads = (*self._threads, *self._senders.threads)
        self._threads = [thread for thread in threads if thread.is_alive()]
        return not self._threads

    def wake(self) -> None:
        """Look for work now."""
        with self._changed:
            self._wakeups += 1
            self._changed.notify_all()

    def pause(self, timeout_s: float) -> bool:
        """Begin nothing more, and wait for running attempts; False if they did not end in time."""
        with self._changed:
            self._pauses += 1
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._idle, timeout_s)

    def resume(self) -> None:
        """Undo one `pause`."""
        with self._changed:
            self._pauses -= 1
            self._wakeups += 1
            self._changed.notify_all()

    def _on_finished(self, ended: FinishedAttempt) -> None:
        with self._changed:
            self._ended.append(ended)
            self._changed.notify_all()

    # The coordinator.

    def _run(self) -> None:
        while not self._has_stopped():
            with self._changed:
                ended, self._ended = self._ended, []
                wakeups, halted = self._wakeups, bool(self._pauses or self._stopping)
                if not halted:
                    self._idle = False
            try:
                self._note_finished(ended)
                self._commit_finished()
                if halted:
                    self._release_waiting()
                    began = 0
                else:
                    began = self._fan_out() + self._claim_and_submit()
                wait_s = 0.0 if began or ended else self._compute_wait_s(halted)
                if self._senders.wake_enough():
                    wait_s = min(wait_s, WAKE_AFTER_S)
            except Exception as error:  # no storage: the thread must continue
                _log.error("cannot query the due deliveries: %s", describe_error(error))
                wait_s = POLL_S
            with self._changed:
                self._idle = halted and not (self._in_flight or self._ended or self._uncommitted)
                if self._idle:
                    self._changed.notify_all()
                if wait_s:
                    self._changed.wait_for(lambda: self._should_wake(wakeups, halted), wait_s)  # noqa: B023
        self._senders.shut_down()

    def _has_stopped(self) -> bool:
        return self._stopping and self._idle

    def _should_wake(self, wakeups: int, halted: bool) -> bool:
        turned = bool(self._pauses or self._stopping) != halted
        return bool(self._ended) or turned or self._wakeups != wakeups or self._has_stopped()

    def _compute_wait_s(self, halted: bool) -> float:
        """How long nothing will fall due."""
        if halted:
            return POLL_S
        due = [
            self._storage.next_due(it.full_name(self._mode))
            for it in (DELIVERY_QUEUE, FAN_OUT_QUEUE)
        ]
        ahead_ms = min(NEVER if at is None else at for at in due) - self._clock.now()
        # A due job that was not claimed waits for its lane: the end of an attempt will wake us.
        return min(POLL_S, ahead_ms / SECOND) if ahead_ms > 0 else POLL_S

    # Incoming work.

    def _fan_out(self) -> int:
        """Make the deliveries of the events that have happened."""
        self._refresh()
        limits = self._fan_out_limits
        claimed = self._jobs.claim(FAN_OUT_QUEUE, FAN_OUT_BATCH, limits.unknown, limits)
        for items in claimed.values():
            self._run_batch(FAN_OUT_QUEUE, items, self._fan_out_batch)
            self._jobs.drop(items)
        return len(claimed)

    def _fan_out_batch(self, items: Sequence[ClaimedJob]) -> None:
        with self._parking.telemetry.observe_job(FAN_OUT_QUEUE.name, FAN_OUT, len(items)):
            made = self._delivery.fan_out(items)
        self._fan_out_limits.record(items[0].job.lane, len(items), made)

    def _claim_and_submit(self) -> int:
        """Claim due deliveries that may be sent now, and hand them to the senders."""
        for lane in self._senders.find_lanes_in_flight_over(BLOCKED_AFTER_S):
            self._concurrency.mark_blocked(lane)
        for lane in self._senders.find_lanes_in_flight_over(SLOW_AFTER_S):
            self._concurrency.mark_slow(lane)
            self._move_to_waiting(self._senders.withdraw_unstarted(lane))
        self._resubmit_waiting()
        room = self._count + self._senders.blocked_count + PREFETCH_COUNT
        free = min(BATCH, room - self._in_flight - len(self._waiting))
        if free < max(1, min(BATCH, self._in_flight) // 4):  # few cost as much as many
            return 0
        claimed = self._jobs.claim(DELIVERY_QUEUE, free, 1, self._concurrency.limit_lanes())
        for items in claimed.values():
            self._run_batch(DELIVERY_QUEUE, self._jobs.keep(items), self._prepare_and_submit)
        return len(claimed)

    def _run_batch(
        self, queue: Queue, items: Sequence[ClaimedJob], run: Callable[[Sequence[ClaimedJob]], None]
    ) -> None:
        """Run jobs of a partition together; if that fails, each separately, so that one cannot fail
        the others."""
        try:
            if items:
                run(items)
        except Exception as error:
            if isinstance(error, StorageError | Unavailable):
                _log.warning("the webhooks of a partition are delayed: %s", describe_error(error))
                self._jobs.drop(items)
                self._parking.release_unstarted(items)
            elif len(items) > 1:
                for item in items:
                    self._run_batch(queue, [item], run)
            else:
                self._jobs.drop(items)
                self._parking.record_failure(queue, items[0], error)

    def _prepare_and_submit(self, items: Sequence[ClaimedJob]) -> None:
        """Hand out the deliveries of claimed jobs; jobs that send nothing are ended."""
        found = self._delivery.prepare(items)
        meant = {prepared.claimed.job.id for prepared in found}
        self._jobs.drop(item for item in items if item.job.id not in meant)
        self._submit_allowed(found)

    def _resubmit_waiting(self) -> None:
        """Hand out waiting deliveries that may begin now, freshly read."""
        waiting, self._waiting = self._waiting, []
        by_partition: dict[str, list[ClaimedJob]] = defaultdict(list)
        for prepared in waiting:
            if self._concurrency.may_start(prepared.target):
                claimed = self._jobs.newest(prepared.claimed)
                by_partition[claimed.partition].append(claimed)
            else:
                self._waiting.append(prepared)
        self._count_waiting()
        for items in by_partition.values():
            self._run_batch(DELIVERY_QUEUE, items, self._prepare_and_submit)

    def _submit_allowed(self, prepared_deliveries: Iterable[PreparedDelivery]) -> None:
        """Give the senders the deliveries that may start; a few wait for others to end."""
        given_back = []
        for prepared in prepared_deliveries:
            target = prepared.target
            if self._concurrency.may_start(target):
                self._concurrency.record_start(target)
                self._in_flight += 1
                self._senders.submit(prepared)
            elif self._concurrency.may_wait(target):
                self._concurrency.record_waiting(target)
                self._waiting.append(prepared)
            else:
                self._concurrency.remember(target)
                given_back.append(prepared)
        self._release_all(given_back)

    def _count_waiting(self) -> None:
        self._concurrency.reset_waiting(it.target for it in self._waiting)

    def _move_to_waiting(self, prepared_deliveries: Sequence[PreparedDelivery]) -> None:
        """Take back deliveries that were handed out and have not begun: they wait again."""
        for prepared in prepared_deliveries:
            self._concurrency.record_end(prepared.claimed.job.lane, None)
        self._in_flight -= len(prepared_deliveries)
        self._waiting += prepared_deliveries

    def _release_waiting(self) -> None:
        """Release jobs that have not begun."""
        self._move_to_waiting(self._senders.withdraw_unstarted())
        self._release_all(self._waiting)
        self._waiting = []
        self._count_waiting()

    def _release_all(self, prepared_deliveries: Iterable[PreparedDelivery]) -> None:
        given_back = self._jobs.drop(it.claimed for it in prepared_deliveries)
        self._parking.release_unstarted(given_back)

    # Finished attempts.

    def _note_finished(self, ended: Sequence[FinishedAttempt]) -> None:
        """Free the senders of these; stale deliveries are read again."""
        for item in ended:
            self._concurrency.record_end(item.prepared.claimed.job.lane, item.duration_s)
        self._in_flight -= len(ended)
        self._uncommitted += [item for item in ended if not item.stale]
        self._waiting += [item.prepared for item in ended if item.stale]

    def _commit_finished(self) -> None:
        """Commit the outcomes of attempts, or a little later if the storage cannot be reached."""
        if not self._uncommitted or time.monotonic() < self._commit_at:
            return
        by_partition: dict[str, list[FinishedAttempt]] = defaultdict(list)
        for item in self._uncommitted:
            by_partition[item.prepared.claimed.partition].append(item)
        self._uncommitted = []
        for items in by_partition.values():
            self._commit_partition(items)

    def _commit_partition(self, items: Sequence[FinishedAttempt]) -> None:
        try:
            self._commit_results(items)
        except Exception as error:
            if isinstance(error, StorageError | Unavailable):
                _log.warning("cannot commit delivery results yet: %s", describe_error(error))
                self._uncommitted += items
                self._commit_at = time.monotonic() + POLL_S
                return
            if len(items) > 1:
                for item in items:
                    self._commit_partition([item])
                return
            self._record_failure(items[0], error)
        self._jobs.drop(item.prepared.claimed for item in items)

    def _record_failure(self, item: FinishedAttempt, error: Exception) -> None:
        claimed = self._jobs.newest(item.prepared.claimed)
        self._parking.record_failure(DELIVERY_QUEUE, claimed, error)

    def _commit_results(self, items: Sequence[FinishedAttempt]) -> None:
        made: list[tuple[ClaimedJob, PreparedDelivery, AttemptResult]] = []
        for item in items:
            if isinstance(item.result, Exception):
                self._record_failure(item, item.result)
            elif item.result is not None:  # otherwise its lease ends, and it is due again
                newest = self._jobs.newest(item.prepared.claimed)
                made.append((newest, item.prepared, item.result))
        self._delivery.record_attempts(made)
