"""The router suite on the simulated router, on every storage."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import pytest

from payments_core.chains.port import TransferLog
from payments_core.clock import Instant
from payments_core.conformance.router import OffersConformance, RouterConformance
from payments_core.routers.port import OfferOrder, RouteOrder
from payments_core.routers.simulated.router import SimulatedRouter
from payments_core.storage.port import Storage
from tests.service.world import WALLET, World


class Simulated:
    """The sandbox's router, and what happens to it."""

    can_return = can_lose_answers = can_fail = True
    source = RouterConformance.source

    @pytest.fixture(autouse=True)
    def _place(self, storage: Storage) -> None:
        self.world = World(storage)
        self.failing: list[str] = []
        self.is_down = False
        self.names = count()

    def open_router(self) -> SimulatedRouter:
        service = self.world.service
        return SimulatedRouter(service.parts.ports, service.chains, fails=self._fails)  # type: ignore[arg-type]

    def pay(self, address: str, amount_atomic: int) -> str:
        chain = self.world.service.chains[self.source.chain_id]
        name = f"payer-{next(self.names)}"
        token = self.source.address
        chain.transfer(token, None, WALLET, amount_atomic, f"{name}/faucet")  # type: ignore[attr-defined]
        hash: str = chain.transfer(token, WALLET, address, amount_atomic, name)  # type: ignore[attr-defined]
        chain.mine(3)  # type: ignore[attr-defined]
        return hash

    def wait(self) -> None:
        self.world.system.advance(10)

    def read_transfers(self, chain_id: int, hash: str) -> Sequence[TransferLog]:
        view = self.world.service.chains[chain_id].transaction(hash)
        return () if view is None else view.logs

    def count_received(self, order: RouteOrder | OfferOrder) -> int:
        chain = self.world.service.chains[order.destination.chain_id]
        chain.mine(3)  # type: ignore[attr-defined]
        return chain.balances(order.destination.address, [order.recipient]).amounts[order.recipient]

    def return_next(self) -> None:
        self.failing.append("return")

    def lose_next_answer(self) -> None:
        self.failing.append("lost_answer")

    def fail(self) -> None:
        self.is_down = True

    def restore(self) -> None:
        self.is_down = False

    def _fails(self, call: str) -> bool:
        if self.is_down:
            return call != "return"
        if call in self.failing:
            self.failing.remove(call)
            return True
        return False


class TestSimulated(Simulated, RouterConformance):
    pass


class TestSimulatedOffers(Simulated, OffersConformance):
    can_expire = True
    can_lose_answers = False  # its answers are lost in deliveries alone

    def count_refunded(self, order: OfferOrder) -> int:
        chain = self.world.service.chains[order.source.chain_id]
        chain.mine(3)  # type: ignore[attr-defined]
        held = chain.balances(order.source.address, [order.refund_address]).amounts
        return held[order.refund_address]

    def expire(self) -> None:
        self.world.system.advance(3_600)

    def now(self) -> Instant:
        return self.world.clock.now()
