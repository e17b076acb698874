"""What does not count at an escrow, over WSGI: it is shown, and goes back once."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest

from payments_core.addresses import NATIVE_ADDRESS
from tests.http.api_harness import Seen
from tests.http.checkout import Checkout
from tests.http.payment_bodies import OUTSIDE, create, receive

HOUR_S = 3_600
"""Longer than a Payment waits."""


def list_misdirected(checkout: Checkout, payment: Any) -> list[Any]:
    events = checkout.api.call("GET", "/v2/console/events").json["data"]
    found = [event["payload"] for event in events if event["name"] == "payment.misdirected"]
    return [payload for payload in found if payload["paymentId"] == payment["id"]]


def send_back(checkout: Checkout, payment: Any, key: str, **more: str) -> Seen:
    path = f"/v2/payments/{payment['id']}/reconcile"
    body = {"action": "return_misdirected", **more}
    return checkout.api.call("POST", path, body, key=key)


@pytest.mark.parametrize(
    ("symbol", "token_address", "amount", "amount_atomic"),
    [
        ("ETH", NATIVE_ADDRESS, "0.01", "10000000000000000"),
        ("USDbC", "0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA", "25.00", "25000000"),
    ],
)
def test_native_coin_and_a_foreign_token_are_shown_and_go_back(
    checkout: Checkout, symbol: str, token_address: str, amount: str, amount_atomic: str
) -> None:
    payment = create(checkout, receive(checkout, amount="25")).json
    checkout.transfer(payment["escrow"]["address"], amount, assetSymbol=symbol)
    if symbol == "ETH":
        assert checkout.read(payment["id"])["receipts"] == []
    for _ in range(3):
        checkout.advance(HOUR_S)
    shown = checkout.read(payment["id"])
    assert shown["status"] == "expired"
    assert shown["reconciliation"]["status"] == "open"
    assert shown["reconciliation"]["labels"] == ["misdirected"]
    [receipt] = shown["receipts"]
    assert (receipt["status"], receipt["rejectionReason"]) == ("rejected", "wrong_token")
    assert (receipt["tokenAddress"], receipt["amountAtomic"]) == (token_address, amount_atomic)
    [event] = list_misdirected(checkout, payment)
    assert (event["receiptId"], event["assetSymbol"]) == (receipt["id"], symbol)
    assert (event["tokenAddress"], event["amountAtomic"]) == (token_address, amount_atomic)

    path = urlsplit(payment["paymentUrl"]).path
    page = checkout.api.call("GET", path, auth="").body.decode()
    assert f"\u2068{amount}\u00a0{symbol}\u2069 has arrived at the address" in page

    if symbol == "ETH":  # nobody knows the sender
        refused = send_back(checkout, payment, "first", receiptId=receipt["id"])
        assert (refused.status, set(refused.faults)) == (400, {"destination"})
    to = {"receiptId": receipt["id"], "destination": OUTSIDE}
    assert send_back(checkout, payment, "second", **to).status == 200
    again = send_back(checkout, payment, "third", **to)
    assert again.code == "reconciliation_action_not_allowed"
    checkout.advance(60)
    after = checkout.read(payment["id"])
    assert after["receipts"][0]["sentBack"]["status"] == "succeeded"
    assert after["receipts"][0]["sentBack"]["destination"] == OUTSIDE
    assert after["reconciliation"]["resolution"] == "return_misdirected"
    assert after["status"] == "expired"
