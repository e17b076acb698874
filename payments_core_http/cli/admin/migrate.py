"""`payments admin migrate`."""

from __future__ import annotations

import click

from payments_core.storage.capabilities import FinishesMigrations
from payments_core_http.cli.admin.service_command import CommandResult, print_result
from payments_core_http.cli.config_option import with_configuration
from payments_core_http.deployment import build as assembling
from payments_core_http.deployment.configuration import Configuration


@click.command()
@click.option(
    "--finish", is_flag=True, help="Fill new columns, after the previous release has stopped."
)
@with_configuration
@print_result
def command(configuration: Configuration, finish: bool) -> CommandResult:
    """Update the tables of the storage.

    The previous release may keep running. `serve` and `worker` do the same when they start.
    With --finish it fills the new columns of rows that the previous release has written since.
    """
    storage = assembling.build_storage(configuration)
    try:
        storage.migrate()
        if not finish:
            return {"migrated": True}
        if not isinstance(storage, FinishesMigrations):
            raise click.ClickException("This storage needs no such step.")
        return {"migrated": True, "rowsPutRight": storage.finish_migration()}
    finally:
        storage.close()
