"""A Payment in each state that its page shows, made by what really leads there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from payments_core import Acceptance, shipped_networks
from payments_core.chains.port import NetworkKind
from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.checkout import BASE, Checkout
from tests.http.payer_page import Page

MERCHANT = {"enabled": False, "branding": {"name": "Panadería Ñandú"}, "version": 0}
LOGO_URL = "https://cdn.shop.example/logo.svg"
LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 40" width="160" height="40">'
    '<rect width="40" height="40" rx="8" fill="#e0a100"/>'
    '<text x="50" y="28" font-family="sans-serif" font-size="24" fill="#b07d00">Nandu</text></svg>'
)
"""What a browser finds at LOGO_URL, where a test serves it."""

BRANDING = {"name": "Panadería Ñandú", "logoUrl": LOGO_URL, "primaryColor": "#e0a100"}


def make_page(*, checkout: Checkout | None = None, **more: Any) -> Page:
    """A Payment that waits, of a merchant with a name; by default as on a real network."""
    checkout = checkout or Checkout(MemoryStorage()).declare_network("real")
    checkout.api.call("PUT", "/v2/partners/payment-settings", MERCHANT)
    facts = {
        "description": "Two loaves of bread",
        "reference": "order-1042",
        "successUrl": "https://shop.example/thanks",
        "cancelUrl": "https://shop.example/cart",
    }
    return Page(checkout, **{**facts, **more})


def screen(ending: str) -> Page:
    """A Payment that is paid, to a wallet of which the sandbox's screening says something."""
    wallet = {"type": "wallet", "address": "0x" + "ab" * 18 + ending}
    return advance(send(make_page(destination=wallet), "25"), 1)


def wait_for_depth(depth: int) -> Checkout:
    """A shop whose Base accepts a transfer with so many blocks on top of it."""
    base = attrs.evolve(
        shipped_networks()[BASE],
        acceptance=(Acceptance(depth=depth, up_to="1000.00"), Acceptance("finalized")),
    )
    networks = shipped_networks().merge(base)
    return Checkout(MemoryStorage(), networks=networks).declare_network("real")


def look_away(kind: NetworkKind = "real") -> Page:
    """A Payment on a network that nobody has scanned."""
    checkout = Checkout(MemoryStorage())
    chain: Any = checkout.api.service.chains[BASE]
    chain.network_kind = kind
    return make_page(checkout=checkout)


def send(page: Page, *amounts: str) -> Page:
    """Transfers of strangers, each final before the next."""
    for amount in amounts:
        page.checkout.transfer(page.payment["escrow"]["address"], amount)
    return page


def send_other(page: Page) -> Page:
    """The same amount of a token that was not asked for."""
    page.checkout.transfer(page.payment["escrow"]["address"], "25", assetSymbol="USDbC")
    return page


def send_unconfirmed(page: Page, amount: str = "25") -> Page:
    body = {
        "chainId": BASE,
        "assetSymbol": "USDC",
        "to": page.payment["escrow"]["address"],
        "amount": amount,
    }
    page.checkout.api.call("POST", "/v2/sandbox/transfers", body)
    page.checkout.advance(2)
    return page


def brand(page: Page) -> Page:
    body = {"enabled": False, "branding": BRANDING, "version": 1}
    seen = page.checkout.api.call("PUT", "/v2/partners/payment-settings", body)
    assert seen.status == 200, seen.body
    return page


def submit(page: Page) -> Page:
    """A wallet says that it has sent a transfer, which no node knows yet."""
    assert page.submit(page.option()).status == 202
    return page


def advance(page: Page, seconds: int) -> Page:
    page.checkout.advance(seconds)
    return page


def pass_unnoticed(page: Page, seconds: int) -> Page:
    """Time that passes before any job has run."""
    page.checkout.system.advance(seconds)
    return page


def reorg(page: Page) -> Page:
    page.checkout.api.call("POST", "/v2/sandbox/reorgs", {"chainId": BASE, "depth": 50})
    return advance(page, 30)


def fail_release(page: Page) -> Page:
    """The service's next transfer is in a block, and fails there."""
    failure = {"dependency": "chain", "operation": "transfer", "times": 1}
    seen = page.checkout.api.call("POST", "/v2/sandbox/failures", failure)
    assert seen.status == 200, seen.body
    return page


def end(page: Page) -> Page:
    page.checkout.advance(3_610)
    return page


def post(page: Page, path: str, body: Any = None, *, wait_s: int = 60) -> Page:
    id = page.payment["id"]
    seen = page.checkout.api.call("POST", f"/v2/payments/{id}{path}", body, key=path)
    assert seen.status in (200, 201), seen.body
    return advance(page, wait_s) if wait_s else page


SCENES: Mapping[str, Callable[[], Page]] = {
    "waiting": make_page,
    "waiting-elsewhere": lambda: make_page(allowedMethods=["vault"]),
    "not-looked": look_away,
    "misdirected": lambda: send_other(make_page()),
    "branded": lambda: brand(make_page()),
    "submitted": lambda: submit(make_page()),
    "part-paid": lambda: send(make_page(), "10"),
    "part-processing": lambda: send_unconfirmed(make_page(), "10"),
    "processing": lambda: send_unconfirmed(make_page()),
    "counting": lambda: send_unconfirmed(make_page(checkout=wait_for_depth(12))),
    "received": lambda: advance(send_unconfirmed(make_page()), 1),
    "in-review": lambda: screen("4e71"),
    "blocked": lambda: screen("b10c"),
    "paid": lambda: send(make_page(), "25"),
    "overpaid": lambda: send(make_page(), "31.5"),
    "duplicate": lambda: send(make_page(), "25", "25"),
    "ending": lambda: pass_unnoticed(make_page(), 3_601),
    "expired": lambda: end(make_page()),
    "cancelled": lambda: post(make_page(), "/cancel"),
    "late-processing": lambda: send_unconfirmed(end(make_page())),
    "late": lambda: send(end(make_page()), "25"),
    "short": lambda: end(send(make_page(), "10")),
    "undone": lambda: reorg(send(make_page(), "10")),
    "reversed": lambda: reorg(send(make_page(), "25")),
    "undelivered": lambda: send(fail_release(make_page()), "25"),
    "refunding": lambda: post(send(make_page(), "25"), "/refunds", {}, wait_s=0),
    "excess-refunded": lambda: post(
        send(make_page(), "31.5"), "/reconcile", {"action": "refund_excess"}
    ),
    "partially-refunded": lambda: post(send(make_page(), "25"), "/refunds", {"amount": "5"}),
    "refunded": lambda: post(send(make_page(), "25"), "/refunds", {}),
    "written-off": lambda: post(
        end(send(make_page(), "10")), "/reconcile", {"action": "write_off"}
    ),
}  # fmt: skip
