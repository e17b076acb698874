"""On-ramps: the bank transfers to them, and what happened to the money of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

from payments_core.engine.idempotency.record import Response
from payments_core.onramps.lifecycle import BANK_TRANSACTION, format_cents
from payments_core.onramps.record import BankTransaction, BankTransactionStatus
from payments_core.storage.port import Page, Position
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.choices import find_choice
from payments_core_http.dashboard.exports import Export, iso, stream
from payments_core_http.dashboard.lists import DAYS, Filter, read_days, read_list
from payments_core_http.dashboard.rendering import render_page
from payments_core_http.dashboard.words import name_meanings

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

STATUSES: tuple[BankTransactionStatus, ...] = get_args(BankTransactionStatus)
MEANINGS = name_meanings(BANK_TRANSACTION)
_FILTERS = (
    Filter("status", "Status", "choice", STATUSES, every="Every status"),
    Filter("onramp", "Id of the on-ramp", "identifier", prefix="onramp_account"),
    *DAYS,
)


def list_incoming(service: PaymentsService, call: PageCall) -> Response:
    """The transfers to every on-ramp, or to one, newest first."""
    listed = read_list(call, _read_page, _FILTERS)
    return render_page(call, "onramps.html", section="onramps", listed=listed, dollars=format_cents)


def show_incoming(service: PaymentsService, call: PageCall) -> Response:
    """A transfer to an on-ramp: its state, its times, and each movement of its money."""
    history = call.resources.onramps.read_incoming(call.path["bankTransactionId"])
    return render_page(
        call,
        "onramp.html",
        section="onramps",
        transfer=history.transaction,
        onramp=history.onramp,
        entries=history.entries,
        dollars=format_cents,
        meaning=MEANINGS[history.transaction.status],
    )


def export_incoming(service: PaymentsService, call: PageCall) -> Response:
    """The transfers as CSV."""
    return stream(call, _TRANSFERS)


def _read_page(
    call: PageCall, filters: Mapping[str, str], after: Position | None, limit: int
) -> Page[BankTransaction]:
    chosen = find_choice(STATUSES, filters.get("status"))
    created_after, created_before = read_days(filters)
    return call.resources.onramps.list_incoming(
        onramp_account_id=filters.get("onramp"),
        status=chosen,
        created_after=created_after,
        created_before=created_before,
        after=after,
        limit=limit,
    )


_TRANSFERS: Export[BankTransaction] = Export(
    "on-ramp-transfers",
    _FILTERS,
    _read_page,
    {
        "id": lambda one: one.id,
        "status": lambda one: one.status,
        "reason": lambda one: one.reason,
        "type": lambda one: one.type,
        "rail": lambda one: one.rail,
        "currency": lambda one: "usd",
        "amount": lambda one: format_cents(one.amount_cents),
        "senderName": lambda one: one.sender_name,
        "reference": lambda one: one.reference,
        "accountId": lambda one: one.account_id,
        "onrampBankAccountId": lambda one: one.onramp_account_id,
        "chainId": lambda one: one.destination.chain_id,
        "assetSymbol": lambda one: one.destination.asset_symbol,
        "address": lambda one: one.destination.address,
        "transactionHash": lambda one: one.transaction_hash,
        "createdAt": lambda one: iso(one.created_at_ms),
        "receivedAt": lambda one: iso(one.received_at_ms),
        "settledAt": lambda one: iso(one.settled_at_ms),
        "refundedAt": lambda one: iso(one.refunded_at_ms),
    },
)
