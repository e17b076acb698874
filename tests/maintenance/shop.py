"""A service with Payments in many states, whose webhooks are answered, and whose key ring turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from payments_core.chains.port import Chain
from payments_core.credentials.keyring import KeyRing
from payments_core.public_url import LOCAL_URL
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.maintenance import RecordRow, require_maintenance_access
from payments_core.storage.port import Storage
from payments_core.storage.records import Record
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.port import TransportResult
from tests.service.world import RING, World

HOOK = "http://127.0.0.1:1/hook"


class Answering:
    """A transport whose other side is always content."""

    def send(self, *_: Any, **__: Any) -> TransportResult:
        return TransportResult(200, b"thank you")

    def close(self) -> None:
        """Nothing is open."""


class Shop(World):
    """A world whose webhooks are answered; `ring` is what its processes start with."""

    ring = RING

    def restarted(
        self, storage: Storage | None = None, chains: Mapping[int, Chain] | None = None
    ) -> PaymentsService:
        return PaymentsService(
            storage or self.storage,
            KeyRing.parse(self.ring),
            settings=Settings(public_url=LOCAL_URL, webhooks=WebhookSettings(local_allowed=True)),
            chains=chains,
            clock=self.clock,
            transport=Answering(),
        )

    def start_again(self, *keys: str) -> None:
        """Another process in place of the one before, with these master keys, the first current."""
        self.ring = " ".join(keys)
        self.service = self.restarted()

    def stock(self, payments: int) -> Shop:
        """Open, and make Payments: four of five are paid and released."""
        self.open("bench")
        self.fund("1000000.00")
        self.service.acting_as(self.server).webhooks.create(url=HOOK, subscribed_events=())
        for number in range(payments):
            order = {"metadata": {"order": f"№ {number}"}, "reference": f"order {number}"}
            if number % 5 == 4:
                self.payment("5.00", **order)
            else:
                self.authorized("5.00", **order)
            if number % 50 == 0:
                self.finish()
        self.finish()
        return self


def all_rows(storage: Storage, kinds: Sequence[type[Record]]) -> list[tuple[str, RecordRow]]:
    """Everything that is stored, with the collection that it is in."""
    with require_maintenance_access(storage).lock_exclusively() as alone:
        return [
            (kind.collection.name, row)
            for kind in kinds
            for row in alone.read_rows(kind, limit=10**6)
        ]
