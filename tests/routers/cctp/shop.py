"""A shop whose payers are offered CCTP: a router, an order, and what a test does with them."""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.clock import HOUR, MINUTE, FixedClock
from payments_core.routers.cctp.attestations import AttestationService
from payments_core.routers.cctp.deployments import DEPLOYMENTS
from payments_core.routers.cctp.forwarders import RouteTerms, forwarders
from payments_core.routers.cctp.records import CctpRoute
from payments_core.routers.cctp.router import FAST_FINALITY, CctpRouter, CctpSettings
from payments_core.routers.port import (
    OfferOrder,
    OfferProgress,
    RouteOffer,
    RouterUnavailable,
)
from payments_core.storage.port import DIRECTORY, Storage
from tests.chains.evm.deployed import call
from tests.chains.evm.nodes import OWNER, STRANGER
from tests.routers.cctp.attestation_server import MESSAGE_SENT, attest
from tests.routers.cctp.world import DESTINATION, SOURCE, USDC, Cctp

AMOUNT = 25_000_000
ESCROW = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
REFUND = OWNER
LOOKS = 8
LATE_S = (30 * MINUTE + 1) / 1000
ENDED_S = (30 * MINUTE + HOUR + 1_000) / 1000

FAST = CctpSettings(min_finality=FAST_FINALITY, max_fee_ppm=200)


class Shop:
    """A router, an order, and a clock that the source chain follows."""

    def __init__(
        self, cctp: Cctp, books: Storage, clock: FixedClock, *, is_deployed: bool = True
    ) -> None:
        self.cctp, self.books, self.clock = cctp, books, clock
        self.router = self.open_router()
        if is_deployed:
            cctp.nodes[SOURCE].do(STRANGER, *forwarders().deployment)

    def open_router(self, settings: CctpSettings | None = None) -> CctpRouter:
        return self.cctp.open_router(self.books, self.clock, settings)

    def offer(self, key: str = "offer_1", amount: int = AMOUNT) -> RouteOffer:
        return self.router.offer(order(key, amount))

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for node in self.cctp.nodes.values():
            node.ask("evm_increaseTime", int(seconds) + 1)
            node.ask("evm_mine")

    def look(self, key: str = "offer_1", until: Sequence[str] = ("delivered", "returned")) -> str:
        """Look, and let blocks come, until a state; that state."""
        for _ in range(LOOKS):
            try:
                progress = self.router.follow_offer(key)
            except RouterUnavailable:
                continue
            finally:
                self.cctp.mine()
            if progress.state in until:
                break
        return progress.state

    def progress(self, key: str = "offer_1") -> OfferProgress:
        return self.router.follow_offer(key)

    @property
    def delivered(self) -> tuple[int, int]:
        """What the escrow has, and by how many mints."""
        return self.cctp.balance(DESTINATION, ESCROW), self.cctp.count_mints(ESCROW)

    @property
    def refunded(self) -> int:
        return self.cctp.balance(SOURCE, REFUND)


def order(key: str = "offer_1", amount: int = AMOUNT, **changes: object) -> OfferOrder:
    terms = {
        "key": key,
        "source": USDC[SOURCE],
        "destination": USDC[DESTINATION],
        "amount_atomic": amount,
        "recipient": ESCROW,
        "refund_address": REFUND,
    }
    return OfferOrder(**{**terms, **changes})  # type: ignore[arg-type]


def count_sent(shop: Shop) -> int:
    node = shop.cctp.nodes[SOURCE]
    return int(node.ask("eth_getTransactionCount", shop.cctp.operator, "latest"), 16)


def read_terms(shop: Shop, key: str = "offer_1") -> RouteTerms:
    route = shop.books.read(DIRECTORY, lambda snapshot: snapshot.get(CctpRoute, key))
    assert route is not None
    return route.terms


def mint_as_stranger(shop: Shop) -> None:
    """Bring the one burn of the source chain to the destination, as anybody may."""
    (log,) = shop.cctp.nodes[SOURCE].ask(
        "eth_getLogs", {"fromBlock": "0x0", "topics": [MESSAGE_SENT]}
    )
    service = AttestationService(shop.cctp.attesting.url)
    (found,) = service.find_messages(DEPLOYMENTS[SOURCE].domain, log["transactionHash"]).signed
    assert attest(found.message) == found.attestation
    receive = call("receiveMessage(bytes,bytes)", found.message, found.attestation)
    shop.cctp.nodes[DESTINATION].do(STRANGER, DEPLOYMENTS[DESTINATION].transmitter, receive)
    service.close()
