"""`payments resend`: an event delivered again."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import click

from payments_core_http.cli.sandbox_client import SandboxClient, with_sandbox_options


@click.command()
@click.argument("event_id")
@click.option(
    "--webhook",
    "webhook_id",
    help="The id of the endpoint to send it to; default: all that are subscribed.",
)
@with_sandbox_options
def command(
    event_id: str, webhook_id: str | None, url: str | None, data: Path, as_json: bool
) -> None:
    """Deliver an event again.

    It goes to every active endpoint that is subscribed, or to the one you give. It keeps its event
    id, delivery id and body, so a receiver that has already processed it ignores it.

    \b
    Example:
      payments resend evt_... --webhook webhook_...
    """
    body = {} if webhook_id is None else {"webhookId": webhook_id}
    path = f"/v2/console/events/{quote(event_id, safe='')}/resend"
    made = SandboxClient.at(url, data).call("POST", path, body)
    if as_json:
        click.echo(json.dumps(made, ensure_ascii=False))
        return
    for delivery in made["deliveries"]:
        click.echo(f"{delivery['webhookId']}  {delivery['deliveryId']}  {delivery['status']}")
