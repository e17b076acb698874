"""`payments admin limits`."""

from __future__ import annotations

import click

from payments_core.service import PaymentsService
from payments_core.tenants.queries import iterate_apps
from payments_core_http.cli.admin.service_command import (
    CommandResult,
    environment_argument,
    find_environment,
    render_environment,
    render_storage_use,
    with_service,
)

MAX_BYTES = 2**53 - 1
"""A larger number is not exact in every reader of JSON."""


@click.group()
def command() -> None:
    """Set the rate limits and the storage limit of an environment."""


@command.command(name="set")
@environment_argument
@click.argument("limits", nargs=-1, metavar="RULE=LIMIT...")
@with_service
def set_(
    service: PaymentsService, mode: str, environment: str, limits: tuple[str, ...]
) -> CommandResult:
    """Replace its limits with these, such as general_minute=5000; without arguments, remove them.

    docs/reference/limits.md lists the rules; use rules that count an app or an environment.
    """
    found = find_environment(service, mode, environment)
    wanted = dict(_parse_limit(text) for text in limits)
    return render_environment(service.tenants.set_rate_limits(found.id, wanted))


@command.command()
@environment_argument
@click.argument("limit_bytes", type=click.IntRange(0, MAX_BYTES), required=False)
@with_service
def storage(
    service: PaymentsService, mode: str, environment: str, limit_bytes: int | None
) -> CommandResult:
    """Set how many bytes it may store, such as 50000000000; without a number, the default.

    At the limit, new accounts, wallets and metadata are refused with storage_limit_reached;
    payments, webhooks and reads go on. Bytes are counted once an hour, by the worker.
    """
    found = find_environment(service, mode, environment)
    return render_environment(service.tenants.set_storage_limit(found.id, limit_bytes))


@command.command()
@with_service
def stored(service: PaymentsService, mode: str) -> CommandResult:
    """List what the environments store, the largest first, with their limits."""
    ids = (app.environments.get(mode) for app in iterate_apps(service.parts.ports.storage))
    found = [service.tenants.get_environment(id) for id in ids if id is not None]
    found.sort(key=lambda environment: -(environment.stored_bytes or 0))
    return [
        {
            "environmentId": environment.id,
            "partnerId": environment.partner_id,
            **render_storage_use(environment),
        }
        for environment in found
    ]


def _parse_limit(text: str) -> tuple[str, int]:
    rule, sign, number = text.partition("=")
    if not sign or not number.isascii() or not number.isdecimal():
        raise click.UsageError(f"{text!r} is not RULE=LIMIT, such as general_minute=5000.")
    return rule, int(number)
