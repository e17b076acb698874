"""`payments admin products`."""

from __future__ import annotations

import click

from payments_core.service import PaymentsService
from payments_core.tenants.record import PRODUCTS
from payments_core_http.cli.admin.service_command import (
    CommandResult,
    environment_argument,
    find_environment,
    render_environment,
    with_service,
)


@click.group()
def command() -> None:
    """Set the products of an environment."""


@command.command()
@environment_argument
@with_service
def show(service: PaymentsService, mode: str, environment: str) -> CommandResult:
    """Show an environment: its products, version pin and limits."""
    return render_environment(find_environment(service, mode, environment))


@command.command(name="set")
@environment_argument
@click.argument("products", nargs=-1, type=click.Choice(PRODUCTS))
@with_service
def set_(
    service: PaymentsService, mode: str, environment: str, products: tuple[str, ...]
) -> CommandResult:
    """Replace the products with these; without arguments, remove all.

    A removed product is refused from the next request on, also in existing sessions.
    """
    found = find_environment(service, mode, environment)
    return render_environment(service.tenants.set_products(found.id, products))
