"""Payments, as a partner's backend creates and steers them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from payments_core.banks.texts import AchReference, WireMessage
from payments_core.errors import FieldError
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.payouts.creation import find_text_faults
from payments_core.payments.refunding.reconciliation_rules import ReconciliationAction
from payments_core.validation.fields import (
    AccountId,
    Address,
    Amount,
    AssetSymbol,
    ChainId,
    ExpiryInSeconds,
    ExternalUserId,
    Id,
    PaymentAddress,
    Reference,
    Sentence,
    Url,
)
from payments_core.validation.metadata import Metadata
from payments_core_http.v2.statuses import PaymentStatus
from payments_core_http.v2.types import Moment
from payments_core_http.wire.classes import frozen_body
from payments_core_http.wire.names import name_faults
from payments_core_http.wire.query import PageQuery

Methods = Annotated[tuple[PaymentMethod, ...], Meta(min_length=1, max_length=4)]


@frozen_body
class AccountDestination:
    """Pay an account."""

    exactly_one_of: ClassVar[tuple[tuple[str, ...], ...]] = (("accountId", "externalUserId"),)

    type: Literal["account"]
    accountId: AccountId | None = None
    externalUserId: ExternalUserId | None = None


@frozen_body
class PaymentAddressDestination:
    """Pay `<username>@<partner id>`."""

    type: Literal["payment_address"]
    paymentAddress: PaymentAddress


@frozen_body
class WalletDestination:
    """Pay an address on the Payment's chain."""

    type: Literal["wallet"]
    address: Address


@frozen_body
class WalletOnChainDestination(WalletDestination):
    """Pay an address, on the chain of the source."""

    chainId: ChainId | None = None


@frozen_body
class BankDestination:
    """Pay a bank account. Each rail has its own text for the recipient's statement."""

    type: Literal["bank_account"]
    bankAccountId: Id
    """The bank account to pay to."""
    rail: Literal["ach", "wire"]
    achReference: AchReference | None = None
    wireMessage: WireMessage | None = None

    def faults(self) -> list[FieldError]:
        """The text of the other rail."""
        return name_faults(find_text_faults(self.rail, self.achReference, self.wireMessage))


AnyDestination = AccountDestination | PaymentAddressDestination | WalletDestination
"""The destination of a receive Payment: only a send can go to a bank."""


@frozen_body
class CreatePayment:
    """A receive Payment. Absent expiry, methods and URLs are those of the payment settings."""

    intent: Literal["receive"]
    amount: Amount
    destination: AnyDestination
    assetSymbol: AssetSymbol | None = None
    chainId: ChainId | None = None
    reference: Reference | None = None
    description: Sentence | None = None
    expiresInSeconds: ExpiryInSeconds | None = None
    allowedMethods: Methods | None = None
    successUrl: Url | None = None
    cancelUrl: Url | None = None
    metadata: Metadata | None = None


@frozen_body
class VaultSource:
    """The vault that pays: its account, and which chain and asset."""

    type: Literal["vault"]
    accountId: AccountId
    chainId: ChainId | None = None
    assetSymbol: AssetSymbol | None = None


@frozen_body
class CreateSend:
    """A Payment from a vault directly to the recipient."""

    intent: Literal["send"]
    amount: Amount
    source: VaultSource
    destination: (
        AccountDestination | PaymentAddressDestination | WalletOnChainDestination | BankDestination
    )
    reference: Reference | None = None
    metadata: Metadata | None = None


@frozen_body
class CreateCollect:
    """A Payment collected from a vault under its mandate, which defines its chain and asset."""

    intent: Literal["collect"]
    amount: Amount
    mandateId: Id
    destination: AnyDestination
    assetSymbol: AssetSymbol | None = None
    chainId: ChainId | None = None
    reference: Reference | None = None
    description: Sentence | None = None
    metadata: Metadata | None = None


AnyPayment = CreatePayment | CreateSend | CreateCollect


@frozen_body
class Reconcile:
    """What the partner decides about a Payment with an exception.

    A null `destination` is refused: it may be a value that was lost.
    """

    action: ReconciliationAction
    """Your decision."""
    note: Sentence | None = None
    """Your note, which is kept with it."""
    destination: Address | UnsetType = UNSET
    """For what goes back: an address, in place of the sender."""
    receiptId: Id | None = None
    """For `return_misdirected`: the receipt whose funds go back."""


@frozen_body
class ListPayments(PageQuery):
    """The Payments that match all filters; the times are ISO 8601 with a zone."""

    status: PaymentStatus | None = None
    """Only those with this status."""
    intent: Literal["receive", "send", "collect"] | None = None
    accountId: AccountId | None = None
    reference: Reference | None = None
    """Only those with this reference."""
    createdAfter: Moment | None = None
    """Only those created at this time or later."""
    createdBefore: Moment | None = None
    """Only those created before this time. What was created in the minute before the request may
    still be missing."""
