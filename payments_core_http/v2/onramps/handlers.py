"""On-ramp bank accounts: added and listed by the partner's backend, with what arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core.onramps.fields import NewOnrampAccount, NewOnrampDestination
from payments_core_http.calls import ApiCall
from payments_core_http.v2.onramps import bodies, views
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def read_requirements(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """What a new on-ramp needs."""
    account_id = call.path["accountId"]
    found = call.resources.onramps.read_requirements(account_id)
    return call.respond(views.onramp_requirements(account_id, found))


def add(service: PaymentsService, call: ApiCall[bodies.AddOnrampAccount, None]) -> Response:
    """The new on-ramp."""
    wanted = call.body.destination
    new = NewOnrampAccount(
        currency=call.body.currency,
        destination=NewOnrampDestination(
            type=wanted.type,
            chain_id=wanted.chainId,
            asset_symbol=wanted.assetSymbol,
            address=wanted.address,
        ),
    )
    return call.run_idempotent(
        lambda idempotent: call.resources.onramps.add(
            call.path["accountId"], new, idempotency_key=idempotent
        ),
        views.onramp_account,
    )


def list_onramps(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """The account's on-ramps, newest first."""
    page = call.resources.onramps.list(
        call.path["accountId"], after=call.decode_position(), limit=call.query.limit
    )
    return call.respond_page(page, views.onramp_account)


def read_instructions(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """Where others send money for the account."""
    found = call.resources.onramps.read_instructions(
        call.path["accountId"], call.path["onrampBankAccountId"]
    )
    return call.respond(views.deposit_instructions(found))


def list_transactions(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """The transfers to an on-ramp, newest first."""
    page = call.resources.onramps.list_transactions(
        call.path["accountId"],
        call.path["onrampBankAccountId"],
        after=call.decode_position(),
        limit=call.query.limit,
    )
    return call.respond_page(page, views.bank_transaction)
