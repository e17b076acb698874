"""The row of public creation."""

from __future__ import annotations

from payments_core import errors
from payments_core.payments import public
from payments_core_http.routing import Route
from payments_core_http.v2 import public_creation
from payments_core_http.v2 import public_views as views
from payments_core_http.v2.bodies import public_creation as bodies

PUBLIC_CREATION = (
    Route(
        "POST", "/v2/public/apps/{appId}/payments", public_creation.create_public_payment,
        needs=public.PUBLIC_CREATION, body=bodies.CreatePublicPayment, success=201,
        idempotency="required", policy="public_creation", answers=views.CreatedPublicPaymentView,
        errors=(
            errors.NotFound, errors.OriginNotAllowed, errors.AmountOutOfRange,
            errors.UnsupportedChain, errors.UnsupportedAsset, errors.DestinationNotAllowed,
        ),
        operation="createPublicPayment",
        summary="Create a Payment from a shop's page, on an origin that the settings allow.",
    ),
)  # fmt: skip
