"""`payments open`: the pages of a running sandbox, in the browser or as URLs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import quote

import click

from payments_core_http.cli.sandbox_client import SandboxClient, with_sandbox_options

PAGES = {"dashboard": "/dashboard", "reference": "/docs"}


@click.command()
@click.argument("what", default="dashboard", metavar="[dashboard|reference|PAYMENT_ID]")
@click.option("--print", "only_print", is_flag=True, help="Print the URL and open nothing.")
@with_sandbox_options
def command(what: str, only_print: bool, url: str | None, data: Path, as_json: bool) -> None:
    """Open the dashboard, the reference or a checkout page of a sandbox.

    It prints the URL, and opens it in a browser if the output is a terminal.

    \b
    Examples:
      payments open
      payments open reference --print
      payments open payment_01jx
    """
    client = SandboxClient.at(url, data)
    page = client.url + PAGES[what] if what in PAGES else _find_checkout(client, what)
    click.echo(json.dumps({"url": page}) if as_json else page)
    if sys.stdout.isatty() and not (only_print or as_json):
        click.launch(page)


def _find_checkout(client: SandboxClient, payment_id: str) -> str:
    advice = f"Give {', '.join(PAGES)} or the id of a Payment; POST /v2/payments answers with it."
    payment = client.call("GET", f"/v2/payments/{quote(payment_id, safe='')}", advice=advice)
    page = payment.get("paymentUrl")
    if page is None:
        raise click.ClickException(
            f"{payment_id} has no checkout page: only a Payment that receives has one."
        )
    return str(page)
