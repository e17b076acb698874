"""`payments admin products`."""

from __future__ import annotations

import click

from payments_core.service import PaymentsService
from payments_core.tenants.record import PRODUCTS
from payments_core_http.cli.admin.administering import (
    Document,
    administered,
    environment_argument,
    environment_of,
    shown_environment,
)


@click.group()
def command() -> None:
    """Say what an environment is entitled to."""


@command.command()
@environment_argument
@administered
def show(service: PaymentsService, mode: str, environment: str) -> Document:
    """Show an environment: its products, version pin and limits."""
    return shown_environment(environment_of(service, mode, environment))


@command.command(name="set")
@environment_argument
@click.argument("products", nargs=-1, type=click.Choice(PRODUCTS))
@administered
def set_(
    service: PaymentsService, mode: str, environment: str, products: tuple[str, ...]
) -> Document:
    """Replace the products by these; without any it is entitled to nothing.

    A product that is taken away is refused from the next request on, sessions under way included.
    """
    found = environment_of(service, mode, environment)
    return shown_environment(service.tenants.set_products(found.id, products))
