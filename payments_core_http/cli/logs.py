"""`payments logs`: what programs have asked of a sandbox's API, and what they ask from now on."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from payments_core_http.cli.following import MAX_LIMIT, follow
from payments_core_http.cli.sandbox_client import SandboxClient, with_sandbox_options

COLORS = {"2": "green", "3": "cyan", "4": "yellow", "5": "red"}
"""By the first digit of the status."""


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_LIMIT),
    default=20,
    show_default=True,
    help="How many requests to list.",
)
@click.option("--status", help="Only requests that were answered so, such as 404 or 4xx.")
@click.option(
    "--follow",
    "is_followed",
    is_flag=True,
    help="Print the oldest first, then each new request, until Ctrl-C.",
)
@with_sandbox_options
def command(
    limit: int, status: str | None, is_followed: bool, url: str | None, data: Path, as_json: bool
) -> None:
    """List the API requests of a sandbox, newest first. Or follow them.

    Each line is a request: its time, status, duration, method, path, error code and id. The
    newest 500 are kept, and come here two seconds after their answers. The dashboard shows the
    bodies too.

    \b
    Examples:
      payments logs --limit 5
      payments logs --follow --status 4xx
    """
    client = SandboxClient.at(url, data)

    def list_page(cursor: str | None = None, limit: int = MAX_LIMIT) -> Any:
        query = {"limit": str(limit), "status": status, "cursor": cursor}
        given = urlencode({key: value for key, value in query.items() if value is not None})
        return client.call("GET", f"/v2/console/requests?{given}")

    page = list_page(limit=MAX_LIMIT if is_followed else limit)
    newest = page["data"][:limit]
    if not newest:
        click.echo("No request yet." if status is None else f"No {status} yet.", err=True)
    for request in reversed(newest) if is_followed else newest:
        _print_request(request, as_json)
    if is_followed:
        with contextlib.suppress(KeyboardInterrupt):
            for request in follow(list_page, [request["id"] for request in page["data"]]):
                _print_request(request, as_json)


def _print_request(request: Any, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(request, ensure_ascii=False))
        return
    status = click.style(str(request["status"]), fg=COLORS.get(str(request["status"])[0]))
    words = (request["method"], request["path"], request["errorCode"], request["id"])
    told = "  ".join(word for word in words if word is not None)
    click.echo(f"{request['createdAt']}  {status}  {request['durationMs']:>5} ms  {told}")
