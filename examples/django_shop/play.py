"""Plays one order of the shop from start to end, with the worker in its own process.

Give it the URL of an empty PostgreSQL database::

    .venv/bin/python examples/django_shop/play.py postgresql://localhost/shop
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
from urllib.parse import urlsplit

import django
from django.core.management import call_command
from django.test import Client as Browser

MANAGE = Path(__file__).with_name("manage.py")
WITHIN_S = 90


def main() -> None:
    """One order through Django's views, paid in the sandbox, shipped by the worker's process."""
    django.setup()
    call_command("migrate", verbosity=0)
    call_command("payments_migrate")
    with a_worker():
        link = Browser().post("/buy")["Location"]
        page = Browser().get(urlsplit(link).path)
        print("the checkout page", page.status_code, urlsplit(link).path.rpartition("/")[0])
        pay()
        wait_until_shipped()
        print("order 1 shipped")


def pay() -> None:
    """Play the payer."""
    from payments_core_http.django import get_resources

    resources = get_resources()
    [details] = resources.payments.list(reference="1").records
    resources.sandbox.transfer(8453, "USDC", "25.00", to=str(details.payment.escrow_address))


def wait_until_shipped() -> None:
    """By the work of the worker's process."""
    deadline = time.monotonic() + WITHIN_S
    while not Browser().get("/orders/1").json()["shipped"]:
        if time.monotonic() > deadline:
            raise TimeoutError("the worker did nothing")
        time.sleep(0.2)


@contextmanager
def a_worker() -> Iterator[None]:
    """The command that a process manager runs, and ends in the same way."""
    worker = subprocess.Popen([sys.executable, str(MANAGE), "payments_worker"])
    try:
        yield
    finally:
        worker.terminate()
        print("the worker ended with", worker.wait())


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("database_url")
    os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
    os.environ["SHOP_DATABASE_URL"] = options.parse_args().database_url
    with TemporaryDirectory() as folder:
        os.environ["SHOP_FOLDER"] = folder
        main()
