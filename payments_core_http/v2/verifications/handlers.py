"""Verifications: started by the partner's backend, done by the user at the provider's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Answer
from payments_core_http.calls import Call
from payments_core_http.v2.verifications import bodies, views
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def start(service: PaymentsService, call: Call[bodies.StartVerification, None]) -> Answer:
    """A new verification, with the URL where the user goes."""
    return call.once(
        lambda idempotent: service.verifications.start(
            call.authority,
            call.path["accountId"],
            return_url=call.body.returnUrl,
            idempotent=idempotent,
        ),
        views.verification,
    )


def list_verifications(service: PaymentsService, call: Call[None, PageQuery]) -> Answer:
    """The account's verifications, newest first."""
    page = service.verifications.list(
        call.authority, call.path["accountId"], after=call.position(), limit=call.query.limit
    )
    return call.listed(page, views.verification)
