"""Payment links: a receive Payment each, made here, with the address that its payer opens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import IdempotentRequest, Response
from payments_core.networks import Networks
from payments_core.payments.details import PaymentDetails
from payments_core.payments.record import Payment
from payments_core.storage.port import Page, Position
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.exports import Export, stream
from payments_core_http.dashboard.forms import Field, Form
from payments_core_http.dashboard.lists import Filter, read_list
from payments_core_http.dashboard.payments import PAYMENT_COLUMNS, STATUSES, may_cancel
from payments_core_http.dashboard.rendering import redirect, render_page
from payments_core_http.v2.payments import bodies
from payments_core_http.v2.payments.handlers import prepare_creation

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

_HOME = "/dashboard/links"
_FILTERS = (Filter("status", "Status", "choice", STATUSES, every="Every status"),)
_PAYEES = {
    "accountId": "the account's id",
    "externalUserId": "your own id of the user",
    "paymentAddress": "the payment address",
    "address": "the address of a wallet",
}
_EXPIRIES_S = {
    "": "As the payment settings say",
    "900": "15 minutes",
    "3600": "1 hour",
    "43200": "12 hours",
    "86400": "1 day",
}


def list_links(service: PaymentsService, call: PageCall) -> Response:
    """The receive Payments with their links, newest first, also those that programs made."""
    return render_page(
        call,
        "links.html",
        section="links",
        listed=read_list(call, _read_page, _FILTERS),
        build_url=call.resources.payments.build_url,
    )


def export_links(service: PaymentsService, call: PageCall) -> Response:
    """The receive Payments with their links, as CSV."""
    build_url = call.resources.payments.build_url
    columns = {**PAYMENT_COLUMNS, "paymentUrl": lambda one: build_url(one)}
    return stream(call, Export("payment-links", _FILTERS, _read_page, columns))


def _read_page(
    call: PageCall, filters: Mapping[str, str], after: Position | None, limit: int
) -> Page[Payment]:
    return call.resources.payments.list_briefly(
        intent="receive", status=filters.get("status"), after=after, limit=limit
    )


def show_link(service: PaymentsService, call: PageCall) -> Response:
    """A link, to be copied, and what became of its Payment."""
    payment = call.resources.payments.read(call.path["paymentId"]).payment
    return render_page(
        call,
        "link.html",
        section="links",
        payment=payment,
        url=call.resources.payments.build_url(payment),
        may_cancel=may_cancel(payment),
    )


def show_new(service: PaymentsService, call: PageCall) -> Response:
    """The form of a payment link."""
    return _build_form(service.networks).show(call, {})


def create(service: PaymentsService, call: PageCall) -> Response:
    """The new Payment's link."""
    form = _build_form(service.networks)

    def make(idempotent: IdempotentRequest | None) -> PaymentDetails:
        body = form.read(call.body, bodies.CreatePayment, intent="receive")
        return prepare_creation(call.resources, body)(idempotent)

    return form.submit_to(
        call, make, lambda details: redirect(call, f"{_HOME}/{details.payment.id}", "link")
    )


def _build_form(networks: Networks) -> Form:
    chains = {str(chain_id): networks.name_network(chain_id) for chain_id in sorted(networks)}
    symbols = {symbol: symbol for symbol in sorted(networks.list_symbols())}
    return Form(
        path=f"{_HOME}/new",
        section="links",
        title="Make a payment link",
        intro="A link is for one payment: whoever opens it can pay until it ends.",
        submit="Make the link",
        back=_HOME,
        back_title="Payment links",
        fields=(
            Field("amount", "Amount", hint="Such as 25.00.", is_required=True, maximum=80),
            Field("destination", "Paid to", "payee", choices=_PAYEES),
            Field(
                "assetSymbol", "Token", "choice",
                choices={"": "What the recipient prefers, else USDC", **symbols},
            ),
            Field(
                "chainId", "Network", "chosen_number",
                choices={"": "What the recipient prefers, else Base", **chains},
            ),
            Field("reference", "Reference", hint="Your own, such as order-1042.", maximum=128),
            Field("description", "Description", hint="The payer sees it.", maximum=512),
            Field("expiresInSeconds", "Expires after", "chosen_number", choices=_EXPIRIES_S),
            Field("successUrl", "Page after the payment", maximum=2_048),
            Field("cancelUrl", "Page after the payer goes back", maximum=2_048),
        ),
    )  # fmt: skip
