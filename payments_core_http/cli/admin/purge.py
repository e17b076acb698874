"""`payments admin purge`."""

from __future__ import annotations

import click

from payments_core.clock import DAY
from payments_core.maintenance.announcing import announce
from payments_core.maintenance.retention import Retention, RetentionPurge
from payments_core.service import PaymentsService
from payments_core_http.cli.admin.service_command import CommandResult, with_service
from payments_core_http.cli.progress import show_progress
from payments_core_http.deployment import build as assembling

_EVENTS = click.IntRange(31, 3_650)
"""A replay may request events of the last thirty days."""
_SESSIONS = click.IntRange(2, 3_650)
_CHALLENGES = click.IntRange(1, 3_650)
_AUDIT = click.IntRange(30, 3_650)
_PAYMENTS = click.IntRange(31, 3_650)
"""A Payment can be read as long as its events may be replayed."""


@click.command()
@click.option(
    "--events-days",
    type=_EVENTS,
    default=90,
    show_default=True,
    help="Age of the events and deliveries to delete.",
)
@click.option(
    "--sessions-days",
    type=_SESSIONS,
    default=30,
    show_default=True,
    help="Age of the client sessions to delete.",
)
@click.option(
    "--challenges-days",
    type=_CHALLENGES,
    default=30,
    show_default=True,
    help="Age of the wallet challenges to delete.",
)
@click.option(
    "--expired-payments-days",
    type=_PAYMENTS,
    default=90,
    show_default=True,
    help="Age of the payments to delete that expired with nothing received.",
)
@click.option(
    "--audit-days",
    type=_AUDIT,
    default=365,
    show_default=True,
    help="Age of the audit entries to delete.",
)
@click.option("--dry-run", is_flag=True, help="Only count; delete nothing.")
@with_service
def command(
    service: PaymentsService,
    mode: str,
    events_days: int,
    sessions_days: int,
    challenges_days: int,
    expired_payments_days: int,
    audit_days: int,
    dry_run: bool,
) -> CommandResult:
    """Delete old records that no payment needs, and payments that expired with nothing received.
    All other payments, the journal and receipts are kept.

    You can interrupt it and run it again; the service may run meanwhile. Ages are measured by
    this machine's clock, which must agree with the storage's clock.
    """
    assembling.require_synchronized_clock(service.parts.ports.storage)
    retention = Retention(
        events_ms=events_days * DAY,
        sessions_ms=sessions_days * DAY,
        challenges_ms=challenges_days * DAY,
        payments_ms=expired_payments_days * DAY,
        audit_ms=audit_days * DAY,
    )
    if not dry_run:
        announce(service.parts.ports, "records.purge")
    with show_progress("Purging") as progress:
        purged = RetentionPurge(service.parts.ports).run(
            retention, dry_run=dry_run, progress=progress
        )
    return dict(purged.records)
