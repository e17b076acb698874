"""A service with its worker for test_webhook_kills, which kills it again and again.

Usage: python -m tests.webhooks.kill_victim FOLDER EVENTS; it makes accounts until there are so
many, each with its event, while the worker's threads deliver; SIGTERM ends it politely.
"""

from __future__ import annotations

import json
import signal
import sqlite3
import sys
import threading
from contextlib import closing
from pathlib import Path

from payments_core.accounts.operations import NewAccount
from payments_core.clock import SECOND
from payments_core.credentials.keyring import KeyRing
from payments_core.public_url import LOCAL_URL
from payments_core.record_types import RECORD_TYPES
from payments_core.sandbox.clock import SandboxClock
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.tenants.authorization import SYSTEM_REQUIREMENT, Authority
from payments_core.webhooks.settings import WebhookSettings

LEASES_END_MS = 61 * SECOND


def service_over(folder: Path) -> PaymentsService:
    """The service on the folder's file, with its own transport and resolver."""
    storage = SqliteStorage(folder / "data.db", RECORD_TYPES)
    storage.migrate()
    return PaymentsService(
        storage,
        KeyRing.parse((folder / "keys").read_text()),
        settings=Settings(public_url=LOCAL_URL, webhooks=WebhookSettings(local_allowed=True)),
    )


def authority(service: PaymentsService, environment_id: str) -> Authority:
    """The service's own right to do anything in the environment."""
    environment = service.tenants.get_environment(environment_id)
    return Authority(
        requirement=SYSTEM_REQUIREMENT, environment=environment, api_version=environment.api_version
    )


def revive(folder: Path) -> PaymentsService:
    """The service in its next life: what the one before had leased when it was killed is due
    again, which it would be a minute later."""
    service = service_over(folder)
    clock = service.parts.ports.clock
    assert isinstance(clock, SandboxClock)
    clock.refresh()
    clock.advance_to(clock.now() + LEASES_END_MS)
    return service


def main() -> None:
    """Live until it is killed, or ended."""
    folder, wanted = Path(sys.argv[1]), int(sys.argv[2])
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    service = revive(folder)
    worker = service.worker("sandbox")
    worker.start()
    print(json.dumps({"ready": True}), flush=True)
    mine = authority(service, (folder / "environment").read_text())
    for number in range(accounts(folder), wanted):
        new = NewAccount(external_user_id=f"user {number}", subject_type="individual")
        service.acting_as(mine).accounts.create(new)
    over.wait()
    worker.stop()
    worker.run_until_idle()
    service.close()


def accounts(folder: Path) -> int:
    """How many there are."""
    with closing(sqlite3.connect(folder / "data.db")) as connection:
        (count,) = connection.execute("SELECT count(*) FROM accounts").fetchone()
    return int(count)


if __name__ == "__main__":
    main()
