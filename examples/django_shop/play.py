"""Plays one order of the shop from start to end, with the worker in a process of its own.

Give it the URL of an empty database::

    .venv/bin/python examples/django_shop/play.py postgresql://localhost/payments
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import django
from django.core.management import call_command
from django.test import Client as Browser

from payments_core_http.client import Client

MANAGE = Path(__file__).with_name("manage.py")
WITHIN_S = 90


def main() -> None:
    """One order through Django's view, paid over the API, shipped by the worker's process."""
    django.setup()
    call_command("migrate", verbosity=0)
    call_command("set_up_payments")
    with a_worker():
        Browser().post("/orders/1042", {"amount": "25.00"})
        order = Browser().get("/orders/1042").json()
        print("order 1042", order["status"])
        pay("1042")
        deadline = time.monotonic() + WITHIN_S
        while not order["shipped"]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the order was not shipped: {order}")
            time.sleep(0.2)
            order = Browser().get("/orders/1042").json()
        print("order 1042", order["status"], "and shipped")


@contextmanager
def a_worker() -> Iterator[None]:
    """The command that a process manager runs, ended as that ends it."""
    worker = subprocess.Popen([sys.executable, str(MANAGE), "run_payments_worker"])
    try:
        yield
    finally:
        worker.terminate()
        print("the worker ended with", worker.wait())


def pay(reference: str) -> None:
    """Play the payer, over the API that stands beside Django's views."""
    from shop.payments import PARTNER, payments
    from shop.wsgi import application

    app = payments().tenants.find_app_by_partner(PARTNER)
    assert app is not None
    _, secret = payments().tenants.create_key(app.environments["sandbox"], "standard", "player")
    client = Client.in_process(application, app.id, secret)
    [payment] = client.payments.list(reference=reference)
    assert payment.escrow is not None
    client.sandbox.transfer(
        chain_id=8453, asset_symbol="USDC", amount="25.00", to=payment.escrow.address
    )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("database_url")
    os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
    os.environ["PAYMENTS_DATABASE_URL"] = options.parse_args().database_url
    with TemporaryDirectory() as folder:
        os.environ["SHOP_FOLDER"] = folder
        main()
