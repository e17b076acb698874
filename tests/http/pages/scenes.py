"""A Payment in each state that its page tells of, made by what really leads there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from payments_core.storage.memory.adapter import MemoryStorage
from tests.http.checkout import BASE, Checkout
from tests.http.payer_page import Page

MERCHANT = {"enabled": False, "branding": {"name": "Panadería Ñandú"}, "version": 0}


def make_page(*, checkout: Checkout | None = None, **more: Any) -> Page:
    """A Payment that waits, of a merchant with a name."""
    checkout = checkout or Checkout(MemoryStorage())
    checkout.door.call("PUT", "/v2/partners/payment-settings", MERCHANT)
    facts = {
        "description": "Two loaves of bread",
        "reference": "order-1042",
        "successUrl": "https://shop.example/thanks",
        "cancelUrl": "https://shop.example/cart",
    }
    return Page(checkout, **{**facts, **more})


def send(page: Page, *amounts: str) -> Page:
    """Transfers of strangers, each final before the next."""
    for amount in amounts:
        page.checkout.transfer(page.payment["escrow"]["address"], amount)
    return page


def send_unconfirmed(page: Page) -> Page:
    body = {
        "chainId": BASE,
        "assetSymbol": "USDC",
        "to": page.payment["escrow"]["address"],
        "amount": "25",
    }
    page.checkout.door.call("POST", "/v2/sandbox/transfers", body)
    page.checkout.advance(2)
    return page


def end(page: Page) -> Page:
    page.checkout.advance(3_601)
    return page


def post(page: Page, path: str, body: Any = None) -> Page:
    id = page.payment["id"]
    seen = page.checkout.door.call("POST", f"/v2/payments/{id}{path}", body, key=path)
    assert seen.status in (200, 201), seen.body
    page.checkout.advance(60)
    return page


SCENES: Mapping[str, Callable[[], Page]] = {
    "waiting": make_page,
    "waiting-elsewhere": lambda: make_page(allowedMethods=["vault"]),
    "part-paid": lambda: send(make_page(), "10"),
    "processing": lambda: send_unconfirmed(make_page()),
    "paid": lambda: send(make_page(), "25"),
    "overpaid": lambda: send(make_page(), "31.5"),
    "duplicate": lambda: send(make_page(), "25", "25"),
    "expired": lambda: end(make_page()),
    "cancelled": lambda: post(make_page(), "/cancel"),
    "late": lambda: send(end(make_page()), "25"),
    "short": lambda: end(send(make_page(), "10")),
    "partially-refunded": lambda: post(send(make_page(), "25"), "/refunds", {"amount": "5"}),
    "refunded": lambda: post(send(make_page(), "25"), "/refunds", {}),
    "written-off": lambda: post(
        end(send(make_page(), "10")), "/reconcile", {"action": "write_off"}
    ),
}  # fmt: skip
