"""A quote from its creation to its end, on one chain and across two."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.errors import (
    AmountOutOfRange,
    CapabilityNotActive,
    DependencyFailed,
    DestinationNotAllowed,
    IdempotencyConflict,
    NotFound,
    UnsupportedAsset,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.payment_settings.record import PaymentTerms
from payments_core.payments.destinations import ToAccount, ToPaymentAddress, ToWallet
from payments_core.quotes.record import Quote, RouteDelivery
from payments_core.quotes.request import NewQuote
from tests.service.quotes.shop import POLYGON, POLYGON_USDC, QuoteShop
from tests.service.world import BASE, OTHER_WALLET, USDC, WALLET


def test_a_quote_of_one_asset_brings_what_was_sent(shop: QuoteShop) -> None:
    quoted = shop.quote("0.1")
    assert (quoted.quote.input_atomic, quoted.quote.output_atomic, quoted.quote.minimum_atomic) == (
        100_000,
    ) * 3
    assert (quoted.quote.rate, quoted.quote.fee_atomic, quoted.quote.input_usd) == ("1", 0, "0.10")
    assert quoted.quote.expires_at_ms == quoted.quote.created_at_ms + 15 * 60 * 1_000
    shop.pay(quoted)
    assert not shop.is_done(quoted)
    shop.world.finish()
    assert shop.is_done(quoted)
    assert shop.vault(USDC) == 100_000
    assert shop.payment(quoted).settled_atomic == 100_000


def test_a_quote_across_chains_is_delivered_by_the_router(shop: QuoteShop) -> None:
    quoted = shop.routed("25.00")
    quote = quoted.quote
    # 5 basis points and one cent of fee; 30 basis points of slippage, of which half is used
    assert (quote.input_atomic, quote.output_atomic, quote.minimum_atomic) == (
        25_000_000,
        24_977_500,
        24_902_567,
    )
    assert quote.fee_atomic == 22_500
    shop.pay(quoted)
    shop.world.finish()
    payment = shop.payment(quoted)
    assert (payment.status, shop.is_done(quoted)) == ("succeeded", True)
    assert payment.route is not None
    delivered = quote.output_atomic - (quote.output_atomic - quote.minimum_atomic) // 2
    assert (payment.route.delivered_atomic, shop.vault(POLYGON_USDC)) == (delivered, delivered)
    assert payment.settled_atomic == 25_000_000
    assert shop.held(USDC, payment.route.address) == 25_000_000
    assert shop.held(USDC, quote.deposit_address) == 0
    assert shop.world.journal(payment.id)[-1] == (
        "release",
        {"escrow": -25_000_000, "recipient": 25_000_000},
    )


def test_a_session_of_a_quote_is_settled_in_v2(shop: QuoteShop) -> None:
    quoted = shop.routed()
    shop.pay(quoted)
    shop.world.finish()
    session = shop.service.acting_as(shop.world.server).sessions.read(
        shop.payment(quoted).session_id
    )
    assert session.status == "settled"


def test_the_payment_executes_until_the_router_has_paid(memory_shop: QuoteShop) -> None:
    quoted = memory_shop.routed()
    memory_shop.pay(quoted)
    memory_shop.world.advance(9)  # ours is final, and the router takes five seconds more
    payment = memory_shop.payment(quoted)
    assert (payment.status, memory_shop.vault(POLYGON_USDC)) == ("executing", 0)
    assert payment.route is not None and payment.route.payment_hash == payment.release_hash
    assert not memory_shop.is_done(quoted)
    memory_shop.world.finish()
    assert memory_shop.is_done(quoted)


def test_the_fee_of_the_settings_stays_and_the_rest_is_routed(memory_shop: QuoteShop) -> None:
    terms = PaymentTerms(fee_bps=100)
    memory_shop.service.acting_as(memory_shop.world.server).payment_settings.replace(terms)
    quoted = memory_shop.routed("10.00")
    # 1 % stays; of 9.90 go 5 basis points and one cent
    assert (quoted.quote.output_atomic, quoted.quote.fee_atomic) == (9_885_050, 114_950)
    memory_shop.service.acting_as(memory_shop.world.server).payment_settings.replace(PaymentTerms())
    memory_shop.pay(quoted)
    memory_shop.world.finish()
    payment = memory_shop.payment(quoted)
    assert payment.route is not None
    assert (payment.settled_atomic, payment.route.amount_atomic) == (9_900_000, 9_900_000)
    assert memory_shop.held(USDC, quoted.quote.deposit_address) == 100_000
    assert memory_shop.is_done(quoted)


def test_the_preferences_decide_what_is_not_given(memory_shop: QuoteShop) -> None:
    world, service = memory_shop.world, memory_shop.service
    service.acting_as(world.server).accounts.adjust_settlement(
        world.merchant.id, chain_id=10, asset_symbol="USDC"
    )
    service.acting_as(world.server).accounts.adjust_settlement(
        world.payer.id, chain_id=POLYGON, asset_symbol="USDC"
    )
    quote = memory_shop.quote(user_id=world.payer.id).quote
    assert (quote.source_chain_id, quote.destination_chain_id) == (POLYGON, 10)
    assert (quote.payer_account_id, quote.payer_address) == (world.payer.id, None)
    payment = memory_shop.world.paid(quote.payment_id)
    assert payment.allowed_methods == ("vault", "direct")
    of_wallet = memory_shop.quote(
        source_chain_token=USDC.address.lower(),
        destination=ToPaymentAddress(payment_address="merchant@acme"),
    ).quote
    assert (of_wallet.source_chain_id, of_wallet.destination_chain_id) == (BASE, 10)
    assert of_wallet.payer_address == WALLET


def test_a_wallet_can_be_paid_in_another_token(memory_shop: QuoteShop) -> None:
    quoted = memory_shop.quote(
        destination=ToWallet(address=OTHER_WALLET),
        destination_chain_id=1,
        destination_token="USDT",
        raw_amount="1000000",
    )
    assert (quoted.quote.rate, quoted.quote.input_atomic) == (
        "1.000200040008001600320064013",
        1_000_000,
    )
    memory_shop.pay(quoted)
    memory_shop.world.finish()
    assert memory_shop.is_done(quoted)
    assert memory_shop.held(quoted.quote.destination, OTHER_WALLET) >= quoted.quote.minimum_atomic


def test_a_quote_is_found_by_its_deposit_address(memory_shop: QuoteShop) -> None:
    server = memory_shop.world.server
    quoted = memory_shop.quote()
    address = quoted.quote.deposit_address
    assert not memory_shop.service.acting_as(server).legacy.is_transfer_done(BASE, address.lower())
    memory_shop.pay(quoted)
    memory_shop.world.finish()
    assert memory_shop.service.acting_as(server).legacy.is_transfer_done(BASE, address)
    with pytest.raises(NotFound):
        memory_shop.service.acting_as(server).legacy.is_transfer_done(POLYGON, address)
    with pytest.raises(NotFound):
        memory_shop.service.acting_as(server).legacy.is_transfer_done(BASE, OTHER_WALLET)
    with pytest.raises(ValidationFailed):
        memory_shop.service.acting_as(server).legacy.is_transfer_done(BASE, "not an address")
    with pytest.raises(NotFound):
        memory_shop.service.acting_as(server).legacy.read_quote("quote_AAAAAAAAAAAAAAAAAAAAAAAA")


def test_a_deposit_is_found_by_its_address(memory_shop: QuoteShop) -> None:
    world = memory_shop.world
    issued = memory_shop.service.acting_as(world.server).deposits.issue_address(
        world.merchant.id, BASE
    )
    address = issued.address.address
    assert not memory_shop.service.acting_as(world.server).legacy.is_transfer_done(BASE, address)
    world.chain.transfer(USDC.address, None, address, 5_000_000, "a deposit")
    memory_shop.service.parts.scanner("sandbox").wake(BASE)
    world.run()
    assert not memory_shop.service.acting_as(world.server).legacy.is_transfer_done(BASE, address)
    world.finish()
    assert memory_shop.service.acting_as(world.server).legacy.is_transfer_done(BASE, address)
    assert not memory_shop.service.acting_as(world.server).legacy.is_transfer_done(POLYGON, address)


REFUSED: tuple[tuple[dict[str, Any], type[Exception]], ...] = (
    ({"source_address": None}, ValidationFailed),
    ({"user_id": "acct_x"}, ValidationFailed),
    ({"source_address": "me"}, ValidationFailed),
    ({"raw_amount": "5", "amount": "1"}, ValidationFailed),
    ({"amount": "1.1234567"}, ValidationFailed),
    ({"amount": "0"}, AmountOutOfRange),
    ({"amount": None, "raw_amount": "0"}, AmountOutOfRange),
    ({"amount": None, "raw_amount": "9" * 78}, AmountOutOfRange),
    ({"amount": "0.01", "destination_chain_id": POLYGON}, AmountOutOfRange),
    ({"source_chain_id": 5}, UnsupportedChain),
    ({"destination_chain_id": 5}, UnsupportedChain),
    ({"source_chain_token": "DAI"}, UnsupportedAsset),
    ({"destination_token": "DAI"}, UnsupportedAsset),
    ({"destination": ToAccount(account_id="acct_AAAAAAAAAAAAAAAAAAAAAAAA")}, NotFound),
    ({"destination": ToWallet(address="nowhere")}, ValidationFailed),
)


@pytest.mark.parametrize(("changes", "error"), REFUSED)
def test_what_cannot_be_quoted_is_refused(
    memory_shop: QuoteShop, changes: dict[str, Any], error: type[Exception]
) -> None:
    to = ToAccount(account_id=memory_shop.world.merchant.id)
    given = {"amount": "1.00", "source_address": WALLET, "destination": to, **changes}
    with pytest.raises(error):
        memory_shop.service.acting_as(memory_shop.world.server).legacy.create_quote(
            NewQuote(**given)
        )


def test_a_key_makes_one_quote_and_asks_nobody_again(shop: QuoteShop) -> None:
    made = shop.routed(idempotency_key="order-1")
    assert made.payment is not None
    assert (made.payment.status, made.is_done) == ("awaiting_payment", False)
    shop.fail("any")
    assert shop.routed(idempotency_key="order-1") == made
    with pytest.raises(DependencyFailed):  # the failure is still to come: nobody was asked
        shop.routed(idempotency_key="order-2")
    assert shop.payment(made).quote_id == made.quote.id
    with pytest.raises(IdempotencyConflict):
        shop.routed("26.00", idempotency_key="order-1")
    again = shop.routed(idempotency_key="order-2")  # what failed has used no key
    assert again.quote.deposit_address != made.quote.deposit_address


def test_nobody_is_paid_at_an_address_of_the_service(memory_shop: QuoteShop) -> None:
    quoted = memory_shop.quote()
    with pytest.raises(DestinationNotAllowed):
        memory_shop.quote(destination=ToWallet(address=quoted.quote.deposit_address))


def test_a_quote_needs_the_router_where_assets_differ(memory_shop: QuoteShop) -> None:
    memory_shop.fail("open")
    with pytest.raises(DependencyFailed):
        memory_shop.routed()
    memory_shop.routed()


def test_real_chains_have_no_router_and_production_no_prices(memory_shop: QuoteShop) -> None:
    world = memory_shop.world
    real = world.restarted(chains=dict(world.service.chains))
    new = NewQuote(
        amount="1.00",
        source_address=WALLET,
        destination=ToAccount(account_id=world.merchant.id),
        destination_chain_id=POLYGON,
    )
    with pytest.raises(CapabilityNotActive, match="routing"):
        real.acting_as(world.server).legacy.create_quote(new)


def test_two_quotes_never_share_an_address(memory_shop: QuoteShop) -> None:
    made = [memory_shop.routed() for _ in range(3)]
    assert len({it.quote.deposit_address for it in made}) == 3
    routes = [memory_shop.payment(it).route for it in made]
    assert len({route.address for route in routes if route}) == 3


def test_a_delivery_counts_once(memory_shop: QuoteShop) -> None:
    quoted = memory_shop.routed()
    memory_shop.pay(quoted)
    memory_shop.world.finish()
    route = memory_shop.payment(quoted).route
    assert route is not None
    counted = memory_shop.world.get(RouteDelivery, f"{POLYGON}:{route.delivery_hash}:0")
    assert counted.payment_id == quoted.quote.payment_id
    stored = memory_shop.world.get(Quote, quoted.quote.id)
    assert (stored.payment_id, stored.minimum_atomic) == (
        counted.payment_id,
        quoted.quote.minimum_atomic,
    )
