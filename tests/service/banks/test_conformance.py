"""The bank suite on the simulated bank, on every storage."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.banks.port import Bank
from payments_core.clock import MINUTE, SECOND
from payments_core.conformance.bank import BankConformance
from payments_core.storage.port import Storage
from tests.service.banks.simulation import Simulation


class TestSimulated(BankConformance):
    can_return = True
    can_lose_answers = True
    can_fail = True

    @pytest.fixture(autouse=True)
    def _place(self, storage: Storage) -> None:
        self.simulation = Simulation(storage)

    def open(self) -> Bank:
        return self.simulation.open()

    def approve_capability(self, key: str) -> None:
        self.simulation.clock.advance(MINUTE // SECOND)

    approve_account = approve_capability

    def settle(self, key: str) -> None:
        self.simulation.bank.settle_payout(key)

    def return_payout(self, key: str, code: str) -> None:
        self.simulation.bank.return_payout(key, code)
        self.simulation.clock.advance(15 * MINUTE // SECOND)

    def count_payouts(self, keys: Sequence[str]) -> int:
        return self.simulation.bank.count_payouts(keys)

    def lose_next_answer(self) -> None:
        self.simulation.failing.append("lost_answer")

    def fail(self) -> None:
        self.simulation.always_failing = True

    def restore(self) -> None:
        self.simulation.always_failing = False
