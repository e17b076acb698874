"""`payments admin screening`."""

from __future__ import annotations

from typing import Any, Literal

import click

from payments_core.screening.record import HeldTransfer, HoldStatus
from payments_core.service import PaymentsService
from payments_core_http.cli.admin.service_command import (
    CommandResult,
    environment_argument,
    find_environment,
    format_time,
    with_service,
)


@click.group()
def command() -> None:
    """List the transfers that screening holds or has stopped, and decide one."""


@command.command(name="list")
@environment_argument
@click.option(
    "--status",
    type=click.Choice(("in_review", "blocked")),
    default="in_review",
    show_default=True,
    help="Those that wait, or those that were stopped.",
)
@with_service
def list_(
    service: PaymentsService, mode: str, environment: str, status: HoldStatus
) -> CommandResult:
    """List the held transfers of an environment, the oldest first."""
    shop = service.environment(find_environment(service, mode, environment).id)
    found: list[HeldTransfer] = []
    page = shop.screening.list_held(status, limit=100)
    found += page.records
    while page.next is not None:
        page = shop.screening.list_held(status, after=page.next, limit=100)
        found += page.records
    return [_render_held(one) for one in found]


@command.command()
@environment_argument
@click.argument("held_id")
@click.argument("outcome", type=click.Choice(("clear", "blocked")))
@click.option("--by", "operator", required=True, help="Your name, which is stored.")
@with_service
def decide(
    service: PaymentsService,
    mode: str,
    environment: str,
    held_id: str,
    outcome: Literal["clear", "blocked"],
    operator: str,
) -> CommandResult:
    """Clear or block the subject of one held transfer, for its Payment or deposit alone.

    A transfer in review is signed or stopped at once. One that was stopped must be requested again.
    """
    shop = service.environment(find_environment(service, mode, environment).id)
    held = shop.screening.read_held(held_id)
    verdict = shop.screening.decide(held_id, outcome, operator=operator)
    return {
        **_render_held(held),
        "outcome": verdict.outcome,
        "decidedBy": verdict.decided_by,
        "decidedAt": format_time(verdict.updated_at_ms),
    }


def _render_held(held: HeldTransfer) -> dict[str, Any]:
    return {
        "heldId": held.id,
        "status": held.status,
        "subject": held.subject.reference,
        "subjectKind": held.subject.kind,
        "chainId": held.subject.chain_id,
        "direction": held.direction,
        "resource": held.resource,
        "owner": held.owner,
        "transferId": held.transfer_id,
        "case": held.case,
        "reason": held.reason,
        "createdAt": format_time(held.created_at_ms),
    }
