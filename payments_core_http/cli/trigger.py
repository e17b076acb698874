"""`payments trigger`: a test event of the catalog."""

from __future__ import annotations

import json
from pathlib import Path

import click

from payments_core_http.cli.event_names import suggest_event_names
from payments_core_http.cli.sandbox_client import SandboxClient, with_sandbox_options


@click.command()
@click.argument("event")
@click.argument("facts", nargs=-1, metavar="[KEY=VALUE]...")
@with_sandbox_options
def command(event: str, facts: tuple[str, ...], url: str | None, data: Path, as_json: bool) -> None:
    """Send a test event to your webhook endpoints.

    EVENT is a name of the catalog, such as payment.succeeded. With accountId=acct_... or
    paymentId=payment_... it is about that resource, otherwise about the newest one. No
    resource changes.

    \b
    Example:
      payments trigger payment.succeeded
      payments trigger account.updated accountId=acct_...
    """
    body = {"name": event}
    for fact in facts:
        name, equals, value = fact.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{fact!r} is not KEY=VALUE", param_hint="KEY=VALUE")
        if name in body:
            raise click.BadParameter(f"{name} is given twice", param_hint="KEY=VALUE")
        body[name] = value
    sandbox = SandboxClient.at(url, data)
    awaited = _is_awaited(sandbox, event)
    made = sandbox.call("POST", "/v2/sandbox/events", body, advice=suggest_event_names([event]))
    if as_json:
        click.echo(json.dumps(made, ensure_ascii=False))
    else:
        click.echo(f"{made['name']}  {made['eventId']}")
    if not awaited:
        click.echo(f"Nothing is sent: no active endpoint is subscribed to {event}.", err=True)


def _is_awaited(sandbox: SandboxClient, event: str) -> bool:
    """Whether an endpoint gets such events; one without subscriptions gets them all."""
    return any(
        endpoint["status"] == "active"
        and (not endpoint["subscribedEvents"] or event in endpoint["subscribedEvents"])
        for endpoint in sandbox.list_all("/v2/console/webhooks", "webhookEndpoints")
    )
