"""Offers between two anvils whose service, chains or contracts give trouble; fast transfers."""

from __future__ import annotations

import pytest

from payments_core.routers.cctp.deployments import DEPLOYMENTS
from payments_core.routers.port import (
    RouterUnavailable,
)
from tests.chains.evm.deployed import call
from tests.chains.evm.nodes import STRANGER
from tests.routers.cctp.shop import (
    AMOUNT,
    ENDED_S,
    FAST,
    Shop,
    count_sent,
)
from tests.routers.cctp.world import DESTINATION, SOURCE


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
