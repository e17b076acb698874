"""The currencies that a merchant may price in: Unicode's list of those in use, by Babel."""

from __future__ import annotations

from functools import cache

from payments_core.extras import naming_extra


@cache
def list_currencies() -> frozenset[str]:
    """The codes (ISO 4217) of what is legal tender somewhere, with no end that is known.

    Raises ExtraMissing without Babel, which comes with the extra that shows the pages.
    """
    with naming_extra("a currency of the checkout page"):
        from babel.core import get_global
    return frozenset(
        code
        for currencies in get_global("territory_currencies").values()
        for code, _, end, is_tender in currencies
        if is_tender and end is None
    )
