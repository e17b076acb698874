"""Offers of providers: a router and a hosted on-ramp, whose receipts alone move the Payment."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.clock import DAY, SECOND
from payments_core.errors import (
    CapabilityNotActive,
    DependencyFailed,
    DestinationNotAllowed,
    IdempotencyConflict,
    OptionLocked,
    PaymentExpired,
    PaymentOptionLimitReached,
    ScreeningRefused,
    UnsupportedAsset,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.payments.offers.lifecycle import ASKED_FOR_MS, MAX_OFFERS
from tests.service.payer import authority_of
from tests.service.payments.offers.shopper import FULL, POLYGON, PRICE, Shopper, fail, terms_of
from tests.service.world import BASE, OTHER_WALLET, WALLET, World, atomic


def test_a_routed_option_is_paid_on_another_chain(world: World) -> None:
    shopper = Shopper(world)
    option = shopper.select(shopper.routed())
    offered = shopper.read(option)
    assert shopper.status(option) == ("pending", "selected", 0)
    assert terms_of(offered).amount_atomic == atomic(PRICE)
    assert world.clock.now() < terms_of(offered).expires_at_ms <= option.option.expires_at_ms
    paid = shopper.pay_router(offered)
    world.advance(8)
    assert shopper.offer_now(option).payment_hash == paid
    assert shopper.status(option) == ("processing", "selected", 0)
    assert shopper.paid().status == "awaiting_payment"
    world.advance(60)
    assert shopper.status(option) == ("succeeded", "selected", FULL)
    assert shopper.paid().status == "succeeded"
    [receipt] = shopper.read(option).receipts
    assert (receipt.refund_to, receipt.transaction_hash) == (
        WALLET, shopper.offer_now(option).transaction_hash,
    )  # fmt: skip


def test_a_card_payment_at_the_on_ramp_pays_the_escrow(world: World) -> None:
    shopper = Shopper(world)
    option = shopper.select(shopper.bought())
    terms = terms_of(shopper.read(option))
    assert (terms.price, terms.currency) == ("25.50", "USD")
    assert str(terms.url).startswith("https://")
    assert shopper.paid().status == "awaiting_payment"
    shopper.buy(option)
    world.advance(90)
    assert shopper.status(option) == ("succeeded", "selected", FULL)
    assert shopper.paid().status == "succeeded"
    [receipt] = shopper.read(option).receipts
    assert receipt.refund_to is None


def test_the_same_wish_is_answered_with_the_same_option(memory_world: World) -> None:
    shopper = Shopper(memory_world)
    first, again = shopper.routed(), shopper.routed()
    assert terms_of(first) == terms_of(again)
    assert first.option.id == again.option.id
    assert shopper.bought().option.id == shopper.bought().option.id
    assert shopper.routed(refund_address=OTHER_WALLET).option.id != first.option.id
    assert len(shopper.paid().option_ids) == 3


def test_the_same_key_is_answered_once(world: World) -> None:
    shopper = Shopper(world)
    first = shopper.routed(idempotency_key="one")
    assert terms_of(shopper.routed(idempotency_key="one")) == terms_of(first)
    with pytest.raises(IdempotencyConflict):
        shopper.bought(idempotency_key="one")
    assert len(shopper.paid().option_ids) == 1


def test_every_method_says_where_it_is_active(memory_world: World) -> None:
    shopper = Shopper(memory_world)
    public = memory_world.service.acting_as(shopper.authority).public_payments
    found = {one.method: one for one in public.list_methods(shopper.id)}
    assert {name: one.available for name, one in found.items()} == {
        "direct": True, "routing": True, "hosted_onramp": True,
    }  # fmt: skip
    assert found["direct"].assets == (shopper.paid().asset,)
    sources = {asset.id for asset in found["routing"].assets}
    assert f"{POLYGON}/USDC" in sources
    assert shopper.paid().asset.id not in sources


WRONG: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"refund_address": None}, ValidationFailed),
    ({"chain_id": None}, ValidationFailed),
    ({"asset_symbol": None}, ValidationFailed),
    ({"refund_address": "0x" + "00" * 20}, ValidationFailed),
    ({"refund_address": "nowhere"}, ValidationFailed),
    ({"payer_address": WALLET}, ValidationFailed),
    ({"chain_id": BASE}, UnsupportedAsset),
    ({"asset_symbol": "NONE"}, UnsupportedAsset),
    ({"chain_id": 4242}, UnsupportedChain),
]


@pytest.mark.parametrize(("changes", "error"), WRONG)
def test_a_wish_that_cannot_be_met_asks_nobody(
    memory_world: World, changes: dict[str, Any], error: type[Exception]
) -> None:
    shopper = Shopper(memory_world)
    with pytest.raises(error):
        shopper.routed(**changes)
    assert shopper.paid().option_ids == ()


def test_a_return_never_goes_to_an_address_of_ours(memory_world: World) -> None:
    shopper = Shopper(memory_world)
    with pytest.raises(DestinationNotAllowed):
        shopper.routed(refund_address=shopper.paid().escrow_address)


@pytest.mark.parametrize("ending", ["b10c", "4e71"])
def test_a_return_goes_only_where_screening_lets_it_go(memory_world: World, ending: str) -> None:
    shopper = Shopper(memory_world)
    with pytest.raises(ScreeningRefused):
        shopper.routed(refund_address="0x" + "1" * 36 + ending)
    assert shopper.paid().option_ids == ()
    fail(memory_world, "screening", "screen")
    with pytest.raises(DependencyFailed, match="screening"):
        shopper.routed()
    assert shopper.routed().option.status == "pending"


@pytest.mark.parametrize("method", ["direct", "hosted_onramp"])
def test_only_a_routed_option_has_a_refund_address(memory_world: World, method: Any) -> None:
    with pytest.raises(ValidationFailed, match="refund_address"):
        Shopper(memory_world).option(method=method, refund_address=WALLET)


def test_without_a_provider_there_is_no_offer(memory_world: World) -> None:
    class OnlyReleases:
        """A router of our own releases: it makes no offers."""

        def open(self, order: Any) -> str:
            raise AssertionError

        def deliver(self, key: str, payment_hash: str) -> Any:
            raise AssertionError

    memory_world.service = memory_world.restarted(router=OnlyReleases())
    shopper = Shopper(memory_world)
    with pytest.raises(CapabilityNotActive):
        shopper.routed()
    public = memory_world.service.acting_as(shopper.authority).public_payments
    found = {one.method: one.available for one in public.list_methods(shopper.id)}
    assert found == {"direct": True, "routing": False, "hosted_onramp": True}


# Providers that do not answer, or refuse.


@pytest.mark.parametrize("dependency", ["router", "onramp"])
def test_a_provider_that_does_not_answer_is_asked_again_by_the_next_request(
    world: World, dependency: Any
) -> None:
    shopper = Shopper(world)
    ask = shopper.routed if dependency == "router" else shopper.bought
    fail(world, dependency, "offer")
    with pytest.raises(DependencyFailed, match=dependency):
        ask(idempotency_key="one")
    [option_id] = shopper.paid().option_ids
    option = ask(idempotency_key="one")
    assert (option.option.id, option.option.status) == (option_id, "pending")
    assert option.offer is not None
    assert option.offer.id == f"{option_id}/1"


@pytest.mark.parametrize("dependency", ["router", "onramp"])
def test_a_provider_that_does_not_answer_is_asked_again_by_the_job(
    world: World, dependency: Any
) -> None:
    shopper = Shopper(world)
    ask = shopper.routed if dependency == "router" else shopper.bought
    fail(world, dependency, "offer", 2)
    with pytest.raises(DependencyFailed):
        ask()
    [creating] = shopper.details().options
    assert creating.option.status == "creating"
    world.advance(40)
    [pending] = shopper.details().options
    assert pending.option.status == "pending"
    assert terms_of(pending).expires_at_ms > world.clock.now()


def test_a_provider_that_never_answers_makes_no_option(memory_world: World) -> None:
    shopper = Shopper(memory_world)
    fail(memory_world, "onramp", "offer", 100)
    with pytest.raises(DependencyFailed):
        shopper.bought()
    memory_world.advance(ASKED_FOR_MS // SECOND + 120)
    [option] = shopper.details().options
    assert (option.option.status, option.offer and option.offer.status) == ("failed", "refused")


@pytest.mark.parametrize("dependency", ["router", "onramp"])
def test_a_refusal_ends_the_option(world: World, dependency: Any) -> None:
    shopper = Shopper(world)
    ask = shopper.routed if dependency == "router" else shopper.bought
    fail(world, dependency, "refuse_offer")
    refused = ask()
    assert refused.option.status == "failed"
    assert ask().option.status == "pending"
    assert shopper.paid().status == "awaiting_payment"


def test_methods_are_listed_although_the_router_is_silent(memory_world: World) -> None:
    shopper = Shopper(memory_world)
    cancelled = shopper.routed()
    memory_world.resources.payments.cancel(shopper.id)
    assert shopper.now(cancelled).status == "cancelled"
    with pytest.raises(Exception, match="cancel"):
        shopper.bought()


# Quotes that expire, and new ones.


def test_an_expired_quote_is_refreshed_and_both_are_delivered_or_returned(world: World) -> None:
    shopper = Shopper(world)
    first = shopper.routed()
    world.advance(301)
    assert not shopper.offer_now(first).is_valid(world.clock.now())
    second = shopper.refresh(first)
    assert second.option.id == first.option.id
    assert terms_of(second).address != terms_of(first).address
    assert terms_of(second).expires_at_ms > world.clock.now()
    before = shopper.wallet_holds()
    shopper.pay_router(first)  # by the quote that has expired
    shopper.pay_router(second)
    world.advance(240)
    assert shopper.status(first) == ("succeeded", None, FULL)
    assert shopper.paid().status == "succeeded"
    assert shopper.offer_now(first, 1).status == "returned"
    assert shopper.wallet_holds() - before == atomic(PRICE)


def test_an_option_has_a_limited_number_of_quotes(memory_world: World) -> None:
    shopper = Shopper(memory_world)
    option = shopper.bought()
    for _ in range(MAX_OFFERS - 1):
        shopper.refresh(option)
    with pytest.raises(PaymentOptionLimitReached):
        shopper.refresh(option)
    assert shopper.status(option)[0] == "pending"


def test_a_refresh_that_was_not_answered_goes_on_under_its_key(memory_world: World) -> None:
    shopper = Shopper(memory_world)
    option = shopper.routed()
    fail(memory_world, "router", "offer")
    with pytest.raises(DependencyFailed):
        shopper.refresh(option)
    assert terms_of(shopper.read(option)) == terms_of(option)  # the earlier one is still shown
    assert shopper.refresh(option).offer.id == f"{option.option.id}/2"  # type: ignore[union-attr]


def test_nothing_new_is_offered_while_a_provider_has_the_funds(memory_world: World) -> None:
    shopper = Shopper(memory_world)
    option = shopper.select(shopper.bought())
    shopper.buy(option, "return")
    memory_world.advance(11)
    assert shopper.offer_now(option).status in ("paid", "returned")
    if shopper.offer_now(option).status == "paid":
        with pytest.raises(OptionLocked):
            shopper.routed()
    memory_world.advance(60)
    assert shopper.status(option)[0] == "failed"
    assert shopper.routed().option.status == "pending"


# What a provider makes of the funds.


def test_a_short_payment_to_the_router_is_a_short_receipt(world: World) -> None:
    shopper = Shopper(world)
    option = shopper.routed()
    shopper.pay_router(option, "12.5375")
    world.advance(60)
    assert shopper.status(option) == ("pending", None, FULL // 2)
    assert (shopper.paid().status, shopper.paid().labels) == ("awaiting_payment", ("underpaid",))
    rest = shopper.refresh(option)
    assert terms_of(rest).amount_atomic == atomic("12.5375")
    shopper.pay_router(rest, "12.5375")
    world.advance(60)
    assert shopper.status(option) == ("succeeded", None, FULL)
    assert shopper.paid().status == "succeeded"


def test_a_double_payment_to_the_router_comes_back(world: World) -> None:
    shopper = Shopper(world)
    option = shopper.routed()
    before = shopper.wallet_holds()
    shopper.pay_router(option)
    shopper.pay_router(option, source="0x" + "7a" * 20)
    world.advance(240)
    assert shopper.status(option)[0] == "succeeded"
    assert (shopper.paid().received_atomic, shopper.paid().excess_atomic) == (FULL, 0)
    assert shopper.wallet_holds() - before == atomic(PRICE)


def test_a_router_that_returns_ends_the_option(world: World) -> None:
    shopper = Shopper(world)
    option = shopper.select(shopper.routed())
    before = shopper.wallet_holds()
    fail(world, "router", "return")
    shopper.pay_router(option)
    world.advance(60)
    assert shopper.status(option) == ("failed", "selected", 0)
    assert shopper.offer_now(option).status == "returned"
    assert shopper.wallet_holds() - before == atomic(PRICE)
    assert shopper.paid().status == "awaiting_payment"
    again = shopper.routed()
    assert again.option.id != option.option.id
    shopper.pay_router(again)
    world.advance(60)
    assert shopper.paid().status == "succeeded"


@pytest.mark.parametrize(
    ("outcome", "status", "received"),
    [
        ("pay", "succeeded", FULL),
        ("pay_short", "pending", FULL // 2),
        ("pay_twice", "succeeded", 2 * FULL),
        ("fail", "failed", 0),
        ("return", "failed", 0),
    ],
)
def test_what_the_on_ramp_does_ends_the_option(
    world: World, outcome: Any, status: str, received: int
) -> None:
    shopper = Shopper(world)
    option = shopper.bought()
    shopper.buy(option, outcome)
    world.advance(120)
    assert (shopper.status(option)[0], shopper.paid().received_atomic) == (status, received)
    assert ("duplicate" in shopper.paid().labels) == (outcome == "pay_twice")


def test_a_late_delivery_is_a_late_receipt(world: World) -> None:
    shopper = Shopper(world, expires_in_s=300)
    option = shopper.bought()
    shopper.buy(option)
    fail(world, "onramp", "look", 100)  # so nobody drives the simulated provider
    world.advance(330)
    assert shopper.paid().status == "expired"
    assert shopper.status(option)[0] == "expired"
    with pytest.raises(PaymentExpired):
        shopper.bought()
    world.advance_until(lambda: shopper.paid().status == "action_required", 3600, most=30)
    assert shopper.paid().labels == ("late",)
    assert shopper.status(option) == ("expired", None, FULL)


def test_a_cancelled_payment_still_gets_what_was_sent(world: World) -> None:
    shopper = Shopper(world)
    option = shopper.routed()
    shopper.pay_router(option)
    world.advance(6)
    world.resources.payments.cancel(shopper.id)
    world.advance(60)
    assert shopper.paid().status == "action_required"
    assert shopper.paid().received_atomic == FULL
    refund = world.refund(shopper.payment)
    assert refund.destination == WALLET


def test_nothing_is_followed_for_ever(memory_world: World) -> None:
    shopper = Shopper(memory_world)
    option = shopper.routed()
    memory_world.service.worker("sandbox")
    offer = shopper.offer_now(option)
    assert offer.followed_until_ms - memory_world.clock.now() < 40 * DAY


# Refunds.


def refund_faults(world: World, shopper: Shopper) -> str:
    with pytest.raises(ValidationFailed) as refused:
        world.refund(shopper.payment)
    return str(refused.value)


def test_a_refund_of_a_routed_payment_goes_to_its_refund_address(world: World) -> None:
    shopper = Shopper(world)
    option = shopper.routed()
    shopper.pay_router(option)
    world.advance(90)
    assert world.refund(shopper.payment).destination == WALLET


def test_a_refund_of_a_card_payment_needs_a_destination(world: World) -> None:
    shopper = Shopper(world)
    option = shopper.bought()
    shopper.buy(option)
    world.advance(90)
    assert "destination" in refund_faults(world, shopper)
    assert world.refund(shopper.payment, to=OTHER_WALLET).destination == OTHER_WALLET


def test_a_refund_needs_a_destination_while_a_provider_may_have_paid(world: World) -> None:
    shopper = Shopper(world)
    shopper.bought()
    shopper.pay()  # by an unnamed sender, perhaps the provider's wallet
    world.advance(90)
    assert shopper.paid().status == "succeeded"
    assert "destination" in refund_faults(world, shopper)


def test_a_sender_that_its_payer_named_gets_a_refund_unasked(world: World) -> None:
    shopper = Shopper(world)
    shopper.bought()
    shopper.option(payer_address=WALLET)
    shopper.pay(source=WALLET)
    world.advance(90)
    assert world.refund(shopper.payment).destination == WALLET


def test_an_offer_that_came_to_nothing_asks_for_no_destination(world: World) -> None:
    shopper = Shopper(world)
    option = shopper.bought()
    shopper.buy(option, "fail")
    world.advance(90)
    shopper.pay(source=OTHER_WALLET)
    world.advance(90)
    assert world.refund(shopper.payment).destination == OTHER_WALLET


def test_only_the_payments_own_secret_makes_offers(memory_world: World) -> None:
    shopper, other = Shopper(memory_world), Shopper(memory_world)
    authority = authority_of(memory_world, other.secret)
    with pytest.raises(Exception, match="not"):
        memory_world.service.acting_as(authority).public_options.create(
            shopper.id, method="hosted_onramp"
        )
    assert shopper.paid().option_ids == ()
