"""`payments logs`: the API requests of a sandbox, past and new."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from payments_core_http.cli.following import EntryPrinter, print_list, with_list_options
from payments_core_http.cli.sandbox_client import SandboxClient, with_sandbox_options

FIELDS = ("createdAt", "status", "durationMs", "method", "path", "errorCode", "id")

COLORS = {"2": "green", "3": "cyan", "4": "yellow", "5": "red"}
"""By the first digit of the status."""


@click.command()
@with_list_options("request")
@click.option("--status", help="Only requests with this status, such as 404 or 4xx.")
@with_sandbox_options
def command(
    limit: int, status: str | None, is_followed: bool, url: str | None, data: Path, as_json: bool
) -> None:
    """List the API requests of a sandbox, newest first. Or follow them.

    Each line is a request: its time, status, duration in milliseconds, method, path, error code
    and id. The newest 500 are kept, and appear here two seconds after their answers. The dashboard
    shows the bodies too.

    \b
    Examples:
      payments logs --limit 5
      payments logs --follow --status 4xx
    """
    client = SandboxClient.at(url, data)

    def list_page(cursor: str | None, limit: int) -> Any:
        query = {"limit": str(limit), "status": status, "cursor": cursor}
        given = urlencode({key: value for key, value in query.items() if value is not None})
        return client.call("GET", f"/v2/console/requests?{given}")

    printer = EntryPrinter(FIELDS, as_json, {"status": lambda cell: COLORS.get(cell[0], "")})
    empty = "No request yet." if status is None else f"No {status} yet."
    print_list(list_page, printer, limit=limit, is_followed=is_followed, empty=empty)
