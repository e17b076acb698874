"""ABA routing numbers: nine digits, of which the first two name a range and the last one checks.

Source: American Bankers Association, "Routing Number Policy & Procedures", and the check digit of
ANSI X9.100-160, which Nacha's Operating Rules use too (Appendix Three).
"""

from __future__ import annotations

import re

_NINE_DIGITS = re.compile(r"[0-9]{9}", re.ASCII)
_WEIGHTS = (3, 7, 1, 3, 7, 1, 3, 7, 1)

PREFIXES: tuple[tuple[range, str], ...] = (
    (range(1, 13), "a bank in a Federal Reserve district"),
    (range(21, 33), "a thrift institution in a Federal Reserve district"),
    (range(61, 73), "a number for electronic transfers"),
)
"""The first two digits of institutions that receive ACH credits and wires.

00 is the US government and 80 is for traveler's checks; neither holds customers' accounts. Any
other is not assigned.
"""


def find_routing_number_fault(text: str) -> str | None:
    """What is wrong with a routing number, as the end of a sentence about it, or None."""
    if _NINE_DIGITS.fullmatch(text) is None:
        return "must be 9 digits"
    if not any(int(text[:2]) in prefixes for prefixes, _ in PREFIXES):
        return "must begin with 01 to 12, 21 to 32 or 61 to 72"
    if sum(int(digit) * weight for digit, weight in zip(text, _WEIGHTS, strict=True)) % 10:
        return "must end with the right check digit"
    return None
