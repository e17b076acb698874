"""`payments admin apps`."""

from __future__ import annotations

from typing import Any

import click

from payments_core.credentials.secrets import MODES
from payments_core.service import PaymentsService
from payments_core.tenants.listing import all_apps
from payments_core.tenants.record import PRODUCTS, App
from payments_core_http.cli.admin.administering import Document, administered, time_of


@click.group()
def command() -> None:
    """Make apps, and list them with their environments."""


@command.command()
@click.argument("name")
@click.option("--partner-id", required=True, help="A slug: 3 to 40 of a-z, 0-9 and -.")
@click.option(
    "--product",
    "products",
    multiple=True,
    type=click.Choice(PRODUCTS),
    help="What it is entitled to; all unless given. May be repeated.",
)
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(MODES),
    help="Which environments it gets; both unless given. May be repeated.",
)
@administered
def create(
    service: PaymentsService,
    mode: str,
    name: str,
    partner_id: str,
    products: tuple[str, ...],
    modes: tuple[Any, ...],
) -> Document:
    """Make an app. Its keys come from `payments admin keys create`."""
    app = service.tenants.create_app(
        name, partner_id, products=products or PRODUCTS, modes=modes or MODES
    )
    return _shown(app)


@command.command(name="list")
@administered
def list_(service: PaymentsService, mode: str) -> Document:
    """List all apps, the oldest first."""
    return [_shown(app) for app in all_apps(service.ports.storage)]


def _shown(app: App) -> dict[str, Any]:
    return {
        "appId": app.id,
        "name": app.name,
        "partnerId": app.partner_id,
        "createdAt": time_of(app.created_at),
        **{f"{mode}EnvironmentId": app.environments.get(mode) for mode in MODES},
    }
