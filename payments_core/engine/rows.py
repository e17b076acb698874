"""The rows of a decision's events and jobs, as `committer.py` stores them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from payments_core.clock import Instant
from payments_core.engine.decision import CommitAuthority, Decision, NewJob
from payments_core.engine.events import Event, NewEvent
from payments_core.evolve import evolve
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import Transaction
from payments_core.storage.records import Record


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
