"""Public checkout: what a payer's browser does with one Payment's client secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from payments_core.engine.idempotency.record import Answer
from payments_core_http.calls import Call
from payments_core_http.v2.options import direct_views as direct_option_views
from payments_core_http.v2.public import bodies
from payments_core_http.v2.public import views as public_views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def read_payment(service: PaymentsService, call: Call[None, None]) -> Answer:
    """The Payment, with its direct options."""
    details = service.checkout.payment(call.authority, call.path["paymentId"])
    return call.answer(public_views.payment(details))


def read_state(service: PaymentsService, call: Call[None, None]) -> Answer:
    """How the Payment stands, for polling; the tag changes when anything of it does."""
    state = service.checkout.state(call.authority, call.path["paymentId"])
    return call.tagged(public_views.state(state))


def list_methods(service: PaymentsService, call: Call[None, None]) -> Answer:
    """The ways to pay without an account."""
    payment_id = call.path["paymentId"]
    offered = service.paying.methods(call.authority, payment_id)
    return call.answer(public_views.methods(payment_id, offered))


def create_option(service: PaymentsService, call: Call[bodies.CreatePublicOption, None]) -> Answer:
    """A way to pay, not selected yet."""
    body = call.body
    return call.once(
        lambda idempotent: service.paying.create(
            call.authority,
            call.path["paymentId"],
            method=body.providerCode,
            chain_id=body.chainId,
            asset_symbol=body.assetSymbol,
            payer_address=body.payerAddress,
            idempotent=idempotent,
        ),
        direct_option_views.payment_option,
    )


def read_option(service: PaymentsService, call: Call[None, None]) -> Answer:
    """An option, with where to send what."""
    details = service.paying.get(call.authority, call.path["paymentId"], call.path["optionId"])
    return call.answer(direct_option_views.payment_option(details))


def select_option(service: PaymentsService, call: Call[None, None]) -> Answer:
    """The option that the payer means to pay by."""
    return call.once(
        lambda idempotent: service.paying.select(
            call.authority, call.path["paymentId"], call.path["optionId"], idempotent=idempotent
        ),
        direct_option_views.payment_option,
    )


def refresh_option(service: PaymentsService, call: Call[None, None]) -> Answer:
    """The option for what remains by now."""
    return call.once(
        lambda idempotent: service.paying.refresh(
            call.authority, call.path["paymentId"], call.path["optionId"], idempotent=idempotent
        ),
        direct_option_views.payment_option,
    )


def submit_transaction(
    service: PaymentsService, call: Call[bodies.SubmitTransaction, None]
) -> Answer:
    """The option with the transaction noted; it is looked at once this was answered."""
    body = call.body
    return call.once(
        lambda idempotent: service.paying.submit(
            call.authority,
            call.path["paymentId"],
            call.path["optionId"],
            chain_id=body.chainId,
            transaction_hash=body.transactionHash,
            idempotent=idempotent,
        ),
        direct_option_views.payment_option,
    )


def exchange_link(service: PaymentsService, call: Call[None, None]) -> Answer:
    """The client secret of a link's Payment. The page that asks must not tell its address on."""
    service.refresh()  # the one call without a credential that asks what time it is
    exchanged = service.checkout.exchange(call.path["code"], mode=call.mode)
    answer = call.answer(public_views.exchanged_link(exchanged))
    return attrs.evolve(answer, headers={"Referrer-Policy": "no-referrer"})
