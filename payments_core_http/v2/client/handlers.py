"""The token's own account and its Payments: what a browser or mobile app does with its token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core.errors import NotFound, ValidationFailed
from payments_core.payments.destinations import ToAccount
from payments_core.payments.operations import NewPayment
from payments_core.tenants.client_sessions import effective_permissions
from payments_core_http.calls import ApiCall
from payments_core_http.v2.client import bodies, views
from payments_core_http.v2.payments import views as payment_views
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def read(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The account, and what the token may do."""
    authority = call.authority
    assert authority.session is not None
    details = call.resources.accounts.read(authority.account_id)
    permissions = effective_permissions(authority.environment, authority.session)
    return call.respond(views.own_account(details, permissions))


def create_payment(
    service: PaymentsService, call: ApiCall[bodies.CreateOwnPayment, None]
) -> Response:
    """A receive Payment to the account."""
    body, own = call.body, call.authority.account_id
    if body.destination is not None and body.destination.accountId != own:
        raise ValidationFailed.at("destination.accountId", "must be the token's own account")
    new = NewPayment(
        amount=body.amount,
        destination=ToAccount(account_id=own),
        asset_symbol=body.assetSymbol,
        chain_id=body.chainId,
        reference=body.reference,
        description=body.description,
        expires_in_s=body.expiresInSeconds,
        allowed_methods=body.allowedMethods,
        success_url=body.successUrl,
        cancel_url=body.cancelUrl,
        metadata=body.metadata,
    )
    return call.run_idempotent(
        lambda idempotent: call.resources.payments.receive(new, idempotency_key=idempotent),
        lambda details: payment_views.created_payment(details, service.parts.links),
    )


def list_payments(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """The Payments that the account receives, newest first."""
    page = call.resources.payments.list_received(
        call.authority.account_id,
        after=call.decode_position(),
        limit=call.query.limit,
    )
    return call.respond_page(
        page, lambda details: views.recipient_payment(details, service.parts.links)
    )


def read_payment(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """A Payment: to its recipient by the token alone, to a payer by the Payment's secret too."""
    own, links = call.authority.account_id, service.parts.links
    details = call.resources.payments.read(call.path["paymentId"])
    if details.payment.destination.account_id == own:
        return call.respond_from(details, lambda known: views.recipient_payment(known, links))
    if call.caller.payment_secret is not None:
        return call.respond_from((details, own), lambda known: views.payer_payment(*known, links))
    raise NotFound("payment")
