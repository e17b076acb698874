"""Offers between two anvils: what a payer may do, what goes wrong, and where the money ends."""

from __future__ import annotations

import threading

import pytest

from payments_core.chains.evm.artifacts import load_contract
from payments_core.clock import FixedClock
from payments_core.networks import shipped_networks
from payments_core.routers.cctp.forwarders import forwarders
from payments_core.routers.cctp.router import CctpRouter
from payments_core.routers.port import (
    OfferProgress,
    OffersRoutes,
    RouteKeyReused,
    RouteRefused,
    RouterUnavailable,
)
from payments_core.storage.port import Storage
from tests.chains.evm.deployed import call
from tests.chains.evm.nodes import PAYER, STRANGER
from tests.routers.cctp.shop import (
    AMOUNT,
    ENDED_S,
    ESCROW,
    LATE_S,
    LOOKS,
    REFUND,
    Shop,
    count_sent,
    mint_as_stranger,
    order,
    read_terms,
)
from tests.routers.cctp.world import DESTINATION, SOURCE, USDC, Cctp

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
