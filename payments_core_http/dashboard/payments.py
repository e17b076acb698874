"""Payments: the list, and the history of one Payment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, get_args

from payments_core.csv_text import Cell
from payments_core.engine.idempotency.record import Response
from payments_core.engine.identifiers import is_identifier
from payments_core.errors import PaymentsError
from payments_core.money import format_amount
from payments_core.payments import lifecycle
from payments_core.payments.journal.record import JOURNAL_ACCOUNTS, JournalEntry
from payments_core.payments.record import Intent, Payment, TimelineEntry
from payments_core.payments.refunding.operations import NewRefund, PlannedRefund
from payments_core.payments.timeline import with_notes
from payments_core.payments.transitions import PAYMENT
from payments_core.storage.port import Page, Position
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.choices import find_choice
from payments_core_http.dashboard.exports import Export, iso, stream
from payments_core_http.dashboard.lists import DAYS, Filter, read_days, read_list
from payments_core_http.dashboard.rendering import redirect, render_page
from payments_core_http.dashboard.words import ACTION_WORDS, METHOD_WORDS, NETWORK_WORDS

if TYPE_CHECKING:
    from payments_core.service import PaymentsService
    from payments_core.webhooks.dispatch.replay import PaymentEvents

STATUSES = tuple(sorted(PAYMENT.states))
INTENTS: tuple[Intent, ...] = get_args(Intent)
_FILTERS = (
    Filter("search", "Id, reference or account", "search", is_wide=True),
    Filter("status", "Status", "choice", STATUSES, every="Every status"),
    Filter("intent", "Kind", "choice", INTENTS, every="Every kind"),
    *DAYS,
)
_MAX_RECEIPTS = 100

_ENDED = ("succeeded", "partially_refunded", "refunded", "expired", "cancelled", "failed")
"""The statuses in which nothing is under way, except a refund."""


def list_payments(service: PaymentsService, call: PageCall) -> Response:
    """The Payments under the filters, newest first."""
    search = call.query.get("search", "").strip()
    if is_identifier(search, "payment"):
        return redirect(call, f"/dashboard/payments/{search}")
    listed = read_list(call, _read_page, _FILTERS)
    return render_page(call, "payments.html", section="payments", listed=listed)


def export_payments(service: PaymentsService, call: PageCall) -> Response:
    """The Payments as CSV."""
    return stream(call, _PAYMENTS)


def show_payment(service: PaymentsService, call: PageCall) -> Response:
    """All that is known about one Payment, and what can be done with it now."""
    id = call.path["paymentId"]
    details = call.resources.payments.read(id)
    received = call.resources.payments.list_receipts(id, limit=_MAX_RECEIPTS)
    payment = details.payment
    return render_page(
        call,
        "payment.html",
        section="payments",
        payment=payment,
        network_words=NETWORK_WORDS.get(service.find_network_kind(payment.chain_id)),
        methods=METHOD_WORDS,
        details=details,
        payment_url=call.resources.payments.build_url(payment),
        timeline=list_timeline(payment),
        receipts=received.receipts.records,
        has_more_receipts=received.receipts.next is not None,
        entries=received.entries,
        balances=_list_balances(payment, received.entries),
        events=_find_events(service, call, payment),
        refund=_plan_refund(service, call, id),
        actions=[
            (action, ACTION_WORDS[action])
            for action in call.resources.payments.list_allowed_actions(id)
            if action != "return_misdirected"  # its button is beside its receipt
        ],
        may_cancel=may_cancel(payment),
        has_ended=payment.status in _ENDED
        and not any(refund.status not in ("succeeded", "failed") for refund in details.refunds),
    )


def _read_page(
    call: PageCall, filters: Mapping[str, str], after: Position | None, limit: int
) -> Page[Payment]:
    search = filters.get("search")
    is_account = search is not None and is_identifier(search, "acct")
    created_after, created_before = read_days(filters)
    return call.resources.payments.list_briefly(
        account_id=search if is_account else None,
        reference=None if is_account else search,
        status=filters.get("status"),
        intent=find_choice(INTENTS, filters.get("intent")),
        created_after=created_after,
        created_before=created_before,
        after=after,
        limit=limit,
    )


def _list_balances(payment: Payment, entries: Sequence[JournalEntry]) -> list[tuple[str, int]]:
    """The accounts with postings, and always the escrow."""
    posted = {"escrow"}.union(*(entry.postings for entry in entries))
    balances = [(name, getattr(payment.books, name)) for name in JOURNAL_ACCOUNTS]
    return [(name, balance) for name, balance in balances if balance or name in posted]


def _find_events(
    service: PaymentsService, call: PageCall, payment: Payment
) -> PaymentEvents | None:
    """Find the Payment's events; None if the environment does not have that product."""
    if "webhooks" not in call.authority.environment.products:
        return None
    return call.resources.events.list_of_payment(payment)


def _plan_refund(service: PaymentsService, call: PageCall, payment_id: str) -> PlannedRefund | None:
    """The refund of all that can be refunded to its senders; None if there is none."""
    try:
        return call.resources.payments.plan_refund(payment_id, NewRefund())
    except PaymentsError:
        return None


def list_timeline(payment: Payment) -> list[tuple[TimelineEntry, str | None]]:
    """The timeline, newest first, each entry with the note of the decision that led to it."""
    shown = zip(payment.timeline, with_notes(payment), strict=True)
    return [
        (entry, noted.reason if noted.reason != entry.reason else None) for entry, noted in shown
    ][::-1]


def may_cancel(payment: Payment) -> bool:
    """Whether the Payment can be cancelled as it is now."""
    try:
        lifecycle.cancel(payment, now=payment.updated_at_ms)
    except PaymentsError:
        return False
    return True


PAYMENT_COLUMNS: Mapping[str, Callable[[Payment], Cell]] = {
    "id": lambda one: one.id,
    "intent": lambda one: one.intent,
    "status": lambda one: one.status,
    "labels": lambda one: " ".join(one.labels),
    "amount": lambda one: format_amount(one.amount_atomic, one.decimals),
    "assetSymbol": lambda one: one.asset_symbol,
    "chainId": lambda one: one.chain_id,
    "received": lambda one: format_amount(one.received_atomic, one.decimals),
    "refunded": lambda one: format_amount(one.refunded_atomic, one.decimals),
    "fee": lambda one: format_amount(one.fee_atomic, one.decimals),
    "reference": lambda one: one.reference,
    "description": lambda one: one.description,
    "accountId": lambda one: one.account_id,
    "externalUserId": lambda one: one.external_user_id,
    "recipientAddress": lambda one: one.destination.address,
    "releaseHash": lambda one: one.release_hash,
    "createdAt": lambda one: iso(one.created_at_ms),
    "succeededAt": lambda one: iso(one.succeeded_at_ms),
    "expiresAt": lambda one: iso(one.expires_at_ms),
}

_PAYMENTS: Export[Payment] = Export("payments", _FILTERS, _read_page, PAYMENT_COLUMNS)
