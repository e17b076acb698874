"""The suites of routers and of their offers on the CCTP router, between two anvils."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.chains.port import TransferLog
from payments_core.clock import FixedClock
from payments_core.conformance.router import OffersConformance, RouterConformance
from payments_core.routers.cctp.transfers import PATIENCE_MS
from payments_core.routers.port import OfferOrder, OffersRoutes, RouteOrder
from payments_core.storage.port import Storage
from tests.routers.cctp.shop import ENDED_S, LATE_S
from tests.routers.cctp.world import SOURCE, Cctp

LOOKS = 4
"""So often a waiting payment is looked at: for its burn, its message, and its mint."""


class OnCctp:
    """The hooks that both suites share."""

    @pytest.fixture(autouse=True)
    def _place(self, cctp: Cctp, books: Storage, clock: FixedClock) -> None:
        self.cctp, self.books, self.clock = cctp, books, clock
        self.is_refusing = False
        self.begin()

    def begin(self) -> None:
        """What a suite notes of its orders."""

    def open_router(self) -> OffersRoutes:
        return self.cctp.open_router(self.books, self.clock)

    def read_transfers(self, chain_id: int, hash: str) -> Sequence[TransferLog]:
        view = self.cctp.open_chain(chain_id).transaction(hash)
        return () if view is None else view.logs

    def count_received(self, order: RouteOrder | OfferOrder) -> int:
        return self.cctp.balance(order.destination.chain_id, order.recipient)

    def return_next(self) -> None:
        self.is_refusing = True
        self.cctp.tell(SOURCE, "setMinFee(uint256)", 10_000)


class TestCctp(OnCctp, RouterConformance):
    can_return = True

    def begin(self) -> None:
        self.orders: dict[str, RouteOrder] = {}
        self.paid: list[tuple[str, str]] = []

    def new_order(self, **changes: object) -> RouteOrder:
        """CCTP delivers one atom for one: no less is expected than is paid."""
        order = super().new_order(**{"expected_atomic": 25_000_000, **changes})
        self.orders[order.key] = order
        return order

    def pay(self, address: str, amount_atomic: int) -> str:
        hash = self.cctp.pay(address, amount_atomic)
        self.cctp.mine()
        self.paid.append((address, hash))
        return hash

    def wait(self) -> None:
        router = self.cctp.open_router(self.books, self.clock)
        by_address = {router.open(order): key for key, order in self.orders.items()}
        for _ in range(LOOKS):
            for address, hash in self.paid:
                router.deliver(by_address[address], hash)
            self.cctp.mine()
            if self.is_refusing:
                self.clock.advance(PATIENCE_MS / 1000)
        if self.is_refusing:
            self.cctp.tell(SOURCE, "setMinFee(uint256)", 0)


class TestCctpOffers(OnCctp, OffersConformance):
    can_return = can_expire = True

    def begin(self) -> None:
        self.keys: list[str] = []

    def new_offer_order(self, **changes: object) -> OfferOrder:
        order = super().new_offer_order(**changes)
        self.keys.append(order.key)
        return order

    def pay(self, address: str, amount_atomic: int) -> str:
        hash = self.cctp.pay(address, amount_atomic)
        self.cctp.mine()
        return hash

    def wait(self) -> None:
        """What is only a part of an offer, or cannot be burned, comes back at its end."""
        if "paid" in self._look():
            self._advance(ENDED_S)
            self._look()

    def _look(self) -> set[str]:
        router = self.open_router()
        for _ in range(LOOKS):
            states = {router.follow_offer(key).state for key in self.keys}
            self.cctp.mine()
        return states

    def _advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for node in self.cctp.nodes.values():
            node.ask("evm_increaseTime", int(seconds) + 1)
            node.ask("evm_mine")

    def count_refunded(self, order: OfferOrder) -> int:
        return self.cctp.balance(order.source.chain_id, order.refund_address)

    def expire(self) -> None:
        self._advance(LATE_S)

    def now(self) -> int:
        return self.clock.now()
