"""`payments events`: the events of a sandbox, past and new."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from payments_core_http.cli.event_names import suggest_event_names
from payments_core_http.cli.following import EntryPrinter, print_list, with_list_options
from payments_core_http.cli.sandbox_client import SandboxClient, with_sandbox_options

FIELDS = ("createdAt", "name", "id")


@click.command()
@with_list_options("event")
@click.option("--name", help="Only events with this name, such as payment.succeeded.")
@with_sandbox_options
def command(
    limit: int, name: str | None, is_followed: bool, url: str | None, data: Path, as_json: bool
) -> None:
    """List the events of a sandbox, newest first. Or follow them.

    Each line is an event: its time, name and id. `payments resend` takes the id; with --json each
    line is the whole event, as in its deliveries.

    \b
    Examples:
      payments events --limit 5 --name payment.succeeded
      payments events --follow
    """
    client = SandboxClient.at(url, data)
    advice = suggest_event_names([] if name is None else [name])

    def list_page(cursor: str | None, limit: int) -> Any:
        query = {"limit": str(limit), "name": name, "cursor": cursor}
        given = urlencode({key: value for key, value in query.items() if value is not None})
        return client.call("GET", f"/v2/console/events?{given}", advice=advice)

    empty = "No event yet." if name is None else f"No {name} yet."
    printer = EntryPrinter(FIELDS, as_json)
    print_list(list_page, printer, limit=limit, is_followed=is_followed, empty=empty)
