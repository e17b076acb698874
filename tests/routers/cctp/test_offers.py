"""Offers between two anvils: what a payer may do, what goes wrong, and where the money ends."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from payments_core.chains.evm.artifacts import load_contract
from payments_core.clock import HOUR, MINUTE, FixedClock
from payments_core.networks import shipped_networks
from payments_core.routers.cctp.attestations import AttestationService
from payments_core.routers.cctp.deployments import DEPLOYMENTS
from payments_core.routers.cctp.forwarders import RouteTerms, forwarders
from payments_core.routers.cctp.records import CctpRoute
from payments_core.routers.cctp.router import FAST_FINALITY, CctpRouter, CctpSettings
from payments_core.routers.port import (
    OfferOrder,
    OfferProgress,
    OffersRoutes,
    RouteKeyReused,
    RouteOffer,
    RouteRefused,
    RouterUnavailable,
)
from payments_core.storage.port import DIRECTORY, Storage
from tests.chains.evm.deployed import call
from tests.chains.evm.nodes import OWNER, PAYER, STRANGER
from tests.routers.cctp.attestation_server import MESSAGE_SENT, attest
from tests.routers.cctp.world import DESTINATION, SOURCE, USDC, Cctp

AMOUNT = 25_000_000
ESCROW = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
REFUND = OWNER
LOOKS = 8
LATE_S = (30 * MINUTE + 1) / 1000
ENDED_S = (30 * MINUTE + HOUR + 1_000) / 1000


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


@pytest.fixture
def shop(cctp: Cctp, books: Storage, clock: FixedClock) -> Shop:
    return Shop(cctp, books, clock)


# Offering.


def test_it_offers_usdc_of_the_other_chain(shop: Shop) -> None:
    assert isinstance(shop.router, OffersRoutes)
    assert shop.router.list_sources(USDC[DESTINATION]) == (USDC[SOURCE],)
    assert shop.router.list_sources(USDC[SOURCE]) == (USDC[DESTINATION],)
    assert shop.router.list_sources(shipped_networks().find_asset(1, "USDC")) == ()
    assert shop.router.list_sources(shipped_networks().find_asset(1, "USDT")) == ()


def test_the_same_order_has_the_same_offer_in_every_process(shop: Shop) -> None:
    first = shop.offer()
    shop.clock.advance(60)
    again = shop.open_router().offer(order(recipient=ESCROW.lower()))
    assert again == first
    assert first.amount_atomic == AMOUNT
    assert shop.offer("offer_2").address != first.address
    for changes in ({"amount_atomic": 1}, {"recipient": PAYER}, {"refund_address": PAYER}):
        with pytest.raises(RouteKeyReused):
            shop.router.offer(order(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"amount_atomic": 0},
        {"amount_atomic": 10_000_000_000_001},
        {"recipient": "0x" + 40 * "0"},
        {"recipient": USDC[DESTINATION].address},
        {"refund_address": "0x12"},
        {"source": USDC[DESTINATION]},
        {"source": shipped_networks().find_asset(1, "USDT")},
        {"destination": shipped_networks().find_asset(10, "USDC")},
    ],
)
def test_what_cctp_cannot_do_is_refused(shop: Shop, changes: dict[str, object]) -> None:
    with pytest.raises(RouteRefused):
        shop.router.offer(order("refused", **changes))
    with pytest.raises(RouteRefused):
        shop.router.follow_offer("refused")


# What a payer may do.


def test_a_payment_is_delivered_exactly_and_once(shop: Shop) -> None:
    offer = shop.offer()
    assert shop.progress() == OfferProgress(state="waiting")
    hash = shop.cctp.pay(offer.address, AMOUNT)
    paid = shop.progress()
    assert (paid.state, paid.payment_hash, paid.amount_atomic) == ("paid", hash, AMOUNT)
    assert shop.look() == "delivered"
    progress = shop.progress()
    assert (progress.payment_hash, progress.amount_atomic) == (hash, AMOUNT)
    view = shop.cctp.open_chain(DESTINATION).transaction(progress.transaction_hash or "")
    assert view is not None
    assert [(log.recipient, log.amount_atomic) for log in view.logs] == [(ESCROW, AMOUNT)]
    for _ in range(3):
        shop.cctp.mine()
        assert shop.progress() == progress
    assert shop.delivered == (AMOUNT, 1)
    assert shop.refunded == 0


def test_parts_are_delivered_together(shop: Shop) -> None:
    offer = shop.offer()
    shop.cctp.pay(offer.address, 10_000_000)
    short = shop.progress()
    assert (short.state, short.amount_atomic) == ("paid", 10_000_000)
    second = shop.cctp.pay(offer.address, AMOUNT - 10_000_000, STRANGER)
    assert shop.look() == "delivered"
    assert shop.progress().payment_hash == second
    assert shop.delivered == (AMOUNT, 1)


def test_the_router_deploys_its_contract_itself(cctp: Cctp, books: Storage) -> None:
    """Before a burn, and before a return, which would otherwise call nothing, and succeed."""
    shop = Shop(cctp, books, FixedClock(), is_deployed=False)
    offer = shop.offer()
    cctp.pay(offer.address, AMOUNT - 1)
    shop.progress()
    shop.advance(ENDED_S)
    assert shop.look() == "returned"
    assert shop.refunded == AMOUNT - 1
    assert cctp.nodes[SOURCE].code(forwarders().address)


@pytest.mark.parametrize("paid", [1_000_000, AMOUNT - 1])
def test_a_short_payment_is_returned_at_the_end(shop: Shop, paid: int) -> None:
    offer = shop.offer()
    hash = shop.cctp.pay(offer.address, paid)
    for _ in range(3):
        assert shop.look(until=()) == "paid"
    assert shop.refunded == 0, "the rest may still come"
    shop.advance(ENDED_S)
    assert shop.look() == "returned"
    progress = shop.progress()
    assert (progress.payment_hash, progress.amount_atomic) == (hash, paid)
    view = shop.cctp.open_chain(SOURCE).transaction(progress.transaction_hash or "")
    assert view is not None
    (log,) = view.logs
    assert (log.sender, log.recipient, log.amount_atomic) == (offer.address, REFUND, paid)
    assert (shop.refunded, shop.delivered) == (paid, (0, 0))


def test_a_late_payment_is_delivered_within_the_grace_and_returned_after_it(shop: Shop) -> None:
    late, ended = shop.offer("late"), shop.offer("ended")
    shop.advance(LATE_S)
    shop.cctp.pay(late.address, AMOUNT)
    assert shop.look("late") == "delivered"
    shop.advance(ENDED_S)
    shop.cctp.pay(ended.address, AMOUNT)
    assert shop.look("ended") == "returned"
    again = shop.cctp.pay(ended.address, 2 * AMOUNT)
    assert shop.look("ended") == "returned"
    assert shop.progress("ended").payment_hash == again
    assert shop.progress("ended").amount_atomic == 2 * AMOUNT
    assert (shop.delivered, shop.refunded) == ((AMOUNT, 1), 3 * AMOUNT)


@pytest.mark.parametrize("when", ["at once", "while it is under way", "after it"])
def test_what_is_paid_twice_goes_back(shop: Shop, when: str) -> None:
    offer = shop.offer()
    shop.cctp.pay(offer.address, AMOUNT if when != "at once" else 2 * AMOUNT)
    if when == "while it is under way":
        shop.progress()
        shop.cctp.pay(offer.address, AMOUNT)
    if when == "after it":
        assert shop.look() == "delivered"
        shop.cctp.pay(offer.address, AMOUNT)
    assert shop.look() == "delivered"
    shop.look(until=())
    assert (shop.delivered, shop.refunded) == ((AMOUNT, 1), AMOUNT)
    assert shop.progress().state == "delivered"
    assert shop.cctp.balance(SOURCE, offer.address) == 0


def test_dust_costs_no_gas_and_changes_nothing(shop: Shop) -> None:
    offer = shop.offer()
    shop.cctp.pay(offer.address, 1, STRANGER)
    shop.cctp.pay(offer.address, AMOUNT)
    assert shop.look() == "delivered"
    sent = count_sent(shop)
    for _ in range(3):
        shop.cctp.pay(offer.address, 1, STRANGER)
        assert shop.look() == "delivered"
    assert count_sent(shop) == sent
    assert shop.refunded == 0


def test_another_token_at_the_address_is_no_payment(shop: Shop) -> None:
    offer, node = shop.offer(), shop.cctp.nodes[SOURCE]
    wrong = node.create(load_contract("TestToken").creation)
    node.do(STRANGER, wrong, call("mint(address,uint256)", offer.address, AMOUNT))
    assert shop.look(until=()) == "waiting"
    assert shop.delivered == (0, 0)


# What others do.


def test_a_stranger_may_mint_first_and_is_found(shop: Shop) -> None:
    offer = shop.offer()
    shop.cctp.pay(offer.address, AMOUNT)
    shop.progress()
    shop.cctp.mine()
    mint_as_stranger(shop)
    assert shop.look() == "delivered"
    hash = shop.progress().transaction_hash
    receipt = shop.cctp.nodes[DESTINATION].receipt(hash or "")
    assert receipt.raw["from"].lower() == STRANGER.lower()
    assert shop.delivered == (AMOUNT, 1)


def test_a_stranger_may_return_what_is_due_and_is_found(shop: Shop) -> None:
    offer = shop.offer()
    shop.cctp.pay(offer.address, 1_000_000)
    shop.progress()
    shop.advance(ENDED_S)
    sweep = read_terms(shop).sweep(USDC[SOURCE].address)
    shop.cctp.nodes[SOURCE].do(STRANGER, forwarders().address, sweep)
    assert shop.look() == "returned"
    assert (shop.refunded, shop.progress().amount_atomic) == (1_000_000, 1_000_000)


def test_two_workers_deliver_once(shop: Shop) -> None:
    """Both look at once, again and again: at most one transaction of each step has an effect."""
    keys = [f"offer_{number}" for number in range(3)]
    for key in keys:
        shop.cctp.pay(shop.offer(key).address, AMOUNT)
    routers = [shop.open_router(), shop.open_router()]

    def work(router: CctpRouter, start: threading.Barrier) -> None:
        start.wait()
        for key in keys:
            try:
                router.follow_offer(key)
            except RouterUnavailable:
                continue

    for _ in range(LOOKS):
        start = threading.Barrier(2)
        threads = [threading.Thread(target=work, args=(one, start)) for one in routers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        shop.cctp.mine()
    assert [shop.look(key) for key in keys] == ["delivered"] * 3
    assert shop.delivered == (3 * AMOUNT, 3)
    assert shop.refunded == 0


# What goes wrong.


@pytest.mark.parametrize(
    "fault",
    ["error", "drop", "cut", "garbage", "unknown", "pending", "other_recipient", "too_many"],
)
def test_a_fault_of_the_attestation_service_delays_and_changes_nothing(
    shop: Shop, fault: str
) -> None:
    offer = shop.offer()
    shop.cctp.pay(offer.address, AMOUNT)
    shop.progress()
    shop.cctp.mine()
    times = 2 if fault in ("drop", "cut") else 1  # the client itself asks again once
    shop.cctp.attesting.tell(faults=[fault] * times)
    if fault in ("unknown", "pending", "other_recipient"):
        shop.progress()
    else:
        with pytest.raises(RouterUnavailable, match=shop.cctp.attesting.url[7:]):
            shop.progress()
    if fault == "too_many":
        asked = shop.cctp.attesting.count_requests()
        with pytest.raises(RouterUnavailable, match="no more requests"):
            shop.progress()
        assert shop.cctp.attesting.count_requests() == asked
        shop.router = shop.open_router()  # another process, or five minutes later
    assert shop.look() == "delivered"
    assert (shop.delivered, shop.refunded) == ((AMOUNT, 1), 0)


@pytest.mark.parametrize("step", ["payment", "burn"])
def test_a_reorg_of_the_source_chain_is_noticed(shop: Shop, step: str) -> None:
    offer, node = shop.offer(), shop.cctp.nodes[SOURCE]
    shop.router.follow_offer("offer_1")
    before = node.ask("evm_snapshot")
    shop.cctp.pay(offer.address, AMOUNT)
    if step == "burn":
        before = node.ask("evm_snapshot")
    for _ in range(3):
        shop.progress()
        node.ask("evm_mine")
    assert shop.cctp.balance(SOURCE, offer.address) == 0, "it is burned"
    assert node.ask("evm_revert", before)
    if step == "payment":
        shop.cctp.pay(offer.address, AMOUNT)
    assert shop.look() == "delivered"
    assert shop.delivered == (AMOUNT, 1)


def test_a_reorg_of_the_destination_chain_is_noticed(shop: Shop) -> None:
    offer, node = shop.offer(), shop.cctp.nodes[DESTINATION]
    shop.cctp.pay(offer.address, AMOUNT)
    shop.progress()
    shop.cctp.mine()
    before = node.ask("evm_snapshot")
    shop.progress()
    assert shop.progress().state == "delivered", "in a block that is not final"
    assert shop.delivered == (AMOUNT, 1)
    assert node.ask("evm_revert", before)
    assert shop.delivered == (0, 0)
    assert shop.progress().state == "paid"
    assert shop.look() == "delivered"
    assert shop.delivered == (AMOUNT, 1)


def test_what_circle_refuses_to_burn_is_returned_at_the_end(shop: Shop) -> None:
    offer = shop.offer()
    shop.cctp.tell(SOURCE, "setMinFee(uint256)", 1)
    shop.cctp.pay(offer.address, AMOUNT)
    sent = count_sent(shop)
    for _ in range(2):
        assert shop.look(until=()) == "paid"
    assert count_sent(shop) <= sent + 1, "no gas for what would fail; the contract may be new"
    shop.advance(ENDED_S)
    assert shop.look() == "returned"
    assert (shop.refunded, shop.delivered) == (AMOUNT, (0, 0))


def test_a_pause_of_the_destination_delays_the_mint(shop: Shop) -> None:
    offer, node = shop.offer(), shop.cctp.nodes[DESTINATION]
    transmitter = DEPLOYMENTS[DESTINATION].transmitter
    shop.cctp.pay(offer.address, AMOUNT)
    node.do(STRANGER, transmitter, call("setPaused(bool)", True))
    assert shop.look(until=()) == "paid"
    shop.advance(ENDED_S)
    assert shop.look(until=()) == "paid"
    node.do(STRANGER, transmitter, call("setPaused(bool)", False))
    assert shop.look() == "delivered"
    assert (shop.delivered, shop.refunded) == ((AMOUNT, 1), 0)


def test_a_signature_that_the_contract_no_longer_accepts_is_fetched_again(shop: Shop) -> None:
    """Circle changed its attesters while the destination was paused."""
    offer, node = shop.offer(), shop.cctp.nodes[DESTINATION]
    transmitter = DEPLOYMENTS[DESTINATION].transmitter
    shop.cctp.pay(offer.address, AMOUNT)
    node.do(STRANGER, transmitter, call("setPaused(bool)", True))
    assert shop.look(until=()) == "paid"
    one = call("configure(uint32,address[],uint256)", DEPLOYMENTS[DESTINATION].domain, [], 1)
    node.do(STRANGER, transmitter, one)
    shop.cctp.attesting.tell(threshold=1)
    node.do(STRANGER, transmitter, call("setPaused(bool)", False))
    assert shop.look() == "delivered"
    assert (shop.delivered, shop.refunded) == ((AMOUNT, 1), 0)


# Fast transfers.

FAST = CctpSettings(min_finality=FAST_FINALITY, max_fee_ppm=200)


@pytest.mark.parametrize(("fee_ppm", "is_fast"), [(130, True), (200, True), (300, False)])
def test_a_fast_transfer_delivers_at_least_the_amount(
    shop: Shop, fee_ppm: int, is_fast: bool
) -> None:
    """If Circle's fee is above what the burn allows, it is a standard one, and has no fee."""
    shop.router = shop.open_router(FAST)
    shop.cctp.attesting.tell(fee_ppm=fee_ppm)
    offer = shop.offer()
    assert offer.amount_atomic == 25_005_001
    shop.cctp.pay(offer.address, offer.amount_atomic)
    for _ in range(3):
        shop.progress()
    assert (shop.delivered[1] == 1) == is_fast, "before any block is final"
    assert shop.look() == "delivered"
    fee = offer.amount_atomic * fee_ppm // 10**6 if is_fast else 0
    assert shop.delivered == (offer.amount_atomic - fee, 1)
    assert shop.progress().amount_atomic == offer.amount_atomic - fee >= AMOUNT


def test_a_fast_message_that_has_ended_is_signed_again(shop: Shop) -> None:
    shop.router = shop.open_router(FAST)
    shop.cctp.attesting.tell(fee_ppm=130, expires_at=2)
    offer = shop.offer()
    shop.cctp.pay(offer.address, offer.amount_atomic)
    assert shop.look() == "delivered"
    assert shop.delivered[1] == 1


# Helpers of these tests.


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
