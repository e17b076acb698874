"""The job of a recovery: sends an endpoint the events that it has missed, a page at a time.

Each page is a separate commit, and a run of pages ends with the job that continues after it. A
crash repeats at most one run, which then skips the events already sent.
"""

from __future__ import annotations

from functools import partial

from payments_core.clock import Instant
from payments_core.engine.decision import Decision, WorkerAuthority, lock_shared
from payments_core.engine.events import Event
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import NotFound, ResourceConflict
from payments_core.evolve import evolve
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import ClaimedJob, Page, Position, Snapshot, Transaction
from payments_core.tenants.record import Environment
from payments_core.webhooks.delivered import find_delivered, lock_delivered
from payments_core.webhooks.dispatch.replay import (
    MAX_CLOCK_SKEW_MS,
    decide_resend,
    is_recipient,
    recovery_job,
)
from payments_core.webhooks.envelopes import EventBodies
from payments_core.webhooks.lifecycle import require_active_subscriber
from payments_core.webhooks.record import Delivery, Endpoint, delivery_id

PAGE_SIZE = 50
MAX_PAGES_PER_JOB = 20
"""After this many pages another job continues, so that none outlasts its lease."""

MissedEvent = tuple[Event, Delivery | None]
"""An event that an endpoint did not get, and its delivery, if there is one."""


class WebhookRecovery:
    """The handler, over its ports."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._versions = ports.versions

    def recover(self, claimed: ClaimedJob) -> None:
        """Send the events that the endpoint had missed when the recovery was requested.

        It ends early if the endpoint is no longer active, or the product is disabled.
        """
        authority, endpoint_id = WorkerAuthority.of(claimed), claimed.job.subject
        arguments = claimed.job.arguments
        asked_at = int(arguments["asked_at"])
        after: Position = (int(arguments["after"]), arguments["after_id"])
        bodies = EventBodies(self._versions, claimed.partition)
        for _ in range(MAX_PAGES_PER_JOB):
            page, missed = self._storage.read(
                claimed.partition,
                partial(_read_missed, claimed.partition, endpoint_id, after, asked_at, bodies),
            )
            if missed:
                self._committer.commit(
                    authority, partial(self._decide_resends, authority, endpoint_id, missed)
                )
            if page.next is None or _position_time(page.next) > asked_at + MAX_CLOCK_SKEW_MS:
                self._committer.finish(claimed)
                return
            after = page.next
        rest = (_position_time(after), str(after[1]))
        going_on = recovery_job(endpoint_id, rest, asked_at=asked_at, now=self._clock.now())
        self._committer.finish(claimed, Decision(None, jobs=(going_on,)))

    def _decide_resends(
        self,
        authority: WorkerAuthority,
        endpoint_id: str,
        missed: list[MissedEvent],
        tx: Transaction,
        id_sequence: IdSequence,
    ) -> Decision[None]:
        """The deliveries of a page. A delivery that was started meanwhile is left alone."""
        now = self._clock.now()
        # All the jobs and then all the deliveries, in the locking order of the end of a batch.
        tx.get_many(Job, [seen.job_id for _, seen in missed if seen is not None], for_update=True)
        ids = {event.id: delivery_id(event.id, endpoint_id) for event, _ in missed}
        stored = tx.get_many(Delivery, list(ids.values()), for_update=True)
        # Of the others, one may have been delivered since, and then deleted.
        absent = [(event, endpoint_id) for event, id in ids.items() if id not in stored]
        over = lock_delivered(tx, absent)
        sent: list[Decision[Delivery]] = []
        for event, seen in missed:
            if ids[event.id] in over:
                continue
            try:
                decision = _revive_pending(tx, seen, endpoint_id, now) or decide_resend(
                    tx,
                    event,
                    endpoint_id,
                    seen,
                    authority.mode,
                    EventBodies(self._versions, authority.partition),
                    now=now,
                    trigger="retry",
                )
            except (ResourceConflict, NotFound):
                continue
            sent.append(decision)
        joined: Decision[None] = Decision(None).merge(*sent)
        return evolve(joined, holds=joined.holds[:1])  # each holds the one endpoint


def _read_missed(
    partition: str,
    endpoint_id: str,
    after: Position,
    asked_at: Instant,
    bodies: EventBodies,
    snapshot: Snapshot,
) -> tuple[Page[Event], list[MissedEvent]]:
    """A page of events, and the ones that the endpoint subscribes to and did not get."""
    endpoint = snapshot.get(Endpoint, endpoint_id)
    environment = snapshot.get(Environment, partition)
    off = environment is not None and "webhooks" not in environment.products
    if endpoint is None or endpoint.status != "active" or off:
        return Page((), None), []
    page = snapshot.find(Event, "by_created", after=after, limit=PAGE_SIZE, skip_damaged=True)
    meant = [
        event
        for event in page.records
        if event.created_at_ms <= asked_at + MAX_CLOCK_SKEW_MS
        and is_recipient(event, endpoint, bodies)
    ]
    ids = {event.id: delivery_id(event.id, endpoint_id) for event in meant}
    stored = snapshot.get_many(Delivery, list(ids.values()))
    absent = [(event, endpoint_id) for event, id in ids.items() if id not in stored]
    over = find_delivered(snapshot, absent)
    missed: list[MissedEvent] = []
    for event in meant:
        delivery = stored.get(ids[event.id])
        if ids[event.id] not in over and (delivery is None or _is_missed(delivery, asked_at)):
            missed.append((event, delivery))
    return page, missed


def _is_missed(delivery: Delivery, asked_at: Instant) -> bool:
    if delivery.status == "delivered":
        return False
    # A delivery that changed since was sent by this recovery, or tried after its request.
    return delivery.updated_at_ms <= asked_at + MAX_CLOCK_SKEW_MS


def _revive_pending(
    tx: Transaction, seen: Delivery | None, endpoint_id: str, now: Instant
) -> Decision[Delivery] | None:
    """A pending delivery that was to be abandoned when the endpoint closed, and is needed again."""
    if seen is None or seen.status != "pending":
        return None
    endpoint = lock_shared(tx, Endpoint, endpoint_id)
    if endpoint is None or seen.endpoint_revision >= endpoint.revision:
        return None
    job = tx.get(Job, seen.job_id, for_update=True)  # job first, as its worker locks it
    delivery = tx.get(Delivery, seen.id, for_update=True)
    if job is None or job.due_at == NEVER or delivery is None:
        return None
    if delivery.version != seen.version:
        return None
    require_active_subscriber(endpoint, delivery.event_name)
    kept = evolve(delivery, endpoint_revision=endpoint.revision, updated_at_ms=now)
    return Decision(kept, holds=(endpoint,), replaces=(kept,))


def _position_time(position: Position) -> Instant:
    return int(position[0] or 0)
