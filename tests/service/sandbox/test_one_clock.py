"""One clock stamps everything that is stored: the sandbox's, also when it is days ahead.

That no module but `clock.py` reads the system's clock is held by `tests/test_tidy.py`
(`test_time_chance_and_threads_enter_only_where_declared`); here is what comes of it.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from payments_core.clock import DAY, FixedClock, parse_iso
from payments_core.credentials.keyring import KeyRing
from payments_core.record_types import RECORD_TYPES
from payments_core.sandbox.clock import SandboxClock
from payments_core.service import PaymentsService
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.webhooks.transports.port import Deadline, TransportResult, WebhookRequest
from tests.service.world import RING, World

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
A_YEAR = 366 * DAY
LIFE_S = 26 * 3_600


class Welcoming:
    """A transport and a resolver for which every webhook arrives."""

    def __init__(self) -> None:
        self.sent = 0

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        self.sent += 1
        return TransportResult(200)

    def close(self) -> None:
        """Nothing is open."""

    def resolve(
        self, host: str, port: int, timeout_s: float, *, environment_id: str
    ) -> Sequence[str]:
        return ("93.184.216.34",)


def stored(path: Path) -> Iterator[tuple[str, Any]]:
    """Every document in the file, with the name of its collection."""
    connection = sqlite3.connect(path)
    for kind in RECORD_TYPES:
        name = kind.collection.name
        for (body,) in connection.execute(f'SELECT body FROM "{name}"'):
            yield name, json.loads(body)
    connection.close()


def times(value: Any, path: str) -> Iterator[tuple[str, int]]:
    """Every instant in a document: by its field's name, or as a text in any field."""
    if isinstance(value, dict):
        for name, item in value.items():
            if (name == "at_ms" or name.endswith("_at_ms")) and isinstance(item, int):
                yield f"{path}.{name}", item
            else:
                yield from times(item, f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from times(item, path)
    elif isinstance(value, str):
        for text in ISO.findall(value):
            yield path, parse_iso(text)


def a_day(world: World) -> None:
    """A Payment that succeeds, one that expires, one that is cancelled, and all around them."""
    world.open()
    world.resources.webhooks.create(url="https://shop.example/hooks")
    world.fund("100.00")
    paid = world.authorized("25.00")
    late = world.payment("10.00", expires_in_s=300)
    world.finish()
    assert world.paid(paid.payment.id).status == "succeeded"
    gone = world.payment("5.00")
    world.resources.payments.cancel(gone.payment.id)
    world.advance(LIFE_S)
    assert world.paid(late.payment.id).status == "expired"


def test_every_stored_time_is_the_sandbox_clocks_and_none_is_the_real_one(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "data.db", RECORD_TYPES)
    storage.migrate()
    outside = Welcoming()
    world = World(storage)
    world.service = PaymentsService(
        storage, KeyRing.parse(RING), clock=world.clock, transport=outside, resolver=outside
    )
    real = world.system.now()
    world.clock.advance_to(real + 3 * DAY)
    a_day(world)
    found = [
        (path, instant)
        for name, document in stored(tmp_path / "data.db")
        for path, instant in times(document, name)
    ]
    storage.close()
    assert world.system.now() == real
    assert outside.sent > 10
    collections = {path.partition(".")[0] for path, _ in found}
    assert collections >= {
        "accounts", "payments", "payment_options", "funding_operations", "receipts", "events",
        "webhook_endpoints", "webhook_deliveries", "client_sessions", "vaults", "outgoing",
        "simulated_chains",
    }  # fmt: skip
    began, until = real + 3 * DAY, world.clock.now() + A_YEAR
    assert not [item for item in found if not began <= item[1] <= until]


def test_a_second_process_takes_the_same_time(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "data.db", RECORD_TYPES)
    storage.migrate()
    system = FixedClock()
    SandboxClock(storage, system).advance_to(system.now() + 3 * DAY)
    other = SandboxClock(storage, system)
    other.refresh()
    assert other.now() == system.now() + 3 * DAY
    assert other.real_now() == system.now()
    storage.close()
