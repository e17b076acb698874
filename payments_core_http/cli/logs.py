"""`payments logs`: the API requests of a sandbox, past and new."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import click

from payments_core.explorers import NO_EXPLORER, Explorer
from payments_core_http.cli.following import EntryPrinter, print_list, with_list_options
from payments_core_http.cli.sandbox_client import SandboxClient, with_sandbox_options

FIELDS = ("createdAt", "status", "durationMs", "method", "path", "errorCode", "id")

COLORS = {"2": "green", "3": "cyan", "4": "yellow", "5": "red"}
"""By the first digit of the status."""


@click.command()
@with_list_options("request")
@click.option("--status", help="Only requests with this status, such as 404 or 4xx.")
@click.option(
    "--payment", metavar="ID", help="Only requests of this Payment, and where to see it on a chain."
)
@with_sandbox_options
def command(
    limit: int,
    status: str | None,
    payment: str | None,
    is_followed: bool,
    url: str | None,
    data: Path,
    as_json: bool,
) -> None:
    """List the API requests of a sandbox, newest first. Or follow them.

    Each line is a request: its time, status, duration in milliseconds, method, path, error code
    and id. The newest 500 are kept, and appear here two seconds after their answers. The dashboard
    shows the bodies too.

    With --payment the links of its escrow and its transactions in the network's explorer come
    first, unless --json is given; a simulated network has none.

    \b
    Examples:
      payments logs --limit 5
      payments logs --follow --status 4xx
      payments logs --payment payment_...
    """
    client = SandboxClient.at(url, data)

    def list_page(cursor: str | None, limit: int) -> Any:
        query = {"limit": str(limit), "status": status, "path": payment, "cursor": cursor}
        given = urlencode({key: value for key, value in query.items() if value is not None})
        return client.call("GET", f"/v2/console/requests?{given}")

    printer = EntryPrinter(FIELDS, as_json, {"status": lambda cell: COLORS.get(cell[0], "")})
    empty = "No request yet." if status is None else f"No {status} yet."
    if payment is not None and not as_json:
        for what, link in find_links(client, payment):
            click.echo(f"{what:<8}  {link}")
    print_list(list_page, printer, limit=limit, is_followed=is_followed, empty=empty)


def find_links(client: SandboxClient, payment_id: str) -> list[tuple[str, str]]:
    """What an explorer shows of a Payment: what it is, and its page. Raises ClickException."""
    payment = client.call("GET", f"/v2/payments/{quote(payment_id, safe='')}")
    chains = client.call("GET", "/v2/sandbox")["chains"]
    explorers = {chain["chainId"]: Explorer(chain["explorerUrl"]) for chain in chains}
    own = payment["chainId"]
    transactions = [
        *(("receipt", one["chainId"], one["transactionHash"]) for one in payment["receipts"]),
        ("release", own, payment["releaseTransactionHash"]),
        *(("refund", one["chainId"], one["transactionHash"]) for one in payment["refunds"]),
    ]
    escrow = payment.get("escrow")
    found = [("escrow", escrow and _choose(explorers, own).link_address(escrow["address"]))]
    found += [
        (what, hash and _choose(explorers, chain_id).link_transaction(hash))
        for what, chain_id, hash in transactions
    ]
    return [(what, link) for what, link in found if link]


def _choose(explorers: Mapping[int, Explorer], chain_id: int) -> Explorer:
    return explorers.get(chain_id, NO_EXPLORER)
