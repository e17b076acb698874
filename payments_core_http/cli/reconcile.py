"""`payments reconcile`."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import attrs
import click

from payments_core.banks.port import BankUnavailable
from payments_core.books.differences import Difference
from payments_core.books.tally import Tally
from payments_core.chains.port import ChainUnavailable
from payments_core.money import format_signed_amount
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


@click.command()
@environment_argument
@with_period
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a line for each difference.")
@with_configuration
def command(
    configuration: Configuration, environment: str, first: datetime, end: datetime, as_json: bool
) -> None:
    """Compare journal, chains and bank for a period, and name each difference.

    Every Payment and bank transfer is compared that began in the period, or has an entry in it.
    The exit code is 1 if anything differs, or could not be compared. It writes nothing.
    docs/how-to/close-a-month.md says what to do about each kind.
    """
    tally = Tally()
    with report_refusals(), report_errors(), open_service(configuration) as service:
        partition = find_environment(service, configuration.mode, environment).id
        period = read_period(service, first, end)
        comparison = service.parts.book_comparison(configuration.mode)
        try:
            with show_progress("Comparing") as progress:
                for found in comparison.compare(partition, period, tally, progress):
                    _print_difference(found, as_json)
        except (ChainUnavailable, BankUnavailable) as error:
            raise click.ClickException(str(error)) from error
    document = _render_tally(tally)
    if as_json:
        click.echo(json.dumps(document, ensure_ascii=False))
    else:
        print_document(document)
    if not tally.is_clean:
        raise click.exceptions.Exit(1)


def _print_difference(found: Difference, as_json: bool) -> None:
    amounts = {
        name: format_signed_amount(amount, found.decimals)
        for name, amount in (("expected", found.expected), ("found", found.found))
    }
    if as_json:
        atomic = {"expectedAtomic": str(found.expected), "foundAtomic": str(found.found)}
        document = {
            "kind": found.kind,
            "resourceId": found.resource_id,
            "subject": found.subject,
            "symbol": found.symbol,
            **amounts,
            **atomic,
            "detail": found.detail,
        }
        click.echo(json.dumps(document, ensure_ascii=False))
        return
    click.echo(
        f"{found.kind}  {found.resource_id}: {found.detail}; {found.subject}: expected"
        f" {amounts['expected']}, found {amounts['found']} {found.symbol}".rstrip()
    )


def _render_tally(tally: Tally) -> dict[str, Any]:
    counts = attrs.asdict(tally, recurse=False)
    return {
        "payments": counts["payments"],
        "entries": counts["entries"],
        "bankTransfers": counts["bank_transfers"],
        "transfers": counts["transfers"],
        "payouts": counts["payouts"],
        "inProgress": counts["in_progress"],
        "differences": dict(sorted(tally.differences.items())),
        "unchecked": dict(sorted(tally.unchecked.items())),
    }
