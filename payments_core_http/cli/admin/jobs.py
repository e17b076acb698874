"""`payments admin jobs`."""

from __future__ import annotations

import click

from payments_core.maintenance.parked_jobs import list_parked_jobs, retry
from payments_core.service import PaymentsService
from payments_core_http.cli.admin.service_command import CommandResult, render_job, with_service


@click.group()
def command() -> None:
    """List the jobs that were parked, and put one back to work."""


@command.command(name="parked")
@with_service
def parked_(service: PaymentsService, mode: str) -> CommandResult:
    """List the jobs that came to no outcome in twenty claims; each has raised an alarm."""
    return [
        render_job(one.partition, one.job) for one in list_parked_jobs(service.ports.storage, mode)
    ]


@command.command(name="retry")
@click.argument("partition")
@click.argument("job_id")
@with_service
def retry_(service: PaymentsService, mode: str, partition: str, job_id: str) -> CommandResult:
    """Let a parked job be tried again, now that its cause is mended."""
    return render_job(
        partition, retry(service.ports.committer, service.ports.clock, partition, job_id)
    )
