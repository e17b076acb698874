"""What a partner decides once for all Payments of an environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from payments_core.clock import DAY, SECOND
from payments_core.payment_settings.origins import MAX_ORIGIN_CHARACTERS
from payments_core.payment_settings.record import PAYMENT_METHODS
from payments_core.payment_settings.validation import (
    EXPIRY_RANGE_S,
    MAX_CONFIRMATIONS,
    MAX_FEE_BPS,
    MAX_ITEMS,
    MAX_NAME_CHARACTERS,
    MAX_TOLERANCE_BPS,
    MONITORING_RANGE_S,
)
from payments_core.validation.fields import Address, Amount, AssetSymbol, ChainId, Url
from payments_core_http.v2.payments.bodies import Methods
from payments_core_http.wire.classes import frozen_body

Origin = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_ORIGIN_CHARACTERS,
        extra={"rule": "as browsers send it, such as https://shop.example"},
    ),
]
Color = Annotated[str, Meta(pattern="^#[0-9A-Fa-f]{6}$", extra={"rule": "a color such as #1a2b3c"})]
Currency = Annotated[
    str, Meta(pattern="^[A-Z]{3}$", extra={"rule": "a currency of ISO 4217, such as EUR"})
]
ChainNumber = Annotated[
    str, Meta(pattern="^[1-9][0-9]{0,9}$", extra={"rule": "the number of a chain"})
]
Confirmations = Annotated[int, Meta(ge=1, le=MAX_CONFIRMATIONS)]


@frozen_body
class AllowedWallet:
    """An address that public Payments may pay, on its chain."""

    type: Literal["wallet"]
    chainId: ChainId
    address: Address


@frozen_body
class Branding:
    """What the checkout page shows."""

    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME_CHARACTERS)] | None = None
    """Your name on the page."""
    logoUrl: Url | None = None
    primaryColor: Color | None = None
    currency: Currency | None = None
    """The currency of your prices (ISO 4217), in which the page shows about what an amount is
    worth; null means US dollars."""


@frozen_body
class ReplacePaymentSettings:
    """The whole settings: an absent field returns to its default, and null means no limit.

    `enabled` is required. `version` is the version that you read and replace, 0 if they were
    never set; a version that is not current is a conflict. `createdAt` and `updatedAt` are
    ignored, so that you can send back what you read.
    """

    enabled: bool
    """Whether pages on the allowed origins may create Payments."""
    allowedOrigins: Annotated[tuple[Origin, ...], Meta(max_length=MAX_ITEMS)] = ()
    allowedDestinations: Annotated[tuple[AllowedWallet, ...], Meta(max_length=MAX_ITEMS)] = ()
    """The addresses that public Payments may pay."""
    allowedMethods: Methods = PAYMENT_METHODS
    """The methods that payers may use."""
    chains: Annotated[tuple[ChainId, ...], Meta(min_length=1, max_length=MAX_ITEMS)] | None = None
    """The chains that Payments may be on; null means any chain."""
    assets: Annotated[tuple[AssetSymbol, ...], Meta(min_length=1, max_length=MAX_ITEMS)] | None = (
        None
    )
    """The assets that Payments may be in; null means any asset."""
    minAmount: Amount | None = None
    maxAmount: Amount | None = None
    expiresInSeconds: Annotated[int, Meta(ge=EXPIRY_RANGE_S[0], le=EXPIRY_RANGE_S[1])] = 3_600
    """After how many seconds a Payment expires, unless it sets its own."""
    monitoringSeconds: Annotated[int, Meta(ge=MONITORING_RANGE_S[0], le=MONITORING_RANGE_S[1])] = (
        DAY // SECOND
    )
    underpaymentToleranceBps: Annotated[int, Meta(ge=0, le=MAX_TOLERANCE_BPS)] = 0
    feeBps: Annotated[int, Meta(ge=0, le=MAX_FEE_BPS)] = 0
    """The fee of new Payments, in hundredths of a percent."""
    confirmations: Mapping[ChainNumber, Confirmations] | None = None
    successUrl: Url | None = None
    """Where payers who have paid are sent, unless a Payment sets its own URL."""
    cancelUrl: Url | None = None
    """Where payers who cancel are sent, unless a Payment sets its own URL."""
    branding: Branding | None = None
    version: Annotated[int, Meta(ge=0)] | None = None
    """The version that you read; 0 if they were never set."""
    createdAt: str | None = None
    """Ignored, so that you can send back what you read."""
    updatedAt: str | None = None
    """Ignored, so that you can send back what you read."""
