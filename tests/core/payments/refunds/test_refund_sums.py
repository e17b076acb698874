"""Refunds add up, whatever was received and whatever is under way."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.errors import (
    PaymentsError,
    ReconciliationActionNotAllowed,
)
from payments_core.payments import lifecycle as payments
from payments_core.payments.record import Payment
from payments_core.payments.refunds.lifecycle import REFUND, payment_trigger
from payments_core.payments.refunds.plans import (
    Refundable,
    RefundLeg,
    compute_refundable,
    plan_all_held,
    plan_excess,
    plan_refund,
)
from payments_core.payments.refunds.record import PENDING, Refund
from tests.core.examples import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    held,
    refund_of,
    settled,
)

LATER = NOW + 1_500
SENDERS = [ALICE, BOB, CAROL, "0xd"]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Payment, tuple[Refund, ...]]:
    """A Payment with receipts of several senders, and refunds of every status."""
    parts = draw(
        st.lists(st.tuples(st.integers(1, 900), st.sampled_from(SENDERS)), min_size=1, max_size=6)
    )
    payment = held(*parts)
    if draw(st.booleans()):
        payment = settled(*parts)
    refunds: list[Refund] = []
    for number in range(draw(st.integers(0, 4))):
        amount = draw(st.one_of(st.none(), st.integers(1, 900)))
        to = draw(st.one_of(st.none(), st.sampled_from([*SENDERS, "0xelse"])))
        try:
            part = plan_refund(payment, compute_refundable(payment, refunds), amount, to)
        except PaymentsError:
            continue
        status = draw(st.sampled_from(sorted(REFUND.states)))
        refund = refund_of(part, id=f"refund_{number}", status=status)
        if status == "succeeded":
            payment = final(payment, refund)
        refunds.append(refund)
    return payment, tuple(refunds)


def final(payment: Payment, refund: Refund) -> Payment:
    sources = {"escrow": refund.from_escrow_atomic, "excess": refund.from_excess_atomic,
               "recipient": refund.from_recipient_atomic}  # fmt: skip
    trigger = payment_trigger(payment, refund)
    return payments.apply_refund(
        payment, trigger, refund.id, refund.destination, now=LATER, **sources
    ).record


def under_way(refunds: tuple[Refund, ...]) -> int:
    return sum(refund.amount_atomic for refund in refunds if refund.status in PENDING)


@given(
    case=cases(),
    amount=st.one_of(st.none(), st.integers(-1, 2_000)),
    to=st.sampled_from([None, *SENDERS, "0xelse"]),
)
def test_a_refund_never_passes_what_was_received_nor_what_its_receiver_sent(
    case: tuple[Payment, tuple[Refund, ...]], amount: int | None, to: str | None
) -> None:
    payment, refunds = case
    rest = compute_refundable(payment, refunds)
    try:
        part = plan_refund(payment, rest, amount, to)
    except PaymentsError:
        return
    assert (
        0
        < part.amount_atomic
        <= payment.received_atomic - payment.refunded_atomic - under_way(refunds)
    )
    assert amount in (None, part.amount_atomic)
    assert min(part.from_escrow_atomic, part.from_excess_atomic, part.from_recipient_atomic) >= 0
    assert part.from_escrow_atomic <= rest.escrow
    assert part.from_excess_atomic <= rest.excess
    assert part.from_recipient_atomic <= rest.recipient
    share = rest.share_of(part.to)
    assert part.from_excess_atomic <= share.excess_atomic or part.from_escrow_atomic == rest.escrow
    if to is None:
        assert part.amount_atomic <= share.amount_atomic
    else:
        assert part.to == to
    after = compute_refundable(payment, (*refunds, refund_of(part)))
    assert (
        after.held_atomic + after.recipient
        == rest.held_atomic + rest.recipient - part.amount_atomic
    )
    assert after.received == rest.received - part.amount_atomic


@pytest.mark.parametrize("make", [plan_all_held, plan_excess])
@given(case=cases())
def test_all_that_goes_back_by_decision_is_each_senders_own(
    make: Callable[[Refundable], tuple[RefundLeg, ...]], case: tuple[Payment, tuple[Refund, ...]]
) -> None:
    payment, refunds = case
    rest = compute_refundable(payment, refunds)
    try:
        parts = make(rest)
    except ReconciliationActionNotAllowed:
        return
    assert (
        sum(part.from_excess_atomic for part in parts)
        + sum(part.from_escrow_atomic for part in parts)
        > 0
    )
    assert sum(part.from_excess_atomic for part in parts) <= rest.excess
    assert sum(part.from_escrow_atomic for part in parts) <= rest.escrow
    for part in parts:
        share = rest.share_of(part.to)
        assert 0 < part.amount_atomic <= share.amount_atomic
        assert not part.from_recipient_atomic
        if make is plan_excess:
            assert part.amount_atomic == part.from_excess_atomic <= share.excess_atomic
    assert len({part.to for part in parts}) == len(parts)
    after = compute_refundable(payment, (*refunds, *map(refund_of, parts)))
    assert after.held_atomic == rest.held_atomic - sum(part.amount_atomic for part in parts)
    if (
        make is plan_all_held
        and sum(share.amount_atomic for share in rest.shares) >= rest.held_atomic
    ):
        assert after.held_atomic == 0
