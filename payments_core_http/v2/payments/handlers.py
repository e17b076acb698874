"""Payments: created, read, cancelled and reconciled by the partner's backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from payments_core.clock import parse_bound_or_none
from payments_core.engine.idempotency.record import IdempotentRequest, Response
from payments_core.evolve import evolve
from payments_core.payments.collects import NewCollect
from payments_core.payments.destinations import (
    DestinationRequest,
    SendDestination,
    ToAccount,
    ToBankAccount,
    ToPaymentAddress,
    ToWallet,
)
from payments_core.payments.details import PaymentDetails
from payments_core.payments.operations import NewPayment
from payments_core.payments.sends import NewSend
from payments_core.resources import Resources
from payments_core_http.calls import ApiCall
from payments_core_http.v2.options import views as option_views
from payments_core_http.v2.payments import bodies, receipt_views, views
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def create(service: PaymentsService, call: ApiCall[bodies.AnyPayment, None]) -> Response:
    """A Payment that receives, sends or collects."""
    make = prepare_creation(call.resources, call.body)
    return call.run_idempotent(
        make, lambda details: views.created_payment(details, service.parts.links)
    )


def read(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """A Payment with all its fields."""
    details = call.resources.payments.read(call.path["paymentId"])
    return call.respond_from(details, lambda known: views.payment(known, service.parts.links))


def list_payments(service: PaymentsService, call: ApiCall[None, bodies.ListPayments]) -> Response:
    """Payments, newest first."""
    query = call.query
    page = call.resources.payments.list(
        account_id=query.accountId,
        status=query.status,
        intent=query.intent,
        reference=query.reference,
        created_after=parse_bound_or_none(query.createdAfter),
        created_before=parse_bound_or_none(query.createdBefore),
        after=call.decode_position(),
        limit=call.query.limit,
    )
    return call.respond_page(page, lambda details: views.payment(details, service.parts.links))


def cancel(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The Payment, ended before funds moved."""
    known = call.resources.payments.read(call.path["paymentId"])
    return call.run_idempotent(
        lambda idempotent: call.resources.payments.cancel(
            call.path["paymentId"], idempotency_key=idempotent
        ),
        lambda details: views.payment(_merge_details(details, known), service.parts.links),
    )


def reconcile(service: PaymentsService, call: ApiCall[bodies.Reconcile, None]) -> Response:
    """The Payment, with the decision about it; the worker does refunds and releases."""
    body = call.body
    known = call.resources.payments.read(call.path["paymentId"])
    return call.run_idempotent(
        lambda idempotent: call.resources.payments.reconcile(
            call.path["paymentId"],
            body.action,
            destination=body.destination,
            receipt_id=body.receiptId,
            note=body.note,
            idempotency_key=idempotent,
        ),
        lambda details: views.payment(_merge_details(details, known), service.parts.links),
    )


def read_receipts(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """What the Payment received, oldest first, and where its money is."""
    receipts_with_journal = call.resources.payments.list_receipts(
        call.path["paymentId"],
        after=call.decode_position(),
        limit=call.query.limit,
    )
    page, payment = receipts_with_journal.receipts, receipts_with_journal.payment
    return call.respond(
        receipt_views.ReceiptsView(
            data=tuple(option_views.receipt(item, payment) for item in page.records),
            **call.page_fields(page.next),
            journal=receipt_views.journal(receipts_with_journal),
        )
    )


def prepare_creation(
    resources: Resources, body: bodies.AnyPayment
) -> Callable[[IdempotentRequest | None], PaymentDetails]:
    """What creates the Payment that the body describes."""
    if isinstance(body, bodies.CreateSend):
        send = NewSend(
            amount=body.amount,
            account_id=body.source.accountId,
            destination=_send_destination(body.destination),
            chain_id=body.source.chainId,
            asset_symbol=body.source.assetSymbol,
            destination_chain_id=getattr(body.destination, "chainId", None),
            reference=body.reference,
            metadata=body.metadata,
        )
        return lambda idempotent: resources.payments.send(send, idempotency_key=idempotent)
    to = _destination(body.destination)
    if isinstance(body, bodies.CreateCollect):
        collect = NewCollect(
            amount=body.amount,
            mandate_id=body.mandateId,
            destination=to,
            chain_id=body.chainId,
            asset_symbol=body.assetSymbol,
            reference=body.reference,
            description=body.description,
            metadata=body.metadata,
        )
        return lambda idempotent: resources.payments.collect(collect, idempotency_key=idempotent)
    new = NewPayment(
        amount=body.amount,
        destination=to,
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
    return lambda idempotent: resources.payments.receive(new, idempotency_key=idempotent)


def _send_destination(given: bodies.AnyDestination | bodies.BankDestination) -> SendDestination:
    """Who is paid by a send, which may be a bank account."""
    if isinstance(given, bodies.BankDestination):
        return ToBankAccount(
            bank_account_id=given.bankAccountId,
            rail=given.rail,
            ach_reference=given.achReference,
            wire_message=given.wireMessage,
        )
    return _destination(given)


def _destination(given: bodies.AnyDestination) -> DestinationRequest:
    """Who is paid."""
    if isinstance(given, bodies.AccountDestination):
        return ToAccount(account_id=given.accountId, external_user_id=given.externalUserId)
    if isinstance(given, bodies.PaymentAddressDestination):
        return ToPaymentAddress(payment_address=given.paymentAddress)
    return ToWallet(address=given.address)


def _merge_details(details: PaymentDetails, known: PaymentDetails) -> PaymentDetails:
    """The response of an operation: the Payment that it changed, with the known parts it did not.

    Inside the transaction lists are not read: they decide nothing there.
    """
    options = {item.option.id: item for item in (*known.options, *details.options)}
    refunds = {item.id: item for item in (*known.refunds, *details.refunds)}
    return evolve(
        details,
        options=tuple(options.values()),
        receipts=known.receipts,
        refunds=tuple(refunds.values()),
    )
