"""The job that makes the deliveries of a commit's events."""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.clock import Instant
from payments_core.engine.decision import NewJob
from payments_core.engine.events import Event
from payments_core.storage.jobs import Job

EVENTS = "events"
FAN_OUT = "webhooks.fan_out"


def new_fan_out(partition: str, events: Sequence[Event], now: Instant) -> NewJob:
    """One job for all of them; `fanned_out_events` reads it."""
    first, *more = (event.id for event in events)
    arguments = {"events": ",".join(more)} if more else {}
    return NewJob(EVENTS, FAN_OUT, f"events:{partition}", now, first, arguments)


def fanned_out_events(job: Job) -> Sequence[str]:
    """The events of a fan-out job. A job of the release before is of one event."""
    more = job.arguments.get("events", "")
    return (job.subject, *(more.split(",") if more else ()))
