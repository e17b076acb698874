"""`payments admin versions`."""

from __future__ import annotations

import click

from payments_core.service import PaymentsService
from payments_core_http.cli.admin.administering import (
    Document,
    administered,
    environment_argument,
    environment_of,
    shown_environment,
)


@click.group()
def command() -> None:
    """Pin an environment to a dated contract."""


@command.command(name="list")
@administered
def list_(service: PaymentsService, mode: str) -> Document:
    """List the contracts that are served."""
    versions = service.settings.versions
    return [
        {"version": version, "current": version == versions.current}
        for version in versions.supported
    ]


@command.command(name="set")
@environment_argument
@click.argument("version")
@administered
def set_(service: PaymentsService, mode: str, environment: str, version: str) -> Document:
    """Pin an environment to another contract; what was made before stays bound to its own."""
    found = environment_of(service, mode, environment)
    return shown_environment(service.tenants.set_api_version(found.id, version))
