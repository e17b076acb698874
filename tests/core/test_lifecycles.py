"""The pure steps of Payments, options and funding operations, branch by branch."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.errors import (
    ActionAlreadyUsed,
    ActionExpired,
    ActionInvalid,
    InvalidState,
    OptionExpired,
    OptionSuperseded,
    PaymentExpired,
    PaymentsError,
)
from payments_core.funding import lifecycle as funding
from payments_core.options import lifecycle as options
from payments_core.payments import lifecycle as payments
from payments_core.payments.record import Reconciliation
from tests.core.examples import NOW, a_payment, an_operation, an_option

LATER = NOW + 500


def test_a_creation_starts_the_timeline_at_version_one() -> None:
    payment, [event] = payments.created(a_payment(status="", status_version=0), now=NOW)
    assert (payment.status, payment.status_version) == ("awaiting_payment", 1)
    assert [entry.at for entry in payment.timeline] == [NOW]
    assert event.name == "payment.created"
    assert event.payload["statusVersion"] == 1


def test_a_step_raises_the_version_and_tells_what_it_became() -> None:
    payment, [event] = payments.begin_attempt(a_payment(), now=LATER)
    assert (payment.status, payment.status_version, payment.live_attempts) == ("processing", 2, 1)
    assert payment.timeline[-1].status == "processing"
    assert payment.updated_at == LATER
    assert (event.payload["status"], event.payload["statusVersion"]) == ("processing", 2)
    with pytest.raises(InvalidState):
        payments.begin_attempt(payment, now=LATER)


def test_the_last_attempt_to_end_sends_the_payment_back_to_waiting() -> None:
    processing = a_payment(status="processing", status_version=2, live_attempts=2)
    still, events = payments.end_attempt(processing, now=LATER, reason="r")
    assert (still.status, still.live_attempts, still.status_version) == ("processing", 1, 2)
    assert events == ()
    waiting, events = payments.end_attempt(still, now=LATER, reason="reverted")
    assert (waiting.status, waiting.live_attempts, waiting.status_version) == (
        "awaiting_payment", 0, 3,
    )  # fmt: skip
    assert waiting.timeline[-1].reason == "reverted"
    assert events == ()
    accepted = a_payment(status="accepted", live_attempts=1)
    after, events = payments.end_attempt(accepted, now=LATER, reason="r")
    assert (after.status, after.live_attempts, events) == ("accepted", 0, ())


@given(
    amount=st.integers(1, 10**30),
    parts=st.lists(st.integers(1, 10**30), min_size=1, max_size=4),
    tolerance=st.integers(0, 10_000),
)
def test_receipts_add_up_to_covered_short_or_over(
    amount: int, parts: list[int], tolerance: int
) -> None:
    payment = a_payment(
        amount=amount, tolerance_bps=tolerance, status="processing", live_attempts=len(parts)
    )
    required = amount - amount * tolerance // 10_000
    for place, part in enumerate(parts):
        payment, events = payments.receive(payment, part, now=LATER)
        total = sum(parts[: place + 1])
        assert payment.received == total
        assert payment.excess == max(0, total - amount)
        assert payment.remaining.amount_atomic == max(0, amount - total)
        names = [event.name for event in events]
        if total < required:
            assert (payment.status, names) == ("awaiting_payment", ["payment.underpaid"])
            assert payment.labels == ("underpaid",)
            assert payment.reconciliation == Reconciliation()  # nothing to decide while it waits
            continue
        over = ["payment.overpaid"] if total > amount else []
        assert (payment.status, names) == ("accepted", ["payment.accepted", *over])
        assert ("overpaid" in payment.labels) == bool(over)
        assert payment.releasable == min(total, amount)
        break


@given(received=st.integers(0, 2_000), fee_bps=st.integers(0, 10_000))
def test_what_is_settled_and_the_fee_make_up_what_is_released(received: int, fee_bps: int) -> None:
    payment = a_payment(status="executing", received=received, fee_bps=fee_bps)
    settled, [event] = payments.settle(payment, now=LATER)
    assert settled.settled + settled.fee == settled.releasable <= payment.amount
    assert settled.fee == settled.releasable * fee_bps // 10_000
    assert settled.succeeded_at == LATER
    assert event.payload["settledAmountAtomic"] == str(settled.settled)


def test_a_payment_expires_with_or_without_a_part() -> None:
    assert payments.expire(a_payment(), now=LATER)[0].status == "expired"
    short, [event] = payments.expire(a_payment(received=1), now=LATER)
    assert (short.status, short.labels) == ("action_required", ("underpaid",))
    assert event.name == "payment.action_required"


def test_only_what_received_nothing_is_cancelled() -> None:
    cancelled, _ = payments.cancel(a_payment(status="processing", live_attempts=1), now=LATER)
    assert (cancelled.status, cancelled.live_attempts, cancelled.cancelled_at) == (
        "cancelled", 0, LATER,
    )  # fmt: skip
    with pytest.raises(InvalidState):
        payments.cancel(a_payment(received=1), now=LATER)


def test_labels_add_up_and_are_never_lost_nor_doubled() -> None:
    payment = a_payment(status="action_required", labels=("late",))
    payment, _ = payments.step(payment, "further_receipt", now=LATER)
    payment, _ = payments.step(payment, "duplicate", now=LATER)
    payment, _ = payments.step(payment, "reconcile_accept", now=LATER)
    assert payment.labels == ("late", "duplicate")


def test_a_moment_is_stamped_once() -> None:
    succeeded = a_payment(status="succeeded", succeeded_at=NOW)
    after, _ = payments.step(succeeded, "overpaid", now=LATER)
    assert after.succeeded_at == NOW


@pytest.mark.parametrize(
    ("error", "status", "now"),
    [
        (PaymentExpired, "expired", NOW),
        (PaymentExpired, "awaiting_payment", NOW + 1_000),
        (PaymentExpired, "processing", NOW + 1_000),
        (InvalidState, "cancelled", NOW),
        (InvalidState, "failed", NOW),
        (InvalidState, "refunded", NOW),
        (None, "awaiting_payment", NOW + 999),
        (None, "accepted", NOW + 5_000),
    ],
)
def test_who_may_still_pay(error: type[PaymentsError] | None, status: str, now: int) -> None:
    payment = a_payment(status=status)
    if error is None:
        payments.check_payable(payment, now=now)
    else:
        with pytest.raises(error):
            payments.check_payable(payment, now=now)


@pytest.mark.parametrize(
    ("error", "option", "action"),
    [
        (OptionSuperseded, options.supersede(an_option(status="expired"), now=NOW), "action_1"),
        (OptionExpired, an_option(status="expired", used_action_ids=("a",)), "a"),
        (ActionAlreadyUsed, an_option(used_action_ids=("a", "b")), "a"),
        (ActionInvalid, an_option(action_id=None, action_expires_at=None), "action_1"),
        (ActionInvalid, an_option(), "action_2"),
        (ActionExpired, an_option(action_expires_at=NOW), "action_1"),
        (None, an_option(action_expires_at=NOW + 1), "action_1"),
    ],
)
def test_an_action_is_checked_in_this_order(
    error: type[PaymentsError] | None, option: object, action: str
) -> None:
    check: Callable[[], None] = lambda: options.check_action(option, action, now=NOW)  # type: ignore[arg-type]  # noqa: E731
    if error is None:
        check()
    else:
        with pytest.raises(error):
            check()


def test_consuming_an_action_uses_it_up_and_starts_the_option() -> None:
    option = options.consume(an_option(used_action_ids=("action_0",)), now=LATER)
    assert option.status == "processing"
    assert option.used_action_ids == ("action_0", "action_1")
    assert (option.action_id, option.action_expires_at) == (None, None)


def test_a_refresh_gives_a_new_action_no_longer_than_the_option_lives() -> None:
    fresh = options.refresh(an_option(), "action_2", now=LATER)
    assert (fresh.action_id, fresh.action_expires_at) == ("action_2", LATER + 300_000)
    short = options.refresh(an_option(expires_at=LATER + 7), "action_2", now=LATER)
    assert short.action_expires_at == LATER + 7
    for error, option in (
        (OptionSuperseded, an_option(selection_status="superseded")),
        (OptionExpired, an_option(status="expired")),
        (InvalidState, an_option(status="processing")),
    ):
        with pytest.raises(error):
            options.refresh(option, "action_2", now=LATER)


def test_ending_leaves_a_terminal_option_alone() -> None:
    ended = options.end(an_option(), "cancel", now=LATER)
    assert (ended.status, ended.action_id) == ("cancelled", None)
    for status in options.OPTION.terminal:
        option = an_option(status=status)
        assert options.end(option, "expire", now=LATER) is option
    with pytest.raises(InvalidState):
        options.supersede(an_option(selection_status="superseded"), now=NOW)


def test_an_operation_is_stamped_as_it_goes_and_tells_its_payments_owner() -> None:
    operation, payment = an_operation(), a_payment()
    seen = []
    for trigger in ("authorize", "broadcast", "lose", "broadcast", "confirm"):
        operation, events = funding.step(operation, trigger, payment, now=NOW + len(seen))
        seen += [event.name for event in events] or ["-"]
    assert seen == [
        "vault_funding.authorized", "vault_funding.broadcast", "-", "-", "vault_funding.confirmed",
    ]  # fmt: skip
    assert operation.status_version == 6
    assert (operation.authorized_at, operation.confirmed_at) == (NOW, NOW + 4)


def test_ending_an_operation_where_it_cannot_end_changes_nothing() -> None:
    for status in ("broadcast", "unknown", *funding.FUNDING_OPERATION.terminal):
        operation = an_operation(status=status)
        assert funding.end(operation, "cancel", a_payment(), now=NOW) == (operation, ())
    ended, events = funding.end(an_operation(status="authorized"), "expire", a_payment(), now=NOW)
    assert (ended.status, ended.status_version, events) == ("expired", 2, ())


def test_a_failed_operation_says_why_and_tells_it() -> None:
    failed, [event] = funding.step(
        an_operation(status="broadcast"), "fail", a_payment(), now=NOW, failure="reverted"
    )
    assert failed.failure == "reverted"
    assert event.payload["status"] == "failed"
    assert event.account_id == "acct_1"
    assert attrs.evolve(failed, failure=None) != failed
