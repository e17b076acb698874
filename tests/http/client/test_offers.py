"""Options of every method, read through both clients."""

from __future__ import annotations

import asyncio

import pytest

from payments_core_http.client import AsyncPublicClient
from payments_core_http.client.responses import PublicOption
from tests.http.client.shop import BASE, PAYER_PERMISSIONS, Shop

POLYGON = 137
REFUND_TO = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
METHODS = ["direct", "routing", "hosted_onramp", "vault"]


@pytest.fixture
def shop() -> Shop:
    return Shop()


def offer_all(shop: Shop, url: str) -> list[PublicOption]:
    checkout = shop.public.open_link(url)
    return [
        checkout.choose_transfer(),
        checkout.choose_route(chain_id=POLYGON, asset_symbol="USDC", refund_address=REFUND_TO),
        checkout.choose_onramp(),
    ]


def test_a_payment_shows_its_options_of_every_method(shop: Shop) -> None:
    payment = shop.receive("12.50")
    direct, routed, bought = offer_all(shop, payment.payment_url)
    payer = shop.client.open_account(shop.payer.account_id, PAYER_PERMISSIONS)
    payer.options.create(payment.id, payment_secret=payment.client_secret)
    whole = shop.client.payments.read(payment.id)
    assert [entry.option.provider_code for entry in whole.options] == METHODS
    asynchronous = shop.asynchronous()
    again = asyncio.run(asynchronous.payments.read(payment.id))
    assert [entry.option for entry in again.options] == [entry.option for entry in whole.options]
    assert [option.provider_code for option in (direct, routed, bought)] == METHODS[:3]
    assert direct.execution is not None
    assert (direct.execution.type, direct.execution.chain_id) == ("transfer", BASE)
    assert routed.execution is not None
    assert (routed.execution.type, routed.execution.chain_id) == ("transfer", POLYGON)
    assert routed.execution.amount_atomic == "12537500"
    assert routed.refund_address == REFUND_TO
    assert bought.execution is not None
    assert (bought.execution.type, bought.execution.price) == ("redirect", "12.75")
    assert bought.execution.url not in repr(bought)


def test_a_routed_payment_is_paid_and_refreshed(shop: Shop) -> None:
    payment = shop.receive("12.50")
    checkout = shop.public.open_link(payment.payment_url)
    option = checkout.choose_route(chain_id=POLYGON, asset_symbol="USDC", refund_address=REFUND_TO)
    fresh = shop.public.options.refresh(
        payment.id, option.id, client_secret=payment.client_secret
    ).option
    assert option.execution is not None
    assert fresh.execution is not None
    assert fresh.execution.to != option.execution.to
    assert (fresh.quote_expires_at is None, fresh.order_expires_at) == (False, None)
    shop.client.sandbox.transfer(
        chain_id=POLYGON, asset_symbol="USDC", amount="12.5375", to=str(fresh.execution.to)
    )
    shop.client.sandbox.advance_clock(advance_seconds=90)
    assert checkout.wait(timeout_s=0).status == "succeeded"
    [entry] = shop.client.payments.read(payment.id).options
    assert entry.option.status == "succeeded"
    assert entry.option.offer is not None
    assert entry.option.offer.status == "delivered"


def test_a_buyer_pays_at_the_on_ramp(shop: Shop) -> None:
    payment = shop.receive("12.50")

    async def choose() -> PublicOption:
        async with AsyncPublicClient.in_process(shop.app) as public:
            checkout = await public.open_link(payment.payment_url)
            return await checkout.choose_onramp()

    option = asyncio.run(choose())
    assert (option.provider_code, option.type) == ("hosted_onramp", "fiat")
    decided = shop.client.sandbox.decide_order(option.id, outcome="pay")
    assert (decided.payment_id, decided.option_id) == (payment.id, option.id)
    shop.client.sandbox.advance_clock(advance_seconds=120)
    assert shop.client.payments.read(payment.id).status == "succeeded"
