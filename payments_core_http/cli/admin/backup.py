"""`payments admin backup`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import click

from payments_core.record_types import RECORD_TYPES
from payments_core.storage.sqlite.backups import Backup, BackupFailed, backup, restore
from payments_core_http.cli.admin.service_command import CommandResult, print_result
from payments_core_http.cli.config_option import with_configuration
from payments_core_http.cli.progress import show_progress
from payments_core_http.deployment.configuration import Configuration

_file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
_overwrite = click.option("--overwrite", is_flag=True, help="Replace an existing file.")


@click.group()
def command() -> None:
    """Back up an SQLite database while it is in use, and restore a backup.

    PostgreSQL has its own tools: docs/how-to/back-up-and-restore.md.
    """


@command.command(name="make")
@_file
@_overwrite
@with_configuration
@print_result
def make_(configuration: Configuration, file: Path, overwrite: bool) -> CommandResult:
    """Copy the database to FILE and check the copy. The service may run."""
    database = _find_database(configuration)
    with show_progress("Copying the database and checking the copy"):
        return _render_backup(lambda: backup(database, file, RECORD_TYPES, overwrite=overwrite))


@command.command(name="restore")
@_file
@_overwrite
@click.option(
    "--retired-too",
    is_flag=True,
    help="Also replace a database that was moved; its copy must no longer be in use.",
)
@with_configuration
@print_result
def restore_(
    configuration: Configuration, file: Path, overwrite: bool, retired_too: bool
) -> CommandResult:
    """Replace the database with FILE. Stop all processes that use it first.

    Records made since the backup are lost here, but not on the chains: read
    docs/how-to/back-up-and-restore.md before you start the service again.
    """
    database = _find_database(configuration)

    def replace() -> Backup:
        return restore(file, database, RECORD_TYPES, overwrite=overwrite, retired_too=retired_too)

    with show_progress("Copying the backup and checking the copy"):
        return _render_backup(replace)


def _find_database(configuration: Configuration) -> Path:
    url = configuration.storage.url
    if not url.startswith("sqlite:///"):
        raise click.ClickException("This command works only with an SQLite database.")
    return Path(url.removeprefix("sqlite:///"))


def _render_backup(do: Any) -> dict[str, Any]:
    try:
        done: Backup = do()
    except BackupFailed as failure:
        raise click.ClickException(f"{failure}") from failure
    return {**attrs.asdict(done), "path": str(done.path)}
