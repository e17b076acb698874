"""Payments: created, read and cancelled by the partner's backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.clock import Instant, parse_iso
from payments_core.errors import FieldError, ValidationFailed
from payments_core.idempotency.record import Answer
from payments_core.payments.lifecycle import PAYMENT
from payments_core.payments.operations import (
    NewPayment,
    ToAccount,
    ToPaymentAddress,
    ToWallet,
)
from payments_core.storage.port import Operator, Where
from payments_core_http.calls import Call
from payments_core_http.v2 import payment_views as views
from payments_core_http.v2 import queries
from payments_core_http.v2.bodies import payments as bodies

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def create(service: PaymentsService, call: Call[bodies.CreatePayment, None]) -> Answer:
    """A receive Payment, waiting for funds."""
    body = call.body
    new = NewPayment(
        amount=body.amount,
        destination=_destination(body.destination),
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
    return call.once(
        lambda idempotent: service.payments.create(call.authority, new, idempotent=idempotent),
        lambda details: views.created_payment(details, service.links),
    )


def read(service: PaymentsService, call: Call[None, None]) -> Answer:
    """A Payment, whole."""
    details = service.payments.get(call.authority, call.path["paymentId"])
    return call.answer(views.payment(details, service.links))


def list_payments(service: PaymentsService, call: Call[None, queries.Payments]) -> Answer:
    """Payments, newest first."""
    page = service.payments.list(
        call.authority,
        account_id=call.query.accountId,
        where=_where(call.query),
        after=call.position(),
        limit=call.query.limit,
    )
    return call.listed(page, lambda details: views.payment(details, service.links))


def cancel(service: PaymentsService, call: Call[None, None]) -> Answer:
    """The Payment, ended before funds moved."""
    return call.once(
        lambda idempotent: service.payments.cancel(
            call.authority, call.path["paymentId"], idempotent=idempotent
        ),
        lambda details: views.payment(details, service.links),
    )


def _destination(
    given: bodies.AccountDestination | bodies.PaymentAddressDestination | bodies.WalletDestination,
) -> ToAccount | ToPaymentAddress | ToWallet:
    if isinstance(given, bodies.AccountDestination):
        return ToAccount(account_id=given.accountId, external_user_id=given.externalUserId)
    if isinstance(given, bodies.PaymentAddressDestination):
        return ToPaymentAddress(payment_address=given.paymentAddress)
    return ToWallet(address=given.address)


def _where(query: queries.Payments) -> list[Where]:
    """The filters as comparisons. Raises ValidationFailed with every fault."""
    faults: list[FieldError] = []
    if query.status is not None and query.status not in PAYMENT.states:
        faults.append(FieldError("status", "is no status of a Payment"))
    after = _instant("createdAfter", query.createdAfter, faults)
    before = _instant("createdBefore", query.createdBefore, faults)
    if faults:
        raise ValidationFailed(tuple(faults))
    given: tuple[tuple[str, Operator, str | int | None], ...] = (
        ("status", "=", query.status),
        ("intent", "=", query.intent),
        ("reference", "=", query.reference),
        ("created_at", ">", after),
        ("created_at", "<", before),
    )
    return [Where(name, operator, value) for name, operator, value in given if value is not None]


def _instant(name: str, text: str | None, faults: list[FieldError]) -> Instant | None:
    if text is None:
        return None
    try:
        return parse_iso(text)
    except ValueError:
        faults.append(FieldError(name, "must be an ISO 8601 time with a zone"))
        return None
