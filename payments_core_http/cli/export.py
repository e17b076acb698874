"""`payments export`."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import click

from payments_core.books.exporting import add_up_opening, read_movements
from payments_core.books.exports.beancount import iter_beancount
from payments_core.books.exports.database import write_database
from payments_core.books.exports.postings import iter_postings_csv
from payments_core.books.exports.whole_file import write_whole
from payments_core.books.period import Period
from payments_core.service import PaymentsService
from payments_core.storage.maintenance import Progress
from payments_core_http.cli.admin.service_command import (
    environment_argument,
    find_environment,
    open_service,
    report_errors,
)
from payments_core_http.cli.book_period import read_period, with_period
from payments_core_http.cli.config_option import report_refusals, with_configuration
from payments_core_http.cli.documents import print_document
from payments_core_http.cli.progress import show_progress
from payments_core_http.deployment.configuration import Configuration

Pieces = Callable[[PaymentsService, str, Period, Progress], Iterator[bytes]]


@click.command()
@environment_argument
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "beancount", "sqlite"]),
    required=True,
    help="CSV: a line for each posting. beancount: for plain-text accounting. sqlite: a file for"
    " Datasette and any SQL tool.",
)
@with_period
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; an existing one is refused. Without it, CSV and beancount go to"
    " standard output.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON of the written file: its size, and its digest for your archive.",
)
@with_configuration
def command(
    configuration: Configuration,
    environment: str,
    form: str,
    first: datetime,
    end: datetime,
    output: Path | None,
    as_json: bool,
) -> None:
    """Write the books of a period as CSV, beancount or an SQLite file.

    They have every movement; beancount and SQLite also what each account had before and after.

    ENVIRONMENT is the id of an environment, or its app's partner id. It reads in pages beside the
    running service, and writes nothing to the storage. The same period gives the same bytes.
    docs/how-to/close-a-month.md goes through a whole month.
    """
    if output is None and form == "sqlite":
        raise click.UsageError("--format sqlite needs --output.")
    if output is None and as_json:
        raise click.UsageError("--json needs --output: standard output has the export.")
    if output is not None and output.exists():
        raise click.ClickException(f"{output} exists: an export replaces no file.")
    if output is not None and not os.access(folder := output.absolute().parent, os.W_OK):
        raise click.ClickException(f"{folder} is no folder that this user can write to.")
    with report_refusals(), report_errors(), open_service(configuration) as service:
        partition = find_environment(service, configuration.mode, environment).id
        period = read_period(service, first, end)
        with show_progress("Exporting") as progress:
            if form == "sqlite":
                assert output is not None
                _write_database(service, partition, period, output, progress)
            else:
                _write_text(_PIECES[form](service, partition, period, progress), output)
    if output is not None:
        _describe(output, as_json)


def _write_database(
    service: PaymentsService, partition: str, period: Period, output: Path, progress: Progress
) -> None:
    storage = service.parts.ports.storage
    opening = add_up_opening(storage, partition, period, progress)
    movements = read_movements(storage, partition, period, progress)
    write_database(output, partition, period, opening, movements)


def _iter_csv(
    service: PaymentsService, partition: str, period: Period, progress: Progress
) -> Iterator[bytes]:
    storage = service.parts.ports.storage
    return iter_postings_csv(read_movements(storage, partition, period, progress))


def _iter_beancount(
    service: PaymentsService, partition: str, period: Period, progress: Progress
) -> Iterator[bytes]:
    storage = service.parts.ports.storage
    opening = add_up_opening(storage, partition, period, progress)
    movements = read_movements(storage, partition, period, progress)
    return iter_beancount(f"Books of {partition}", period, opening, movements)


_PIECES: Mapping[str, Pieces] = {"csv": _iter_csv, "beancount": _iter_beancount}


def _write_text(pieces: Iterator[bytes], output: Path | None) -> None:
    """Write to standard output, or to a file that has its name only when it is complete."""
    if output is None:
        _write_all(pieces, sys.stdout.buffer)
        return
    with write_whole(output) as unfinished, unfinished.open("wb") as file:
        _write_all(pieces, file)


def _describe(output: Path, as_json: bool) -> None:
    with output.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    document = {"file": str(output), "bytes": output.stat().st_size, "sha256": digest}
    if as_json:
        click.echo(json.dumps(document, ensure_ascii=False))
    else:
        print_document(document)


def _write_all(pieces: Iterator[bytes], file: BinaryIO) -> None:
    for piece in pieces:
        file.write(piece)
    file.flush()
