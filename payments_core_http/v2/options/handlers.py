"""A payer's options and authorizations: a client token and the Payment's secret, both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core.storage.port import Page
from payments_core_http.calls import ApiCall
from payments_core_http.v2.options import bodies, views
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def create(service: PaymentsService, call: ApiCall[bodies.CreateOption, None]) -> Response:
    """A Vault option, selected."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.options.create(
            call.path["paymentId"],
            chain_id=body.chainId,
            asset_symbol=body.assetSymbol,
            idempotency_key=idempotent,
        ),
        views.payment_option,
    )


def list_options(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """The caller's options of the Payment, oldest first; there are at most ten."""
    options = call.resources.options.list(call.path["paymentId"])
    position = call.decode_position()
    start = int(position[0] or 0) if position else 0
    end = start + call.query.limit
    following = (end,) if end < len(options) else None
    return call.respond_page(Page(options[start:end], following), views.funded_option)


def read(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """An option with its funding operation."""
    details = call.resources.options.read(call.path["paymentId"], call.path["optionId"])
    return call.respond(views.funded_option(details))


def refresh(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The option with a new one-time action."""
    return call.run_idempotent(
        lambda idempotent: call.resources.options.refresh(
            call.path["paymentId"],
            call.path["optionId"],
            idempotency_key=idempotent,
        ),
        views.payment_option,
    )


def authorize(service: PaymentsService, call: ApiCall[bodies.Authorize, None]) -> Response:
    """The recorded authorization of exactly one transfer; funds arrive later, or not."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.options.authorize(
            call.path["paymentId"],
            call.path["optionId"],
            action_id=body.actionId,
            metadata=body.metadata,
            idempotency_key=idempotent,
        ),
        views.funded_option,
    )
