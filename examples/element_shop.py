"""A shop whose own page takes the payment, by the element `<payments-checkout>`.

Run it, and open the address that it prints: the shop is on another origin than its sandbox, which
runs in this process, too. Ctrl-C stops it::

    .venv/bin/python examples/element_shop.py
"""

from __future__ import annotations

from threading import Thread

from flask import Flask, render_template_string
from werkzeug.serving import make_server

from payments_core_http.client import AccountDestination, Client
from payments_core_http.testing import open_sandbox

SHOP, SERVICE = "http://localhost:8090", "http://127.0.0.1:8091"

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Bread</title>
<style>body { max-width: 46rem; margin: auto; padding: 1rem; font-family: system-ui; }</style>
<script type="module" src="{{ service }}/checkout/element.js"></script>
<h1>Two loaves of bread</h1>
<p id="order" role="status">Your order waits for its payment.</p>
<payments-checkout client-secret="{{ payment.client_secret }}" payment-id="{{ payment.id }}">
</payments-checkout>
<script>
  const say = (text) => { document.getElementById("order").textContent = text; };
  document.addEventListener("paid", () => say("Thank you. The bread is on its way."));
  document.addEventListener("expired", () => say("The time to pay has ended."));
</script>
</html>
"""


def create_shop(client: Client, account_id: str, service_url: str) -> Flask:
    """The shop; `account_id` is the account that is paid, and `service_url` the `public_url`."""
    shop = Flask(__name__)

    @shop.get("/orders/<int:number>")
    def show(number: int) -> str:
        # The order is the key: a page that is loaded again shows the same Payment.
        payment = client.payments.receive(
            amount="4.50",
            destination=AccountDestination(account_id=account_id),
            reference=f"order-{number}",
            idempotency_key=f"order-{number}",
        )
        return render_template_string(PAGE, service=service_url, payment=payment)

    return shop


def main() -> None:
    """The shop and its sandbox, until Ctrl-C."""
    with open_sandbox(SERVICE) as sandbox:
        # Only pages of these origins may show the checkout page in a frame.
        sandbox.client.payment_settings.replace(enabled=False, allowed_origins=[SHOP])
        shop = create_shop(sandbox.client, sandbox.merchant.account_id, SERVICE)
        service = make_server("127.0.0.1", 8091, sandbox.app, threaded=True)
        Thread(target=service.serve_forever, daemon=True).start()
        print(f"Open {SHOP}/orders/1 and press Pay in full")
        try:
            make_server("localhost", 8090, shop, threaded=True).serve_forever()
        except KeyboardInterrupt:
            service.shutdown()


if __name__ == "__main__":
    main()
