"""`payments admin apps`."""

from __future__ import annotations

from typing import Any

import click

from payments_core.credentials.secrets import MODES
from payments_core.service import PaymentsService
from payments_core.tenants.queries import iterate_apps
from payments_core.tenants.record import DEFAULT_PRODUCTS, PRODUCTS, App
from payments_core_http.cli.admin.service_command import CommandResult, format_time, with_service


@click.group()
def command() -> None:
    """Create apps, and list them with their environments."""


@command.command()
@click.argument("name")
@click.option("--partner-id", required=True, help="A slug: 3 to 40 characters of a-z, 0-9 and -.")
@click.option(
    "--product",
    "products",
    multiple=True,
    type=click.Choice(PRODUCTS),
    help="A product that it may use; default: all except legacy_sdk. May be repeated.",
)
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(MODES),
    help="An environment to create; default: both. May be repeated.",
)
@with_service
def create(
    service: PaymentsService,
    mode: str,
    name: str,
    partner_id: str,
    products: tuple[str, ...],
    modes: tuple[Any, ...],
) -> CommandResult:
    """Create an app. Create its keys with `payments admin keys create`."""
    app = service.tenants.create_app(
        name, partner_id, products=products or DEFAULT_PRODUCTS, modes=modes or MODES
    )
    return _render_app(app)


@command.command(name="list")
@with_service
def list_(service: PaymentsService, mode: str) -> CommandResult:
    """List all apps, oldest first."""
    return [_render_app(app) for app in iterate_apps(service.parts.ports.storage)]


def _render_app(app: App) -> dict[str, Any]:
    return {
        "appId": app.id,
        "name": app.name,
        "partnerId": app.partner_id,
        "createdAt": format_time(app.created_at_ms),
        **{f"{mode}EnvironmentId": app.environments.get(mode) for mode in MODES},
    }
