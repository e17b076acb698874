"""Public checkout: what a payer's browser does with one Payment's client secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core.evolve import evolve
from payments_core_http.calls import ApiCall
from payments_core_http.v2.options import public_views as public_option_views
from payments_core_http.v2.public import bodies
from payments_core_http.v2.public import views as public_views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def read_payment(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The Payment, with its options without an account."""
    details = call.resources.public_payments.read(call.path["paymentId"])
    has_links = service.settings.has_public_url
    url = service.parts.links.build_url(details.payment) if has_links else None
    return call.respond(public_views.payment(details, url))


def read_state(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The state of the Payment, for polling; the tag changes when anything of it does."""
    state = call.resources.public_payments.read_state(call.path["paymentId"])
    return call.respond_with_etag(public_views.state(state))


def list_methods(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The ways to pay without an account."""
    payment_id = call.path["paymentId"]
    offered = call.resources.public_payments.list_methods(payment_id)
    return call.respond(public_views.methods(payment_id, offered))


def create_option(
    service: PaymentsService, call: ApiCall[bodies.CreatePublicOption, None]
) -> Response:
    """A way to pay, not selected yet."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.public_options.create(
            call.path["paymentId"],
            method=body.providerCode,
            chain_id=body.chainId,
            asset_symbol=body.assetSymbol,
            payer_address=body.payerAddress,
            refund_address=body.refundAddress,
            idempotency_key=idempotent,
        ),
        public_option_views.payment_option,
    )


def read_option(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """An option, with where to send what."""
    details = call.resources.public_options.read(call.path["paymentId"], call.path["optionId"])
    return call.respond(public_option_views.payment_option(details))


def select_option(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The option that the payer means to pay by."""
    return call.run_idempotent(
        lambda idempotent: call.resources.public_options.select(
            call.path["paymentId"],
            call.path["optionId"],
            idempotency_key=idempotent,
        ),
        public_option_views.payment_option,
    )


def refresh_option(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The option for the amount that still remains."""
    return call.run_idempotent(
        lambda idempotent: call.resources.public_options.refresh(
            call.path["paymentId"],
            call.path["optionId"],
            idempotency_key=idempotent,
        ),
        public_option_views.payment_option,
    )


def submit_transaction(
    service: PaymentsService, call: ApiCall[bodies.SubmitTransaction, None]
) -> Response:
    """The option with the transaction noted; it is checked after this response."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.public_options.submit_transaction(
            call.path["paymentId"],
            call.path["optionId"],
            chain_id=body.chainId,
            transaction_hash=body.transactionHash,
            idempotency_key=idempotent,
        ),
        public_option_views.payment_option,
    )


def exchange_link(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The client secret of a link's Payment. The page that asks must not pass its address on."""
    service.refresh()  # the one call without a credential that asks what time it is
    exchanged = service.checkout.exchange_link(call.path["code"], mode=call.mode)
    response = call.respond(public_views.exchanged_link(exchanged))
    return evolve(response, headers={"Referrer-Policy": "no-referrer"})
