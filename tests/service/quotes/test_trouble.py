"""Quotes that are funded late, short or twice, and routers that fail: nothing is lost."""

from __future__ import annotations

import pytest

from payments_core.chains.port import AddressSpec
from payments_core.clock import DAY
from payments_core.errors import InvalidState, NotFound
from payments_core.maintenance.retention import Retention, RetentionPurge
from payments_core.routers.port import RouteProgress
from tests.service.quotes.shop import POLYGON, POLYGON_USDC, QuoteShop
from tests.service.quotes.test_lying_routers import lie
from tests.service.world import USDC, WALLET

QUARTER_HOUR = 15 * 60


def test_a_quote_that_is_funded_late_waits_for_a_decision(shop: QuoteShop) -> None:
    quoted = shop.routed()
    shop.world.advance(QUARTER_HOUR + 10)
    assert shop.payment(quoted).status == "expired"
    shop.pay(quoted)
    shop.world.finish()
    payment = shop.payment(quoted)
    assert (payment.status, payment.labels) == ("action_required", ("late",))
    assert not shop.is_done(quoted)
    shop.world.reconcile(shop.details(quoted), "refund")
    shop.world.finish()
    assert shop.payment(quoted).status == "refunded"
    assert shop.held(USDC, WALLET) == quoted.quote.input_atomic


def test_late_funds_can_be_accepted_and_are_routed(memory_shop: QuoteShop) -> None:
    quoted = memory_shop.routed()
    memory_shop.world.advance(QUARTER_HOUR + 10)
    memory_shop.pay(quoted)
    memory_shop.world.finish()
    memory_shop.world.reconcile(memory_shop.details(quoted), "accept")
    memory_shop.world.finish()
    assert memory_shop.is_done(quoted)
    assert memory_shop.vault(POLYGON_USDC) >= quoted.quote.minimum_atomic


def test_a_quote_that_is_funded_short_can_be_accepted_in_proportion(shop: QuoteShop) -> None:
    quoted = shop.routed("20.00")
    shop.pay(quoted, quoted.quote.input_atomic // 2)
    shop.world.finish()
    assert shop.payment(quoted).labels == ("underpaid",)
    shop.world.advance(QUARTER_HOUR)
    assert shop.payment(quoted).status == "action_required"
    shop.world.reconcile(shop.details(quoted), "accept")
    shop.world.finish()
    assert shop.is_done(quoted)
    delivered = shop.vault(POLYGON_USDC)
    assert quoted.quote.minimum_atomic // 2 <= delivered <= quoted.quote.output_atomic // 2


def test_the_rest_of_a_short_quote_completes_it(memory_shop: QuoteShop) -> None:
    quoted = memory_shop.routed()
    memory_shop.pay(quoted, 1)
    memory_shop.world.finish()
    memory_shop.pay(quoted, quoted.quote.input_atomic - 1)
    memory_shop.world.finish()
    assert memory_shop.is_done(quoted)


def test_a_quote_that_is_funded_twice_keeps_the_second_to_give_it_back(shop: QuoteShop) -> None:
    quoted = shop.routed()
    shop.pay(quoted)
    shop.world.finish()
    shop.pay(quoted)
    shop.world.finish()
    payment = shop.payment(quoted)
    assert (payment.status, payment.labels) == ("succeeded", ("duplicate",))
    assert payment.excess_atomic == quoted.quote.input_atomic
    shop.world.reconcile(shop.details(quoted), "refund_excess")
    shop.world.finish()
    assert shop.held(USDC, WALLET) == quoted.quote.input_atomic
    assert shop.payment(quoted).excess_atomic == 0


def test_what_the_router_returns_is_in_escrow_again_and_no_receipt(shop: QuoteShop) -> None:
    quoted = shop.routed()
    shop.fail("return")
    shop.pay(quoted)
    shop.world.finish()
    payment = shop.payment(quoted)
    assert (payment.status, payment.labels) == ("action_required", ("execution_failed",))
    assert payment.timeline[-1].reason == "route_returned"
    assert (payment.received_atomic, payment.excess_atomic) == (quoted.quote.input_atomic, 0)
    assert payment.books.escrow == quoted.quote.input_atomic
    assert shop.held(USDC, quoted.quote.deposit_address) == quoted.quote.input_atomic
    assert (
        len(shop.service.acting_as(shop.world.server).payments.list_receipts(payment.id).entries)
        == 1
    )
    shop.world.reconcile(shop.details(quoted), "retry_execution")
    shop.world.finish()
    assert shop.is_done(quoted)
    assert shop.vault(POLYGON_USDC) >= quoted.quote.minimum_atomic


def test_what_the_router_returns_can_be_refunded(memory_shop: QuoteShop) -> None:
    quoted = memory_shop.routed()
    memory_shop.fail("return")
    memory_shop.pay(quoted)
    memory_shop.world.finish()
    memory_shop.world.reconcile(memory_shop.details(quoted), "refund")
    memory_shop.world.finish()
    assert memory_shop.held(USDC, WALLET) == quoted.quote.input_atomic
    assert memory_shop.payment(quoted).status == "refunded"


def test_a_router_that_returns_twice_is_followed_twice(memory_shop: QuoteShop) -> None:
    quoted = memory_shop.routed()
    memory_shop.fail("return", 2)
    memory_shop.pay(quoted)
    memory_shop.world.finish()
    memory_shop.world.reconcile(memory_shop.details(quoted), "retry_execution")
    memory_shop.world.finish()
    payment = memory_shop.payment(quoted)
    assert payment.route is not None
    assert (payment.status, len(payment.route.return_hashes)) == ("action_required", 2)
    assert memory_shop.held(USDC, quoted.quote.deposit_address) == quoted.quote.input_atomic


@pytest.mark.parametrize("operation", ["deliver", "lost_answer"])
def test_a_router_that_does_not_answer_is_asked_again(shop: QuoteShop, operation: str) -> None:
    quoted = shop.routed()
    shop.fail(operation, 3)
    shop.pay(quoted)
    shop.world.finish()
    assert shop.is_done(quoted)
    route = shop.payment(quoted).route
    assert route is not None and shop.vault(POLYGON_USDC) == route.delivered_atomic


def test_a_delivery_that_a_reorg_undoes_is_waited_for(memory_shop: QuoteShop) -> None:
    world = memory_shop.world
    quoted = memory_shop.routed()
    memory_shop.pay(quoted)
    vault = memory_shop.service.chains[POLYGON].derive(
        AddressSpec(world.environment_id, "vault", world.merchant.id)
    )
    for _ in range(30):
        world.advance(1)
        if memory_shop.service.chains[POLYGON].scan([POLYGON_USDC.address], [vault], 0, 10_000):
            break
    world.resources.sandbox.reorg_chain(POLYGON, 2)
    assert not memory_shop.is_done(quoted)
    world.finish()
    assert memory_shop.is_done(quoted)
    assert memory_shop.vault(POLYGON_USDC) >= quoted.quote.minimum_atomic


def test_a_release_that_a_deep_reorg_undid_is_back_in_escrow(memory_shop: QuoteShop) -> None:
    """The router is not paid any more, and the transfer fails when it is sent again."""
    world = memory_shop.world
    quoted = memory_shop.routed()
    world.advance(3)
    lie(memory_shop, RouteProgress(state="waiting"))
    memory_shop.pay(quoted)
    world.advance(4)
    world.advance(10)
    payment = memory_shop.payment(quoted)
    assert payment.route is not None and payment.route.payment_hash is not None
    release = world.chain.transaction(payment.release_hash)
    world.fail("transfer")
    world.reorg(world.chain.heads().latest.number - release.block.number + 1)
    world.finish()
    payment = memory_shop.payment(quoted)
    assert (payment.status, payment.can_retry) == ("action_required", True)
    assert payment.books.escrow == memory_shop.held(USDC, quoted.quote.deposit_address)
    assert payment.route is not None and payment.route.payment_hash is None


def test_an_expired_quote_goes_with_its_payment(memory_shop: QuoteShop) -> None:
    world = memory_shop.world
    quoted = memory_shop.routed()
    kept = memory_shop.routed()
    memory_shop.pay(kept)
    world.advance(35 * 86_400)
    retention = Retention(payments_ms=31 * DAY)
    gone = RetentionPurge(memory_shop.service.parts.ports).run(retention).records
    assert (gone["payments"], gone["quotes"]) == (1, 1)
    assert memory_shop.is_done(kept)
    with pytest.raises(NotFound):
        memory_shop.service.acting_as(world.server).legacy.read_quote(quoted.quote.id)


def test_a_quote_can_be_cancelled_as_a_payment(memory_shop: QuoteShop) -> None:
    quoted = memory_shop.routed()
    memory_shop.service.acting_as(memory_shop.world.server).payments.cancel(quoted.quote.payment_id)
    assert memory_shop.payment(quoted).status == "cancelled"
    with pytest.raises(InvalidState):
        memory_shop.service.acting_as(memory_shop.world.server).payments.cancel(
            quoted.quote.payment_id
        )


def test_a_process_that_dies_after_any_commit_leaves_a_quote_that_is_done(
    memory_shop: QuoteShop,
) -> None:
    """Another process goes on with what is stored, wherever the first one stopped."""
    for stop_after in range(1, 14, 2):
        quoted = memory_shop.routed()
        memory_shop.pay(quoted)
        for _ in range(stop_after):
            memory_shop.world.advance(1)
        memory_shop.world.service = memory_shop.world.restarted()
        memory_shop.world.finish()
        assert memory_shop.is_done(quoted), stop_after
