"""`payments admin jobs`."""

from __future__ import annotations

import click

from payments_core.maintenance.parked_jobs import list_parked_jobs, retry
from payments_core.service import PaymentsService
from payments_core_http.cli.admin.service_command import CommandResult, render_job, with_service


@click.group()
def command() -> None:
    """List parked jobs, and retry one."""


@command.command(name="parked")
@with_service
def parked_(service: PaymentsService, mode: str) -> CommandResult:
    """List the jobs that failed twenty times without a result; each has raised an alarm."""
    return [
        render_job(one.partition, one.job)
        for one in list_parked_jobs(service.parts.ports.storage, mode)
    ]


@command.command(name="retry")
@click.argument("partition")
@click.argument("job_id")
@with_service
def retry_(service: PaymentsService, mode: str, partition: str, job_id: str) -> CommandResult:
    """Retry a parked job, after you have fixed the cause."""
    return render_job(partition, retry(service.parts.ports, partition, job_id))
