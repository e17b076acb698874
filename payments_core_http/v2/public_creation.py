"""Payments that a shop's page creates, without any credential."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core import errors
from payments_core.engine.idempotency.record import Response
from payments_core.payments.checkout import public
from payments_core.payments.checkout.public import NewPublicPayment
from payments_core.payments.destinations import ToWallet
from payments_core.validation.fields import Amount, AssetSymbol, ChainId, Reference, Url
from payments_core_http.calls import ApiCall
from payments_core_http.routing import Route
from payments_core_http.v2.payments.bodies import WalletDestination
from payments_core_http.v2.public import views
from payments_core_http.wire.classes import frozen_body

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


@frozen_body
class CreatePublicPayment:
    """A receive Payment to one of the wallets that the payment settings allow.

    Without `chainId` and `assetSymbol` it is USDC on chain 8453, or the first that the settings
    allow if they exclude that. The URLs must be under an allowed origin.
    """

    amount: Amount
    destination: WalletDestination
    assetSymbol: AssetSymbol | None = None
    chainId: ChainId | None = None
    reference: Reference | None = None
    successUrl: Url | None = None
    cancelUrl: Url | None = None


def create_public_payment(
    service: PaymentsService, call: ApiCall[CreatePublicPayment, None]
) -> Response:
    """A Payment with its client secret, which is shown only at creation and its replay."""
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
    return call.run_idempotent(
        lambda idempotent: call.resources.public_payments.create(new, idempotency_key=idempotent),
        views.created_payment,
    )


PUBLIC_CREATION = (
    Route(
        "POST", "/v2/public/apps/{appId}/payments", create_public_payment,
        needs=public.PUBLIC_CREATION, body=CreatePublicPayment, success=201,
        idempotency="required", policy="public_creation",
        creation_policy="public_creation_minute", response=views.CreatedPublicPaymentView,
        errors=(
            errors.NotFound, errors.OriginNotAllowed, errors.AmountOutOfRange,
            errors.UnsupportedChain, errors.UnsupportedAsset, errors.DestinationNotAllowed,
        ),
        operation="createPublicPayment",
        summary="Create a Payment from a shop's page, on an origin that the settings allow.",
    ),
)  # fmt: skip
