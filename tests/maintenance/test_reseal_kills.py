"""kill -9 of a resealing between any two of its commits: all opens, and it is begun again."""

from __future__ import annotations

from pathlib import Path

import pytest

from payments_core.credentials.keyring import KeyRing
from payments_core.maintenance.reseal import MasterKeyUsage, Resealer
from payments_core.payments.record import Payment, PaymentLink
from payments_core.record_types import RECORD_TYPES
from payments_core.storage.maintenance import scan_all
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.webhooks.dispatch.attempt import open_secrets
from payments_core.webhooks.record import Endpoint
from tests.maintenance.shop import HOOK, Shop
from tests.maintenance.stepping import steps_until
from tests.service.world import RING

PAYMENTS = 8
ENDPOINTS = 2
SEALED = PAYMENTS + ENDPOINTS
NEW = KeyRing.generate(name="k2")
VICTIM = "tests.maintenance.reseal_victim"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "data.db"
    storage = SqliteStorage(path, RECORD_TYPES)
    storage.migrate()
    shop = Shop(storage).open()
    for number in range(ENDPOINTS):
        shop.resources.webhooks.create(url=f"{HOOK}/{number}", subscribed_events=())
    for _ in range(PAYMENTS):
        shop.payment()
    storage.close()
    return path


def assert_all_opens(path: Path, *keys: str) -> MasterKeyUsage:
    storage = SqliteStorage(path, RECORD_TYPES)
    shop = Shop(storage)
    shop.start_again(*keys)
    service = shop.service
    payments = [one.record for one in scan_all(storage, Payment)]
    for payment in payments:
        code = (service.parts.links.build_url(payment) or "").rpartition("/")[2]
        assert service.checkout.exchange_link(code, mode="sandbox").payment_id == payment.id
    assert len(list(scan_all(storage, PaymentLink))) == len(payments) == PAYMENTS
    for endpoint in scan_all(storage, Endpoint):
        assert open_secrets(service.parts.ports.key_ring, endpoint.record)
    seals = Resealer(service.parts.ports).report()
    assert seals.broken_count == 0
    storage.close()
    return seals


@pytest.mark.slow
def test_a_resealing_that_is_killed_breaks_nothing_and_is_begun_again(path: Path) -> None:
    sealed = 0
    for kill_at in (1, 2, 3, 4, 5, 6, 7, 4):
        steps_until(VICTIM, str(path), f"{NEW} {RING}", kill_at=kill_at)
        sealed += max(0, kill_at // 2 - 1)  # every second step commits: an entry, then the seals
        counts = assert_all_opens(path, NEW, RING).counts
        assert sum(counts.get("k2", {}).values()) == min(sealed, SEALED)
        assert sum(counts.get("k1", {}).values()) == max(SEALED - sealed, 0)
    assert steps_until(VICTIM, str(path), f"{NEW} {RING}")[-1] == f"done {max(SEALED - sealed, 0)}"
    assert assert_all_opens(path, NEW).needed_old_keys == frozenset()
