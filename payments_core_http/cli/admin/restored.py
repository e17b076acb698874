"""`payments admin restored`."""

from __future__ import annotations

from typing import Any

import click

from payments_core.maintenance.restored import Behind, behind, stop_sending
from payments_core.service import PaymentsService
from payments_core_http.cli.admin.administering import Document, administered, shown_job


@click.group()
def command() -> None:
    """Stop the senders of a restored storage, and ask the chains what it has forgotten.

    docs/how-to/back-up-and-restore.md has the steps around it.
    """


@command.command()
@administered
def stop(service: PaymentsService, mode: str) -> Document:
    """Park every job that would send a transfer; before any worker starts."""
    return [
        shown_job(one.partition, one.job)
        for one in stop_sending(service.ports.storage, service.ports.committer, mode)
    ]


@command.command(name="behind")
@administered
def behind_(service: PaymentsService, mode: str) -> Document:
    """List the senders that the chains are ahead of: so many transactions are forgotten."""
    return [_shown(one) for one in behind(service.ports.storage, service.chains, mode)]


def _shown(one: Behind) -> dict[str, Any]:
    return {
        "environmentId": one.environment_id,
        "chainId": one.chain_id,
        "sender": one.address,
        "nextSlot": one.next_slot,
        "slotsUsed": one.slots_used,
        "forgotten": one.forgotten,
    }
