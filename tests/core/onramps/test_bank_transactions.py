"""Bank transfers to on-ramps: every state and trigger, what is decided, and the books."""

from __future__ import annotations

from itertools import product
from typing import Any

import attrs
import pytest

from payments_core.banks.incoming import IncomingStatus, IncomingTransfer
from payments_core.clock import DAY, HOUR
from payments_core.errors import InvalidState
from payments_core.onramps import lifecycle
from payments_core.onramps.lifecycle import BANK_TRANSACTION
from payments_core.onramps.record import (
    BankTransaction,
    FundingBooks,
    OnrampAccount,
    OnrampDestination,
    UnbalancedBooks,
)
from payments_core.onramps.review import HOLD_MS, Circumstances, review

NOW = 1_790_000_000_000
STATUSES: tuple[IncomingStatus, ...] = (
    "scheduled", "in_review", "received", "returned", "cancelled",
)  # fmt: skip
GOOD = Circumstances(onramp_status="active", account_status="active", has_capability=True)
ONRAMP = OnrampAccount(
    id="onramp_account_1",
    account_id="acct_1",
    external_user_id="user-1",
    bank_key="onramp_account_1",
    currency="usd",
    destination=OnrampDestination(
        type="vault",
        chain_id=8453,
        asset_symbol="USDC",
        token_address="0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        decimals=6,
        address="0x1",
    ),
    api_version="2026-09-09",
    created_at_ms=NOW,
    updated_at_ms=NOW,
)


def incoming(status: IncomingStatus, **more: Any) -> IncomingTransfer:
    given = {"rail": "wire", "amount_cents": 100_00, **more}
    return IncomingTransfer(id="in_1", account_key=ONRAMP.bank_key, status=status, **given)


def seen(status: IncomingStatus, **more: Any) -> BankTransaction:
    """A transaction that the bank shows so at first."""
    return lifecycle.observe_new("bank_txn_1", ONRAMP, incoming(status, **more), now=NOW).record


def received() -> BankTransaction:
    return lifecycle.decide_delivery(seen("received"), now=NOW).record


def credited() -> BankTransaction:
    return lifecycle.begin_credit(received(), "out_1", now=NOW).record


def submitted() -> BankTransaction:
    return lifecycle.submit(credited(), "0x1", now=NOW).record


def settled() -> BankTransaction:
    return lifecycle.settle(submitted(), "0x2", now=NOW).record


@pytest.mark.parametrize("state", [None, *sorted(BANK_TRANSACTION.states)])
@pytest.mark.parametrize("trigger", sorted(BANK_TRANSACTION.triggers))
def test_every_state_takes_its_triggers_and_refuses_the_others(
    state: str | None, trigger: str
) -> None:
    if BANK_TRANSACTION.allows(state, trigger):
        row = BANK_TRANSACTION.step(state, trigger)
        assert row.emits == f"bank_funding.{row.target}"
    else:
        with pytest.raises(InvalidState):
            BANK_TRANSACTION.step(state, trigger)


@pytest.mark.parametrize(
    ("status", "expected"),
    list(zip(STATUSES, ("scheduled", "in_review", "received", "refunded", "failed"), strict=True)),
)
def test_a_new_transfer_has_the_state_that_the_bank_shows(
    status: IncomingStatus, expected: str
) -> None:
    step = lifecycle.observe_new("bank_txn_1", ONRAMP, incoming(status), now=NOW)
    assert (step.record.status, step.record.status_version) == (expected, 1)
    assert [event.name for event in step.events] == [f"bank_funding.{expected}"]


@pytest.mark.parametrize(("first", "then"), list(product(STATUSES, STATUSES)))
def test_no_order_of_answers_moves_a_transaction_back(
    first: IncomingStatus, then: IncomingStatus
) -> None:
    before = seen(first)
    after = lifecycle.observe(before, incoming(then), now=NOW + HOUR).record
    allowed = {
        "scheduled": {"scheduled", "in_review", "received", "refunded", "failed"},
        "in_review": {"in_review", "received", "refunded", "failed"},
        "received": {"received", "in_review", "refunded"},
        "refunded": {"refunded"},
        "failed": {"failed"},
    }
    assert after.status in allowed[before.status]


def test_an_answer_that_says_nothing_new_is_not_a_step() -> None:
    for status in STATUSES:
        before = seen(status)
        assert lifecycle.observe(before, incoming(status), now=NOW + HOUR).record == before


def test_the_books_follow_the_money() -> None:
    nothing = FundingBooks()
    amount = 100_000_000
    assert seen("scheduled").books == nothing
    assert received().books == FundingBooks(sender=-amount, bank=amount)
    assert credited().books == FundingBooks(sender=-amount, escrow=amount)
    assert submitted().books == credited().books
    assert settled().books == FundingBooks(sender=-amount, recipient=amount)
    undone = lifecycle.reverse_credit(settled(), "credit_reversed", now=NOW).record
    assert undone.books == credited().books
    back = lifecycle.observe(seen("received"), incoming("returned"), now=NOW).record
    assert (back.status, back.books) == ("refunded", nothing)
    with pytest.raises(UnbalancedBooks):
        FundingBooks(bank=1)


def test_a_credit_that_failed_is_made_again_without_a_second_delivery() -> None:
    failed = lifecycle.fail_credit(submitted(), "credit_failed", now=NOW).record
    assert (failed.status, failed.reason, failed.credit_id) == ("in_review", "credit_failed", None)
    again = lifecycle.begin_credit(failed, "out_2", now=NOW)
    assert [event.name for event in again.events] == ["bank_funding.received"]
    assert not again.entries
    assert (again.record.status, again.record.credit_id, again.record.credits) == (
        "received",
        "out_2",
        2,
    )
    assert again.record.reason is None


@pytest.mark.parametrize(
    ("rail", "cents", "expected"),
    [
        ("ach_push", 99, "micro_deposit"),
        ("ach_push", 100, "transfer"),
        ("wire", 99, "transfer"),
    ],
)
def test_an_ach_credit_below_a_dollar_is_a_micro_deposit(
    rail: str, cents: int, expected: str
) -> None:
    assert seen("received", rail=rail, amount_cents=cents).type == expected


class TestReview:
    def test_what_is_well_is_delivered(self) -> None:
        reviewed = review(seen("received"), GOOD, now=NOW)
        assert reviewed.step.record.disposition == "deliver"
        assert reviewed.next_run_at == NOW

    def test_a_micro_deposit_is_kept_whatever_else_is_wrong(self) -> None:
        transaction = seen("received", rail="ach_push", amount_cents=7)
        closed = attrs.evolve(GOOD, account_status="closed")
        for known in (GOOD, closed):
            reviewed = review(transaction, known, now=NOW)
            assert (reviewed.step.record, reviewed.next_run_at) == (transaction, None)

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"onramp_status": "disabled"}, "onramp_not_active"),
            ({"account_status": "closed"}, "account_closed"),
        ],
    )
    def test_what_can_never_be_credited_is_sent_back(
        self, changes: dict[str, Any], reason: str
    ) -> None:
        reviewed = review(seen("received"), attrs.evolve(GOOD, **changes), now=NOW)
        decided = reviewed.step.record
        assert (decided.disposition, decided.reason) == ("refund", reason)
        assert reviewed.next_run_at == NOW

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"account_status": "suspended"}, "account_suspended"),
            ({"has_capability": False}, "capability_not_active"),
        ],
    )
    def test_what_cannot_be_credited_now_is_held_for_ten_days(
        self, changes: dict[str, Any], reason: str
    ) -> None:
        known = attrs.evolve(GOOD, **changes)
        first = review(seen("received"), known, now=NOW)
        held = first.step.record
        assert (held.status, held.reason, held.disposition) == ("in_review", reason, "undecided")
        assert first.next_run_at == NOW + HOUR
        again = review(held, known, now=NOW + DAY)
        assert again.step.record == held
        assert review(held, known, now=NOW + HOLD_MS - 1).next_run_at == NOW + HOLD_MS
        last = review(held, known, now=NOW + HOLD_MS)
        assert last.step.record.disposition == "refund"
        released = review(held, GOOD, now=NOW + DAY).step
        assert (released.record.status, released.record.disposition) == ("received", "deliver")
        assert [event.name for event in released.events] == ["bank_funding.received"]

    def test_the_bank_does_not_end_a_review_of_ours(self) -> None:
        known = attrs.evolve(GOOD, account_status="suspended")
        held = review(seen("received"), known, now=NOW).step.record
        assert lifecycle.observe(held, incoming("received"), now=NOW).record == held
        assert lifecycle.observe(held, incoming("returned"), now=NOW).record.status == "refunded"
