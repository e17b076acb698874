"""The rows of a decision's events and jobs, as `committer.py` stores them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import attrs

from payments_core.clock import Instant
from payments_core.engine.audit import SERVICE_EVENTS, AuditEntry
from payments_core.engine.decision import CommitAuthority, Decision, NewJob
from payments_core.engine.events import Event, NewEvent
from payments_core.engine.identifiers import SHAPE, IdSequence
from payments_core.evolve import evolve
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import Transaction
from payments_core.storage.records import Record

MAX_RELATED_IDS = 4
_NAMED_IN_EVENTS = ("paymentId", "webhookId", "accountId", "refundId")
"""The fields of an event's payload whose ids its audit entry has, that of the object first."""

_PUBLIC_ID = re.compile(rf"[a-z]+(?:_[a-z]+)*_{SHAPE.pattern}")


@attrs.frozen
class RowChanges:
    """The rows of a decision."""

    inserts: Sequence[Record] = ()
    replaces: Sequence[Record] = ()
    deletes: Sequence[Record] = ()
    events: Sequence[Event] = ()
    """The inserted events for endpoints. An event that a decision inserts itself, such as
    a test of one endpoint, is not included."""


def write_rows(
    tx: Transaction, decisions: Sequence[Decision[Any]], written: Sequence[RowChanges]
) -> None:
    """Hold the records that decisions rely on, and write their rows."""
    for decision in decisions:
        for record in decision.holds:
            tx.hold(record)
    tx.write(
        [record for one in written for record in one.inserts],
        [record for one in written for record in one.replaces],
        [record for one in written for record in one.deletes],
    )


def build_event(new_event: NewEvent, id: str, now: Instant) -> Event:
    """The row of an event that happens now."""
    return Event(
        id=id,
        name=new_event.name,
        api_version=new_event.api_version,
        created_at_ms=now,
        payload=new_event.payload,
        account_id=new_event.account_id,
        external_user_id=new_event.external_user_id,
    )


def build_job(authority: CommitAuthority, new_job: NewJob, id: str) -> Job:
    """The row of a new job."""
    return Job(
        id=id,
        queue=f"{authority.mode}.{new_job.queue}",
        lane=new_job.lane,
        kind=new_job.kind,
        due_at=new_job.due_at,
        subject=new_job.subject,
        arguments=new_job.arguments,
        ordinal=new_job.ordinal,
    )


def reschedule_job(job: Job, next_run_at: Instant | None, *, made_no_progress: bool) -> Job | None:
    """The job after its outcome; None if it has ended."""
    if next_run_at is None:
        return None
    if next_run_at == NEVER:
        return evolve(job, lease_until=NEVER, holder="")
    # The handler completed, so the count towards parking starts again.
    failures = job.failures + 1 if made_no_progress else 0
    return evolve(job, due_at=next_run_at, lease_until=0, claims=0, failures=failures, holder="")


def build_audit_entries(
    authority: CommitAuthority, decision: Decision[Any], id_sequence: IdSequence, now: Instant
) -> tuple[AuditEntry, ...]:
    """The entry of a decision in the audit trail: one if it changes something in somebody's name,
    and for the service's own work one if it emits an event of SERVICE_EVENTS."""
    trace = authority.trace
    if trace is None:
        return ()
    if trace.operation is not None:
        changed = (decision.inserts, decision.replaces, decision.deletes, decision.events)
        is_entered = trace.outcome == "refused" or trace.is_announced
        if not any(changed) and not decision.jobs and not is_entered:
            return ()
        operation = trace.operation
        named = [*trace.ids, *(record.id for record in decision.inserts[:1])]
    else:
        event = next((one for one in decision.events if one.name in SERVICE_EVENTS), None)
        if event is None:
            return ()
        payload = event.payload
        operation = event.name
        named = [str(payload[field]) for field in _NAMED_IN_EVENTS if field in payload]
    own = () if trace.own_id is None else (trace.own_id,)
    ids = [*own, *(id for id in dict.fromkeys(named) if _PUBLIC_ID.fullmatch(id))]
    entry = AuditEntry(
        id=trace.entry_id or id_sequence.issue("audit"),
        environment_id=trace.environment_id,
        created_at_ms=now,
        actor_type=trace.actor.type,
        actor_id=trace.actor.id,
        actor_name=trace.actor.name,
        operation=operation,
        object_id=ids[0] if ids else None,
        related_ids=tuple(ids[1 : MAX_RELATED_IDS + 1]),
        address=trace.source.address,
        request_id=trace.source.request_id,
        outcome=trace.outcome,
    )
    return (entry,)
