"""Verifications: started by the partner's backend, done by the user at the provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import ApiCall
from payments_core_http.v2.verifications import bodies, views
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def start(service: PaymentsService, call: ApiCall[bodies.StartVerification, None]) -> Response:
    """A new verification, with the URL where the user goes."""
    return call.run_idempotent(
        lambda idempotent: call.resources.verifications.start(
            call.path["accountId"],
            return_url=call.body.returnUrl,
            idempotency_key=idempotent,
        ),
        views.verification,
    )


def list_verifications(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """The account's verifications, newest first."""
    page = call.resources.verifications.list(
        call.path["accountId"], after=call.decode_position(), limit=call.query.limit
    )
    return call.respond_page(page, views.verification)
