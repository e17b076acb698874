"""A process that makes events and takes them up, for test_feed_kills, which kills it.

Usage: python -m tests.webhooks.feed_victim FOLDER SEED. Some of its commits are held back after
they have written, so that later ones are committed before them. It never ends by itself.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from payments_core.accounts.operations import NewAccount
from payments_core.clock import SECOND
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.public_url import LOCAL_URL
from payments_core.sandbox.clock import SandboxClock
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.port import Storage, Transaction
from payments_core.storage_loader import open_storage
from payments_core.tenants.authorization import SYSTEM_REQUIREMENT, Authority

T = TypeVar("T")
WRITERS = 3
HELD_BACK_S = 0.08
LEASES_END_MS = 61 * SECOND


class SlowCommits:
    """A storage, some of whose commits come long after their writes."""

    def __init__(self, storage: Storage, chance: random.Random) -> None:
        self._storage, self._chance = storage, chance

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        wait_s = self._chance.choice((0, 0, 0, HELD_BACK_S)) * self._chance.random()

        def slow(tx: Transaction) -> T:
            result = work(tx)
            tx.get(StoredResponse, "none")  # so that a pipeline has sent the writes
            time.sleep(wait_s)
            return result

        return self._storage.transact(partition, slow if wait_s else work)


def service_over(folder: Path, chance: random.Random | None = None) -> PaymentsService:
    """The service on the folder's storage, with slow commits if it has a chance of them."""
    storage = open_storage((folder / "url").read_text())
    return PaymentsService(
        SlowCommits(storage, chance) if chance else storage,  # type: ignore[arg-type]
        KeyRing.parse((folder / "keys").read_text()),
        settings=Settings(public_url=LOCAL_URL),
    )


def authority(service: PaymentsService, folder: Path) -> Authority:
    """The service's own right to do anything in the environment."""
    environment = service.tenants.get_environment((folder / "environment").read_text())
    return Authority(
        requirement=SYSTEM_REQUIREMENT, environment=environment, api_version=environment.api_version
    )


def end_leases(service: PaymentsService) -> None:
    """Move the clock to the end of what dead processes have leased."""
    clock = service.parts.ports.clock
    assert isinstance(clock, SandboxClock)
    clock.refresh()
    clock.advance_to(clock.now() + LEASES_END_MS)


def main() -> None:
    """Live until it is killed."""
    folder, chance = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
    service = service_over(folder, chance)
    shop = service.acting_as(authority(service, folder))

    def write() -> None:
        while True:
            shop.accounts.create(NewAccount(subject_type="individual"))

    service.worker("sandbox").start()
    for _ in range(WRITERS):
        threading.Thread(target=write, daemon=True).start()
    print(json.dumps({"ready": True}), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
