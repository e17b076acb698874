"""Sends between two anvils: what the suite of routers cannot ask."""

from __future__ import annotations

import pytest

from payments_core.clock import DAY, SECOND, FixedClock
from payments_core.routers.cctp.forwarders import forwarders
from payments_core.routers.cctp.records import CctpRoute
from payments_core.routers.cctp.router import FAST_FINALITY, CctpRouter, CctpSettings
from payments_core.routers.cctp.transfers import PATIENCE_MS
from payments_core.routers.port import RouteOrder, RouteProgress, RouteRefused
from payments_core.storage.port import DIRECTORY, Storage
from tests.chains.evm.nodes import OWNER, STRANGER
from tests.routers.cctp.shop import AMOUNT, ESCROW, LOOKS, order
from tests.routers.cctp.world import DESTINATION, SOURCE, USDC, Cctp


class Sending:
    """A router, and a send that was opened."""

    def __init__(self, cctp: Cctp, books: Storage, clock: FixedClock) -> None:
        self.cctp, self.books, self.clock = cctp, books, clock
        self.router: CctpRouter = cctp.open_router(books, clock)
        self.address = self.router.open(send())

    def look(self, hash: str) -> RouteProgress:
        for _ in range(LOOKS):
            progress = self.router.deliver("send", hash)
            if progress.state != "waiting":
                break
            self.cctp.mine()
        return progress

    def refuse_burns(self) -> None:
        self.cctp.tell(SOURCE, "setMinFee(uint256)", 10)


def send(**changes: object) -> RouteOrder:
    terms = {
        "key": "send",
        "source": USDC[SOURCE],
        "destination": USDC[DESTINATION],
        "amount_atomic": AMOUNT,
        "expected_atomic": AMOUNT,
        "minimum_atomic": AMOUNT,
        "recipient": ESCROW,
        "return_to": OWNER,
    }
    return RouteOrder(**{**terms, **changes})  # type: ignore[arg-type]


@pytest.fixture
def sending(cctp: Cctp, books: Storage, clock: FixedClock) -> Sending:
    return Sending(cctp, books, clock)


def test_two_payments_at_once_are_two_deliveries(sending: Sending) -> None:
    hashes = [sending.cctp.pay(sending.address, amount) for amount in (AMOUNT, AMOUNT, 7)]
    found = [sending.look(hash) for hash in hashes]
    assert [one.state for one in found] == ["delivered"] * 3
    assert len({one.transaction_hash for one in found}) == 3
    assert sending.cctp.count_mints(ESCROW) == 3
    assert sending.cctp.balance(DESTINATION, ESCROW) == 2 * AMOUNT + 7


def test_dust_of_a_stranger_is_not_a_part_of_any_payment(sending: Sending) -> None:
    sending.cctp.pay(sending.address, 1, STRANGER)
    hash = sending.cctp.pay(sending.address, AMOUNT)
    assert sending.look(hash).state == "delivered"
    assert sending.cctp.balance(DESTINATION, ESCROW) == AMOUNT
    assert sending.cctp.balance(SOURCE, sending.address) == 1


def test_a_payment_whose_burn_fails_for_long_comes_back_once(sending: Sending) -> None:
    sending.refuse_burns()
    hash = sending.cctp.pay(sending.address, AMOUNT)
    assert sending.look(hash).state == "waiting"
    sending.clock.advance((PATIENCE_MS - SECOND) / SECOND)
    assert sending.look(hash).state == "waiting"
    sending.clock.advance(2)
    returned = sending.look(hash)
    assert returned.state == "returned"
    sending.cctp.tell(SOURCE, "setMinFee(uint256)", 0)
    assert sending.look(hash) == returned, "it is spent, though it could be burned now"
    assert sending.cctp.balance(SOURCE, OWNER) == AMOUNT
    assert sending.cctp.count_mints(ESCROW) == 0


def test_a_pause_that_ends_in_time_only_delays(sending: Sending) -> None:
    sending.refuse_burns()
    hash = sending.cctp.pay(sending.address, AMOUNT)
    assert sending.look(hash).state == "waiting"
    sending.clock.advance((PATIENCE_MS - SECOND) / SECOND)
    sending.cctp.tell(SOURCE, "setMinFee(uint256)", 0)
    assert sending.look(hash).state == "delivered"
    sending.refuse_burns()
    later = sending.cctp.pay(sending.address, AMOUNT)
    sending.clock.advance(2)
    assert sending.look(later).state == "waiting", "each payment has its own time"


def test_what_a_stranger_returned_after_the_end_is_found(sending: Sending) -> None:
    """Only then can he: the key might be lost. It comes back to us, as any return."""
    sending.refuse_burns()
    hash = sending.cctp.pay(sending.address, AMOUNT)
    assert sending.look(hash).state == "waiting"
    route = sending.books.read(DIRECTORY, lambda snapshot: snapshot.get(CctpRoute, "send"))
    assert route is not None
    node, sweep = sending.cctp.nodes[SOURCE], route.terms.sweep(USDC[SOURCE].address)
    assert not node.send(STRANGER, forwarders().address, sweep).succeeded
    seconds = 30 * DAY // SECOND + 60
    node.ask("evm_increaseTime", seconds)
    node.ask("evm_mine")
    sending.clock.advance(seconds)
    node.do(STRANGER, forwarders().address, sweep)
    returned = sending.look(hash)
    assert returned.state == "returned"
    receipt = node.receipt(returned.transaction_hash or "")
    assert receipt.raw["from"].lower() == STRANGER.lower()
    assert sending.cctp.balance(SOURCE, OWNER) == AMOUNT


def test_an_order_whose_minimum_cannot_be_kept_is_refused(sending: Sending) -> None:
    with pytest.raises(RouteRefused, match="minimum"):
        sending.router.open(send(key="more", minimum_atomic=AMOUNT + 1))
    settings = CctpSettings(min_finality=FAST_FINALITY, max_fee_ppm=200)
    fast = sending.cctp.open_router(sending.books, sending.clock, settings)
    with pytest.raises(RouteRefused, match="minimum"):
        fast.open(send(key="fast"))
    fast.open(send(key="fast", minimum_atomic=AMOUNT - 5_000))
    assert fast.open(send()) == sending.address, "an open order keeps its terms"


def test_keys_and_hashes_of_nothing_are_refused(sending: Sending) -> None:
    sending.router.offer(order("an_offer"))
    for key, hash in (("none", "0x" + 64 * "a"), ("an_offer", "0x" + 64 * "a"), ("send", "0x12")):
        with pytest.raises(RouteRefused):
            sending.router.deliver(key, hash)
    with pytest.raises(RouteRefused):
        sending.router.follow_offer("send")


def test_a_failed_transaction_is_no_payment(sending: Sending) -> None:
    node = sending.cctp.nodes[SOURCE]
    sent = node.send(STRANGER, USDC[SOURCE].address, b"\x12\x34\x56\x78")
    assert not sent.succeeded
    assert sending.look(sent.raw["transactionHash"]).state == "waiting"
