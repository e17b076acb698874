"""`payments admin operators`."""

from __future__ import annotations

from typing import Any

import click

from payments_core.service import PaymentsService
from payments_core.tenants.record import Operator
from payments_core_http.cli.admin.administering import (
    Document,
    administered,
    environment_argument,
    environment_of,
    time_of,
)


@click.group()
def command() -> None:
    """Make and remove logins of an environment's dashboard; each environment has one."""


@command.command()
@environment_argument
@click.argument("username")
@administered
def create(service: PaymentsService, mode: str, environment: str, username: str) -> Document:
    """Make a login. Its password is told here, and never again."""
    found = environment_of(service, mode, environment)
    made = service.operators.create(found.id, username)
    return {**_shown(made.operator), "password": made.password}


@command.command(name="list")
@administered
def list_(service: PaymentsService, mode: str) -> Document:
    """List all logins."""
    return [_shown(operator) for operator in service.operators.list()]


@command.command()
@click.argument("username")
@administered
def reset(service: PaymentsService, mode: str, username: str) -> Document:
    """Give a login a new password, which is told here; its sessions are over."""
    made = service.operators.reset_password(username, mode=mode)
    return {**_shown(made.operator), "password": made.password}


@command.command()
@click.argument("username")
@administered
def remove(service: PaymentsService, mode: str, username: str) -> Document:
    """Remove a login; its sessions are over."""
    return _shown(service.operators.remove(username, mode=mode))


def _shown(operator: Operator) -> dict[str, Any]:
    return {
        "username": operator.username,
        "mode": operator.mode,
        "environmentId": operator.environment_id,
        "createdAt": time_of(operator.created_at),
        "passwordSetAt": time_of(operator.password_set_at),
    }
