"""Payouts to banks: the list, and one payout with its times at the bank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from payments_core.accounts.bank_accounts.record import BankAccount
from payments_core.banks.return_codes import RETURN_CODES
from payments_core.engine.idempotency.record import Response
from payments_core.money import format_amount
from payments_core.payments.payouts.lifecycle import PAYOUT
from payments_core.payments.record import Payment, Payout
from payments_core.storage.port import Page, Position
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.exports import Export, iso, stream
from payments_core_http.dashboard.lists import DAYS, Filter, read_days, read_list
from payments_core_http.dashboard.payments import list_timeline
from payments_core_http.dashboard.rendering import redirect, render_page
from payments_core_http.dashboard.words import name_meanings

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

STATUSES = tuple(sorted(PAYOUT.states))
MEANINGS = name_meanings(PAYOUT)
_FILTERS = (
    Filter("status", "Status at the bank", "choice", STATUSES, every="Every status"),
    *DAYS,
)
_SEARCHED = 100
"""How many sends a page looks at: a send to a wallet is no payout."""
_MAX_BANK_ACCOUNTS = 100


def list_payouts(service: PaymentsService, call: PageCall) -> Response:
    """The payouts under the filters, newest first."""
    listed = read_list(call, _read_page, _FILTERS, limit=_SEARCHED)
    return render_page(call, "payouts.html", section="payouts", listed=listed)


def show_payout(service: PaymentsService, call: PageCall) -> Response:
    """A payout: its state, its bank account, and what happened when.

    For a Payment without a payout, it leads to the Payment.
    """
    payment = call.resources.payments.read(call.path["paymentId"]).payment
    if payment.payout is None:
        return redirect(call, f"/dashboard/payments/{payment.id}")
    return render_page(
        call,
        "payout.html",
        section="payouts",
        payment=payment,
        payout=payment.payout,
        meaning=MEANINGS[payment.payout.status],
        bank_account=_find_bank_account(call, payment, payment.payout),
        timeline=list_timeline(payment),
        return_title=_find_return_title(payment.payout),
    )


def export_payouts(service: PaymentsService, call: PageCall) -> Response:
    """The payouts as CSV."""
    return stream(call, _PAYOUTS)


def _find_bank_account(call: PageCall, payment: Payment, payout: Payout) -> BankAccount | None:
    """The bank account that is paid; None if the environment lacks accounts."""
    if payment.source is None or "accounts" not in call.authority.environment.products:
        return None
    account_id = payment.source.account_id
    page = call.resources.bank_accounts.list(account_id, limit=_MAX_BANK_ACCOUNTS)
    return next((one for one in page.records if one.id == payout.bank_account_id), None)


def _find_return_title(payout: Payout) -> str | None:
    """What the code means with which the bank has returned it."""
    known = RETURN_CODES.get(payout.return_code or "")
    return None if known is None else known.title


def _read_page(
    call: PageCall, filters: Mapping[str, str], after: Position | None, limit: int
) -> Page[Payment]:
    """The payouts among the sends that are looked at, which may be none."""
    created_after, created_before = read_days(filters)
    page = call.resources.payments.list_briefly(
        intent="send",
        created_after=created_after,
        created_before=created_before,
        after=after,
        limit=limit,
    )
    status = filters.get("status")
    found = [
        one
        for one in page.records
        if one.payout is not None and status in (None, one.payout.status)
    ]
    return Page(tuple(found), page.next)


def _payout(payment: Payment) -> Payout:
    assert payment.payout is not None, "only Payments with a payout are listed"
    return payment.payout


_PAYOUTS: Export[Payment] = Export(
    "payouts",
    _FILTERS,
    _read_page,
    {
        "paymentId": lambda one: one.id,
        "payoutStatus": lambda one: _payout(one).status,
        "paymentStatus": lambda one: one.status,
        "amount": lambda one: format_amount(one.amount_atomic, one.decimals),
        "assetSymbol": lambda one: one.asset_symbol,
        "chainId": lambda one: one.chain_id,
        "accountId": lambda one: one.source.account_id if one.source else None,
        "bankAccountId": lambda one: _payout(one).bank_account_id,
        "rail": lambda one: _payout(one).rail,
        "attempt": lambda one: _payout(one).attempt,
        "bankReference": lambda one: _payout(one).reference,
        "settlesOn": lambda one: _payout(one).settles_on,
        "returnCode": lambda one: _payout(one).return_code,
        "failure": lambda one: _payout(one).failure,
        "reference": lambda one: one.reference,
        "createdAt": lambda one: iso(one.created_at_ms),
        "submittedAt": lambda one: iso(_payout(one).submitted_at_ms),
        "settledAt": lambda one: iso(_payout(one).settled_at_ms),
        "returnedAt": lambda one: iso(_payout(one).returned_at_ms),
    },
)
