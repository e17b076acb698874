"""`payments events`: what has happened in a sandbox, and what happens from now on."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from payments_core_http.cli.event_names import suggest_event_names
from payments_core_http.cli.following import MAX_LIMIT, follow
from payments_core_http.cli.sandbox_client import SandboxClient, with_sandbox_options


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_LIMIT),
    default=20,
    show_default=True,
    help="How many events to list.",
)
@click.option("--name", help="Only events with this name, such as payment.succeeded.")
@click.option(
    "--follow",
    "is_followed",
    is_flag=True,
    help="Print the oldest first, then each new event, until Ctrl-C.",
)
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
    page = _list_page(client, MAX_LIMIT if is_followed else limit, name)
    newest = page["data"][:limit]
    if not newest:
        click.echo("No event yet." if name is None else f"No {name} yet.", err=True)
    for event in reversed(newest) if is_followed else newest:
        _print_event(event, as_json)
    if is_followed:
        with contextlib.suppress(KeyboardInterrupt):
            known = [event["id"] for event in page["data"]]
            for event in follow(lambda cursor: _list_page(client, MAX_LIMIT, name, cursor), known):
                _print_event(event, as_json)


def _list_page(
    client: SandboxClient, limit: int, name: str | None, cursor: str | None = None
) -> Any:
    """A page of the events, newest first."""
    query = {"limit": str(limit), "name": name, "cursor": cursor}
    given = urlencode({key: value for key, value in query.items() if value is not None})
    advice = suggest_event_names([] if name is None else [name])
    return client.call("GET", f"/v2/console/events?{given}", advice=advice)


def _print_event(event: Any, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(event, ensure_ascii=False))
    else:
        click.echo(f"{event['createdAt']}  {event['name']:<28}  {event['id']}")
