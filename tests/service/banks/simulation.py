"""A simulated bank on a storage of your choice, with a clock that only tests move."""

from __future__ import annotations

from datetime import UTC, datetime

from payments_core.banks.port import BankAccountDetails, PayoutOrder
from payments_core.banks.simulated.bank import SimulatedBank
from payments_core.clock import FixedClock
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.ports import Ports
from payments_core.storage.port import Storage

RING = KeyRing.parse(KeyRing.generate())
WEDNESDAY_NOON = int(datetime(2026, 6, 10, 16, tzinfo=UTC).timestamp()) * 1_000


class Simulation:
    """One bank, whose calls can be made to fail."""

    def __init__(self, storage: Storage) -> None:
        self.clock = FixedClock(WEDNESDAY_NOON)
        self.ports = Ports.over(storage, RING, self.clock)
        self.storage = storage
        self.failing: list[str] = []
        self.always_failing = False
        self.bank = self.open()

    def open(self) -> SimulatedBank:
        """Another handle to the same bank."""
        return SimulatedBank(self.ports, fails=self.fails)

    def fails(self, call: str) -> bool:
        if self.always_failing:
            return True
        if call in self.failing:
            self.failing.remove(call)
            return True
        return False


def order(key: str = "payment_1", **changes: object) -> PayoutOrder:
    """100.00 dollars to a checking account by ACH."""
    recipient = {
        "holder_name": "Ada Lovelace",
        "holder_type": "individual",
        "account_number": "000123456789",
        "routing_number": "021000021",
        "account_type": "checking",
    }
    recipient |= {name: changes.pop(name) for name in list(changes) if name in recipient}
    ordered = {"rail": "ach", "amount_cents": 100_00, **changes}
    return PayoutOrder(key=key, recipient=BankAccountDetails(**recipient), **ordered)  # type: ignore[arg-type]
