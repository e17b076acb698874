"""Sending deliveries in bulk: one thread claims and commits, many send.

The conductor claims a batch of due deliveries, reads what they send, hands them to the senders,
and commits together what came of those that ended; no sender touches the storage. So a commit
serves many deliveries, and an endpoint that hangs holds a sender and nobody else. How many an
endpoint may have under way, `Lanes` says. What goes wrong for one environment, or with one
record, stays there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from payments_core.clock import SECOND
from payments_core.engine.decision import FAN_OUT, Decision, Scope
from payments_core.engine.identifiers import Draw
from payments_core.engine.jobs.parking import Parking, Queue, described
from payments_core.engine.ports import Ports
from payments_core.errors import Unavailable
from payments_core.storage.bulk import get_many, lock_many
from payments_core.storage.jobs import FOREVER
from payments_core.storage.port import NO_LANES, Claimed, StorageError, Transaction
from payments_core.webhooks.attempting import Attempts, Sending
from payments_core.webhooks.delivery import FAN_OUTS, WEBHOOKS, WebhookDelivery
from payments_core.webhooks.lanes import SLOW_S, Lanes
from payments_core.webhooks.lifecycle import Attempt
from payments_core.webhooks.record import Delivery, Endpoint
from payments_core.webhooks.senders import HELD_S, PATIENCE_S, Ended, Senders

SENDERS = 64
AHEAD = 64
"""So many more are claimed than can be sent at once, so that no sender waits for the storage."""

POLL_S = 0.5
"""The longest that work which another process committed waits to be seen."""

BATCH = 128
FAN_OUT_BATCH = 32

_log = logging.getLogger(__name__)


class Dispatcher:
    """Sends one mode's deliveries in threads of its own; the worker starts and stops it."""

    def __init__(
        self,
        ports: Ports,
        attempts: Attempts,
        delivery: WebhookDelivery,
        parking: Parking,
        mode: str,
        *,
        senders: int = SENDERS,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        self._storage = ports.storage
        self._ledger = ports.committer
        self._clock = ports.clock
        self._attempts = attempts
        self._delivery = delivery
        self._parking = parking
        self._mode = mode
        self._count = senders
        self._refresh = refresh
        self._threads: list[threading.Thread] = []
        self._reset()

    def _reset(self) -> None:
        # The conductor's own. `_claims` has the newest claim of each job that is here: a lease
        # that ends meanwhile may be claimed again by this very process.
        self._senders = Senders(self._attempts, self._count, self._told, name="payments-webhook")
        self._lanes = Lanes(self._count)
        self._claims: dict[str, Claimed] = {}
        self._waiting: list[Sending] = []
        self._under_way = 0
        self._unsettled: list[Ended] = []
        self._settle_at = 0.0
        # What the threads share; all of it under the condition's lock.
        self._changed = threading.Condition()
        self._ended: list[Ended] = []
        self._nudges = 0
        self._pauses = 0
        self._quiet = True
        self._stopping = False

    # From other threads.

    def start(self) -> None:
        """Start the threads. Raises RuntimeError where some of an earlier start still run."""
        if self._threads:
            raise RuntimeError("the dispatcher has been started")
        pauses = self._pauses
        self._reset()
        self._pauses, self._quiet = pauses, False
        conductor = threading.Thread(target=self._conduct, name="payments-webhooks", daemon=True)
        self._threads = [conductor]
        self._senders.start()
        conductor.start()

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

    def _told(self, ended: Ended) -> None:
        with self._changed:
            self._ended.append(ended)
            self._changed.notify_all()

    # The conductor.

    def _conduct(self) -> None:
        while not self._is_over():
            with self._changed:
                ended, self._ended = self._ended, []
                nudges, halted = self._nudges, bool(self._pauses or self._stopping)
                if not halted:
                    self._quiet = False
            try:
                self._note(ended)
                self._settle()
                if halted:
                    self._let_go()
                    began = 0
                else:
                    began = self._fan_out() + self._begin()
                wait_s = 0.0 if began or ended else self._wait_s(halted)
                if self._senders.rouse():
                    wait_s = min(wait_s, PATIENCE_S)
            except Exception as error:  # storage is out of reach: the thread must outlive that
                _log.error("webhooks could not be dispatched: %s", described(error))
                wait_s = POLL_S
            with self._changed:
                self._quiet = halted and not (self._under_way or self._ended or self._unsettled)
                if self._quiet:
                    self._changed.notify_all()
                if wait_s:
                    self._changed.wait_for(lambda: self._is_time(nudges, halted), wait_s)  # noqa: B023
        self._senders.end()

    def _is_over(self) -> bool:
        return self._stopping and self._quiet

    def _is_time(self, nudges: int, halted: bool) -> bool:
        turned = bool(self._pauses or self._stopping) != halted
        return bool(self._ended) or turned or self._nudges != nudges or self._is_over()

    def _wait_s(self, halted: bool) -> float:
        """How long nothing will fall due."""
        if halted:
            return POLL_S
        due = [self._storage.next_due(it.full_name(self._mode)) for it in (WEBHOOKS, FAN_OUTS)]
        ahead_ms = min(FOREVER if at is None else at for at in due) - self._clock.now()
        # What is due and was not claimed waits for its lane: an end will tell.
        return min(POLL_S, ahead_ms / SECOND) if ahead_ms > 0 else POLL_S

    # What comes.

    def _fan_out(self) -> int:
        """Make the deliveries of the events that have happened."""
        self._refresh()
        claimed = self._claimed(FAN_OUTS, FAN_OUT_BATCH, FAN_OUT_BATCH, NO_LANES)
        for partition, items in claimed.items():
            self._each(FAN_OUTS, items, lambda some, of=partition: self._made(of, some))  # type: ignore[misc]
        return len(claimed)

    def _made(self, partition: str, items: Sequence[Claimed]) -> None:
        with self._parking.telemetry.job(FAN_OUTS.name, FAN_OUT, len(items)):
            self._delivery.fan_out_all(partition, items)

    def _begin(self) -> int:
        """Claim what is due and may be sent now, and hand it to the senders."""
        for lane in self._senders.lagging(HELD_S):
            self._lanes.is_held(lane)
        for lane in self._senders.lagging(SLOW_S):
            self._lanes.lags(lane)
            self._wait(self._senders.take_back(lane))
        self._look_again()
        room = self._count + self._senders.held_up + AHEAD
        free = min(BATCH, room - self._under_way - len(self._waiting))
        if free < max(1, min(BATCH, self._under_way) // 4):  # few cost as much as many
            return 0
        claimed = self._claimed(WEBHOOKS, free, self._lanes.slots_of_new, self._lanes)
        for items in claimed.values():
            fresh = [item for item in items if item.job.id not in self._claims]
            self._claims.update((item.job.id, item) for item in items)
            self._each(WEBHOOKS, fresh, self._look_at)
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

    def _each(
        self, queue: Queue, items: Sequence[Claimed], run: Callable[[Sequence[Claimed]], None]
    ) -> None:
        """Run jobs of a partition together; if that fails, each by itself, for the others' sake."""
        try:
            if items:
                run(items)
        except Exception as error:
            if isinstance(error, StorageError | Unavailable):
                _log.warning("webhooks of a partition wait: %s", described(error))
                for item in items:
                    self._claims.pop(item.job.id, None)
                    self._parking.put_back(item)
            elif len(items) > 1:
                for item in items:
                    self._each(queue, [item], run)
            else:
                self._claims.pop(items[0].job.id, None)
                self._parking.failed(queue, items[0], error)

    def _look_at(self, items: Sequence[Claimed]) -> None:
        """Hand out what the claimed jobs are to send; those that send nothing are ended."""
        partition = items[0].partition
        found = self._storage.read(partition, lambda snapshot: self._attempts.look(snapshot, items))
        meant = {sending.claimed.job.id for sending in found}
        over = [item for item in items if item.job.id not in meant]
        if over:
            nothing: Decision[None] = Decision(None)
            self._ledger.finish_all(
                Scope.of(over[0]), over, lambda tx, draw, ours: {it.job.id: nothing for it in ours}
            )
        for item in over:
            self._claims.pop(item.job.id, None)
        self._hand_out(found)

    def _look_again(self) -> None:
        """Hand out what waited and may begin, as it is by now."""
        waiting, self._waiting = self._waiting, []
        by_partition: dict[str, list[Claimed]] = defaultdict(list)
        for sending in waiting:
            if self._lanes.may_begin(sending.claimed.job.lane):
                claimed = self._claims.get(sending.claimed.job.id, sending.claimed)
                by_partition[claimed.partition].append(claimed)
            else:
                self._waiting.append(sending)
        self._count_waiting()
        for items in by_partition.values():
            self._each(WEBHOOKS, items, self._look_at)

    def _hand_out(self, sendings: Iterable[Sending]) -> None:
        """Give the senders what may begin; the rest waits for others of its kind to end."""
        for sending in sendings:
            lane = sending.claimed.job.lane
            if self._lanes.may_begin(lane):
                self._lanes.began(lane)
                self._under_way += 1
                self._senders.hand(sending)
            elif len(self._waiting) < self._lanes.most_waiting:
                self._waiting.append(sending)
            else:
                self._give_back(sending)
        self._count_waiting()

    def _count_waiting(self) -> None:
        paces = (self._lanes.pace(sending.claimed.job.lane) for sending in self._waiting)
        self._lanes.waiting = Counter(paces)

    def _wait(self, sendings: Sequence[Sending]) -> None:
        """What was handed out and has not begun waits after all."""
        for sending in sendings:
            self._lanes.ended(sending.claimed.job.lane, None)
        self._under_way -= len(sendings)
        self._waiting += sendings

    def _let_go(self) -> None:
        """Give back what has not begun."""
        self._wait(self._senders.take_back())
        for sending in self._waiting:
            self._give_back(sending)
        self._waiting = []
        self._count_waiting()

    def _give_back(self, sending: Sending) -> None:
        self._parking.put_back(self._claims.pop(sending.claimed.job.id, sending.claimed))

    # What ends.

    def _note(self, ended: Sequence[Ended]) -> None:
        """The senders of these are free again; what grew stale is looked at again."""
        for item in ended:
            self._lanes.ended(item.sending.claimed.job.lane, item.took_s)
        self._under_way -= len(ended)
        self._unsettled += [item for item in ended if not item.stale]
        self._waiting += [item.sending for item in ended if item.stale]

    def _settle(self) -> None:
        """Commit what came of attempts; where the storage is out of reach, a little later."""
        if not self._unsettled or time.monotonic() < self._settle_at:
            return
        by_partition: dict[str, list[Ended]] = defaultdict(list)
        for item in self._unsettled:
            by_partition[item.sending.claimed.partition].append(item)
        self._unsettled = []
        for items in by_partition.values():
            self._settle_all(items)

    def _settle_all(self, items: Sequence[Ended]) -> None:
        try:
            self._commit(items)
        except Exception as error:
            if isinstance(error, StorageError | Unavailable):
                _log.warning("deliveries wait to be committed: %s", described(error))
                self._unsettled += items
                self._settle_at = time.monotonic() + POLL_S
                return
            if len(items) > 1:
                for item in items:
                    self._settle_all([item])
                return
            self._fail(items[0], error)
        for item in items:
            self._claims.pop(item.sending.claimed.job.id, None)

    def _fail(self, item: Ended, error: Exception) -> None:
        claimed = self._claims.get(item.sending.claimed.job.id, item.sending.claimed)
        self._parking.failed(WEBHOOKS, claimed, error)

    def _commit(self, items: Sequence[Ended]) -> None:
        made: dict[str, tuple[Sending, Attempt]] = {}
        for item in items:
            if isinstance(item.attempt, Exception):
                self._fail(item, item.attempt)
            elif item.attempt is not None:  # else its lease ends, and it is due again
                made[item.sending.claimed.job.id] = (item.sending, item.attempt)
        if not made:
            return
        claimed = [self._claims.get(id, sending.claimed) for id, (sending, _) in made.items()]
        ids = {sending.endpoint.id for sending, _ in made.values()}
        after = self._storage.read(
            claimed[0].partition, lambda snapshot: get_many(snapshot, Endpoint, ids)
        )

        def decide(
            tx: Transaction, draw: Draw, ours: Sequence[Claimed]
        ) -> dict[str, Decision[Any]]:
            current = lock_many(tx, Delivery, [item.job.subject for item in ours])
            decisions = {}
            for item in ours:
                sending, attempt = made[item.job.id]
                decisions[item.job.id] = self._attempts.conclude(
                    current.get(item.job.subject),
                    sending,
                    attempt,
                    after.get(sending.endpoint.id),
                )
            return decisions

        self._ledger.finish_all(Scope.of(claimed[0]), claimed, decide)
