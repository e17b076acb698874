"""`payments admin environment`."""

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
    """Pin an environment to a dated API version, and list the versions."""


@command.command()
@environment_argument
@click.argument("version")
@with_service
def pin(service: PaymentsService, mode: str, environment: str, version: str) -> CommandResult:
    """Pin an environment to another version.

    Tokens, secrets, Payments and events keep the version under which they were made.
    """
    found = find_environment(service, mode, environment)
    return render_environment(service.tenants.set_api_version(found.id, version))


@command.command()
@with_service
def versions(service: PaymentsService, mode: str) -> CommandResult:
    """List the supported versions; new environments are pinned to the current one."""
    supported = service.settings.versions
    return [
        {"version": version, "current": version == supported.current}
        for version in supported.supported
    ]
