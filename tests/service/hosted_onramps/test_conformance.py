"""The on-ramp suite on the simulated on-ramp, on every storage."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.chains.port import TransferLog
from payments_core.clock import Instant
from payments_core.conformance.onramp import OnrampConformance
from payments_core.evolve import evolve
from payments_core.hosted_onramps.port import HostedOnramp
from payments_core.hosted_onramps.simulated.onramp import SimulatedOnramp
from payments_core.storage.port import Storage
from tests.service.world import World


class TestSimulated(OnrampConformance):
    unsold_asset = evolve(OnrampConformance.asset, chain_id=2)
    can_pay = can_deliver = can_read_chain = can_reject = can_return = can_fail = True

    @pytest.fixture(autouse=True)
    def _place(self, storage: Storage) -> None:
        self.world = World(storage)
        self.is_down = False

    def open(self) -> HostedOnramp:
        return self._onramp()

    def pay(self, reference: str) -> None:
        self._onramp().order(reference, "pay")

    def deliver(self, reference: str) -> None:
        self.world.system.advance(10)

    def read_transfers(self, chain_id: int, hash: str) -> Sequence[TransferLog]:
        view = self.world.service.chains[chain_id].transaction(hash)
        return () if view is None else view.logs

    def reject(self, reference: str) -> None:
        self._onramp().order(reference, "fail")

    def give_back(self, reference: str) -> None:
        self._onramp().order(reference, "return")
        self.world.system.advance(10)

    def fail(self) -> None:
        self.is_down = True

    def restore(self) -> None:
        self.is_down = False

    def now(self) -> Instant:
        return self.world.clock.now()

    def _onramp(self) -> SimulatedOnramp:
        service = self.world.service
        return SimulatedOnramp(
            service.parts.ports,
            service.chains,  # type: ignore[arg-type]
            fails=lambda call: self.is_down and call in ("offer", "look"),
        )
