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
from payments_core_http.deployment.configuration import Configuration

_file = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
_overwrite = click.option("--overwrite", is_flag=True, help="Replace a file that is there.")


@click.group()
def command() -> None:
    """Copy an SQLite database while it is in use, and put a copy back.

    PostgreSQL has tools of its own: docs/how-to/back-up-and-restore.md.
    """


@command.command(name="make")
@_file
@_overwrite
@with_configuration
@print_result
def make_(configuration: Configuration, file: Path, overwrite: bool) -> CommandResult:
    """Copy the database to FILE, whole and checked. The service may run."""
    database = _find_database(configuration)
    return _render_backup(lambda: backup(database, file, RECORD_TYPES, overwrite=overwrite))


@command.command(name="restore")
@_file
@_overwrite
@click.option(
    "--retired-too",
    is_flag=True,
    help="Replace even a database that was moved: its copy must do nothing any more.",
)
@with_configuration
@print_result
def restore_(
    configuration: Configuration, file: Path, overwrite: bool, retired_too: bool
) -> CommandResult:
    """Put FILE in the database's place. No process may use that meanwhile.

    What happened since the copy was made is forgotten here, but not on the chains: read
    docs/how-to/back-up-and-restore.md before you start the service again.
    """
    database = _find_database(configuration)
    return _render_backup(
        lambda: restore(file, database, RECORD_TYPES, overwrite=overwrite, retired_too=retired_too)
    )


def _find_database(configuration: Configuration) -> Path:
    url = configuration.storage.url
    if not url.startswith("sqlite:///"):
        raise click.ClickException("Only an SQLite database is copied by this command.")
    return Path(url.removeprefix("sqlite:///"))


def _render_backup(do: Any) -> dict[str, Any]:
    try:
        done: Backup = do()
    except BackupFailed as failure:
        raise click.ClickException(f"{failure}") from failure
    return {**attrs.asdict(done), "path": str(done.path)}
