"""Plays one order of the shop from start to end, with the worker in its own process.

Give it the URL of an empty database::

    .venv/bin/python examples/django_shop/play.py postgresql://localhost/payments
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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
    print("an order of", Browser().post("/orders/1040", {"amount": "much"}).json()["amount"])
    Browser().post("/orders/1041", {"amount": "3.00"})  # the service is not ready yet
    print("order 1041", read("1041")["status"])
    call_command("set_up_payments")
    with a_worker():
        print("order 1041", wait("1041", lambda order: order["status"] != "placed")["status"])
        Browser().post("/orders/1042", {"amount": "25.00"})
        print("order 1042", read("1042")["status"])
        pay("1042")
        print("order 1042", wait("1042", lambda order: order["shipped"])["status"], "and shipped")


def read(number: str) -> Any:
    """The shop's answer about an order."""
    return Browser().get(f"/orders/{number}").json()


def wait(number: str, is_done: Callable[[Any], bool]) -> Any:
    """The order once it has this state, by the work of the worker's process."""
    deadline = time.monotonic() + WITHIN_S
    while not is_done(order := read(number)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the worker did nothing: {order}")
        time.sleep(0.2)
    return order


@contextmanager
def a_worker() -> Iterator[None]:
    """The command that a process manager runs, and ends in the same way."""
    worker = subprocess.Popen([sys.executable, str(MANAGE), "run_payments_worker"])
    try:
        yield
    finally:
        worker.terminate()
        print("the worker ended with", worker.wait())


def pay(reference: str) -> None:
    """Play the payer, over the API next to Django's views."""
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
