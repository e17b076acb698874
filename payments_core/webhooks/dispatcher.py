"""Sending deliveries in bulk: one thread claims and commits, many send.

The conductor claims a batch of due deliveries, reads what they send, hands them to the senders,
and commits together what came of those that ended; no sender touches the storage. So a commit
serves many deliveries, and an endpoint that hangs holds a sender and nobody else. How many an
endpoint may have under way, `Lanes` says.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

import attrs

from payments_core.clock import SECOND, Clock
from payments_core.decision import Decision, Scope
from payments_core.errors import Unavailable
from payments_core.identifiers import Draw
from payments_core.jobs.parking import Parking, Queue, described
from payments_core.jobs.record import FOREVER
from payments_core.ledger import Ledger
from payments_core.storage.bulk import get_many, lock_many
from payments_core.storage.port import (
    NO_LANES,
    Claimed,
    Storage,
    StorageError,
    Transaction,
)
from payments_core.webhooks.attempting import Attempts, Sending
from payments_core.webhooks.delivery import FAN_OUTS, WEBHOOKS, WebhookDelivery
from payments_core.webhooks.lanes import SLOW_S, Lanes
from payments_core.webhooks.lifecycle import Attempt
from payments_core.webhooks.record import Delivery, Endpoint

SENDERS = 64
AHEAD = 128
"""So many more are claimed than can be sent at once, so that no sender waits for the storage."""

BATCH = 128

_log = logging.getLogger(__name__)


@attrs.frozen
class _Ended:
    """An attempt that was made, or the fault of ours that kept it from being made."""

    sending: Sending
    attempt: Attempt | Exception
    took_s: float


class Dispatcher:
    """Sends one mode's deliveries in threads of its own; the worker starts and stops it."""

    def __init__(
        self,
        storage: Storage,
        ledger: Ledger,
        clock: Clock,
        attempts: Attempts,
        delivery: WebhookDelivery,
        parking: Parking,
        mode: str,
        *,
        senders: int = SENDERS,
        poll_s: float = 0.5,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        self._storage = storage
        self._ledger = ledger
        self._clock = clock
        self._attempts = attempts
        self._delivery = delivery
        self._parking = parking
        self._mode = mode
        self._senders = senders
        self._poll_s = poll_s
        self._refresh = refresh
        self._threads: list[threading.Thread] = []
        self._to_send: SimpleQueue[Sending | None] = SimpleQueue()
        self._began: dict[str, tuple[Sending, float]] = {}
        # The conductor's own.
        self._lanes = Lanes(senders)
        self._waiting: list[Sending] = []
        self._under_way = 0
        self._unsettled: list[_Ended] = []
        # What the threads share; all of it under the condition's lock.
        self._changed = threading.Condition()
        self._ended: list[_Ended] = []
        self._nudges = 0
        self._pauses = 0
        self._quiet = True
        self._stopping = False

    # From other threads.

    def start(self) -> None:
        """Start the threads."""
        self._stopping = False
        self._threads = [threading.Thread(target=self._conduct, name="payments-webhooks")]
        self._threads += [
            threading.Thread(target=self._send, name=f"payments-webhook-sender-{n}")
            for n in range(self._senders)
        ]
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Begin nothing more, commit what ends in time, end the threads. False if some did not."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        return not self._threads

    def wake(self) -> None:
        """Look for work now."""
        with self._changed:
            self._nudges += 1
            self._changed.notify_all()

    def pause(self, timeout_s: float) -> bool:
        """Begin nothing more, and wait for what is under way; False if that did not end in time."""
        with self._changed:
            self._pauses += 1
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._quiet, timeout_s)

    def resume(self) -> None:
        """Take back one `pause`."""
        with self._changed:
            self._pauses -= 1
            self._nudges += 1
            self._changed.notify_all()

    # The conductor.

    def _conduct(self) -> None:
        while True:
            with self._changed:
                ended, self._ended = self._ended, []
                nudges, halted = self._nudges, bool(self._pauses or self._stopping)
            self._note(ended)
            try:
                self._settle()
                if halted:
                    self._let_go()
                began = 0 if halted else self._fan_out() + self._begin()
            except Exception as error:  # storage is out of reach: the thread must outlive that
                _log.error("webhooks could not be dispatched: %s", described(error))
                time.sleep(self._poll_s)
                continue
            with self._changed:
                self._quiet = halted and not (self._under_way or self._ended)
                if self._quiet:
                    self._changed.notify_all()
                    if self._stopping:
                        break
            if not began and not ended:
                self._sleep(nudges, halted)
        for _ in range(self._senders):
            self._to_send.put(None)

    def _fan_out(self) -> int:
        """Make the deliveries of the events that have happened."""
        self._refresh()
        claimed = self._claimed(FAN_OUTS, BATCH, BATCH, NO_LANES)
        for partition, items in claimed.items():
            try:
                self._delivery.fan_out_all(partition, items)
            except (StorageError, Unavailable):
                raise
            except Exception as error:
                for item in items:
                    self._parking.failed(FAN_OUTS, item, error)
        return len(claimed)

    def _begin(self) -> int:
        """Claim what is due and may be sent now, and hand it to the senders."""
        overdue = time.monotonic() - SLOW_S
        for sending, began in tuple(self._began.values()):
            if began < overdue:
                self._lanes.lags(sending.claimed.job.lane)
        self._hand_out([])
        free = min(BATCH, self._senders + AHEAD - self._under_way)
        if free < min(BATCH, self._under_way) // 4:  # a claim costs the same for few and for many
            return 0
        slots = self._lanes.slots_of_new(len(self._waiting))
        claimed = self._claimed(WEBHOOKS, free, slots, self._lanes)
        for partition, items in claimed.items():
            self._hand_out(self._looked_at(partition, items))
        return len(claimed)

    def _claimed(
        self, queue: Queue, limit: int, slots: int, of_lane: Mapping[str, int]
    ) -> Mapping[str, Sequence[Claimed]]:
        """Jobs of the queue that may be run, by their partition."""
        claimed = self._storage.claim(
            queue.full_name(self._mode),
            self._clock.now(),
            lease_ms=queue.lease_ms,
            limit=limit,
            slots=slots,
            of_lane=of_lane,
        )
        by_partition: dict[str, list[Claimed]] = defaultdict(list)
        for item in claimed:
            if self._parking.admits(queue, item):
                by_partition[item.partition].append(item)
        return by_partition

    def _looked_at(self, partition: str, items: Sequence[Claimed]) -> list[Sending]:
        """What the claimed jobs are to send; those that have nothing to send are ended."""
        found = self._storage.read(partition, lambda snapshot: self._attempts.look(snapshot, items))
        meant = {sending.claimed.job.id for sending in found}
        over = [item for item in items if item.job.id not in meant]
        if over:
            self._ledger.finish_all(
                Scope.of(over[0]),
                over,
                lambda tx, draw, ours: {item.job.id: Decision(None) for item in ours},
            )
        return found

    def _hand_out(self, sendings: Sequence[Sending]) -> None:
        """Give the senders what may begin; the rest waits for others of its kind to end."""
        waiting, self._waiting = [*self._waiting, *sendings], []
        for sending in waiting:
            job = sending.claimed.job
            if not self._lanes.may_begin(job.lane):
                self._waiting.append(sending)
                continue
            self._lanes.began(job.lane)
            self._under_way += 1
            self._to_send.put(sending)

    def _let_go(self) -> None:
        """What has not begun is given up: it is due again when its lease ends."""
        for sending in self._waiting:
            self._parking.put_back(sending.claimed)
        self._waiting = []

    def _note(self, ended: Sequence[_Ended]) -> None:
        """The senders of these are free again."""
        for item in ended:
            self._lanes.ended(item.sending.claimed.job.lane, item.took_s)
        self._under_way -= len(ended)
        self._unsettled += ended

    def _settle(self) -> None:
        """Commit what came of attempts, partition by partition.

        Raises where the storage is out of reach; what is not committed is kept for the next time.
        """
        by_partition: dict[str, list[_Ended]] = defaultdict(list)
        for item in self._unsettled:
            by_partition[item.sending.claimed.partition].append(item)
        try:
            for partition in tuple(by_partition):
                self._settle_partition(partition, by_partition[partition])
                del by_partition[partition]
        finally:
            self._unsettled = [item for items in by_partition.values() for item in items]

    def _settle_partition(self, partition: str, items: Sequence[_Ended]) -> None:
        made = []
        for item in items:
            if isinstance(item.attempt, Exception):
                self._parking.failed(WEBHOOKS, item.sending.claimed, item.attempt)
            else:
                made.append((item.sending, item.attempt))
        if not made:
            return
        after = self._storage.read(
            partition,
            lambda snapshot: get_many(
                snapshot, Endpoint, {sending.endpoint.id for sending, _ in made}
            ),
        )
        try:
            self._commit(made, after)
        except (StorageError, Unavailable):
            raise
        except Exception as error:  # a fault of one; the others must not suffer for it
            _log.warning("deliveries are committed one by one: %s", described(error))
            for one in made:
                try:
                    self._commit([one], after)
                except Exception as its_own:
                    self._parking.failed(WEBHOOKS, one[0].claimed, its_own)

    def _commit(
        self, made: Sequence[tuple[Sending, Attempt]], after: Mapping[str, Endpoint]
    ) -> None:
        by_job = {sending.claimed.job.id: (sending, attempt) for sending, attempt in made}
        claimed = [sending.claimed for sending, _ in made]

        def decide(
            tx: Transaction, draw: Draw, ours: Sequence[Claimed]
        ) -> dict[str, Decision[Any]]:
            current = lock_many(tx, Delivery, [item.job.subject for item in ours])
            decisions = {}
            for item in ours:
                sending, attempt = by_job[item.job.id]
                decisions[item.job.id] = self._attempts.conclude(
                    current.get(item.job.subject),
                    sending,
                    attempt,
                    after.get(sending.endpoint.id),
                )
            return decisions

        self._ledger.finish_all(Scope.of(claimed[0]), claimed, decide)

    def _sleep(self, nudges: int, halted: bool) -> None:
        """Wait until something ends or falls due, or for a nudge later than `nudges`."""
        wait_s = self._poll_s
        if not halted:
            due = [self._storage.next_due(it.full_name(self._mode)) for it in (WEBHOOKS, FAN_OUTS)]
            ahead_ms = min(at or FOREVER for at in due) - self._clock.now()
            # What is due and was not claimed waits for its lane: an end will tell.
            wait_s = min(wait_s, ahead_ms / SECOND) if ahead_ms > 0 else wait_s

        def is_time() -> bool:
            moved = self._stopping or bool(self._pauses) != halted or self._nudges != nudges
            return bool(self._ended) or moved

        with self._changed:
            self._changed.wait_for(is_time, wait_s)

    # A sender.

    def _send(self) -> None:
        while (sending := self._to_send.get()) is not None:
            attempt: Attempt | Exception
            job_id, began = sending.claimed.job.id, time.monotonic()
            self._began[job_id] = (sending, began)
            try:
                attempt = self._attempts.send(sending)
            except Exception as error:  # a fault of ours, which the endpoint must not pay for
                attempt = error
            del self._began[job_id]
            ended = _Ended(sending, attempt, time.monotonic() - began)
            with self._changed:
                self._ended.append(ended)
                self._changed.notify_all()
