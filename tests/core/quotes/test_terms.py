"""What a quote offers, to the last digit."""

from __future__ import annotations

from decimal import Decimal

import pytest

from payments_core.errors import AmountOutOfRange
from payments_core.money import MAX_ATOMIC
from payments_core.networks import Asset
from payments_core.payments.fees import deduct_fee
from payments_core.pricing.port import Estimate
from payments_core.quotes.terms import (
    compute_terms,
    convert,
    format_rate,
    value_in_usd,
)

SIX = Asset(1, "SIX", "0x1", 6)
EIGHTEEN = Asset(2, "EIGHTEEN", "0x2", 18)


def estimate(rate: str = "1", fee: int = 0, slippage: int = 0) -> Estimate:
    return Estimate(rate=Decimal(rate), fee_atomic=fee, slippage_bps=slippage, time_s=1)


@pytest.mark.parametrize(
    ("amount", "source", "destination", "rate", "wanted"),
    [
        (1_000_000, SIX, EIGHTEEN, "1", 10**18),
        (10**18 + 999_999_999_999, EIGHTEEN, SIX, "1", 1_000_000),  # what is less than a unit stays
        (3, SIX, SIX, "0.9999999999999999999999999999", 2),
        (10**30 + 1, SIX, SIX, "1", 10**30 + 1),
        (10**24, SIX, SIX, "1.000000000000000000000001", 10**24 + 1),
    ],
)
def test_an_amount_is_converted_exactly_and_rounded_down(
    amount: int, source: Asset, destination: Asset, rate: str, wanted: int
) -> None:
    assert convert(amount, source, destination, Decimal(rate)) == wanted


def test_the_minimum_is_rounded_for_nobodys_gain_and_is_never_nothing() -> None:
    terms = compute_terms(SIX, SIX, 1_001, 0, estimate(slippage=30))
    assert (terms.output_atomic, terms.minimum_atomic, terms.fee_atomic) == (
        1_001,
        997,
        0,
    )  # 3.003 is rounded up
    assert compute_terms(SIX, SIX, 1, 0, estimate(slippage=10_000)).minimum_atomic == 1


def test_the_recipients_fee_comes_first_and_the_exchanges_after_it() -> None:
    assert deduct_fee(999, 100) == 990  # as a Payment has it: 9.99 is rounded down
    terms = compute_terms(SIX, SIX, 1_000_000, 100, estimate(rate="2", fee=7))
    assert (terms.input_atomic, terms.paid_on) == (1_000_000, 990_000)
    assert (terms.output_atomic, terms.fee_atomic) == (1_979_993, 20_007)


def test_a_source_that_pays_for_the_exchange_takes_no_fee() -> None:
    assert compute_terms(SIX, SIX, 100, 0, estimate(fee=-5)).fee_atomic == 0


@pytest.mark.parametrize("fee", [1_000, 1_001])
def test_an_amount_that_does_not_cover_the_fee_is_refused(fee: int) -> None:
    with pytest.raises(AmountOutOfRange, match="cover the fee"):
        compute_terms(SIX, SIX, 1_000, 0, estimate(fee=fee))


def test_more_than_a_token_can_carry_is_refused() -> None:
    with pytest.raises(AmountOutOfRange, match="larger"):
        compute_terms(SIX, EIGHTEEN, MAX_ATOMIC, 0, estimate())


def test_a_value_in_dollars_has_six_places_at_most() -> None:
    assert value_in_usd(123_456_789_123_456, SIX, Decimal(1)) == "123456789.123456"
    assert value_in_usd(1, EIGHTEEN, Decimal(1)) == "0.00"
    assert value_in_usd(1_000_000, SIX, Decimal("0.9998")) == "0.9998"
    assert value_in_usd(1, SIX, None) is None


@pytest.mark.parametrize(
    ("rate", "text"),
    [("1", "1"), ("1E+1", "10"), ("0.9900", "0.99"), ("1.0", "1"), ("1E-3", "0.001")],
)
def test_a_rate_is_plain_text(rate: str, text: str) -> None:
    assert format_rate(Decimal(rate)) == text
