"""`payments admin migrate`."""

from __future__ import annotations

import click

from payments_core.storage.port import FinishesMigrations
from payments_core_http.cli.admin.service_command import CommandResult, print_result
from payments_core_http.cli.config_option import with_configuration
from payments_core_http.deployment import build as assembling
from payments_core_http.deployment.configuration import Configuration


@click.command()
@click.option("--finish", is_flag=True, help="After the last process of the release before ended.")
@with_configuration
@print_result
def command(configuration: Configuration, finish: bool) -> CommandResult:
    """Bring the storage's tables up to date.

    It may run while the release before serves; `serve` and `worker` do the same as they start.
    With --finish it puts right what that release has written since without the new columns.
    """
    storage = assembling.build_storage(configuration)
    try:
        storage.migrate()
        if not finish:
            return {"migrated": True}
        if not isinstance(storage, FinishesMigrations):
            raise click.ClickException("This storage has nothing to finish.")
        return {"migrated": True, "rowsPutRight": storage.finish_migration()}
    finally:
        storage.close()
