"""`payments admin jobs`."""

from __future__ import annotations

import click

from payments_core.maintenance.parked import parked, retry
from payments_core.service import PaymentsService
from payments_core_http.cli.admin.administering import Document, administered, shown_job


@click.group()
def command() -> None:
    """List the jobs that were parked, and put one back to work."""


@command.command(name="parked")
@administered
def parked_(service: PaymentsService, mode: str) -> Document:
    """List the jobs that came to no outcome in twenty claims; each has raised an alarm."""
    return [shown_job(one.partition, one.job) for one in parked(service.ports.storage, mode)]


@command.command(name="retry")
@click.argument("partition")
@click.argument("job_id")
@administered
def retry_(service: PaymentsService, mode: str, partition: str, job_id: str) -> Document:
    """Let a parked job be tried again, now that its cause is mended."""
    return shown_job(
        partition, retry(service.ports.committer, service.ports.clock, partition, job_id)
    )
