"""The job that makes the deliveries of a commit's events."""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.clock import Instant
from payments_core.engine.decision import NewJob
from payments_core.engine.events import Event
from payments_core.storage.jobs import Job

EVENTS = "events"
FAN_OUT = "webhooks.fan_out"


EVENTS_PER_JOB = 16
"""The maximum number of events in one job."""


def new_fan_outs(partition: str, events: Sequence[Event], now: Instant) -> Sequence[NewJob]:
    """The jobs that make the deliveries of events, many in each; `fanned_out_events` reads them."""
    starts = range(0, len(events), EVENTS_PER_JOB)
    return [_new_fan_out(partition, events[at : at + EVENTS_PER_JOB], now) for at in starts]


def _new_fan_out(partition: str, events: Sequence[Event], now: Instant) -> NewJob:
    first, *more = (event.id for event in events)
    arguments = {"events": ",".join(more)} if more else {}
    return NewJob(EVENTS, FAN_OUT, f"events:{partition}", now, first, arguments)


def fanned_out_events(job: Job) -> Sequence[str]:
    """The events of a fan-out job. A job of the previous release has one event."""
    more = job.arguments.get("events", "")
    return (job.subject, *(more.split(",") if more else ()))
