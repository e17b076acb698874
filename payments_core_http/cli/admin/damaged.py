"""`payments admin damaged`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import attrs
import click

from payments_core.maintenance.damaged_rows import DamagedRow, DamagedRows, check_rows, encode_body
from payments_core.maintenance.record import RowRepair
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.storage.maintenance import RecordRow
from payments_core_http.cli.admin.service_command import CommandResult, format_time, print_result
from payments_core_http.cli.config_option import with_configuration
from payments_core_http.cli.progress import show_progress
from payments_core_http.deployment import build as assembling
from payments_core_http.deployment.configuration import Configuration


def with_place(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the three arguments that name a row, as the list and the alarms do."""
    for name in ("id", "partition", "collection"):
        command = click.argument(name)(command)
    return command


confirm_option = click.option(
    "--confirm", metavar="ID", help="The id of the row again; without it the command asks for it."
)


@click.group()
def command() -> None:
    """List damaged rows; show, repair or remove one.

    A row is damaged if its document cannot be read. COLLECTION, PARTITION and ID are those of the
    list, of `payments doctor` and of the alarm (docs/how-to/damaged-rows.md).
    """


@command.command(name="list")
@with_configuration
@print_result
def list_(configuration: Configuration) -> CommandResult:
    """Read every row, and list the damaged ones. The service may keep running."""
    with _open_unverified(configuration) as service, show_progress("Reading") as progress:
        found = check_rows(service.parts.ports.storage, RECORD_TYPES, progress=progress).damaged
    return [attrs.asdict(place) for place in found]


@command.command()
@with_place
@with_configuration
@print_result
def show(configuration: Configuration, collection: str, partition: str, id: str) -> CommandResult:
    """Show a damaged row as it is stored. It may contain data of your customers."""
    place = DamagedRow(collection, partition, id)
    with _open_unverified(configuration) as service:
        return _render_row(place, _damaged_rows(service).get(place))


@command.command()
@with_place
@click.argument("document", type=click.File("rb"))
@confirm_option
@with_configuration
@print_result
def repair(
    configuration: Configuration,
    collection: str,
    partition: str,
    id: str,
    document: BinaryIO,
    confirm: str | None,
) -> CommandResult:
    """Replace the document of a damaged row with that of a JSON file, `-` for standard input.

    The document must be one that the release can read, of the same id. The command prints the
    document that was replaced: save it.
    """
    place = DamagedRow(collection, partition, id)
    with _open_unverified(configuration) as service:
        rows = _damaged_rows(service)
        before = rows.get(place)
        _require_confirmed(place, confirm)
        return _render_repair(place, before, rows.repair(place, document.read()))


@command.command()
@with_place
@confirm_option
@with_configuration
@print_result
def remove(
    configuration: Configuration, collection: str, partition: str, id: str, confirm: str | None
) -> CommandResult:
    """Delete a damaged row, if nothing can repair it and no record needs it.

    The command prints the document that was deleted: save it.
    """
    place = DamagedRow(collection, partition, id)
    with _open_unverified(configuration) as service:
        rows = _damaged_rows(service)
        before = rows.get(place)
        _require_confirmed(place, confirm)
        return _render_repair(place, before, rows.remove(place))


@contextmanager
def _open_unverified(configuration: Configuration) -> Iterator[PaymentsService]:
    """The service, without reading anything first: any row may be the damaged one."""
    key_ring = assembling.build_key_ring(configuration)
    storage = assembling.build_storage(configuration)
    with contextlib.closing(storage):
        service = assembling.build_service(configuration, storage, key_ring)
        with contextlib.closing(service):
            yield service


def _damaged_rows(service: PaymentsService) -> DamagedRows:
    return DamagedRows(service.parts.ports, RECORD_TYPES)


def _require_confirmed(place: DamagedRow, confirm: str | None) -> None:
    given = confirm or click.prompt(
        f"This changes {place.collection} in {place.partition}. Type the id of the row", err=True
    )
    if given != place.id:
        raise click.ClickException("That is not the id of the row. Nothing was changed.")


def _render_row(place: DamagedRow, row: RecordRow) -> dict[str, Any]:
    return {
        **attrs.asdict(place),
        "version": row.version,
        "document": encode_body(row).decode(errors="backslashreplace"),
    }


def _render_repair(place: DamagedRow, before: RecordRow, repair: RowRepair) -> dict[str, Any]:
    return {
        **_render_row(place, before),
        "repairId": repair.id,
        "action": repair.action,
        "at": format_time(repair.created_at_ms),
    }
