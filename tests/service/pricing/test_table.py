"""The pricing suite on the table of prices, and what the table says."""

from __future__ import annotations

from decimal import Decimal

import pytest

from payments_core.adapters import UnknownAdapter
from payments_core.conformance.pricing import PricingConformance
from payments_core.port_loader import open_pricing
from payments_core.pricing.costs import ExchangeCosts
from payments_core.pricing.port import Pricing
from payments_core.pricing.table import SANDBOX, TablePricing, open_url
from tests.shipped import asset_of

USDC, USDT = asset_of(1, "USDC"), asset_of(1, "USDT")


class TestTable(PricingConformance):
    pairs = ((USDC, asset_of(10, "USDC")), (USDC, USDT), (USDT, USDC))
    can_price_currencies = True
    currencies = ("EUR", "JPY")

    def open(self) -> Pricing:
        return TablePricing(SANDBOX)


def test_a_url_spells_the_table_out() -> None:
    opened = open_pricing(
        "table:?USDC=1&USDT=0.5&fee_bps=100&fixed_fee_atomic=7&slippage_bps=9&time_s=3",
        chains={},
    )
    found = opened.estimate(USDC, USDT, 1_000_001)
    # twice the amount; one hundredth of it rounded up, and seven
    assert (found.rate, found.fee_atomic) == (Decimal(2), 20_001 + 7)
    assert (found.slippage_bps, found.time_s) == (9, 3)
    assert opened.usd_prices((USDT,)) == {USDT.id: Decimal("0.5")}


def test_a_url_has_rates_of_currencies() -> None:
    opened = open_url("table:?USDC=1&EUR=1.0850&JPY=0.0064", chains={})
    assert opened.usd_rates(("EUR", "JPY", "GBP")) == {
        "EUR": Decimal("1.0850"), "JPY": Decimal("0.0064")
    }  # fmt: skip


def test_a_bare_url_is_the_default_table() -> None:
    assert isinstance(open_pricing("table:", chains={}), TablePricing)
    assert open_url("table:", chains={}).usd_prices((USDC,)) == {USDC.id: Decimal(1)}
    assert open_url("table:", chains={}).usd_rates(("EUR",)) == {}, "no rate that is made up"
    assert ExchangeCosts().fee_bps == 5


@pytest.mark.parametrize(
    "url",
    [
        "table:prices.toml", "table:?USDC=0", "table:?USDC=1e3", "table:?fee_bps=x",
        "table:?fee_bps=10001", "table:?surprise=1", "table:?USDC=1&USDC=2", "table:?USDC",
    ],
)  # fmt: skip
def test_a_url_that_spells_no_table_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        open_url(url, chains={})


def test_a_scheme_that_nobody_serves_is_refused() -> None:
    with pytest.raises(UnknownAdapter, match="source of prices"):
        open_pricing("oracle://host.example", chains={})
