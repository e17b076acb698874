"""`payments listen`: a sandbox's webhooks, verified, printed, and forwarded to your own code."""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from payments_core.clock import SystemClock, format_iso
from payments_core.webhooks.filters import parse_rule
from payments_core_http.cli.event_names import suggest_event_names
from payments_core_http.cli.forwarding import (
    DeliveryReport,
    ForwardingServer,
    ForwardTarget,
    InvalidTarget,
    ReportDelivery,
)
from payments_core_http.cli.interrupts import Interrupts
from payments_core_http.cli.reader import forget_gone_reader
from payments_core_http.cli.sandbox_client import SandboxClient, with_sandbox_options

NAME_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,40}")


def _parse_target(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> ForwardTarget | None:
    """The address to forward to; a wrong one is a usage error."""
    try:
        return None if value is None else ForwardTarget.of(value)
    except InvalidTarget as wrong:
        raise click.BadParameter(str(wrong), ctx, param) from wrong


@click.command()
@click.option(
    "--forward-to",
    metavar="URL",
    callback=_parse_target,
    help="The URL to forward each delivery to.",
)
@click.option("--events", help="Only these events, separated by commas; default: all events.")
@click.option(
    "--filter",
    "rules",
    metavar="RULE",
    multiple=True,
    help="Only events that satisfy this rule, such as 'payload.chainId = 8453'; may be repeated.",
)
@click.option(
    "--name",
    default="default",
    show_default=True,
    help="The name of this listener, if a sandbox has several.",
)
@with_sandbox_options
def command(
    forward_to: ForwardTarget | None,
    events: str | None,
    rules: tuple[str, ...],
    name: str,
    url: str | None,
    data: Path,
    as_json: bool,
) -> None:
    """Receive a sandbox's webhooks on this machine.

    It registers its own endpoint, prints the signing secret, verifies each delivery and prints a
    line for it. With --forward-to it forwards the body and the headers unchanged and returns your
    code's response to the sandbox: your code verifies with the printed secret. The sandbox repeats
    a delivery after a 5xx, 408, 425 or 429, as in production. Ctrl-C stops it and archives the
    endpoint.

    \b
    Example:
      payments listen --forward-to http://localhost:4242/hooks --events payment.succeeded
    """
    if not NAME_PATTERN.fullmatch(name):
        raise click.BadParameter("must have 1 to 40 letters, digits, - and _", param_hint="--name")
    subscribed = [item.strip() for item in (events or "").split(",") if item.strip()]
    if events is not None and not subscribed:
        raise click.BadParameter("must name at least one event", param_hint="--events")
    sandbox = SandboxClient.at(url, data)
    interrupts = Interrupts()
    interrupts.handle()
    try:
        with (
            _hold_lock(data, name),
            ForwardingServer(forward_to, _make_reporter(as_json), interrupts) as listener,
        ):
            _listen(
                sandbox,
                listener,
                f"payments listen: {name}",
                subscribed,
                [parse_rule(rule) for rule in rules],
                as_json,
                interrupts,
            )
    except KeyboardInterrupt:
        return
    forget_gone_reader()


def _listen(
    sandbox: SandboxClient,
    listener: ForwardingServer,
    description: str,
    events: list[str],
    rules: list[dict[str, Any]],
    as_json: bool,
    interrupts: Interrupts,
) -> None:
    """Register, serve until a signal comes, and archive."""
    _archive_left_over(sandbox, description)
    body = {
        "url": listener.url,
        "description": description,
        "subscribedEvents": events,
        "filters": rules,
    }
    path = f"/v2/console/apps/{sandbox.app_id}/environments/{sandbox.environment_id}/webhooks"
    try:
        made = sandbox.call("POST", path, body, advice=suggest_event_names(events))
        listener.secret = made["signingSecret"]
        _announce(sandbox, listener, made, as_json)
        listener.serve()
    except (KeyboardInterrupt, BrokenPipeError):
        interrupts.ignore()
        try:
            _archive_left_over(sandbox, description)
        except click.ClickException as error:
            click.echo(
                f"The endpoint could not be archived; the next `payments listen` archives it. "
                f"{error.message}",
                err=True,
            )


def _archive_left_over(sandbox: SandboxClient, description: str) -> None:
    """Archive the endpoint that a killed listener of that name left behind."""
    for endpoint in list(sandbox.list_all("/v2/console/webhooks", "webhookEndpoints")):
        if endpoint["description"] == description and endpoint["status"] != "archived":
            _archive(sandbox, endpoint["id"])


def _archive(sandbox: SandboxClient, endpoint_id: str) -> None:
    sandbox.call("PATCH", f"/v2/console/webhooks/{endpoint_id}", {"status": "archived"})


def _announce(sandbox: SandboxClient, listener: ForwardingServer, made: Any, as_json: bool) -> None:
    endpoint, target = made["webhookEndpoint"], listener.target
    if as_json:
        facts = {
            "webhookId": endpoint["id"],
            "url": listener.url,
            "signingSecret": made["signingSecret"],
            "subscribedEvents": endpoint["subscribedEvents"],
            "filters": endpoint["filters"],
            "forwardTo": None if target is None else target.url,
        }
        click.echo(json.dumps(facts, ensure_ascii=False))
        return
    to = "" if target is None else f" -> {target.url}"
    wanted = ", ".join(endpoint["subscribedEvents"]) or "every event"
    click.echo(f"Webhooks of {sandbox.url}{to}")
    click.echo(f"Events          {wanted}")
    click.echo(f"Signing secret  {made['signingSecret']}")
    click.echo("Press Ctrl-C to stop.")


def _make_reporter(as_json: bool) -> ReportDelivery:
    """Prints a line for each delivery: click writes and flushes it in one call."""

    def report(received: DeliveryReport) -> None:
        answer = received.answer
        if as_json:
            facts = {
                "at": format_iso(SystemClock().now()),
                "name": received.name or None,
                "eventId": received.event_id or None,
                "deliveryId": received.delivery_id or None,
                "refused": received.refused,
                "forwardStatus": None if answer is None else answer.status,
                "forwardFailure": None if answer is None else answer.failure,
            }
            click.echo(json.dumps(facts, ensure_ascii=False))
            return
        at = time.strftime("%H:%M:%S")
        if received.refused is not None:
            click.echo(f"{at}  refused: {received.refused}")
            return
        outcome = "" if answer is None else f"  -> {answer.status or answer.failure}"
        click.echo(f"{at}  {received.name:<28}  {received.event_id}{outcome}")

    return report


@contextmanager
def _hold_lock(data: Path, name: str) -> Iterator[None]:
    """Be the only listener of that name. The lock ends with the process, however it ends."""
    lock = os.open(data / f"listen-{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise click.ClickException(
                f"Another `payments listen` is running with the name {name}. Choose another name "
                "with --name."
            ) from None
        yield
    finally:
        os.close(lock)
