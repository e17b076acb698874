"""A shop on Flask: it creates a Payment for each order, sends its customer to the checkout page,
and ships when a webhook says that the Payment has succeeded.

Run it in a sandbox in this process, where it plays one order from start to end::

    .venv/bin/python examples/flask_shop.py
"""

from __future__ import annotations

import sqlite3

from flask import Flask, Response, abort, redirect, request, url_for

from payments_core_http.client import AccountDestination, Client, WebhookRefused, verify_webhook
from payments_core_http.testing import open_sandbox

PRICES = {"bread": "4.50", "cake": "18.00"}
SCHEMA = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, goods TEXT, payment_id TEXT UNIQUE, shipped_at TEXT);
CREATE TABLE events (id TEXT PRIMARY KEY);
"""


def create_shop(client: Client, account_id: str, signing_secret: str) -> Flask:
    """The shop; `account_id` is the account that is paid."""
    shop = Flask(__name__)
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.executescript(SCHEMA)

    @shop.post("/orders/<goods>")
    def order(goods: str) -> Response:
        if goods not in PRICES:
            abort(404)
        with database:
            number = database.execute("INSERT INTO orders (goods) VALUES (?)", [goods]).lastrowid
        # The order is the key: a second attempt finds the Payment of the first.
        payment = client.payments.receive(
            amount=PRICES[goods],
            destination=AccountDestination(account_id=account_id),
            reference=f"order-{number}",
            success_url=url_for("show", number=number, _external=True),
            idempotency_key=f"order-{number}",
        )
        with database:
            database.execute("UPDATE orders SET payment_id = ? WHERE id = ?", [payment.id, number])
        assert payment.payment_url is not None
        return redirect(payment.payment_url, 303)  # type: ignore[return-value]

    @shop.get("/orders/<int:number>")
    def show(number: int) -> str:
        row = database.execute("SELECT shipped_at FROM orders WHERE id = ?", [number]).fetchone()
        if row is None:
            abort(404)
        return "shipped" if row[0] else "waits for its payment"

    @shop.post("/webhooks")
    def receive() -> tuple[str, int]:
        try:
            event = verify_webhook(request.get_data(), request.headers, signing_secret)
        except WebhookRefused as refused:
            return refused.code, 400
        if event.name == "payment.succeeded":
            # An event is a reason to read the resource, and may be delivered twice.
            payment = client.payments.read(event.payload["paymentId"])
            with database:
                database.execute("INSERT OR IGNORE INTO events VALUES (?)", [event.id])
                database.execute(
                    "UPDATE orders SET shipped_at = coalesce(shipped_at, ?) WHERE payment_id = ?",
                    [str(payment.succeeded_at), payment.id],
                )
        return "", 204

    return shop


def main() -> None:
    """One order: it is placed, paid by a transfer from a wallet, and shipped."""
    with open_sandbox() as sandbox:
        shop = create_shop(
            sandbox.client, sandbox.merchant.account_id, sandbox.events.signing_secret
        )
        sandbox.events.forward_to(shop, "/webhooks")
        browser = shop.test_client()
        checkout_url = browser.post("/orders/bread").headers["Location"]
        print("order 1", browser.get("/orders/1").text)

        checkout = sandbox.public.open_link(checkout_url)
        execution = checkout.choose_transfer().execution
        assert execution is not None
        assert execution.chain_id is not None
        assert execution.to is not None
        print("send", execution.amount_atomic, "of USDC's smallest unit on", execution.chain_id)
        sandbox.client.sandbox.transfer(
            chain_id=execution.chain_id, asset_symbol="USDC", amount="4.50", to=execution.to
        )
        sandbox.settle()
        print("order 1", browser.get("/orders/1").text)
        print("a forged event is answered", browser.post("/webhooks", data=b"{}").status_code)


if __name__ == "__main__":
    main()
