"""Deposit addresses and deposits, for the partner's backend and for an account's own browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Answer
from payments_core_http.calls import Call
from payments_core_http.v2.deposits import bodies, views
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def issue(service: PaymentsService, call: Call[bodies.IssueAddress, None]) -> Answer:
    """The account's address on a chain: 201 if it was made, 200 if it was there."""
    return _issued(service, call, call.path["accountId"])


def issue_own(service: PaymentsService, call: Call[bodies.IssueAddress, None]) -> Answer:
    """The caller's own address on a chain."""
    return _issued(service, call, call.authority.account_id)


def list_addresses(service: PaymentsService, call: Call[None, PageQuery]) -> Answer:
    """The account's addresses, oldest first."""
    return _addresses(service, call, call.path["accountId"])


def list_own_addresses(service: PaymentsService, call: Call[None, PageQuery]) -> Answer:
    """The caller's own addresses."""
    return _addresses(service, call, call.authority.account_id)


def check(service: PaymentsService, call: Call[bodies.CheckDeposits, None]) -> Answer:
    """The account's newest deposits, after a look at the chain."""
    return call.once(
        lambda idempotent: service.deposits.check(
            call.authority, call.path["accountId"], call.body.chainId, idempotent=idempotent
        ),
        views.checked,
    )


def list_deposits(service: PaymentsService, call: Call[None, bodies.DepositsQuery]) -> Answer:
    """The account's deposits, newest first."""
    page = service.deposits.deposits(
        call.authority,
        call.path["accountId"],
        status=call.query.status,
        after=call.position(),
        limit=call.query.limit,
    )
    return call.listed(page, views.deposit)


def _issued(
    service: PaymentsService, call: Call[bodies.IssueAddress, None], account_id: str
) -> Answer:
    return call.once(
        lambda idempotent: service.deposits.address(
            call.authority, account_id, call.body.chainId, idempotent=idempotent
        ),
        views.issued_address,
        status=lambda issued: 201 if issued.is_new else 200,
    )


def _addresses(service: PaymentsService, call: Call[None, PageQuery], account_id: str) -> Answer:
    page = service.deposits.addresses(
        call.authority, account_id, after=call.position(), limit=call.query.limit
    )
    return call.listed(page, views.address)
