"""Deposit addresses and deposits, for the partner's backend and for an account's own browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import ApiCall
from payments_core_http.v2.deposits import bodies, views
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def issue(service: PaymentsService, call: ApiCall[bodies.IssueAddress, None]) -> Response:
    """The account's address on a chain: 201 if it was made, 200 if it was there."""
    return _issue_address(service, call, call.path["accountId"])


def issue_own(service: PaymentsService, call: ApiCall[bodies.IssueAddress, None]) -> Response:
    """The caller's own address on a chain."""
    return _issue_address(service, call, call.authority.account_id)


def list_addresses(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """The account's addresses, oldest first."""
    return _list_addresses(service, call, call.path["accountId"])


def list_own_addresses(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """The caller's own addresses."""
    return _list_addresses(service, call, call.authority.account_id)


def check(service: PaymentsService, call: ApiCall[bodies.CheckDeposits, None]) -> Response:
    """The account's newest deposits, after a check of the chain."""
    return call.run_idempotent(
        lambda idempotent: call.resources.deposits.check(
            call.path["accountId"], call.body.chainId, idempotency_key=idempotent
        ),
        views.deposit_check,
    )


def list_deposits(service: PaymentsService, call: ApiCall[None, bodies.DepositsQuery]) -> Response:
    """The account's deposits, newest first."""
    page = call.resources.deposits.list(
        call.path["accountId"],
        status=call.query.status,
        after=call.decode_position(),
        limit=call.query.limit,
    )
    return call.respond_page(page, views.deposit)


def send_back(service: PaymentsService, call: ApiCall[bodies.ReturnDeposit, None]) -> Response:
    """A rejected deposit that goes back; the worker sends it."""
    return call.run_idempotent(
        lambda idempotent: call.resources.deposits.send_back(
            call.path["accountId"],
            call.path["depositId"],
            call.body.destination,
            idempotency_key=idempotent,
        ),
        views.deposit,
    )


def _issue_address(
    service: PaymentsService, call: ApiCall[bodies.IssueAddress, None], account_id: str
) -> Response:
    return call.run_idempotent(
        lambda idempotent: call.resources.deposits.issue_address(
            account_id, call.body.chainId, idempotency_key=idempotent
        ),
        views.issued_address,
        status=lambda issued: 201 if issued.is_new else 200,
    )


def _list_addresses(
    service: PaymentsService, call: ApiCall[None, PageQuery], account_id: str
) -> Response:
    page = call.resources.deposits.list_addresses(
        account_id, after=call.decode_position(), limit=call.query.limit
    )
    return call.respond_page(page, views.address)
