"""Payments that a shop's page creates, without any credential."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.idempotency.record import Answer
from payments_core.payments.destinations import ToWallet
from payments_core.payments.public import NewPublicPayment
from payments_core_http.calls import Call
from payments_core_http.v2 import public_views as views
from payments_core_http.v2.bodies import public_creation as bodies

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def create_public_payment(
    service: PaymentsService, call: Call[bodies.CreatePublicPayment, None]
) -> Answer:
    """A Payment with its client secret, which is told at creation and its replay only."""
    body = call.body
    new = NewPublicPayment(
        amount=body.amount,
        destination=ToWallet(address=body.destination.address),
        asset_symbol=body.assetSymbol,
        chain_id=body.chainId,
        reference=body.reference,
        success_url=body.successUrl,
        cancel_url=body.cancelUrl,
    )
    return call.once(
        lambda idempotent: service.public_payments.create(
            call.authority, new, idempotent=idempotent
        ),
        lambda details: views.created_payment(details, service.links),
    )
