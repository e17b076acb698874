"""The service in this process, and what the shop does with it."""

from __future__ import annotations

import logging
import threading
from functools import cache
from queue import Empty, SimpleQueue

from django.conf import settings
from django.db import connection
from django.utils import timezone

from payments_core import (
    KeyRing,
    NewAccount,
    NewPayment,
    PaymentsError,
    PaymentsService,
    Resources,
    Settings,
    ToAccount,
    open_storage,
)
from payments_core.webhooks import ReceivedEvent
from shop.models import Order

PARTNER = "shop"
SECONDS_BETWEEN_LOOKS = 30

_opening = threading.Lock()
_log = logging.getLogger(__name__)


def payments() -> PaymentsService:
    """The service of this process; nothing opens before the first call, so a fork is safe."""
    with _opening:  # two requests may be the first
        return _open()


@cache
def _open() -> PaymentsService:
    ring = KeyRing.parse(settings.PAYMENTS_KEY_RING.read_text())
    storage = open_storage(settings.PAYMENTS_DATABASE_URL)
    here = Settings(public_url=settings.PAYMENTS_PUBLIC_URL)  # payment links begin with it
    service = PaymentsService(storage, ring, settings=here)
    try:
        service.verify_key_ring()
    except Exception:
        service.close()
        raise
    return service


@cache
def shop() -> Resources:
    """What the shop's own code may do: everything, in the sandbox."""
    tenants = payments().tenants
    app = tenants.find_app_by_partner(PARTNER)
    if app is None:
        raise RuntimeError("run `manage.py set_up_payments` first")
    return payments().environment(app.environments["sandbox"])


def set_up() -> None:
    """Create what a deployment needs once; a repeat changes nothing."""
    if not settings.PAYMENTS_KEY_RING.exists():  # keep it with your secrets
        settings.PAYMENTS_KEY_RING.touch(mode=0o600)
        settings.PAYMENTS_KEY_RING.write_text(KeyRing.generate())
    storage = open_storage(settings.PAYMENTS_DATABASE_URL)
    storage.migrate()
    storage.close()
    if payments().tenants.find_app_by_partner(PARTNER) is None:
        payments().tenants.create_app("Shop", PARTNER)
    account = NewAccount(external_user_id="shop", subject_type="business")
    shop().accounts.create(account, idempotency_key="account-shop")


def pay_order(number: str, amount: str) -> None:
    """Create the Payment of an order: one, no matter how often this runs for it."""
    new = NewPayment(
        amount=amount, destination=ToAccount(external_user_id="shop"), reference=number
    )
    made = shop().payments.receive(new, idempotency_key=f"order-{number}")
    Order.objects.filter(number=number).update(payment_id=made.payment.id)


def pay_orders() -> None:
    """Create missing Payments, because a process died or the service was unavailable."""
    for order in Order.objects.filter(payment_id=None):
        try:
            pay_order(order.number, order.amount)
        except PaymentsError as error:
            _log.warning("order %s has no Payment yet: %s", order.number, error.code)


def ship(event: ReceivedEvent) -> None:
    """Ship the order of a Payment that succeeded, once for any number of deliveries."""
    try:
        order = Order.objects.filter(payment_id=event.payload["paymentId"])
        if not order.exists():  # its id is not stored yet: the event is retried
            raise LookupError("no such order yet")
        order.filter(shipped_at=None).update(shipped_at=timezone.now())
    finally:
        connection.close()  # this thread ends, too


def run_worker(stop: SimpleQueue[None]) -> None:
    """Run due jobs until `stop` has an item; running jobs then have 30 seconds to end."""
    shop().on_event("shop", ship, subscribed_events=["payment.succeeded"])
    payments().worker("sandbox").start(threads=4)
    try:
        while True:
            pay_orders()
            connection.close()  # it would be idle, and perhaps broken, until the next use
            try:
                return stop.get(timeout=SECONDS_BETWEEN_LOOKS)
            except Empty:
                continue
    finally:
        payments().close()
