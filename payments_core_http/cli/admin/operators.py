"""`payments admin operators`."""

from __future__ import annotations

from typing import Any

import click

from payments_core.service import PaymentsService
from payments_core.tenants.record import Operator
from payments_core_http.cli.admin.service_command import (
    CommandResult,
    environment_argument,
    find_environment,
    format_time,
    with_service,
)


@click.group()
def command() -> None:
    """Create and remove the login to the dashboard of an environment, which has one."""


@command.command()
@environment_argument
@click.argument("username")
@with_service
def create(service: PaymentsService, mode: str, environment: str, username: str) -> CommandResult:
    """Create a login. Its password is shown once, here."""
    found = find_environment(service, mode, environment)
    made = service.operators.create(found.id, username)
    return {**_render_operator(made.operator), "password": made.password}


@command.command(name="list")
@with_service
def list_(service: PaymentsService, mode: str) -> CommandResult:
    """List all logins."""
    return [_render_operator(operator) for operator in service.operators.list()]


@command.command()
@click.argument("username")
@with_service
def reset(service: PaymentsService, mode: str, username: str) -> CommandResult:
    """Set a new password, which is shown once, here, and end the sessions of the login."""
    made = service.operators.reset_password(username, mode=mode)
    return {**_render_operator(made.operator), "password": made.password}


@command.command(name="reset-second-factor")
@click.argument("username")
@with_service
def reset_second_factor(service: PaymentsService, mode: str, username: str) -> CommandResult:
    """Remove the second factor of a login whose app and recovery codes are lost."""
    return _render_operator(service.parts.second_factors.reset(username, mode=mode))


@command.command()
@click.argument("username")
@with_service
def remove(service: PaymentsService, mode: str, username: str) -> CommandResult:
    """Remove a login and end its sessions."""
    return _render_operator(service.operators.remove(username, mode=mode))


def _render_operator(operator: Operator) -> dict[str, Any]:
    return {
        "username": operator.username,
        "mode": operator.mode,
        "environmentId": operator.environment_id,
        "createdAt": format_time(operator.created_at_ms),
        "passwordSetAt": format_time(operator.password_set_at_ms),
    }
