"""`payments admin verification`."""

from __future__ import annotations

from typing import Any, Literal

import click

from payments_core.accounts.verification.record import Verification
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
    """List the verifications that wait, and decide one by hand."""


@command.command(name="list")
@environment_argument
@with_service
def list_(service: PaymentsService, mode: str, environment: str) -> CommandResult:
    """List the verifications of an environment that no provider has decided, the oldest first."""
    shop = service.environment(find_environment(service, mode, environment).id)
    found: list[Verification] = []
    page = shop.verifications.list_pending(limit=100)
    found += page.records
    while page.next is not None:
        page = shop.verifications.list_pending(after=page.next, limit=100)
        found += page.records
    return [_render_verification(one) for one in found]


@command.command()
@environment_argument
@click.argument("verification_id")
@click.argument("status", type=click.Choice(("approved", "rejected")))
@with_service
def decide(
    service: PaymentsService,
    mode: str,
    environment: str,
    verification_id: str,
    status: Literal["approved", "rejected"],
) -> CommandResult:
    """Decide a verification as its provider would. What is decided stays decided."""
    shop = service.environment(find_environment(service, mode, environment).id)
    account_id = shop.verifications.read(verification_id).account_id
    return _render_verification(
        shop.verifications.decide(account_id, status, verification_id=verification_id)
    )


def _render_verification(verification: Verification) -> dict[str, Any]:
    """A verification, without the URL with which its user acts."""
    return {
        "verificationId": verification.id,
        "accountId": verification.account_id,
        "status": verification.status,
        "reference": verification.reference,
        "createdAt": format_time(verification.created_at_ms),
    }
