"""The pure steps of a payout with its Payment, and when it is looked at."""

from __future__ import annotations

from datetime import date
from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from payments_core.banks.payouts import BankPayout
from payments_core.clock import DAY, HOUR, MINUTE
from payments_core.engine.step import Step
from payments_core.errors import InvalidState, ReconciliationActionNotAllowed
from payments_core.payments import lifecycle as payments
from payments_core.payments.journal.record import JOURNAL_ACCOUNTS
from payments_core.payments.payouts import lifecycle as payouts
from payments_core.payments.record import Destination, Payment, Source, parse_payout_key, payout_key
from payments_core.payments.refunds.plans import plan_unpaid_payout
from payments_core.payments.reversals import reverse_refund
from tests.core.examples import NOW, a_payment

LATER = NOW + 500
DOLLARS = 10_000_000
ENDED = ("failed", "cancelled", "returned")


def a_send(**given: Any) -> Payment:
    """10.00 dollars to a bank account, on their way to the off-ramp address."""
    payout = payouts.new_payout(
        "env_1", "payment_1", 1, bank_account_id="bank_account_1", rail="ach", amount_cents=1_000
    )
    facts: dict[str, Any] = {
        "intent": "send",
        "status": "executing",
        "amount_atomic": DOLLARS,
        "released_atomic": DOLLARS,
        "release_id": "out_1",
        "destination": Destination(type="bank_account", address="0xoff", account_id="acct_1"),
        "source": Source(
            account_id="acct_1",
            external_user_id="user-1",
            vault_id="vault_1",
            address="0xvault",
            reserved_at_ms=NOW,
        ),
        "escrow_address": None,
        "payout": payout,
    }
    return a_payment(**{**facts, **given})


def at_bank(status: str = "submitted", **given: Any) -> BankPayout:
    facts: dict[str, Any] = {
        "key": "env_1/payment_1/1",
        "reference": "bank_1",
        "status": status,
        "rail": "ach",
        "amount_cents": 1_000,
        "submitted_at_ms": NOW,
        "settles_on": date(2026, 9, 24),
    }
    if status != "submitted":
        facts["settled_at_ms"] = NOW + 10
    if status == "returned":
        facts |= {"returned_at_ms": NOW + 20, "return_code": "R03"}
    return BankPayout(**{**facts, **given})


def funded(**given: Any) -> Payment:
    return payouts.fund(a_send(**given), now=NOW).record


def seen(*statuses: str) -> Payment:
    """A funded payout after these looks at the bank."""
    payment = funded()
    for status in statuses:
        payment = payouts.apply_bank_view(payment, at_bank(status), now=NOW).record
    return payment


def books(payment: Payment) -> dict[str, int]:
    held = {name: getattr(payment.books, name) for name in JOURNAL_ACCOUNTS}
    return {name: amount for name, amount in held.items() if amount}


def causes(step: Step[Payment]) -> list[str]:
    return [entry.cause for entry in step.entries]  # type: ignore[attr-defined]


def names(step: Step[Payment]) -> list[str]:
    return [event.name for event in step.events]


def test_funding_moves_the_money_and_no_status() -> None:
    step = payouts.fund(a_send(), now=LATER)
    payment, payout = step.record, payouts.require_payout(step.record)
    assert (payment.status, payment.status_version, payment.settled_atomic) == ("executing", 1, 0)
    assert (payout.status, payout.funded_at_ms) == ("created", LATER)
    assert books(payment) == {"payer": -DOLLARS, "offramp": DOLLARS}
    assert (causes(step), names(step)) == (["send"], [])
    assert payment.books.held_atomic == DOLLARS
    assert payouts.is_funded(payment) and not payouts.is_funded(a_send())


def test_a_transfer_that_failed_ends_the_payout() -> None:
    step = payouts.fail_funding(a_send(), "transaction_failed", now=LATER)
    payment, payout = step.record, payouts.require_payout(step.record)
    assert (payment.status, payment.release_id, payment.can_retry) == (
        "action_required", None, True,
    )  # fmt: skip
    assert (payout.status, payout.failure) == ("failed", "transaction_failed")
    assert names(step) == ["payment.action_required"]


def test_a_cancelled_payment_has_a_cancelled_payout() -> None:
    payment = payouts.cancel(a_send(status="processing")).record
    assert payouts.require_payout(payment).status == "cancelled"
    with pytest.raises(InvalidState):
        payouts.cancel(seen("submitted"))


def test_what_the_bank_says_first_is_that_it_has_the_payout() -> None:
    step = payouts.apply_bank_view(funded(), at_bank(), now=LATER)
    payout = payouts.require_payout(step.record)
    assert (payout.status, payout.reference, payout.settles_on) == (
        "submitted", "bank_1", "2026-09-24",
    )  # fmt: skip
    assert (payout.submitted_at_ms, step.record.updated_at_ms) == (NOW, LATER)
    assert books(step.record) == {"payer": -DOLLARS, "bank": DOLLARS}
    assert (causes(step), names(step)) == (["payout_submitted"], [])


def test_a_first_look_may_show_the_end() -> None:
    step = payouts.apply_bank_view(funded(), at_bank("settled"), now=LATER)
    assert (step.record.status, step.record.settled_atomic) == ("succeeded", DOLLARS)
    assert causes(step) == ["payout_submitted", "payout_settled"]
    assert names(step) == ["payment.succeeded"]
    assert books(step.record) == {"payer": -DOLLARS, "recipient": DOLLARS}
    back = payouts.apply_bank_view(funded(), at_bank("returned"), now=LATER)
    assert (back.record.status, back.record.labels) == ("action_required", ("execution_failed",))
    assert causes(back) == ["payout_submitted", "payout_returned"]
    assert names(back) == ["payment.action_required"]


@pytest.mark.parametrize("known", ["submitted", "settled", "returned"])
@pytest.mark.parametrize("shown", ["submitted", "settled", "returned"])
def test_only_what_is_further_on_changes_anything(known: str, shown: str) -> None:
    before = seen(known)
    step = payouts.apply_bank_view(before, at_bank(shown), now=LATER)
    order = ["submitted", "settled", "returned"]
    if order.index(shown) <= order.index(known):
        assert step == Step(before)
    else:
        assert payouts.require_payout(step.record).status == shown


def test_a_settled_payout_that_comes_back_reopens_the_payment() -> None:
    step = payouts.apply_bank_view(seen("settled"), at_bank("returned"), now=LATER)
    payment, payout = step.record, payouts.require_payout(step.record)
    assert (payment.status, payment.labels, payment.can_retry) == (
        "action_required", ("returned",), True,
    )  # fmt: skip
    assert (payment.settled_atomic, payment.succeeded_at_ms, payment.failure) == (
        0,
        None,
        "payout_returned",
    )
    assert payment.reconciliation.status == "open"
    assert (payout.status, payout.return_code, payout.returned_at_ms) == (
        "returned",
        "R03",
        NOW + 20,
    )
    assert payout.settled_at_ms == NOW + 10
    assert books(payment) == {"payer": -DOLLARS, "offramp": DOLLARS}
    assert (causes(step), names(step)) == (["payout_returned"], ["payment.action_required"])


def test_times_that_the_bank_does_not_give_are_those_of_the_look() -> None:
    settled = payouts.apply_bank_view(funded(), at_bank("settled", settled_at_ms=None), now=LATER)
    assert payouts.require_payout(settled.record).settled_at_ms == LATER
    back = at_bank("returned", returned_at_ms=None)
    returned = payouts.apply_bank_view(funded(), back, now=LATER)
    assert payouts.require_payout(returned.record).returned_at_ms == LATER


def test_a_refused_payout_leaves_its_funds_at_the_offramp() -> None:
    step = payouts.refuse(funded(), "limit_exceeded", now=LATER)
    payment, payout = step.record, payouts.require_payout(step.record)
    assert (payment.status, payment.failure, payment.can_retry) == (
        "action_required", "limit_exceeded", True,
    )  # fmt: skip
    assert (payout.status, payout.failure) == ("failed", "limit_exceeded")
    assert (payment.release_id, payouts.is_funded(payment)) == ("out_1", True)
    assert (causes(step), names(step)) == ([], ["payment.action_required"])
    with pytest.raises(InvalidState):
        payouts.refuse(seen("submitted"), "limit_exceeded", now=LATER)


@pytest.mark.parametrize("statuses", [(), ("submitted",), ("settled",), ("returned",)])
def test_a_reorg_of_the_funding_is_reported_and_stops_no_payout(statuses: tuple[str, ...]) -> None:
    before = seen(*statuses)
    step = payouts.reverse_funding(before, now=LATER)
    after = step.record
    assert (after.status, after.payout) == (before.status, before.payout)
    assert "reorged" in after.labels
    assert (causes(step), names(step)) == (["send_reorged"], ["payment.reorged"])
    assert after.books.payer == 0
    assert after.books.offramp == before.books.offramp - DOLLARS
    assert not payouts.is_funded(after)
    assert payouts.is_drawn(before)
    assert not payouts.is_drawn(after)


def test_another_payout_has_another_key_and_is_otherwise_the_same() -> None:
    ended = seen("returned")
    first = payouts.require_payout(ended)
    another = payouts.retry_payout("env_1", ended, funded_at=LATER)
    assert (another.key, another.attempt, another.status) == ("env_1/payment_1/2", 2, "created")
    kept = ("bank_account_id", "rail", "amount_cents", "statement_text")
    assert [getattr(another, name) for name in kept] == [getattr(first, name) for name in kept]
    assert (another.funded_at_ms, another.reference, another.return_code) == (LATER, None, None)


def test_what_came_back_goes_to_the_vault_and_to_nobody_else() -> None:
    [leg] = plan_unpaid_payout(seen("returned"))
    assert (leg.to, leg.amount_atomic, leg.from_offramp_atomic) == ("0xvault", DOLLARS, DOLLARS)
    for nothing in (a_send(), seen("settled"), attrs.evolve(seen("returned"), source=None)):
        with pytest.raises(ReconciliationActionNotAllowed):
            plan_unpaid_payout(nothing)


def test_a_refund_that_a_reorg_undid_is_held_for_another_decision() -> None:
    back = payments.apply_refund(
        seen("returned"), "reconcile_refund", "refund_1", "0xvault", now=LATER, offramp=DOLLARS
    ).record
    assert (back.status, books(back), back.refunded_atomic) == ("refunded", {}, DOLLARS)
    again = reverse_refund(
        back, "refund_1", "0xvault", claimed=False, now=LATER, offramp=DOLLARS
    ).record
    assert (again.status, payouts.is_funded(again)) == ("action_required", True)


def test_a_key_names_its_payment_and_nothing_else_passes_for_one() -> None:
    key = payouts.require_payout(a_send()).key
    assert parse_payout_key(key) == ("env_1", "payment_1")
    for other in ("", "x", "a/b", "/b/1", "a//1", "a/b/"):
        assert parse_payout_key(other) is None


@example(payouts.LATE_LOOKS_MS)
@example(payouts.LATE_LOOKS_MS - 1)
@given(st.integers(0, 100 * DAY))
def test_looks_become_rare_and_end_after_the_time_for_returns(waited: int) -> None:
    submitted = payouts.require_payout(seen("submitted"))
    next_look = payouts.next_look_at(submitted, NOW + waited)
    assert next_look is not None
    assert 1 * MINUTE <= next_look - (NOW + waited) <= 1 * HOUR
    settled = payouts.require_payout(seen("settled"))
    next_look = payouts.next_look_at(settled, NOW + 10 + waited)
    if waited >= payouts.LATE_LOOKS_MS:
        assert next_look is None
    else:
        assert next_look is not None
        assert 1 * HOUR <= next_look - (NOW + 10 + waited) <= 1 * DAY


@pytest.mark.parametrize("status", [*ENDED, "created"])
def test_what_the_bank_does_not_have_or_has_ended_is_not_looked_at(status: str) -> None:
    payout = attrs.evolve(payouts.require_payout(a_send()), status=status)
    assert payouts.next_look_at(payout, NOW) is None


@given(st.lists(st.sampled_from(["submitted", "settled", "returned", "reorg"]), max_size=8))
def test_in_any_order_of_looks_the_books_add_up(looks: list[str]) -> None:
    payment = funded()
    reorged = False
    for look in looks:
        if look == "reorg":
            if not reorged:
                payment = payouts.reverse_funding(payment, now=LATER).record
                reorged = True
            continue
        if payouts.require_payout(payment).status in ENDED:
            continue
        payment = payouts.apply_bank_view(payment, at_bank(look), now=LATER).record
    held = payment.books
    assert held.recipient == payment.settled_atomic
    assert held.bank == (DOLLARS if payouts.require_payout(payment).status == "submitted" else 0)
    assert held.payer == (0 if reorged else -DOLLARS)


def test_a_key_is_of_a_payment_that_has_or_had_a_payout_under_it() -> None:
    payment = funded()
    assert payment.payout is not None
    twice = attrs.evolve(payment, payout=attrs.evolve(payment.payout, attempt=2))
    keys = [payout_key("env_1", payment.id, number) for number in (1, 2, 3)]
    assert [payouts.is_payout_of("env_1", twice, key) for key in keys] == [True, True, False]
    assert not payouts.is_payout_of("env_2", twice, keys[0])
    assert not payouts.is_payout_of("env_1", attrs.evolve(payment, payout=None), keys[0])
