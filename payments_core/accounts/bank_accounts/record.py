"""A bank account as it is stored (contract §7): its number is sealed."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.banks.port import BankAccountType, PostalAddress
from payments_core.banks.return_codes import HolderType
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.storage.records import Collection, Index, Lookup, Record

BankAccountStatus = Literal["pending", "active", "rejected", "disabled"]

NUMBER_SEAL = "bank_account_number"


@attrs.frozen(kw_only=True, slots=False)
class BankAccount(Record):
    """An account at a US bank. `sealed_number` opens with the purpose NUMBER_SEAL and the id.

    `reason` is the bank's sentence about a rejection.

    >>> [found.last4 for found in shop.bank_accounts.list(bob.id).records]
    ['4851']
    """

    collection: ClassVar[Collection] = Collection(
        "bank_accounts",
        columns={"account_id": str, "created_at": int, "bank_key": str},
        indexes=(Index("by_account", key=("account_id",), order=("created_at",), descending=True),),
        lookups=(Lookup("by_bank_key", ("bank_key",)),),
        schema=2,
    )

    account_id: str
    external_user_id: str
    status: BankAccountStatus = "pending"
    currency: str
    country: str
    holder_name: str = attrs.field(repr=False)
    holder_type: HolderType
    sealed_number: str = attrs.field(repr=False)
    last4: str
    routing_number: str
    account_type: BankAccountType
    bank_name: str | None = None
    address: PostalAddress = attrs.field(repr=False)
    reason: str | None = None
    api_version: str
    created_at_ms: Instant
    updated_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    @property
    def bank_key(self) -> str:
        """The key under which the bank was given the account."""
        return self.id
