"""The router suite on the CCTP router, between two anvils."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.chains.port import TransferLog
from payments_core.clock import FixedClock
from payments_core.conformance.router import RouterConformance
from payments_core.routers.cctp.transfers import PATIENCE_MS
from payments_core.routers.port import RouteOrder, Router
from payments_core.storage.port import Storage
from tests.routers.cctp.world import SOURCE, Cctp

LOOKS = 4
"""So often a waiting payment is looked at: for its burn, its message, and its mint."""


class TestCctp(RouterConformance):
    can_return = True

    @pytest.fixture(autouse=True)
    def _place(self, cctp: Cctp, books: Storage, clock: FixedClock) -> None:
        self.cctp, self.books, self.clock = cctp, books, clock
        self.orders: dict[str, RouteOrder] = {}
        self.paid: list[tuple[str, str]] = []
        self.is_refusing = False

    def open_router(self) -> Router:
        return self.cctp.open_router(self.books, self.clock)

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

    def read_transfers(self, chain_id: int, hash: str) -> Sequence[TransferLog]:
        view = self.cctp.open_chain(chain_id).transaction(hash)
        return () if view is None else view.logs

    def count_received(self, order: RouteOrder) -> int:
        return self.cctp.balance(order.destination.chain_id, order.recipient)

    def return_next(self) -> None:
        self.is_refusing = True
        self.cctp.tell(SOURCE, "setMinFee(uint256)", 10_000)
