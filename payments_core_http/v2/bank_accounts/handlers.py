"""Capabilities and bank accounts: requested, added and listed by the partner's backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.accounts.bank_accounts.fields import NewBankAccount, NewPostalAddress
from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import ApiCall
from payments_core_http.v2.bank_accounts import bodies, views
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def activate_capability(
    service: PaymentsService, call: ApiCall[bodies.ActivateCapability, None]
) -> Response:
    """The capability that was requested."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.bank_accounts.activate(
            call.path["accountId"],
            body.capability,
            return_url=body.returnUrl,
            idempotency_key=idempotent,
        ),
        views.capability_activation,
    )


def read_requirements(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """What a new bank account needs."""
    account_id = call.path["accountId"]
    found = call.resources.bank_accounts.read_requirements(account_id)
    return call.respond(views.bank_account_requirements(account_id, found))


def add(service: PaymentsService, call: ApiCall[bodies.AddBankAccount, None]) -> Response:
    """The new bank account."""
    body = call.body
    new = NewBankAccount(
        currency=body.currency,
        country=body.country,
        account_holder_name=body.accountHolderName,
        account_holder_type=body.accountHolderType,
        account_number=body.accountNumber,
        routing_number=body.routingNumber,
        account_type=body.accountType,
        bank_name=body.bankName,
        address=NewPostalAddress(
            line1=body.address.line1,
            line2=body.address.line2,
            city=body.address.city,
            state=body.address.state,
            postal_code=body.address.postalCode,
            country=body.address.country,
        ),
    )
    return call.run_idempotent(
        lambda idempotent: call.resources.bank_accounts.add(
            call.path["accountId"], new, idempotency_key=idempotent
        ),
        views.bank_account,
    )


def list_bank_accounts(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """The account's bank accounts, newest first."""
    page = call.resources.bank_accounts.list(
        call.path["accountId"], after=call.decode_position(), limit=call.query.limit
    )
    return call.respond_page(page, views.bank_account)
