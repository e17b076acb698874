"""A Payment that is paid on another chain, by the whole service between two anvils."""

from __future__ import annotations

import math
from typing import Any

import pytest

from payments_core.clock import SECOND, FixedClock
from payments_core.payments.details import OptionDetails
from payments_core.routers.cctp.attestations import AttestationService
from payments_core.routers.cctp.router import CctpRouter
from payments_core.service import PaymentsService
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http.cli.anvil.chain import MAX_BLOCKS_PER_ADVANCE, AnvilChain
from tests.chains.evm.deployed import call
from tests.chains.evm.nodes import OWNER, PAYER, STRANGER
from tests.chains.scenes import SETTINGS
from tests.routers.cctp.world import DESTINATION, SIGNER, SOURCE, USDC, Cctp
from tests.service.payer import Payer
from tests.service.world import World, atomic

FULL = atomic("25.00")
# The Payment is on Base, and its payer has USDC on Polygon.
assert SOURCE == 8453
PAID_ON, PAYMENTS_ON = DESTINATION, SOURCE


class CctpWorld(World):
    """A world on two anvils, whose router is CCTP."""

    def __init__(self, cctp: Cctp) -> None:
        self.cctp = cctp
        chains: Any = {
            number: AnvilChain(node.url, number, SIGNER) for number, node in cctp.nodes.items()
        }
        for chain in chains.values():
            chain.prepare_node()
        times = [chain.heads().latest.time for chain in chains.values()]
        super().__init__(MemoryStorage(), chains, FixedClock(max(times)))
        self.open()

    def restarted(self, *given: Any, **more: Any) -> PaymentsService:
        """See World."""
        router = CctpRouter(
            AttestationService(self.cctp.attesting.url),
            self._sandbox_chains or {},
            self.storage,
            clock=self.clock,
        )
        return super().restarted(*given, **{"settings": SETTINGS, "router": router, **more})

    def _move(self, instant: int) -> None:
        """See World: both chains have a block for each second."""
        before = self.clock.now()
        self.clock.advance_to(instant)
        blocks = min(math.ceil((self.clock.now() - before) / SECOND), MAX_BLOCKS_PER_ADVANCE)
        for node in self.cctp.nodes.values():
            node.ask("evm_setTime", self.clock.now())
            if blocks:
                node.ask("anvil_mine", hex(blocks))


class RoutedPayer(Payer):
    """Pays with USDC on Polygon."""

    def routed(self) -> OptionDetails:
        option = self.option(
            method="routing", chain_id=PAID_ON, asset_symbol="USDC", refund_address=OWNER
        )
        return self.select(option)


@pytest.fixture
def world(cctp: Cctp) -> CctpWorld:
    return CctpWorld(cctp)


def test_a_payment_is_paid_from_another_chain(world: CctpWorld, cctp: Cctp) -> None:
    payer = RoutedPayer(world)
    option = payer.routed()
    offer = payer.read(option).offer
    assert offer is not None
    assert offer.terms is not None
    assert offer.terms.amount_atomic == FULL
    pay_on_polygon(cctp, str(offer.terms.address), FULL)
    assert world.paid(payer.id).status == "awaiting_payment"
    world.advance_until(lambda: world.paid(payer.id).status == "succeeded")
    assert payer.status(option) == ("succeeded", "selected", FULL)
    [receipt] = payer.read(option).receipts
    assert (receipt.amount_atomic, receipt.refund_to) == (FULL, OWNER)
    escrow = str(payer.payment.payment.escrow_address)
    assert cctp.balance(PAID_ON, str(offer.terms.address)) == 0
    assert cctp.balance(PAYMENTS_ON, escrow) == 0, "it is released"


def pay_on_polygon(cctp: Cctp, address: str, amount: int) -> None:
    token = USDC[PAID_ON].address
    node = cctp.nodes[PAID_ON]
    node.do(STRANGER, token, call("mint(address,uint256)", PAYER, amount))
    node.do(PAYER, token, call("transfer(address,uint256)", address, amount))
