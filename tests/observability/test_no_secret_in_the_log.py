"""A service with real secrets, led through failures of every kind: none of them is in its log."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable
from typing import Any

import pytest

from payments_core.credentials.keyring import KeyRing
from payments_core.storage.port import StorageUnavailable
from payments_core_http.errors import MalformedRequest
from tests.http.api_harness import ApiHarness
from tests.observability.asking import BrokenWire
from tests.observability.listening import Log
from tests.webhooks.webhook_bench import Bench as Webhooks

PASSWORD = "c0rrect-horse-battery"
DATABASE = f"postgresql://payments:{PASSWORD}@db.example/payments"
RING = KeyRing.generate()


class Shop:
    """An API, and every secret that it sees, by name."""

    def __init__(self) -> None:
        self.api = ApiHarness()
        payment = "payment_" + "aB3_" * 6
        link = self.api.service.parts.links.mint(self.api.partition, payment, "sandbox")
        sealed = base64.b64decode(link.sealed_code)
        self.code = self.api.service.parts.ports.key_ring.open(
            "payment link", payment, sealed
        ).decode()
        self.session = self.api.session().json["clientSessionToken"]
        self.access = self.api.access_token()
        self.payment = payment
        self.payment_secret = self.api.payment_secret(payment)
        self.secrets = {
            "secret": self.api.secret.removeprefix("sk_sandbox_"),
            "restricted": self.api.restricted_secret.removeprefix("rk_sandbox_"),
            "basic": self.api.basic().removeprefix("Basic "),
            "session": self.session.removeprefix("cst_"),
            "access": self.access.removeprefix("cat_"),
            "payment": self.payment_secret.partition("_secret_")[2],
            "link": self.code,
            "database": PASSWORD,
            "ring": RING.partition(":")[2],
        }

    def all_said(self) -> str:
        """What a careless text would say."""
        return (
            f"{self.api.secret} {self.api.restricted_secret} {self.api.basic()} {self.session}"
            f" {self.access} {self.payment_secret} {self.code} {DATABASE} PAYMENTS_KEY_RING={RING}"
        )


def wrong_places(shop: Shop) -> None:
    """Credentials where they do not belong."""
    api = shop.api
    for secret in (api.secret, shop.session, shop.access, shop.payment_secret, shop.code):
        api.call("GET", f"/v2/things/{secret}")
        api.call("GET", f"/{secret}/x", auth=f"Bearer {secret}")
        api.call("GET", f"/v2/things?name={secret}")
        api.call("GET", "/v2/partners/config", headers={"Service-Version": secret})
        api.call("GET", "/v2/partners/config", auth=f"Basic {secret}")
        api.make({"name": secret}, key=f"k-{len(secret)}")
        api.make({"name": "a", "note": secret}, key=secret[:200])
        api.call("POST", "/v2/things", raw=f'{{"name": "{secret}'.encode(), key="broken")
    api.call("GET", f"/v2/public/payment-links/{shop.code}", auth=None)
    api.call("GET", f"/pay/{shop.code}?key={shop.payment_secret}", auth=None)


def faults(shop: Shop) -> None:
    """A handler that fails, and says all that it knows."""

    def fail() -> None:
        raise RuntimeError(shop.all_said()) from ValueError(shop.all_said())

    shop.api.service.things.before = fail
    assert shop.api.make(key="fault").status == 500
    assert shop.api.call("GET", "/v2/burst").status == 500


def broken_storage(shop: Shop) -> None:
    """A driver that quotes its address."""

    def refuse(*_: object, **__: object) -> Any:
        raise StorageUnavailable(f"PostgreSQL: invalid dsn {DATABASE}") from OSError(DATABASE)

    storage = shop.api.service.parts.ports.storage
    storage.read = storage.transact = refuse  # type: ignore[method-assign]
    assert shop.api.make(key="storage").status == 503
    worker = shop.api.service.worker
    with pytest.raises(StorageUnavailable):
        worker("sandbox")


def failing_jobs(shop: Shop) -> None:
    """Jobs whose handlers fail until they park."""

    def fail(claimed: object) -> None:
        raise ValueError(shop.all_said())

    worker = shop.api.service.worker("sandbox")
    for handlers in (worker._executor.handlers, worker._executor.batch_handlers):
        handlers.update(dict.fromkeys(handlers, fail))
    for _ in range(25):
        worker.run_due()
        shop.api.service.parts.ports.clock.advance(700)  # type: ignore[attr-defined]


def failing_webhooks(shop: Shop) -> None:
    """Deliveries whose transport fails with the signing secret in its text."""
    wire = BrokenWire()
    webhooks = Webhooks(wire=wire)
    _, secret = webhooks.endpoints.create(
        webhooks.authority, url=f"https://partner.example/{shop.code}", subscribed_events=()
    )
    shop.secrets["signing"] = secret.removeprefix("whsec_")

    wire.says = f"{secret} {shop.all_said()}"
    webhooks.happen()
    for _ in range(25):
        webhooks.worker.run_due()
        webhooks.clock.advance(700)


def careless_libraries(shop: Shop) -> None:
    """Somebody else's code that logs what it is given."""
    for name in ("urllib3.connectionpool", "psycopg.pool", "redis"):
        logging.getLogger(name).warning("connecting: %s", shop.all_said())
        try:
            raise MalformedRequest from ValueError(shop.all_said())
        except MalformedRequest:
            logging.getLogger(name).exception("failed", extra={"dsn": DATABASE, "ring": RING})


@pytest.mark.parametrize(
    "happens",
    [
        wrong_places,
        faults,
        broken_storage,
        failing_jobs,
        failing_webhooks,
        careless_libraries,
    ],
)
def test_no_secret_is_in_the_log(log: Log, happens: Callable[[Shop], None]) -> None:
    shop = Shop()
    log.clear()
    happens(shop)
    assert log.text
    assert [name for name, secret in shop.secrets.items() if secret in log.text] == []
