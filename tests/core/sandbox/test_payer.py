"""What each button of a sandbox's panel does to a Payment as it stands."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs

from payments_core.payment_settings.record import Branding
from payments_core.payments.checkout.checkout import CheckoutPage
from payments_core.payments.receipts.record import Receipt
from payments_core.sandbox.payer import EXPIRY_LAG_S, Buy, Drop, Pass, Send, plan_moves
from tests.core.payments.checkout.test_stages import END, payment

FULL = 25_000_000


def page(*receipts: Receipt, due: int = FULL, at: int = 0, height: int = 100, **facts: Any) -> Any:
    return CheckoutPage(
        payment=payment(**facts), receipts=receipts, branding=Branding(), stage="waiting",
        notices=(), pending_atomic=0, due_atomic=due, refunding_atomic=0, scanned_height=height,
        landmark=None, scanned_at_ms=None, app_name="Shop",
        looked_at=at, client_secret=None,
    )  # fmt: skip


def receipt(status: str, block: int) -> Receipt:
    return Receipt(
        id="receipt_1", payment_id="payment_1", option_id=None, chain_id=8453,
        transaction_hash="0x1", position=0, log_index=0, token_address="0x", sender="0x",
        recipient="0x", amount_atomic=1, block_number=block, block_hash="0x", status=status,
        observed_at_ms=0,
    )  # fmt: skip


def test_what_is_due_is_paid_or_the_whole_amount_once_more() -> None:
    rest = plan_moves(page(due=7))
    assert (rest["pay"], rest["pay_short"]) == ((Send(7),), (Send(3),))
    assert rest["pay_over"] == (Send(7 + FULL // 10),)
    assert rest["pay_twice"] == (Send(7), Send(FULL))
    assert plan_moves(page(due=0, status="succeeded"))["pay"] == (Send(FULL),)


def test_the_smallest_amount_cannot_be_paid_short_and_can_be_paid_over() -> None:
    least = plan_moves(page(due=1, amount_atomic=1))
    assert "pay_short" not in least
    assert least["pay_over"] == (Send(2),)


def test_the_end_is_passed_once_and_what_comes_then_is_late() -> None:
    before = plan_moves(page(at=END - 1_500))
    end = Pass(1 + EXPIRY_LAG_S)
    assert (before["expire"], before["pay_late"]) == ((end,), (end, Send(FULL)))
    assert plan_moves(page(at=END))["expire"] == (Pass(EXPIRY_LAG_S),), "at the very moment"
    after = plan_moves(page(at=END + 1))
    assert "expire" not in after
    assert after["pay_late"] == (Send(FULL),)
    assert "expire" not in plan_moves(page(status="succeeded"))


def test_a_reorg_drops_the_newest_transfer_that_counts_while_it_can_be_reached() -> None:
    blocks = (receipt("verified", 90), receipt("observed", 95), receipt("rejected", 99))
    assert plan_moves(page(*blocks))["reorg"] == (Drop(95),)
    assert "reorg" not in plan_moves(page(*blocks, height=120))
    assert "reorg" not in plan_moves(page(receipt("reorged", 99)))


def test_a_payment_without_an_escrow_has_no_panel() -> None:
    assert plan_moves(page(escrow_address=None)) == {}


def test_an_offer_of_an_on_ramp_is_bought_while_it_is_valid() -> None:
    option: Any = SimpleNamespace(id="pay_option_1")
    offer: Any = SimpleNamespace(is_valid=lambda now: now < 5)
    offered: Any = {"hosted_onramp": SimpleNamespace(option=option, offer=offer)}
    assert plan_moves(attrs.evolve(page(at=4), offered=offered))["buy"] == (Buy("pay_option_1"),)
    assert "buy" not in plan_moves(attrs.evolve(page(at=5), offered=offered))
    assert "buy" not in plan_moves(page())
