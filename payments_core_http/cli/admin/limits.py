"""`payments admin limits`."""

from __future__ import annotations

import click

from payments_core.service import PaymentsService
from payments_core_http.cli.admin.service_command import (
    CommandResult,
    environment_argument,
    find_environment,
    render_environment,
    with_service,
)


@click.group()
def command() -> None:
    """Set the rate limits of an environment."""


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


def _parse_limit(text: str) -> tuple[str, int]:
    rule, sign, number = text.partition("=")
    if not sign or not number.isascii() or not number.isdecimal():
        raise click.UsageError(f"{text!r} is not RULE=LIMIT, such as general_minute=5000.")
    return rule, int(number)
