"""A dashboard with accounts, banks, links and forms, and each page's path: for a real browser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs
from playwright.sync_api import Page

from tests.http.console import Console
from tests.http.dashboard.bank_business import open_bank_business
from tests.http.dashboard.operator_browser import CHEAP
from tests.http.pages.browser import serve

OFFICE_PAGES = (
    "links",
    "link",
    "link-new",
    "accounts",
    "account",
    "deposits",
    "payouts",
    "payout",
    "onramps",
    "onramp",
    "endpoint-new",
    "endpoint-change",
    "endpoint-archive",
    "settings",
    "key-new",
    "key-revoke",
)
"""The names of all its pages."""

LONG = "a shop with a long name, " * 4
WALLET = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"


@attrs.frozen
class ServedOffice:
    """A served dashboard, its operator's password, and its pages."""

    url: str
    console: Console
    password: str = attrs.field(repr=False)
    pages: Mapping[str, str]

    def log_in(self, page: Page) -> None:
        """Log in at the page that is open."""
        page.fill("[name=username]", "olivia")
        page.fill("[name=password]", self.password)
        page.click("main button")


@contextmanager
def serve_office() -> Iterator[ServedOffice]:
    """An account with a deposit and business at banks, links, settings, and a restricted key."""
    console = Console(funds="1000")
    service = console.api.service
    service.parts.operators._cost = CHEAP
    business = open_bank_business(console)
    payout = business.pay_out(reference="rent-" + "2026" * 20)
    business.decide(payout, outcome="return", code="R03")
    business.pay_out("75.00")
    transfer = business.receive("250.00")
    for _ in range(3):
        console.advance(60)
    business.receive("19.99")
    console.account(LONG[:100], wallets=[{"address": WALLET, "chainType": "evm", "label": "Cold"}])
    account = f"/v2/accounts/{console.payer}"
    address = console.call("POST", f"{account}/deposit-addresses", {"chainId": 8453}).json
    console.transfer(address["address"], "3.25")
    console.call("POST", f"/v2/accounts/{console.merchant}/verifications", {})
    _create(console, "cancelled")
    made = _create(console, "link", reference="order-1042", description="Bread " * 20)
    endpoint = console.endpoint("https://93.184.216.34/hook", "payment.succeeded")
    settings = {
        "enabled": True, "allowedOrigins": ["https://shop.example"], "feeBps": 25,
        "allowedDestinations": [{"type": "wallet", "chainId": 8453, "address": WALLET}],
        "branding": {"name": "Shop", "primaryColor": "#1a2b3c"},
    }  # fmt: skip
    assert console.call("PUT", "/v2/partners/payment-settings", settings).status == 200
    key = service.environment(console.api.partition).keys.create("reports", scopes=["v2:payments"])
    hook = f"/dashboard/webhooks/{endpoint['id']}"
    pages = {
        "links": "/dashboard/links",
        "link": f"/dashboard/links/{made['id']}",
        "link-new": "/dashboard/links/new",
        "accounts": "/dashboard/accounts",
        "account": f"/dashboard/accounts/{console.payer}?balances=now",
        "deposits": f"/dashboard/accounts/{console.payer}/deposits",
        "payouts": "/dashboard/payouts",
        "payout": f"/dashboard/payouts/{payout}",
        "onramps": "/dashboard/onramps",
        "onramp": f"/dashboard/onramps/{transfer}",
        "endpoint-new": "/dashboard/webhooks/new",
        "endpoint-change": f"{hook}/change",
        "endpoint-archive": f"{hook}/status?status=archived",
        "settings": "/dashboard/settings",
        "key-new": "/dashboard/keys/new",
        "key-revoke": f"/dashboard/keys/{key[0].id}/revoke",
    }
    with serve(console.api.app) as url:
        yield ServedOffice(
            url=url,
            console=console,
            password=service.operators.create(console.api.partition, "olivia").password,
            pages=pages,
        )


def _create(console: Console, key: str, **more: Any) -> Any:
    seen = console.create("12.50", key=key, **more)
    assert seen.status == 201, seen.body
    if key == "cancelled":
        console.call("POST", f"/v2/payments/{seen.json['id']}/cancel")
    return seen.json
