"""`payments events`: what has happened in a sandbox, newest first."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlencode

import click

from payments_core_http.cli.event_names import suggest_event_names
from payments_core_http.cli.sandbox_client import SandboxClient, with_sandbox_options


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(1, 100),
    default=20,
    show_default=True,
    help="How many events to list.",
)
@click.option("--name", help="Only events with this name, such as payment.succeeded.")
@with_sandbox_options
def command(limit: int, name: str | None, url: str | None, data: Path, as_json: bool) -> None:
    """List the events of a sandbox, newest first.

    Each line is an event: its time, name and id. `payments resend` takes the id; with --json each
    line is the whole event, as in its deliveries.

    \b
    Example:
      payments events --limit 5 --name payment.succeeded
    """
    query = {"limit": str(limit)} | ({} if name is None else {"name": name})
    page = SandboxClient.at(url, data).call(
        "GET",
        f"/v2/console/events?{urlencode(query)}",
        advice=suggest_event_names([] if name is None else [name]),
    )
    if not page["data"]:
        click.echo("No event yet." if name is None else f"No {name} yet.", err=True)
    for event in page["data"]:
        if as_json:
            click.echo(json.dumps(event, ensure_ascii=False))
        else:
            click.echo(f"{event['createdAt']}  {event['name']:<28}  {event['id']}")
