"""Amounts that do not divide: which way each is rounded, and who would lose by the other way."""

from __future__ import annotations

from fractions import Fraction

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.money import Atomic
from tests.core.examples import a_payment, a_receipt, counted

BPS = 10_000


@pytest.mark.parametrize(
    ("amount", "bps", "required"),
    [(1_999, 500, 1_900), (1, 1_000, 1), (9, 1_000, 9), (10, 1_000, 9), (19_999, 1, 19_998)],
)
def test_the_tolerance_is_rounded_down_for_the_recipient_grants_it(
    amount: int, bps: int, required: int
) -> None:
    """The recipient said how much may be missing at the most: 5 % of 1,999 are 99.95, and 100
    missing are more than that. Rounded up, a Payment of 1 with any tolerance would be covered by
    nothing at all.
    """
    payment = attrs.evolve(a_payment(tolerance_bps=bps), amount_atomic=Atomic(amount))
    assert payment.required_atomic == required
    for received, status in ((required - 1, "awaiting_payment"), (required, "accepted")):
        if received:
            after = counted(payment, a_receipt(received))[0].record
            assert (after.status == "accepted") is (status == "accepted"), (received, after.status)


@given(amount=st.integers(1, 10**40), bps=st.integers(0, BPS - 1))
def test_what_is_missing_of_a_covered_payment_is_within_the_tolerance(
    amount: int, bps: int
) -> None:
    payment = attrs.evolve(a_payment(tolerance_bps=bps), amount_atomic=Atomic(amount))
    tolerance = Fraction(amount * bps, BPS)
    assert amount - payment.required_atomic <= tolerance < amount - payment.required_atomic + 1
    assert payment.required_atomic > 0


@given(released=st.integers(1, 10**40), bps=st.integers(0, BPS))
def test_the_fee_is_rounded_down_for_the_recipient_pays_it(released: int, bps: int) -> None:
    """The recipient agreed to a rate: rounded up, the fee would be above it."""
    payment = attrs.evolve(
        a_payment(fee_bps=bps), release_id="out_1", released_atomic=Atomic(released)
    )
    fee = Fraction(released * bps, BPS)
    assert payment.fee_atomic <= fee < payment.fee_atomic + 1
