"""Payments, as a partner's backend creates and steers them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import attrs
from msgspec import Meta

from payments_core.payments.operations import METHODS
from payments_core_http.metadata import Metadata
from payments_core_http.v2.bodies.types import (
    AccountId,
    Address,
    Amount,
    AssetSymbol,
    ChainId,
    ExternalUserId,
    Method,
    Url,
)


@attrs.frozen(kw_only=True)
class AccountDestination:
    """Pay an account."""

    exactly_one_of: ClassVar = (("accountId", "externalUserId"),)

    type: Literal["account"]
    accountId: AccountId | None = None
    externalUserId: ExternalUserId | None = None


@attrs.frozen(kw_only=True)
class PaymentAddressDestination:
    """Pay `<username>@<partner id>`."""

    type: Literal["payment_address"]
    paymentAddress: Annotated[str, Meta(min_length=3, max_length=128)]


@attrs.frozen(kw_only=True)
class WalletDestination:
    """Pay an address on the Payment's chain."""

    type: Literal["wallet"]
    address: Address


@attrs.frozen(kw_only=True)
class CreatePayment:
    """A receive Payment. `send` and `collect` are not served yet."""

    intent: Literal["receive"]
    amount: Amount
    destination: AccountDestination | PaymentAddressDestination | WalletDestination
    assetSymbol: AssetSymbol | None = None
    chainId: ChainId | None = None
    reference: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    description: Annotated[str, Meta(max_length=512)] | None = None
    expiresInSeconds: Annotated[int, Meta(ge=300, le=86_400)] = 3_600
    allowedMethods: Annotated[tuple[Method, ...], Meta(min_length=1, max_length=4)] = METHODS
    successUrl: Url | None = None
    cancelUrl: Url | None = None
    metadata: Metadata | None = None
