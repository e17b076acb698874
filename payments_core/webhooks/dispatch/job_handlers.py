"""The jobs of webhooks: fan an event out, attempt a delivery, abandon deliveries that are no longer
needed.

Each does its I/O outside any transaction and commits the result with the job's own end.
A crash in between makes the job due again: ids that are fixed beforehand make a second fan-out
repeat nothing, and a second attempt repeats the same delivery id, event id and body.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from payments_core.clock import SECOND, Instant
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.events import FAILING, Event
from payments_core.engine.fan_out import EVENTS, FAN_OUT, fanned_out_events
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.jobs.batches import MAX_BATCH
from payments_core.engine.jobs.execution import BatchHandler, Handler
from payments_core.engine.jobs.parking import Queue
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.storage.jobs import Job
from payments_core.storage.port import ClaimedJob, Position, Transaction
from payments_core.storage.records import R
from payments_core.tenants.record import Environment
from payments_core.webhooks.delivered import KEPT_MS, lock_delivered
from payments_core.webhooks.dispatch.attempt import AttemptRunner, PreparedDelivery
from payments_core.webhooks.dispatch.fan_out_limits import MAX_DELIVERIES_PER_COMMIT
from payments_core.webhooks.dispatch.newest_answers import NewestAnswers
from payments_core.webhooks.envelopes import EventBodies
from payments_core.webhooks.feed import decide_append
from payments_core.webhooks.health import (
    decide_report,
    find_health_change,
    may_receive,
    only_refuses,
)
from payments_core.webhooks.lifecycle import (
    ABANDON,
    DELIVER,
    DELIVERY_QUEUE_NAME,
    OPEN_STATUSES,
    TASK_QUEUE_NAME,
    AttemptResult,
    attempt_job,
    decide_abandon,
    new_delivery,
)
from payments_core.webhooks.record import Delivery, Endpoint, delivery_id

PAGE_SIZE = 50

DELIVERY_QUEUE = Queue(
    DELIVERY_QUEUE_NAME, lane_concurrency=MAX_BATCH, failure_blocks_lane=False, threads=0
)
"""The deliveries. The run limit is far longer than an attempt; a parked one blocks no other."""

FAN_OUT_QUEUE = Queue(EVENTS, lane_concurrency=MAX_BATCH, failure_blocks_lane=False, threads=0)
"""The events whose deliveries are to be made. The dispatcher serves this and the deliveries."""

TASK_QUEUE = Queue(TASK_QUEUE_NAME, failure_blocks_lane=False, threads=2)
"""Jobs requested by partners: they wait for no endpoint."""

EventEndpoint = tuple[Event, Endpoint]
ATTEMPT_RECHECK_MS = 15 * SECOND
"""After this time an attempt in progress has ended."""

LATE_FAN_OUT_MS = KEPT_MS // 2
"""An event whose deliveries are made later may have some that were delivered and deleted."""


class WebhookJobHandlers:
    """The handlers, over their ports."""

    def __init__(self, ports: Ports, attempts: AttemptRunner, mode: str) -> None:
        self._committer = ports.committer
        self._storage = ports.storage
        self._clock = ports.clock
        self._versions = ports.versions
        self._attempts = attempts
        self._answers = NewestAnswers()
        self._mode = mode

    def handlers(self) -> Mapping[str, Handler]:
        """The handler of each kind of job."""
        return {ABANDON: self.abandon}

    def batch_handlers(self) -> Mapping[str, BatchHandler]:
        """The batch handler of each kind of job."""
        return {FAN_OUT: self.fan_out, DELIVER: self.deliver}

    # An event to its endpoints.

    def fan_out(self, claimed: Sequence[ClaimedJob]) -> int:
        """One delivery, and the job to attempt it, for each event and each active endpoint that
        subscribed to it; returns how many. The jobs are of one environment, and each of the events
        of one commit."""
        made, partition = 0, claimed[0].partition
        authority = WorkerAuthority(partition, self._mode)
        events, environment = self._storage.read_apart(
            partition,
            lambda snapshot: (
                snapshot.get_many(
                    Event, {id for item in claimed for id in fanned_out_events(item.job)}
                ),
                snapshot.get(Environment, partition),
            ),
        )
        bodies = EventBodies(self._versions, partition)
        pairs: list[EventEndpoint] = []
        off = environment is not None and "webhooks" not in environment.products
        if not off:  # a disabled product makes no deliveries; the events stay
            for endpoints, _ in self._iterate_pages(partition, Endpoint, "by_status", "active"):
                pairs += [
                    (event, endpoint)
                    for event in events.values()
                    for endpoint in endpoints
                    if endpoint.subscribes(event.name)
                    and may_receive(event, endpoint)
                    and bodies.satisfies(event, endpoint.filters)
                ]
                while len(pairs) > MAX_DELIVERIES_PER_COMMIT:
                    now, pairs = (
                        pairs[:MAX_DELIVERIES_PER_COMMIT],
                        pairs[MAX_DELIVERIES_PER_COMMIT:],
                    )
                    self._committer.commit(authority, partial(self._create_deliveries, now, bodies))
                    made += len(now)
        self._committer.finish_all(
            authority,
            claimed,
            partial(self._create_deliveries_and_finish, pairs, bodies, events),
        )
        return made + len(pairs)

    def _create_deliveries(
        self,
        pairs: Sequence[EventEndpoint],
        bodies: EventBodies,
        tx: Transaction,
        id_sequence: IdSequence,
    ) -> Decision[None]:
        now = self._clock.now()
        pairs = sorted(pairs, key=lambda pair: delivery_id(pair[0].id, pair[1].id))
        ids = [delivery_id(event.id, endpoint.id) for event, endpoint in pairs]
        known = {
            *tx.get_many(Delivery, ids, for_update=True),
            *_lock_delivered_before(tx, pairs, now),
        }
        new = [
            new_delivery(event, endpoint, bodies.encode(event, endpoint.body_format), now=now)
            for id, (event, endpoint) in zip(ids, pairs, strict=True)
            if id not in known
        ]
        jobs = [attempt_job(delivery, self._mode, now=now) for delivery in new]
        return Decision(None, inserts=(*new, *jobs))

    def _create_deliveries_and_finish(
        self,
        pairs: Sequence[EventEndpoint],
        bodies: EventBodies,
        events: Mapping[str, Event],
        tx: Transaction,
        id_sequence: IdSequence,
        ours: Sequence[ClaimedJob],
    ) -> dict[str, Decision[None]]:
        """Create deliveries, put the events of the jobs into the feed, and end the jobs; nothing if
        other workers have taken all of them.

        An event is in one job, which ends once: so it has one place in the feed.
        """
        ends: dict[str, Decision[None]] = {item.job.id: Decision(None) for item in ours}
        if ours:
            deliveries = self._create_deliveries(pairs, bodies, tx, id_sequence)
            ids = [id for item in ours for id in fanned_out_events(item.job)]
            places = decide_append(tx, id_sequence, [events[id] for id in ids if id in events])
            ends[ours[0].job.id] = deliveries.merge(places)
        return ends

    # A delivery to its endpoint.

    def deliver(self, claimed: Sequence[ClaimedJob]) -> None:
        """Attempt each delivery once, unless it has ended or is no longer needed; one after the
        other. They are of one environment."""
        made: list[tuple[ClaimedJob, PreparedDelivery, AttemptResult]] = []
        try:
            for prepared in self.prepare(claimed):
                attempt = self._attempts.send(prepared)
                if attempt is not None:  # else the clock was moved: due again when its lease ends
                    made.append((prepared.claimed, prepared, attempt))
        except Exception:  # our own error: sent deliveries are still recorded
            self.record_attempts(made)
            raise
        self.record_attempts(made)

    def prepare(self, claimed: Sequence[ClaimedJob]) -> list[PreparedDelivery]:
        """The deliveries of an environment's claimed jobs; jobs that send nothing are ended."""
        found = self._storage.read(
            claimed[0].partition, lambda snapshot: self._attempts.prepare(snapshot, claimed)
        )
        meant = {prepared.claimed.job.id for prepared in found}
        over = [item for item in claimed if item.job.id not in meant]
        if over:
            nothing: Decision[None] = Decision(None)
            self._committer.finish_all(
                WorkerAuthority.of(over[0]),
                over,
                lambda tx, id_sequence, ours: {it.job.id: nothing for it in ours},
            )
        return found

    def record_attempts(
        self, made: Sequence[tuple[ClaimedJob, PreparedDelivery, AttemptResult]]
    ) -> None:
        """Commit the outcomes of an environment's attempts, with the ends of their jobs."""
        if not made:
            return
        outdated = self._note_answers(made)
        by_job = {
            item.job.id: (
                prepared,
                evolve(attempt, body=None) if prepared.delivery.id in outdated else attempt,
            )
            for item, prepared, attempt in made
        }
        ids = {prepared.endpoint.id for _, prepared, _ in made}
        claimed = [item for item, _, _ in made]
        partition = claimed[0].partition
        after = self._storage.read_apart(
            partition, lambda snapshot: snapshot.get_many(Endpoint, ids)
        )

        def decide(
            tx: Transaction, id_sequence: IdSequence, ours: Sequence[ClaimedJob]
        ) -> dict[str, Decision[Any]]:
            subjects = {item.job.subject for item in ours}
            current = tx.get_many(
                Delivery, list(subjects | (outdated if ours else set())), for_update=True
            )
            decisions: dict[str, Decision[Any]] = {}
            attempted: dict[str, dict[str, Delivery]] = {}  # by endpoint, and by job
            for item in ours:
                prepared, attempt = by_job[item.job.id]
                decisions[item.job.id] = self._attempts.decide_outcome(
                    current.get(item.job.subject),
                    prepared,
                    attempt,
                    after.get(prepared.endpoint.id),
                )
                delivery = decisions[item.job.id].result
                if delivery is not None and prepared.abandon_reason is None:
                    attempted.setdefault(prepared.endpoint.id, {})[item.job.id] = delivery
            for id, by_job_id in attempted.items():
                report = self._report_health(tx, partition, after.get(id), by_job_id.values())
                if report is not None:
                    first = next(iter(by_job_id))
                    decisions[first] = decisions[first].merge(report)
            cleared = [
                evolve(delivery, response_body=None, failed_attempts=())
                for id, delivery in current.items()
                if id not in subjects and delivery.status not in OPEN_STATUSES
            ]
            if cleared:
                first = ours[0].job.id
                decisions[first] = decisions[first].merge(Decision(None, replaces=tuple(cleared)))
            return decisions

        self._committer.finish_all(WorkerAuthority.of(claimed[0]), claimed, decide)

    def _note_answers(
        self, made: Sequence[tuple[ClaimedJob, PreparedDelivery, AttemptResult]]
    ) -> set[str]:
        """The deliveries whose answers give way to these, perhaps some of these themselves."""
        pushed = (
            self._answers.push(prepared.endpoint.id, prepared.delivery.id, attempt.body)
            for _, prepared, attempt in made
        )
        return {id for id in pushed if id is not None}

    def _report_health(
        self,
        tx: Transaction,
        partition: str,
        seen: Endpoint | None,
        attempted: Collection[Delivery],
    ) -> Decision[None] | None:
        """The health events of attempts at an endpoint; it is locked only if there are any."""
        now = self._clock.now()
        if seen is None or find_health_change(seen, attempted, now) is None:
            return None
        endpoint = tx.get(Endpoint, seen.id, for_update=True)
        environment = tx.get(Environment, partition)
        if endpoint is None or environment is None:
            return None
        change = find_health_change(endpoint, attempted, now)
        if change is None:
            return None
        disables = change[0] == FAILING and only_refuses(tx, endpoint, attempted, now)
        return decide_report(endpoint, change, environment.api_version, now=now, disables=disables)

    # Deliveries that an endpoint no longer needs.

    def abandon(self, claimed: ClaimedJob) -> None:
        """Abandon the pending deliveries of an endpoint that was closed or unsubscribed.

        A delivery that is being attempted is checked again after its attempt.
        """
        busy = False
        for status in OPEN_STATUSES:
            key = (claimed.job.subject, status)
            for deliveries, _ in self._iterate_pages(
                claimed.partition, Delivery, "by_status", *key
            ):
                for delivery in deliveries:
                    busy |= self._abandon_delivery(claimed, delivery)
        later = self._clock.now() + ATTEMPT_RECHECK_MS if busy else None
        self._committer.finish(claimed, Decision(None, next_run_at=later))

    def _abandon_delivery(self, claimed: ClaimedJob, seen: Delivery) -> bool:
        """Abandon it if necessary; True if it is being attempted."""
        arguments = claimed.job.arguments
        closed = arguments["status"] != "active"
        kept = arguments["kept"].split(",")
        if seen.endpoint_revision >= int(arguments["revision"]):
            return False  # made, or requested again, since
        if not closed and seen.event_name in kept:
            return False

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
            job = tx.get(Job, seen.job_id, for_update=True)  # job first, as its worker locks it
            delivery = tx.get(Delivery, seen.id, for_update=True)
            now = self._clock.now()
            attempted = job is not None and job.lease_until > now
            if delivery is None or delivery.version != seen.version or attempted:
                return Decision(
                    attempted or (delivery is not None and delivery.status in OPEN_STATUSES)
                )
            abandoned = decide_abandon(delivery, "close" if closed else "unsubscribe", now=now)
            over = Decision(False, deletes=() if job is None else (job,))
            return over.merge(abandoned)

        return self._committer.commit(WorkerAuthority(claimed.partition, self._mode), decide)

    def _iterate_pages(
        self, partition: str, kind: type[R], index: str, *key: str
    ) -> Iterator[tuple[tuple[R, ...], bool]]:
        """Every page of an index, and whether it is the last.

        Each comes from a snapshot: a `find` inside a transaction could miss new rows. A damaged
        row is skipped: one endpoint's row must not keep the others from their events.
        """
        after: Position | None = None
        while True:
            page = self._storage.read_apart(
                partition,
                lambda snapshot, after=after: snapshot.find(  # type: ignore[misc]
                    kind, index, key, after=after, limit=PAGE_SIZE, skip_damaged=True
                ),
            )
            yield page.records, page.next is None
            if page.next is None:
                return
            after = page.next


def _lock_delivered_before(
    tx: Transaction, pairs: Sequence[EventEndpoint], now: Instant
) -> frozenset[str]:
    """The deliveries that were made, and deleted after a day: their job was parked meanwhile."""
    late = [
        (event.id, endpoint.id)
        for event, endpoint in pairs
        if event.created_at_ms < now - LATE_FAN_OUT_MS
    ]
    return lock_delivered(tx, late) if late else frozenset()
