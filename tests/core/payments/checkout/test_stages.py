"""What a payer sees of a Payment: each status has a stage, and each stage a cause."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from payments_core.money import atomic
from payments_core.payments.checkout.stages import (
    NOTICES,
    STAGES,
    compute_due,
    find_stage,
    list_notices,
)
from payments_core.payments.journal.record import JournalBalances
from payments_core.payments.options.methods import METHODS, Method
from payments_core.payments.record import Destination, Payment
from payments_core.payments.transitions import OPEN, PAYMENT

END = 1_000_000
LABELS = ("underpaid", "late", "overpaid", "duplicate", "reorged", "execution_failed", "returned")
STATUSES = sorted({row.target for row in PAYMENT.transitions if row.target})


def payment(**facts: Any) -> Payment:
    given: dict[str, Any] = {
        "id": "payment_1",
        "status": "awaiting_payment",
        "status_version": 1,
        "chain_id": 8453,
        "asset_symbol": "USDC",
        "token_address": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "decimals": 6,
        "amount_atomic": 25_000_000,
        "destination": Destination(type="wallet", address="0x" + "1" * 40),
        "escrow_address": "0x" + "2" * 40,
        "allowed_methods": ("direct",),
        "session_id": "ses_1",
        "api_version": "2026-09-09",
        "expires_at_ms": END,
        "monitoring_expires_at_ms": END * 2,
        "created_at_ms": 0,
        "updated_at_ms": 0,
    }
    return Payment(**{**given, **facts})


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_has_a_stage_whatever_its_labels_and_its_time(status: str) -> None:
    for label, received, now in product((None, *LABELS), (0, 5), (0, END)):
        labels = (label,) if label else ()
        one = payment(status=status, labels=labels, received_atomic=atomic(received))
        assert find_stage(one, now=now) in STAGES
        assert set(list_notices(one)) <= set(NOTICES)


def test_every_stage_is_reached() -> None:
    reached = {
        find_stage(
            payment(status=status, labels=labels, received_atomic=atomic(received)), now=now
        )
        for status, labels, received, now in product(
            STATUSES, ((), *((label,) for label in LABELS)), (0, 5), (0, END)
        )
    }  # fmt: skip
    assert reached == set(STAGES)


@pytest.mark.parametrize(
    ("labels", "stage"),
    [
        (("underpaid",), "short"),
        (("underpaid", "late"), "late"),
        (("late", "execution_failed"), "undelivered"),
        (("execution_failed", "reorged"), "reversed"),
        (("overpaid",), "attention"),
    ],
)
def test_the_weightiest_label_says_why_the_merchant_must_act(
    labels: tuple[str, ...], stage: str
) -> None:
    assert find_stage(payment(status="action_required", labels=labels), now=0) == stage


class TestWhatIsDue:
    def test_the_rest_less_what_is_on_its_way(self) -> None:
        one = payment(status="processing", counted_atomic=atomic(5_000_000))
        assert compute_due(one, 0, now=0) == 20_000_000
        assert compute_due(one, 19_999_999, now=0) == 1
        assert compute_due(one, 20_000_000, now=0) == 0
        assert compute_due(one, 90_000_000, now=0) == 0

    @pytest.mark.parametrize("status", [one for one in STATUSES if one != "awaiting_payment"])
    def test_nothing_is_asked_for_when_the_payment_takes_no_more(self, status: str) -> None:
        due = compute_due(payment(status=status), 0, now=0)
        assert due == (25_000_000 if status == "processing" else 0)

    @pytest.mark.parametrize(
        "facts",
        [
            {"authorized": ("pay_funding_1",)},
            {"allowed_methods": ("vault",)},
            {"intent": "collect"},
            {"escrow_address": None},
        ],
    )
    def test_nothing_is_asked_for_that_comes_another_way(self, facts: dict[str, Any]) -> None:
        assert compute_due(payment(**facts), 0, now=0) == 0

    @pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
    def test_the_methods_say_whether_a_payer_needs_an_account(self, method: Method) -> None:
        due = compute_due(payment(allowed_methods=(method.name,)), 0, now=0)
        assert due == (0 if method.name == "vault" else 25_000_000)

    def test_nothing_is_asked_for_from_the_very_moment_of_the_end(self) -> None:
        assert compute_due(payment(), 0, now=END - 1) == 25_000_000
        assert compute_due(payment(), 0, now=END) == 0


def test_an_excess_is_shown_while_it_is_held_and_a_second_payment_by_its_name() -> None:
    held = JournalBalances(payer=atomic(-7), excess=atomic(7))
    assert list_notices(payment(status="succeeded", labels=("overpaid",), books=held)) == (
        "overpaid",
    )
    both = ("overpaid", "duplicate")
    assert list_notices(payment(status="succeeded", labels=both, books=held)) == ("duplicate",)
    assert list_notices(payment(status="succeeded", labels=both)) == ()


def test_what_was_sent_back_is_shown_once() -> None:
    facts: dict[str, Any] = {"refunded_atomic": atomic(7)}
    assert list_notices(payment(status="succeeded", **facts)) == ("refunded",)
    assert list_notices(payment(status="refunded", **facts)) == ()
    assert list_notices(payment(status="succeeded", refunding=("refund_1",))) == ("refunding",)


def test_a_transfer_that_was_named_is_shown_while_it_may_still_count() -> None:
    for status in STATUSES:
        reported = "submitted" in list_notices(payment(status=status), is_submitted=True)
        assert reported == (status in OPEN)
        assert "submitted" not in list_notices(payment(status=status))
