"""The suite of a router's offers on the CCTP router, between two anvils."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.chains.port import TransferLog
from payments_core.clock import FixedClock, Instant
from payments_core.conformance.router import OffersConformance
from payments_core.routers.cctp.forwarders import forwarders
from payments_core.routers.port import OfferOrder, OffersRoutes, RouteOrder
from payments_core.storage.port import Storage
from tests.chains.evm.nodes import STRANGER
from tests.routers.cctp.test_offers import ENDED_S, LOOKS
from tests.routers.cctp.world import SOURCE, Cctp


class TestCctpOffers(OffersConformance):
    can_expire = True

    @pytest.fixture(autouse=True)
    def _place(self, cctp: Cctp, books: Storage, clock: FixedClock) -> None:
        self.cctp, self.books, self.clock = cctp, books, clock
        self.keys: list[str] = []
        cctp.nodes[SOURCE].do(STRANGER, *forwarders().deployment)

    def open_router(self) -> OffersRoutes:
        return self.cctp.open_router(self.books, self.clock)

    def new_offer_order(self, **changes: object) -> OfferOrder:
        order = super().new_offer_order(**changes)
        self.keys.append(order.key)
        return order

    def pay(self, address: str, amount_atomic: int) -> str:
        hash = self.cctp.pay(address, amount_atomic)
        self.cctp.mine()
        return hash

    def wait(self) -> None:
        router = self.open_router()
        for _ in range(LOOKS):
            for key in self.keys:
                router.follow_offer(key)
            self.cctp.mine()

    def expire(self) -> None:
        self.clock.advance(ENDED_S)
        for node in self.cctp.nodes.values():
            node.ask("evm_increaseTime", int(ENDED_S) + 1)
            node.ask("evm_mine")

    def read_transfers(self, chain_id: int, hash: str) -> Sequence[TransferLog]:
        view = self.cctp.open_chain(chain_id).transaction(hash)
        return () if view is None else view.logs

    def count_received(self, order: RouteOrder | OfferOrder) -> int:
        return self.cctp.balance(order.destination.chain_id, order.recipient)

    def count_refunded(self, order: OfferOrder) -> int:
        return self.cctp.balance(order.source.chain_id, order.refund_address)

    def now(self) -> Instant:
        return self.clock.now()
