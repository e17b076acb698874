"""What a payer does with the offers of the sandbox's router and on-ramp."""

from __future__ import annotations

from typing import Any

from payments_core.hosted_onramps.simulated.records import Outcome
from payments_core.payments.details import OptionDetails
from payments_core.payments.options.offer import Offer, OfferTerms, offer_id
from tests.service.payer import Payer
from tests.service.world import OTHER_WALLET, WALLET, World, atomic

POLYGON = 137
FULL = atomic("25.00")
PRICE = "25.075"
"""What the simulated router wants for 25.00."""


class Shopper(Payer):
    """A payer who pays with USDC on Polygon, or at the on-ramp; `WALLET` gets returns."""

    def routed(self, **more: Any) -> OptionDetails:
        wanted = {"chain_id": POLYGON, "asset_symbol": "USDC", "refund_address": WALLET}
        return self.option(method="routing", **{**wanted, **more})

    def bought(self, **more: Any) -> OptionDetails:
        return self.option(method="hosted_onramp", **more)

    def pay_router(
        self, option: OptionDetails, amount: str = PRICE, source: str = OTHER_WALLET
    ) -> str:
        """A transfer to the router's address, in a block and not final; its hash."""
        sandbox, to = self.world.resources.sandbox, terms_of(option).address
        sandbox.transfer(POLYGON, "USDC", amount, to=source)
        assert to is not None
        return sandbox.transfer(POLYGON, "USDC", amount, to=to, from_=source).transaction_hash

    def buy(self, option: OptionDetails, outcome: Outcome = "pay") -> None:
        self.world.resources.sandbox.decide_order(option.option.id, outcome)

    def offer_now(self, option: OptionDetails, number: int = 1) -> Offer:
        return self.world.get(Offer, offer_id(option.option.id, number))

    def wallet_holds(self, address: str = WALLET) -> int:
        """What an address holds on Polygon, at the newest block."""
        chain: Any = self.world.service.chains[POLYGON]
        chain.mine(3)
        [token] = [
            token for token in self.world.service.networks[POLYGON].tokens if token.symbol == "USDC"
        ]
        held: int = chain.balances(token.address, [address]).amounts[address]
        return held


def terms_of(option: OptionDetails) -> OfferTerms:
    assert option.offer is not None
    assert option.offer.terms is not None
    return option.offer.terms


def fail(world: World, dependency: Any, operation: str, times: int = 1) -> None:
    """Let the next calls of the router or the on-ramp fail."""
    world.resources.sandbox.fail_dependency(dependency, operation, times)
