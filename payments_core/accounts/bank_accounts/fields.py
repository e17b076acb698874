"""The fields of a new bank account, each with its rule: for the library, for HTTP, and for the
requirements that a partner's form is built from."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import attrs
from msgspec import Meta

from payments_core.banks.routing_numbers import find_routing_number_fault
from payments_core.banks.texts import (
    AchReference,
    AddressLine,
    BankName,
    City,
    HolderName,
    WireMessage,
)
from payments_core.brief_repr import brief_repr
from payments_core.errors import FieldError
from payments_core.validation.constraints import checked_rule

US_STATES = (
    "AL", "AK", "AZ", "AR", "CA", "CO", "CT", "DE", "DC", "FL", "GA", "HI", "ID",
    "IL", "IN", "IA", "KS", "KY", "LA", "ME", "MD", "MA", "MI", "MN", "MS", "MO",
    "MT", "NE", "NV", "NH", "NJ", "NM", "NY", "NC", "ND", "OH", "OK", "OR", "PA",
    "RI", "SC", "SD", "TN", "TX", "UT", "VT", "VA", "WA", "WV", "WI", "WY", "AS",
    "FM", "GU", "MH", "MP", "PR", "PW", "VI", "AA", "AE", "AP",
)  # fmt: skip
"""The states, the District of Columbia, the possessions and the military "states", as the Postal
Service abbreviates them (USPS, Publication 28, Appendix B)."""

AccountNumber = Annotated[str, Meta(pattern="^[0-9]{4,17}$", extra={"rule": "4 to 17 digits"})]
RoutingNumber = Annotated[
    str,
    Meta(pattern="^[0-9]{9}$", extra={"rule": "an ABA routing number of 9 digits"}),
]
State = Annotated[
    str,
    Meta(
        pattern="^[A-Z]{2}$",
        extra={"rule": "a state as two capital letters, such as NY", "known": US_STATES},
    ),
]
PostalCode = Annotated[
    str,
    Meta(
        pattern="^[0-9]{5}(-[0-9]{4})?$", extra={"rule": "a ZIP code such as 10001 or 10001-2345"}
    ),
]


@attrs.frozen(kw_only=True)
class NewPostalAddress:
    """The address of the account's holder."""

    __repr__ = brief_repr

    line1: AddressLine = attrs.field(repr=False)
    line2: AddressLine | None = attrs.field(default=None, repr=False)
    city: City
    state: State
    postal_code: PostalCode
    country: Literal["US"]


@attrs.frozen(kw_only=True)
class NewBankAccount:
    """A bank account to add. The holder is the account's own user.

    >>> home = NewPostalAddress(
    ...     line1="1 Main St", city="New York", state="NY", postal_code="10001", country="US"
    ... )
    >>> new = NewBankAccount(
    ...     currency="usd",
    ...     country="US",
    ...     account_holder_name="Bob Doe",
    ...     account_holder_type="individual",
    ...     account_number="73910264851",
    ...     routing_number="021000021",
    ...     account_type="checking",
    ...     address=home,
    ... )
    >>> shop.bank_accounts.add(bob.id, new).status
    'pending'
    """

    __repr__ = brief_repr

    currency: Literal["usd"]
    country: Literal["US"]
    account_holder_name: HolderName = attrs.field(repr=False)
    account_holder_type: Literal["individual", "business"]
    account_number: AccountNumber = attrs.field(repr=False)
    routing_number: RoutingNumber
    account_type: Literal["checking", "savings"]
    bank_name: BankName | None = None
    address: NewPostalAddress


@attrs.frozen(kw_only=True)
class FieldRequirement:
    """One field of a form: its name, with a dot inside an object, and its rule."""

    __repr__ = brief_repr

    name: str
    required: bool
    type: Literal["string", "integer"] = "string"
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    values: tuple[str, ...] | None = None


def find_bank_account_faults(routing_number: str) -> list[FieldError]:
    """The errors of a bank account beyond the rule of each field."""
    fault = find_routing_number_fault(routing_number)
    return [FieldError("routing_number", fault)] if fault else []


def field_requirements(kind: type = NewBankAccount, prefix: str = "") -> Iterator[FieldRequirement]:
    """The fields of an input class, as its annotations have them."""
    hints = get_type_hints(kind, include_extras=True)
    for field in attrs.fields(kind):
        name, annotation = prefix + field.name, hints[field.name]
        present = [part for part in get_args(annotation) if part is not NoneType]
        if NoneType in get_args(annotation):
            annotation = present[0]
        if attrs.has(annotation):
            yield from field_requirements(annotation, f"{name}.")
        else:
            required = field.default is attrs.NOTHING
            yield FieldRequirement(name=name, required=required, **_rules(annotation))


def payout_field_requirements() -> Iterator[FieldRequirement]:
    """The texts of a payout to a bank account, by their places in a `NewSend`."""
    for name, rule in (("ach_reference", AchReference), ("wire_message", WireMessage)):
        yield FieldRequirement(name=f"destination.{name}", required=False, **_rules(rule))


def _rules(annotation: Any) -> dict[str, Any]:
    if get_origin(annotation) is Literal:
        return {"values": get_args(annotation)}
    meta = checked_rule(next(part for part in get_args(annotation) if isinstance(part, Meta)))
    return {
        "min_length": meta.min_length,
        "max_length": meta.max_length,
        "pattern": meta.pattern,
        "values": (meta.extra or {}).get("known"),
    }
