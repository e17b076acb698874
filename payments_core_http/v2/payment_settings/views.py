"""Payment settings as v2 returns them; what is read can be sent back as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from payments_core.clock import format_iso_or_none
from payments_core.payment_settings.record import PaymentMethod, PaymentSettings
from payments_core_http.wire.classes import frozen_view


@frozen_view
class PayableWalletView:
    """An address that public Payments may pay, on its chain."""

    type: Literal["wallet"] = "wallet"
    chainId: int
    address: str
    """The address that public Payments may pay."""


@frozen_view
class BrandingView:
    """What the checkout page shows."""

    name: str | None
    """Your name on the page; null means that no name is shown."""
    logoUrl: str | None
    primaryColor: str | None
    currency: str | None
    """The currency of your prices (ISO 4217); null means US dollars."""


@frozen_view
class PaymentSettingsView:
    """The settings of an environment. `version` is 0, and the times are null, until they are first
    set; a null limit means no limit."""

    enabled: bool
    """Whether pages on the allowed origins may create Payments."""
    allowedOrigins: tuple[str, ...]
    allowedDestinations: tuple[PayableWalletView, ...]
    """The addresses that public Payments may pay."""
    allowedMethods: tuple[PaymentMethod, ...]
    """The methods that payers may use."""
    chains: tuple[int, ...] | None
    """The chains that Payments may be on; null means any chain."""
    assets: tuple[str, ...] | None
    """The assets that Payments may be in; null means any asset."""
    minAmount: str | None
    maxAmount: str | None
    expiresInSeconds: int
    """After how many seconds a Payment expires, unless it sets its own."""
    monitoringSeconds: int
    underpaymentToleranceBps: int
    feeBps: int
    """The fee of new Payments, in hundredths of a percent."""
    confirmations: Mapping[str, int]
    successUrl: str | None
    """Where payers who have paid are sent, unless a Payment sets its own URL."""
    cancelUrl: str | None
    """Where payers who cancel are sent, unless a Payment sets its own URL."""
    branding: BrandingView
    version: int
    """The version to send with a change; 0 until they are set."""
    createdAt: str | None
    """When they were first set; null until then."""
    updatedAt: str | None
    """When they last changed; null until they are set."""


def payment_settings(settings: PaymentSettings) -> PaymentSettingsView:
    """The settings in their current version."""
    terms = settings.terms
    return PaymentSettingsView(
        enabled=terms.enabled,
        allowedOrigins=terms.allowed_origins,
        allowedDestinations=tuple(
            PayableWalletView(chainId=wallet.chain_id, address=wallet.address)
            for wallet in terms.allowed_destinations
        ),
        allowedMethods=terms.allowed_methods,
        chains=terms.chains,
        assets=terms.assets,
        minAmount=terms.min_amount,
        maxAmount=terms.max_amount,
        expiresInSeconds=terms.expires_in_s,
        monitoringSeconds=terms.monitoring_s,
        underpaymentToleranceBps=terms.tolerance_bps,
        feeBps=terms.fee_bps,
        confirmations={str(chain_id): count for chain_id, count in terms.confirmations.items()},
        successUrl=terms.success_url,
        cancelUrl=terms.cancel_url,
        branding=BrandingView(
            name=terms.branding.name,
            logoUrl=terms.branding.logo_url,
            primaryColor=terms.branding.primary_color,
            currency=terms.branding.currency,
        ),
        version=settings.settings_version,
        createdAt=format_iso_or_none(settings.created_at_ms),
        updatedAt=format_iso_or_none(settings.updated_at_ms),
    )
