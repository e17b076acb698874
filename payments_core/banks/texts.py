"""The texts that the US rails carry: their characters and lengths, for the fields that end there.

The sources:

- ACH: Nacha Operating Rules, Appendix Three: alphameric fields have the printable characters of
  ASCII; Individual Name and Receiving Company Name have 22, an addenda's Payment Related
  Information has 80, and a street address, a city or a bank's name has 35 in the addenda of IAT.
- WIRE: ISO 20022 as Fedwire uses it: Name has 140 characters of ASCII, and Unstructured Remittance
  Information 140. Banks pass on only SWIFT's character set X of the latter.

A text that a rail cannot carry is cut, changed or returned by some bank on the way.
"""

from __future__ import annotations

from typing import Annotated

import attrs
from msgspec import Meta

from payments_core.banks.rails import Rail
from payments_core.validation.constraints import make_checks


@attrs.frozen
class RailTexts:
    """The rules of a rail's texts."""

    holder_name: Meta
    statement_text: Meta


def _ascii(max_length: int) -> Meta:
    extra = {"printable": True, "rule": "in printable ASCII, as US banks carry it"}
    return Meta(min_length=1, max_length=max_length, pattern="^[ -~]*$", extra=extra)


def _narrowed(max_length: int, rule: Meta) -> Meta:
    """As the contract has the text, whose length was `max_length`, and as it is checked."""
    words = str((rule.extra or {})["rule"])
    if rule.max_length != max_length:
        words = f"{rule.max_length} characters at most, {words}"
    return Meta(min_length=1, max_length=max_length, extra={"narrowed": rule, "rule": words})


_WIRE_MESSAGE = Meta(
    min_length=1,
    max_length=140,
    pattern="^[A-Za-z0-9 /?:().,'+-]*$",
    extra={"printable": True, "rule": "in letters A to Z, digits, spaces and / - ? : ( ) . , ' +"},
)

RAIL_TEXTS: dict[Rail, RailTexts] = {
    "ach": RailTexts(holder_name=_ascii(22), statement_text=_ascii(80)),
    "wire": RailTexts(holder_name=_ascii(140), statement_text=_WIRE_MESSAGE),
}

HolderName = Annotated[str, _narrowed(100, RAIL_TEXTS["ach"].holder_name)]
AchReference = Annotated[str, _narrowed(80, RAIL_TEXTS["ach"].statement_text)]
WireMessage = Annotated[str, _narrowed(140, RAIL_TEXTS["wire"].statement_text)]
BankName = Annotated[str, _narrowed(100, _ascii(35))]
AddressLine = Annotated[str, _narrowed(100, _ascii(35))]
City = Annotated[str, _narrowed(60, _ascii(35))]


def find_holder_fault(rail: Rail, holder_name: str) -> str | None:
    """The error of a holder's name on this rail, as a sentence that follows it; None if it fits."""
    return _find_fault(RAIL_TEXTS[rail].holder_name, holder_name)


def find_statement_fault(rail: Rail, statement_text: str) -> str | None:
    """The error of a text for the recipient's statement, as a sentence; None if it fits."""
    return _find_fault(RAIL_TEXTS[rail].statement_text, statement_text)


def _find_fault(rule: Meta, text: str) -> str | None:
    return next((fault for check in make_checks(rule) if (fault := check(text))), None)
