"""What the buyers at the simulated on-ramp do, as the sandbox orders it."""

from __future__ import annotations

from payments_core.engine.ports import Ports
from payments_core.errors import CapabilityNotActive, InvalidState, NotFound
from payments_core.hosted_onramps.simulated.onramp import SimulatedOnramp
from payments_core.hosted_onramps.simulated.records import Outcome
from payments_core.payments.options.offer import Offer
from payments_core.payments.options.record import PaymentOption
from payments_core.storage.port import Snapshot


class SandboxOrders:
    """Orders of the simulated on-ramp; it is None if a real one is used."""

    def __init__(self, ports: Ports, onramp: SimulatedOnramp | None) -> None:
        self._storage = ports.storage
        self._onramp = onramp

    @property
    def is_simulated(self) -> bool:
        """Whether the on-ramp is simulated."""
        return self._onramp is not None

    def decide(self, partition: str, option_id: str, outcome: Outcome) -> Offer:
        """Order what becomes of the newest offer of an option.

        Raises NotFound, InvalidState, CapabilityNotActive.
        """
        if self._onramp is None:
            raise CapabilityNotActive("the simulated on-ramp")

        def load(snapshot: Snapshot) -> tuple[PaymentOption, Offer | None]:
            option = snapshot.get(PaymentOption, option_id)
            if option is None:
                raise NotFound("payment option")
            offer_id = option.offer_id
            return option, None if offer_id is None else snapshot.get(Offer, offer_id)

        option, offer = self._storage.read(partition, load)
        if offer is None or offer.reference is None:
            raise InvalidState("payment option", option.status, outcome)
        self._onramp.order(offer.reference, outcome)
        return offer
