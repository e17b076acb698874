"""The suite of banks that take transfers on the simulated bank, on every storage."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.banks.incoming import DeliveryOrder, FundingBank
from payments_core.banks.simulated.arrivals import NewArrival
from payments_core.banks.simulated.incoming import SimulatedFundingBank
from payments_core.clock import DAY, SECOND
from payments_core.conformance.bank import FundingConformance
from payments_core.entropy import system_entropy
from payments_core.storage.port import Storage
from tests.service.banks.simulation import Simulation


class TestSimulated(FundingConformance):
    can_lose_answers = True
    can_fail = True

    @pytest.fixture(autouse=True)
    def _place(self, storage: Storage) -> None:
        self.simulation = Simulation(storage)
        self.delivered: dict[str, DeliveryOrder] = {}

    def open(self) -> FundingBank:
        return self._bank()

    def send_transfer(self, account_key: str, amount_cents: int) -> str:
        arrival = NewArrival(
            id=f"incoming_{system_entropy(12).hex()}",
            account_key=account_key,
            rail="ach_push",
            amount_cents=amount_cents,
        )
        return self._bank().receive(arrival).id

    def receive(self, incoming_id: str) -> None:
        self.simulation.clock.advance(DAY // SECOND)

    def count_deliveries(self, incoming_ids: Sequence[str]) -> int:
        made = [order for order in self.delivered.values() if order.incoming_id in incoming_ids]
        assert len(made) == self._bank().count_deliveries(incoming_ids)
        return len(made)

    def lose_next_answer(self) -> None:
        self.simulation.failing.append("lost_answer")

    def fail(self) -> None:
        self.simulation.always_failing = True

    def restore(self) -> None:
        self.simulation.always_failing = False

    def _bank(self) -> SimulatedFundingBank:
        def send_tokens(order: DeliveryOrder) -> str:
            self.delivered[order.key] = order
            return "0x1"

        return SimulatedFundingBank(self.simulation.ports, send_tokens, self.simulation.fails)
