"""Capabilities to activate, and bank accounts to add."""

from __future__ import annotations

from typing import Literal

import attrs

from payments_core.accounts.bank_accounts.fields import (
    AccountNumber,
    PostalCode,
    RoutingNumber,
    State,
    find_bank_account_faults,
)
from payments_core.accounts.capabilities.record import PRODUCT_OF_CAPABILITY
from payments_core.banks.texts import AddressLine, BankName, City, HolderName
from payments_core.errors import FieldError
from payments_core.validation.fields import Url
from payments_core_http.wire.classes import frozen_body
from payments_core_http.wire.names import name_faults


@frozen_body
class ActivateCapability:
    """The capability, and where the bank's pages send the user back to."""

    capability: Literal["us_bank_payout", "us_bank_funding"]
    returnUrl: Url | None = None


def find_product(body: ActivateCapability) -> str:
    """The product that the capability belongs to."""
    return PRODUCT_OF_CAPABILITY[body.capability]


@frozen_body
class PostalAddress:
    """An address in the United States."""

    line1: AddressLine = attrs.field(repr=False)
    line2: AddressLine | None = attrs.field(default=None, repr=False)
    city: City
    state: State
    postalCode: PostalCode
    country: Literal["US"]


@frozen_body
class AddBankAccount:
    """An account at a US bank. Its number is stored encrypted, and never returned."""

    currency: Literal["usd"]
    country: Literal["US"]
    accountHolderName: HolderName = attrs.field(repr=False)
    accountHolderType: Literal["individual", "business"]
    accountNumber: AccountNumber = attrs.field(repr=False)
    """The account's number; it is stored encrypted, and never returned."""
    routingNumber: RoutingNumber
    accountType: Literal["checking", "savings"]
    bankName: BankName | None = None
    address: PostalAddress
    """The holder's home address or registered office."""

    def faults(self) -> list[FieldError]:
        """A routing number that is not valid."""
        return name_faults(find_bank_account_faults(self.routingNumber))
