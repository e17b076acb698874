"""Deletes ended records that say nothing about money.

Events with their deliveries, the marks of earlier deliveries, the audit trail,
client sessions, wallet challenges, expired stored answers, and Payments that expired with nothing
received: `payments/purge.py` decides which of those. Payments that received anything, the records
that they depend on and those of their transfers (receipts, the journal, transfers and all
replacements) are never touched: nothing here names them.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from payments_core.accounts.record import WalletChallenge
from payments_core.clock import DAY, Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.audit import AuditEntry
from payments_core.engine.committer import Committer
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.events import Event
from payments_core.engine.fan_out import EVENTS, fanned_out_events
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.maintenance.audit_purge import AUDIT_RETENTION_MS, MIN_AUDIT_MS
from payments_core.maintenance.feed_purge import purge_places
from payments_core.payments.purge import decide_purge, is_purgeable, load_candidates
from payments_core.payments.record import Payment
from payments_core.quotes.record import Quote
from payments_core.storage.documents import UnreadableDocument
from payments_core.storage.jobs import Job
from payments_core.storage.maintenance import Progress, scan_all
from payments_core.storage.port import Page, Position, Snapshot, Storage, Transaction
from payments_core.storage.records import R, Record, Value
from payments_core.tenants.record import ClientSession, Environment, SessionExchange
from payments_core.webhooks.delivered import DeliveredEvents
from payments_core.webhooks.dispatch.replay import MAX_RECOVERY_DAYS
from payments_core.webhooks.lifecycle import OPEN_STATUSES
from payments_core.webhooks.record import Delivery, Endpoint, delivery_id

_log = logging.getLogger(__name__)

BATCH = 200
EVENTS_PER_BATCH = 50
"""Each event has a delivery for every endpoint that ever subscribed to it."""

MAX_BATCHES_PER_JOB = 20
"""After this many a job ends and another continues, so that none outlasts its lease."""

PAYMENTS_PER_BATCH = 50
"""Each Payment has a link, and up to a hundred options."""

EVENTS_RETENTION_MS = 90 * DAY
MIN_EVENTS_MS = (MAX_RECOVERY_DAYS + 1) * DAY
"""How far back an endpoint may recover missed events."""

MIN_PAYMENTS_MS = MIN_EVENTS_MS
"""How long an endpoint may receive events of a Payment, and then read it."""

MIN_SESSIONS_MS = 2 * DAY
"""A session lasts at most a day; after that nobody can use its token."""

MIN_CHALLENGES_MS = 1 * DAY
"""A challenge lasts for minutes; late answers then get a specific error."""


@attrs.frozen
class Retention:
    """How long ended records are kept, in milliseconds.

    `events_ms` counts from the event, and from the last change of each of its deliveries, or from
    the deletion of the deliveries of which only marks are left;
    `sessions_ms` and `challenges_ms` from the end of a client session and of a wallet's challenge.
    `audit_ms` counts from the entry of the audit trail.
    `payments_ms` is for Payments that expired with nothing received, from the end of their
    monitoring and from their last change. Stored answers have their own expiry.
    Raises ValueError for a period during which a record may still be needed.
    """

    events_ms: int = EVENTS_RETENTION_MS
    sessions_ms: int = 30 * DAY
    challenges_ms: int = 30 * DAY
    payments_ms: int = 90 * DAY
    audit_ms: int = AUDIT_RETENTION_MS

    def __attrs_post_init__(self) -> None:
        if self.events_ms < MIN_EVENTS_MS:
            raise ValueError(f"events must be kept for at least {MIN_EVENTS_MS // DAY} days")
        if self.sessions_ms < MIN_SESSIONS_MS:
            raise ValueError(f"sessions are kept for at least {MIN_SESSIONS_MS // DAY} days")
        if self.challenges_ms < MIN_CHALLENGES_MS:
            raise ValueError("challenges must be kept for at least one day")
        if self.audit_ms < MIN_AUDIT_MS:
            raise ValueError(f"audit entries are kept for at least {MIN_AUDIT_MS // DAY} days")
        if self.payments_ms < MIN_PAYMENTS_MS:
            days = MIN_PAYMENTS_MS // DAY
            raise ValueError(f"expired payments must be kept for at least {days} days")


@attrs.frozen
class PurgeResult:
    """How many records of each collection were deleted, or would be."""

    records: Mapping[str, int]


IsExpired = Callable[[Any], bool]
"""Whether a record has ended. It is checked again on the locked record before its deletion."""


class RetentionPurge:
    """Deletes in batches, each in a separate transaction; if stopped anywhere, run it again."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._key_ring = ports.key_ring

    def run(
        self, retention: Retention, *, dry_run: bool = False, progress: Progress | None = None
    ) -> PurgeResult:
        """Delete records older than the retention, in every environment; with `dry_run`, count
        them.

        An unreadable record stays, with an alarm, and so do all records after it in its
        environment. Raises NoMaintenanceAccess, StorageUnavailable, Unavailable.
        """
        now = self._clock.now()
        run = _PurgeRun(self._storage, self._committer, dry_run=dry_run, progress=progress)
        events_before = now - retention.events_ms
        ended = now - retention.sessions_ms
        asked = now - retention.challenges_ms
        audited_before = now - retention.audit_ms
        run.purge_records(AuditEntry, lambda entry: entry.created_at_ms < audited_before)
        run.purge_records(DeliveredEvents, lambda marks: marks.updated_at_ms < events_before)
        run.purge_records(WalletChallenge, lambda challenge: challenge.expires_at_ms < asked)
        run.purge_sessions(lambda session: session.expires_at_ms < ended)
        run.purge_payments(now - retention.payments_ms, self._key_ring, now=now)
        for environment in scan_all(self._storage, Environment):
            for what, forget, before in (
                ("answers", run.purge_responses, now),
                ("events", run.purge_events, events_before),
            ):
                try:
                    forget(environment.record, before)
                except UnreadableDocument:  # its text may quote the record's content
                    _log.critical(
                        "ALARM: a record of %s cannot be read; its %s are not purged",
                        environment.record.id,
                        what,
                    )
        return PurgeResult(dict(run.gone))


class EventPurge:
    """Deletes the old events of one environment, a number of batches at a time: a part of the
    hourly purge."""

    def __init__(self, ports: Ports, events_ms: int) -> None:
        """`events_ms` as in `Retention`. Raises ValueError."""
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._retention = Retention(events_ms=events_ms)

    def run(self, partition: str) -> bool:
        """Delete a number of batches; True if there may be more. Raises StorageUnavailable."""
        environment = self._storage.read(
            partition, lambda snapshot: snapshot.get(Environment, partition)
        )
        if environment is None:
            return False
        run = _PurgeRun(self._storage, self._committer, dry_run=False, progress=None)
        before = self._clock.now() - self._retention.events_ms
        try:
            # Both, whatever the first returns.
            is_more = [
                purge(environment, before, max_batches=MAX_BATCHES_PER_JOB)
                for purge in (run.purge_events, run.purge_marks)
            ]
            return any(is_more)
        except UnreadableDocument:  # its text may quote the record's content
            _log.critical(
                "ALARM: a record of %s cannot be read; its events are not purged", partition
            )
            return False


class _PurgeRun:
    """One run, and its deletions."""

    def __init__(
        self, storage: Storage, committer: Committer, *, dry_run: bool, progress: Progress | None
    ) -> None:
        self._storage = storage
        self._committer = committer
        self._dry_run = dry_run
        self._progress = progress
        self.gone: Counter[str] = Counter()

    def purge_records(self, kind: type[R], over: IsExpired) -> None:
        """Records without dependent records."""
        for partition, records in self._iter_batches(kind, over):
            self._delete(partition, partial(_lock_expired, records=records, over=over))

    def purge_sessions(self, over: IsExpired) -> None:
        """Client sessions, each with its exchange."""
        for partition, sessions in self._iter_batches(ClientSession, over):

            def choose(tx: Transaction, sessions: Sequence[Record] = sessions) -> list[Record]:
                gone: list[Record] = _lock_expired(tx, sessions, over)
                exchanges = tx.get_many(
                    SessionExchange, [session.id for session in gone], for_update=True
                )
                return [*gone, *exchanges.values()]

            self._delete(partition, choose)

    def purge_payments(self, before: Instant, key_ring: KeyRing, *, now: Instant) -> None:
        """Payments that expired with nothing received, each with its link and its options."""
        for partition, payments in self._iter_batches(
            Payment, lambda payment: is_purgeable(payment, before), size=PAYMENTS_PER_BATCH
        ):
            self._purge_payment_batch(
                partition, [payment.id for payment in payments], before, key_ring, now
            )

    def _purge_payment_batch(
        self, partition: str, ids: Sequence[str], before: Instant, key_ring: KeyRing, now: Instant
    ) -> None:
        """Delete in one transaction, or separately if one of their records cannot be read."""
        try:
            candidates = self._storage.read(
                partition, lambda snapshot: load_candidates(snapshot, ids, before, key_ring)
            )
            if candidates:
                self._commit(
                    partition, lambda tx: _with_quotes(tx, decide_purge(tx, candidates, now=now))
                )
        except UnreadableDocument:
            if len(ids) > 1:
                for id in ids:
                    self._purge_payment_batch(partition, [id], before, key_ring, now)
                return
            _log.critical(
                "ALARM: a record of %s in %s cannot be read; it is not purged", ids[0], partition
            )

    def purge_responses(self, environment: Environment, now: Instant) -> None:
        """Expired stored answers; the job of each environment does the same."""
        self._purge_oldest(
            environment.id, StoredResponse, "by_expiry", lambda answer: answer.expires_at_ms <= now
        )

    def purge_marks(
        self, environment: Environment, before: Instant, *, max_batches: int | None = None
    ) -> bool:
        """Marks of delivered events; True if it ended after `max_batches`, as `purge_events`."""
        return self._purge_oldest(
            environment.id,
            DeliveredEvents,
            "by_updated",
            lambda marks: marks.updated_at_ms < before,
            max_batches,
        )

    def _purge_oldest(
        self,
        partition: str,
        kind: type[R],
        index: str,
        over: IsExpired,
        max_batches: int | None = None,
    ) -> bool:
        """The ended records at the beginning of an index."""
        for number, page in enumerate(self._iter_pages(partition, kind, index, limit=BATCH)):
            if number == max_batches:
                return True
            ended = [record for record in page if over(record)]
            if ended:
                self._delete(partition, partial(_lock_expired, records=ended, over=over))
            if len(ended) < len(page):
                break
        return False

    def purge_events(
        self, environment: Environment, before: Instant, *, max_batches: int | None = None
    ) -> bool:
        """Events with their deliveries, unless one is still open or was changed since; True if it
        ended after `max_batches`, and there may be more.

        Only deliveries to active endpoints can be open, and their number is bounded; those to
        others are deleted by `webhooks/trimming.py`, earlier than their events.
        """
        partition = environment.id
        if purge_places(self._storage, self._commit, partition, before, max_batches):
            return True
        active = self._iter_pages(partition, Endpoint, "by_status", key=("active",))
        endpoints = [endpoint.id for page in active for endpoint in page]
        lane = (f"{environment.mode}.{EVENTS}", f"events:{partition}")
        waiting = {
            id
            for page in self._iter_pages(partition, Job, "by_queue_lane", key=lane)
            for job in page
            for id in fanned_out_events(job)
        }
        pages = self._iter_pages(partition, Event, "by_created", limit=EVENTS_PER_BATCH)
        for number, page in enumerate(pages):
            if number == max_batches:
                return True
            old = [event for event in page if event.created_at_ms < before]
            over = [event for event in old if event.id not in waiting]
            if over:
                self._delete(
                    partition,
                    partial(_lock_with_deliveries, events=over, endpoints=endpoints, before=before),
                )
            if len(old) < len(page):
                break
        return False

    def _delete(self, partition: str, choose: Callable[[Transaction], Sequence[Record]]) -> None:
        """Delete the chosen records under their locks, and count them."""
        self._commit(partition, lambda tx: Decision(None, deletes=tuple(choose(tx))))

    def _commit(self, partition: str, decide: Callable[[Transaction], Decision[None]]) -> None:
        """Commit a decision, or only make it in a dry run, and count its deletions."""
        decided: Decision[None] = Decision(None)

        def decide_unless_dry(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            nonlocal decided
            decided = decide(tx)
            return Decision(None) if self._dry_run else decided

        self._committer.commit(WorkerAuthority(partition, "upkeep"), decide_unless_dry)
        chosen = decided.deletes
        for record in chosen:
            self.gone[type(record).collection.name] += 1
        for name in {type(record).collection.name for record in chosen}:
            if self._progress is not None:
                self._progress(name, self.gone[name])

    def _iter_batches(
        self, kind: type[R], over: IsExpired, *, size: int = BATCH
    ) -> Iterator[tuple[str, Sequence[R]]]:
        """The ended records of a kind, by partition and a batch at a time."""
        found: dict[str, list[R]] = defaultdict(list)
        for one in scan_all(self._storage, kind):
            if over(one.record):
                found[one.partition].append(one.record)
                if len(found[one.partition]) == size:
                    yield one.partition, found.pop(one.partition)
        yield from found.items()

    def _iter_pages(
        self,
        partition: str,
        kind: type[R],
        index: str,
        *,
        key: Sequence[Value] = (),
        limit: int = BATCH,
    ) -> Iterator[Sequence[R]]:
        after: Position | None = None
        while True:

            def look(snapshot: Snapshot, after: Position | None = after) -> Page[R]:
                return snapshot.find(kind, index, key, after=after, limit=limit)

            page = self._storage.read(partition, look)
            if page.records:
                yield page.records
            after = page.next
            if after is None:
                return


def _lock_expired(tx: Transaction, records: Sequence[R], over: IsExpired) -> list[R]:
    """The records that still exist, locked, and have still ended."""
    if not records:
        return []
    kind = type(records[0])
    found = tx.get_many(kind, [record.id for record in records], for_update=True)
    return [record for record in found.values() if over(record)]


def _with_quotes(tx: Transaction, purged: Decision[None]) -> Decision[None]:
    """The Payments to purge, each with its quote."""
    gone = [one for one in purged.deletes if isinstance(one, Payment) and one.quote_id is not None]
    quotes = tx.get_many(Quote, [str(payment.quote_id) for payment in gone], for_update=True)
    return purged.merge(Decision(None, deletes=tuple(quotes.values())))


def _lock_with_deliveries(
    tx: Transaction, events: Sequence[Event], endpoints: Sequence[str], before: Instant
) -> list[Record]:
    ids = {event.id: [delivery_id(event.id, id) for id in endpoints] for event in events}
    stored = tx.get_many(
        Delivery, [id for of_event in ids.values() for id in of_event], for_update=True
    )
    present = tx.get_many(Event, list(ids), for_update=True)
    gone: list[Record] = []
    for event_id, event in present.items():
        deliveries = [stored[id] for id in ids[event_id] if id in stored]
        if all(
            one.status not in OPEN_STATUSES and one.updated_at_ms < before for one in deliveries
        ):
            gone += [event, *deliveries]
    return gone
