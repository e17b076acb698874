"""Settlements of quotes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import ApiCall
from payments_core_http.v1.settlements import bodies, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def settle(service: PaymentsService, call: ApiCall[bodies.SettleQuote, None]) -> Response:
    """The transaction that pays the quote from the payer's vault."""
    return call.run_idempotent(
        lambda idempotent: call.resources.legacy.settle(
            call.body.request, idempotency_key=idempotent
        ),
        lambda operation: views.SettlementResponse(
            data=views.settlement(operation), requestId=call.request_id
        ),
    )
