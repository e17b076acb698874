"""Django that embeds the service: the library on a PostgreSQL of its own, its workers in threads,
and its API beside Django's views in one WSGI application.

Give it the URL of an empty database, where it plays one order from start to end::

    .venv/bin/python examples/django_shop.py postgresql://localhost/payments
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import django
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection, transaction
from django.http import HttpRequest, JsonResponse
from django.test import Client as Browser
from django.urls import path

from payments_core import (
    KeyRing,
    NewAccount,
    NewPayment,
    PaymentsService,
    ToAccount,
    open_storage,
)
from payments_core_http import create_app
from payments_core_http.client import Client

ORDERS = "CREATE TABLE orders (number TEXT PRIMARY KEY, amount TEXT, payment_id TEXT)"


class Payments:
    """The service of one process: opened once, closed when the process ends."""

    def __init__(self, database_url: str, key_ring: Path) -> None:
        if not key_ring.exists():  # keep it with your secrets
            key_ring.touch(mode=0o600)
            key_ring.write_text(KeyRing.generate())
        storage = open_storage(database_url)
        storage.migrate()
        self.service = PaymentsService(storage, KeyRing.parse(key_ring.read_text()))
        tenants = self.service.tenants
        self.app = tenants.find_app_by_partner("shop") or tenants.create_app("Shop", "shop")
        self.me = tenants.system_authority(self.app.environments["sandbox"])
        if not self.service.accounts.list(self.me, external_user_id="shop").records:
            self.service.accounts.create(
                self.me, NewAccount(external_user_id="shop", subject_type="business")
            )

    def create(self, number: str, amount: str) -> None:
        """The Payment of an order: one, however often this runs for it.

        It runs after Django's commit, since the service commits by itself: inside `atomic()` a
        Payment could stay of an order that is rolled back. Where the process dies in between, a
        task that looks for orders without a Payment calls this again.
        """
        order = NewPayment(
            amount=amount, destination=ToAccount(external_user_id="shop"), reference=number
        )
        made = self.service.payments.create(self.me, order, idempotency_key=f"order-{number}")
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE orders SET payment_id = %s WHERE number = %s", [made.payment.id, number]
            )


payments: Payments


def order(request: HttpRequest, number: str) -> JsonResponse:
    """POST makes the order, GET says how it stands."""
    with transaction.atomic(), connection.cursor() as cursor:
        if request.method == "POST":
            amount = request.POST["amount"]
            cursor.execute("INSERT INTO orders VALUES (%s, %s, NULL)", [number, amount])
            transaction.on_commit(partial(payments.create, number, amount))
            return JsonResponse({"number": number}, status=201)
        cursor.execute("SELECT payment_id FROM orders WHERE number = %s", [number])
        [id] = cursor.fetchone()
    details = payments.service.payments.get(payments.me, id)
    return JsonResponse({"number": number, "status": details.payment.status})


urlpatterns = [path("orders/<number>", order)]


def dispatch(shop: Any, api: Any) -> Callable[..., Iterable[bytes]]:
    """The API under /v2 and the checkout under /pay, all else to Django."""

    def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        ours = environ["PATH_INFO"].startswith(("/v2/", "/pay/"))
        answer: Iterable[bytes] = (api if ours else shop)(environ, start_response)
        return answer

    return application


def main(database_url: str, folder: Path) -> None:
    """One order through Django's view, paid over the API, with workers in the background."""
    global payments
    settings.configure(
        ROOT_URLCONF=__name__,
        SECRET_KEY="only for this example",
        ALLOWED_HOSTS=["*"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": folder / "shop.db"}},
    )
    django.setup()
    with connection.cursor() as cursor:
        cursor.execute(ORDERS)
    payments = Payments(database_url, folder / "key-ring")
    service, app = payments.service, payments.app
    _, secret = service.tenants.create_key(app.environments["sandbox"], "standard", "shop")
    worker = service.worker("sandbox")
    worker.start(threads=2)

    Browser().post("/orders/order-1", {"amount": "25.00"})
    print("order-1", Browser().get("/orders/order-1").json()["status"])
    whole = dispatch(WSGIHandler(), create_app(service, mode="sandbox"))
    client = Client.in_process(whole, app.id, secret)
    payer = client.accounts.create(external_user_id="payer", subject_type="individual")
    client.sandbox.fund(payer.account_id, chain_id=8453, asset_symbol="USDC", amount="100.00")
    [payment] = client.payments.list(reference="order-1")
    assert payment.escrow is not None
    client.sandbox.transfer(
        chain_id=8453, asset_symbol="USDC", amount="25.00", to=payment.escrow.address
    )
    client.sandbox.advance_clock(advance_seconds=60)
    print("order-1", Browser().get("/orders/order-1").json()["status"])
    worker.stop()
    service.close()


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("database_url")
    with TemporaryDirectory() as place:
        main(options.parse_args().database_url, Path(place))
