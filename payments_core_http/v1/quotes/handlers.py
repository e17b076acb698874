"""Quotes: created by an app id or a publishable key, and polled until they are done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from payments_core.engine.idempotency.record import Response
from payments_core.errors import ValidationFailed
from payments_core.evolve import evolve
from payments_core.payments.destinations import (
    DestinationRequest,
    ToAccount,
    ToPaymentAddress,
    ToWallet,
)
from payments_core.quotes.request import NewQuote
from payments_core_http.calls import ApiCall
from payments_core_http.v1.quotes import bodies, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

_QUOTE_FIELDS = {
    "destination.address": "destinationWalletAddress",
    "destination.payment_address": "destinationPaymentAddress",
}
_ADDRESS_FIELDS = {"destination.payment_address": "paymentAddress"}


def create_quote(service: PaymentsService, call: ApiCall[bodies.AskQuote, None]) -> Response:
    """A quote with its deposit address."""
    body = call.body
    new = NewQuote(
        amount=body.amount_text,
        user_id=body.userId,
        source_address=body.sourceAddress,
        source_chain_id=body.sourceChainId,
        source_chain_token=body.sourceChainToken,
        destination=_destination_of(body),
        destination_chain_id=body.destinationChainID,
        destination_token=body.destinationToken,
    )
    with _naming_fields(_QUOTE_FIELDS):
        quoted = call.resources.legacy.create_quote(new)
    return call.respond(
        views.QuoteResponse(data=views.quote(quoted.quote), requestId=call.request_id)
    )


def create_deposit_address(
    service: PaymentsService, call: ApiCall[bodies.AskDepositAddress, None]
) -> Response:
    """A quote for a payment address, by the input amount."""
    body = call.body
    new = NewQuote(
        raw_amount=body.rawAmount,
        source_address=body.sourceAddress,
        source_chain_id=body.sourceChainId,
        source_chain_token=body.sourceChainToken,
        destination=ToPaymentAddress(payment_address=body.paymentAddress),
    )
    with _naming_fields(_ADDRESS_FIELDS):
        quoted = call.resources.legacy.create_quote(new)
    return call.respond(
        views.QuotedAddressResponse(
            data=views.quoted_address(quoted.quote), requestId=call.request_id
        )
    )


def verify_transfer(
    service: PaymentsService, call: ApiCall[bodies.VerifyTransfer, None]
) -> Response:
    """Whether a transfer is done, from a request with a body."""
    return _verify(service, call, call.body)


def verify_transfer_by_query(
    service: PaymentsService, call: ApiCall[None, bodies.VerifyTransfer]
) -> Response:
    """Whether a transfer is done, from a request with a query."""
    return _verify(service, call, call.query)


def _verify(
    service: PaymentsService, call: ApiCall[Any, Any], asked: bodies.VerifyTransfer
) -> Response:
    if asked.quoteId is not None:
        done = call.resources.legacy.read_quote(asked.quoteId).is_done
    else:
        assert asked.chainId is not None
        assert asked.depositAddress is not None
        done = call.resources.legacy.is_transfer_done(asked.chainId, asked.depositAddress)
    data = views.TransferStateView(isTransferDone=done)
    return call.respond(views.TransferStateResponse(data=data, requestId=call.request_id))


def _destination_of(body: bodies.AskQuote) -> DestinationRequest:
    if body.destinationUserId is not None:
        return ToAccount(account_id=body.destinationUserId)
    if body.destinationPaymentAddress is not None:
        return ToPaymentAddress(payment_address=body.destinationPaymentAddress)
    assert body.destinationWalletAddress is not None
    return ToWallet(address=body.destinationWalletAddress)


@contextmanager
def _naming_fields(names: Mapping[str, str]) -> Iterator[None]:
    """Around an operation whose fields have other names here."""
    try:
        yield
    except ValidationFailed as error:
        fields = (evolve(it, path=names.get(it.path, it.path)) for it in error.fields)
        raise ValidationFailed(tuple(fields)) from None
