"""`payments admin versions`."""

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
    """Pin an environment to a dated API version."""


@command.command(name="list")
@with_service
def list_(service: PaymentsService, mode: str) -> CommandResult:
    """List the supported API versions."""
    versions = service.settings.versions
    return [
        {"version": version, "current": version == versions.current}
        for version in versions.supported
    ]


@command.command(name="set")
@environment_argument
@click.argument("version")
@with_service
def set_(service: PaymentsService, mode: str, environment: str, version: str) -> CommandResult:
    """Pin an environment to another version; existing credentials keep their version."""
    found = find_environment(service, mode, environment)
    return render_environment(service.tenants.set_api_version(found.id, version))
