"""Prices that cannot be right: no quote promises anything by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_core.errors import DependencyFailed
from payments_core.networks import Asset
from payments_core.pricing.port import Estimate
from tests.service.quotes.shop import QuoteShop

SOUND = Estimate(rate=Decimal("0.99"), fee_atomic=10, slippage_bps=50, time_s=60)
UNUSABLE: list[dict[str, Any]] = [
    *[{"rate": one} for one in (Decimal("NaN"), Decimal("Infinity"), Decimal(0), Decimal(-1))],
    *[{"rate": one} for one in (0.99, "0.99", None)],
    *[
        {"rate": Decimal(one)}
        for one in ("1e400", "1e-400", "1e999999", "1e-999999", "1." + "0" * 99)
    ],
    *[{"fee_atomic": one} for one in (-1, 0.5, None, True, 2**256)],
    *[{"slippage_bps": one} for one in (-1, 10_001, 0.5, None)],
    *[{"time_s": one} for one in (-1, 0.5, None)],
]


class Liar:
    """Estimates what `says` changes, or answers with it."""

    def __init__(self) -> None:
        self.says: Any = {}
        self.usd: Any = {}

    def usd_prices(self, assets: Sequence[Asset]) -> Mapping[str, Decimal]:
        return self.usd  # type: ignore[no-any-return]

    def estimate(self, source: Asset, destination: Asset, amount_atomic: int) -> Any:
        return attrs.evolve(SOUND, **self.says) if isinstance(self.says, dict) else self.says


def test_a_price_that_cannot_be_right_makes_no_quote(memory_shop: QuoteShop) -> None:
    shop, liar = memory_shop, Liar()
    shop.world.service = shop.world.restarted(pricing=liar)
    assert shop.routed().quote.output_atomic == 24_749_990
    for liar.says in (*UNUSABLE, None, "an estimate"):
        with pytest.raises(DependencyFailed):
            shop.routed()
    liar.says = {}
    endless = (Decimal("NaN"), Decimal(-1), Decimal("Infinity"), Decimal("1e400"))
    for usd in (None, 1.0, "1", *endless):
        liar.usd = dict.fromkeys(("8453/USDC", "137/USDC"), usd)
        with pytest.raises(DependencyFailed):
            shop.routed()
