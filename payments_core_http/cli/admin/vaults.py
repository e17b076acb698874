"""`payments admin vaults`."""

from __future__ import annotations

import click

from payments_core.maintenance.paid_vaults import mark_paid_vaults
from payments_core.service import PaymentsService
from payments_core_http.cli.admin.service_command import CommandResult, with_service
from payments_core_http.cli.progress import show_progress


@click.group()
def command() -> None:
    """Mark vaults that paid before as deployed."""


@command.command(name="mark-deployed")
@with_service
def mark_deployed(service: PaymentsService, mode: str) -> CommandResult:
    """Mark each vault that has paid as `deployed`, in every environment.

    Run it once after an upgrade from a release that left such vaults `counterfactual`. It reads
    all payments and refunds, and may be repeated.
    """
    with show_progress("Looking at what vaults have paid") as progress:
        return {"markedDeployed": mark_paid_vaults(service.parts.ports, progress=progress)}
