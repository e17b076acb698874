"""Nothing goes back before what it returns is final, though its Payment counts it sooner."""

from __future__ import annotations

import pytest

from payments_core.acceptance import Acceptance
from payments_core.payment_settings.record import PaymentTerms
from payments_core.payments.details import PaymentDetails
from payments_core.payments.refunds.record import Refund
from payments_core.payments.tracking import jobs
from tests.service.payments.test_early_acceptance import ANY, Shop
from tests.service.world import BASE, OTHER_WALLET, WALLET, atomic

LOOK_S = 10
"""So long it takes, at most, until a look finds what is final."""


def cancelled(shop: Shop) -> PaymentDetails:
    """A Payment whose escrow keeps what still comes."""
    payment = shop.payment("5.00")
    shop.resources.payments.cancel(payment.payment.id)
    return payment


def paid_late(shop: Shop) -> PaymentDetails:
    """A Payment with 2 USDC that count, and that are not final."""
    payment = cancelled(shop)
    shop.pay(payment, "2.00")
    shop.run()
    assert shop.now(payment).books.escrow == atomic("2")
    return payment


def now(shop: Shop, refund: Refund) -> Refund:
    return shop.get(Refund, refund.id)


def test_a_refund_from_escrow_is_sent_when_what_it_returns_is_final() -> None:
    shop = Shop()
    payment = paid_late(shop)
    refund, sent = shop.refund(payment), shop.sent()
    shop.run()
    assert (now(shop, refund).status, shop.sent()) == ("created", sent)
    shop.advance(LOOK_S + 1)
    assert now(shop, refund).status == "succeeded"
    assert shop.on_chain(WALLET) == atomic("2")


def test_its_own_transfer_counts_as_its_receipts_do() -> None:
    shop = Shop()
    payment = paid_late(shop)
    shop.finish()
    refund = shop.refund(payment)
    assert not refund.waits_for
    shop.run()
    assert now(shop, refund).status == "submitted"
    shop.advance(1)
    assert now(shop, refund).status == "succeeded"  # final two seconds later
    shop.reorg(2)
    shop.finish()
    assert now(shop, refund).status == "succeeded"
    assert shop.on_chain(WALLET) == atomic("2")


def test_payment_settings_ask_for_more_blocks_of_it_too() -> None:
    shop = Shop()
    shop.resources.payment_settings.replace(PaymentTerms(confirmations={BASE: 2}))
    payment = cancelled(shop)
    shop.pay(payment, "2.00")
    shop.finish()
    refund = shop.refund(payment)
    assert refund.early_acceptance == Acceptance("latest", depth=2, up_to="10.00")
    shop.run()
    shop.advance(1)
    assert now(shop, refund).status == "submitted"
    shop.advance(1)
    assert now(shop, refund).status == "succeeded"


def test_nobody_is_refunded_with_the_money_of_another_sender() -> None:
    shop = Shop()
    payment = cancelled(shop)
    shop.pay(payment, "3.00", OTHER_WALLET)
    shop.finish()
    shop.pay(payment, "2.00")
    shop.run()
    refund = shop.refund(payment, "2.00", to=WALLET)
    shop.run()
    shop.reorg(2)
    shop.finish()
    assert (now(shop, refund).status, now(shop, refund).failure) == ("failed", "funds_reorged")
    assert shop.now(payment).refunding == ()
    assert shop.on_chain(str(payment.payment.escrow_address)) == atomic("3")
    other = shop.refund(payment)
    shop.finish()
    assert now(shop, other).status == "succeeded"
    assert shop.on_chain(OTHER_WALLET) == atomic("3")


def test_a_vault_refunds_what_it_was_paid_for_good_only() -> None:
    shop = Shop()
    shop.fund("100.00", shop.merchant)
    payment = shop.paid_early()
    shop.advance(1)
    assert shop.now(payment).status == "succeeded"
    refunds = [shop.refund(payment, "2.00"), shop.refund(payment, "3.00")]
    shop.run()
    assert shop.held(shop.merchant)[1] == atomic("5")
    shop.reorg(5)
    shop.finish()
    assert [now(shop, one).status for one in refunds] == ["failed", "failed"]
    assert shop.held(shop.merchant) == (atomic("100"), 0, atomic("100"))
    assert shop.on_chain(WALLET) == 0  # where the 5 USDC came to, the reorg undid that too


def test_a_vault_refunds_a_payment_that_stands() -> None:
    shop = Shop()
    payment = shop.paid_early()
    shop.fund("100.00", shop.merchant)
    shop.advance(1)
    refund = shop.refund(payment)
    shop.finish()
    assert now(shop, refund).status == "succeeded"
    assert shop.held(shop.merchant) == (atomic("100"), 0, atomic("100"))


def test_a_limited_number_of_transfers_counts_before_they_are_final(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs, "MAX_UNSETTLED", 1)
    shop = Shop()
    payment = paid_late(shop)
    shop.pay(payment, "1.00")
    shop.run()
    assert (len(shop.now(payment).unsettled), shop.now(payment).received_atomic) == (1, 2_000_000)
    shop.finish()
    assert (shop.now(payment).unsettled, shop.now(payment).received_atomic) == ((), 3_000_000)


def test_a_second_transfer_does_not_delay_a_refund_that_waits() -> None:
    """Or dust would hold it as long as it comes."""
    shop = Shop(Acceptance(depth=1, up_to="10.00"), ANY)
    payment = cancelled(shop)
    shop.pay(payment, "2.00")
    shop.advance(1)
    refund = shop.refund(payment)
    shop.advance(1)
    shop.pay(payment, "0.01", OTHER_WALLET)
    shop.advance(LOOK_S)
    shop.pay(payment, "0.01", OTHER_WALLET)
    shop.advance(1)
    assert now(shop, refund).status == "succeeded"


def test_what_arrives_in_another_token_is_misdirected_when_it_is_final() -> None:
    shop = Shop()
    payment = shop.payment("5.00")
    shop.resources.sandbox.transfer(BASE, "USDT", "5.00", to=str(payment.payment.escrow_address))
    shop.run()
    assert "misdirected" not in shop.now(payment).labels
    shop.advance(LOOK_S)
    assert "misdirected" in shop.now(payment).labels


def test_a_vault_refunds_only_while_the_release_is_final() -> None:
    """A release that fails when it is sent again leaves the same money in escrow."""
    shop = Shop()
    shop.fund("100.00", shop.merchant)
    payment = shop.payment("5.00")
    shop.pay(payment, "5.00")
    shop.run()
    shop.advance(1)
    refund = shop.refund(payment)
    shop.reorg(2)
    assert shop.now(payment).status == "succeeded"
    shop.fail("transfer")  # of the release, which is sent again
    shop.finish()
    assert shop.now(payment).books.escrow == atomic("5")
    assert (now(shop, refund).status, now(shop, refund).failure) == ("failed", "funds_reorged")
    assert shop.held(shop.merchant) == (atomic("100"), 0, atomic("100"))


def test_a_simulated_chain_has_safe_blocks() -> None:
    shop = Shop(Acceptance("safe", up_to="10.00"), ANY)
    payment = shop.payment("5.00")
    shop.pay(payment, "5.00")
    shop.advance(1)
    assert shop.now(payment).status == "processing"
    shop.advance(1)
    assert shop.now(payment).status == "executing"


@pytest.mark.parametrize("is_sent", [True, False])
def test_a_refund_that_a_node_may_have_goes_on_after_a_reorg_of_what_was_final(
    is_sent: bool,
) -> None:
    shop = Shop()
    shop.fund("100.00", shop.merchant)
    shop.advance(40)
    payment = shop.paid_early()
    shop.advance(2 * LOOK_S)
    refund = shop.refund(payment)
    if not is_sent:
        shop.fail("broadcast")  # its bytes are stored
    shop.run()
    shop.hold_sends(60)
    assert now(shop, refund).status == ("submitted" if is_sent else "created")
    shop.reorg(2 * LOOK_S + 6)
    shop.advance(30)
    assert shop.now(payment).status == "action_required"
    assert now(shop, refund).failure is None
    shop.finish()
    shop.finish()
    assert now(shop, refund).status in ("succeeded", "failed")
