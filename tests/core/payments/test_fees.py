"""The fee and the rest are the amount, and rounding is for the recipient."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from payments_core.money import MAX_ATOMIC
from payments_core.payment_settings.validation import MAX_FEE_BPS
from payments_core.payments.fees import compute_fee, deduct_fee

AMOUNTS = st.integers(0, MAX_ATOMIC)
RATES = st.integers(0, MAX_FEE_BPS)


@given(AMOUNTS, RATES)
def test_the_fee_and_the_rest_are_the_amount(amount: int, fee_bps: int) -> None:
    fee, rest = compute_fee(amount, fee_bps), deduct_fee(amount, fee_bps)
    assert fee + rest == amount
    assert 0 <= Fraction(amount * fee_bps, 10_000) - fee < 1, "rounded down, by less than a unit"
    assert rest > 0 or amount == 0
