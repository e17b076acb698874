"""Payment settings: read and replaced by the partner's backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import IdempotentRequest, Response
from payments_core.payment_settings.record import (
    AllowedWallet,
    Branding,
    PaymentSettings,
    PaymentTerms,
)
from payments_core.resources import Resources
from payments_core_http.calls import ApiCall
from payments_core_http.v2.payment_settings import bodies, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def read_payment_settings(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The settings, or the defaults."""
    return call.respond(views.payment_settings(call.resources.payment_settings.read()))


def replace_payment_settings(
    service: PaymentsService, call: ApiCall[bodies.ReplacePaymentSettings, None]
) -> Response:
    """The settings as they are from now on."""
    return call.run_idempotent(
        lambda idempotent: replace_settings(call.resources, call.body, idempotent),
        views.payment_settings,
    )


def replace_settings(
    resources: Resources, body: bodies.ReplacePaymentSettings, idempotent: IdempotentRequest | None
) -> PaymentSettings:
    """The settings with the terms of a body."""
    return resources.payment_settings.replace(
        _terms(body), settings_version=body.version, idempotency_key=idempotent
    )


def _terms(body: bodies.ReplacePaymentSettings) -> PaymentTerms:
    branding = body.branding or bodies.Branding()
    return PaymentTerms(
        enabled=body.enabled,
        allowed_origins=body.allowedOrigins,
        allowed_destinations=tuple(
            AllowedWallet(chain_id=item.chainId, address=item.address)
            for item in body.allowedDestinations
        ),
        allowed_methods=body.allowedMethods,
        chains=body.chains,
        assets=body.assets,
        min_amount=body.minAmount,
        max_amount=body.maxAmount,
        expires_in_s=body.expiresInSeconds,
        monitoring_s=body.monitoringSeconds,
        tolerance_bps=body.underpaymentToleranceBps,
        fee_bps=body.feeBps,
        confirmations={int(chain): count for chain, count in (body.confirmations or {}).items()},
        success_url=body.successUrl,
        cancel_url=body.cancelUrl,
        branding=Branding(
            name=branding.name,
            logo_url=branding.logoUrl,
            primary_color=branding.primaryColor,
            currency=branding.currency,
        ),
    )
