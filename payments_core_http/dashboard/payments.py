"""Payments: the list, and the history of one Payment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from payments_core.clock import parse_iso, to_datetime
from payments_core.engine.idempotency.record import Response
from payments_core.engine.identifiers import is_identifier
from payments_core.errors import PaymentsError, ValidationFailed
from payments_core.payments import lifecycle
from payments_core.payments.journal.record import JOURNAL_ACCOUNTS, JournalEntry
from payments_core.payments.record import Payment
from payments_core.payments.refunding.operations import NewRefund, PlannedRefund
from payments_core.payments.timeline import with_notes
from payments_core.payments.transitions import PAYMENT
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.rendering import (
    PAGE_SIZE,
    List,
    redirect,
    render_page,
)
from payments_core_http.dashboard.words import ACTION_WORDS, NETWORK_WORDS

if TYPE_CHECKING:
    from payments_core.service import PaymentsService
    from payments_core.webhooks.dispatch.replay import PaymentEvents

STATUSES = tuple(sorted(PAYMENT.states))
INTENTS = ("receive", "send", "collect")
_FILTERS = ("search", "status", "intent", "from", "to")
_MAX_RECEIPTS = 100

_ENDED = ("succeeded", "partially_refunded", "refunded", "expired", "cancelled", "failed")
"""The statuses in which nothing is under way, except a refund."""


def list_payments(service: PaymentsService, call: PageCall) -> Response:
    """The Payments under the filters, newest first."""
    filters = {name: text for name in _FILTERS if (text := call.query.get(name, "").strip())}
    search = filters.get("search", "")
    if is_identifier(search, "payment"):
        return redirect(call, f"/dashboard/payments/{search}")
    listed = List(call, filters)
    page = call.resources.payments.list_briefly(
        account_id=search if is_identifier(search, "acct") else None,
        **_read_filters(filters),
        after=listed.position,
        limit=PAGE_SIZE,
    )
    return render_page(
        call,
        "payments.html",
        section="payments",
        payments=page.records,
        filters={name: filters.get(name, "") for name in _FILTERS},
        is_filtered=bool(filters),
        is_first=listed.is_first,
        next_page=listed.build_next(page.next),
        choices=STATUSES,
        intents=INTENTS,
    )


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
        details=details,
        payment_url=call.resources.payments.build_url(payment),
        timeline=tuple(reversed(with_notes(payment))),
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


def _read_filters(filters: Mapping[str, str]) -> Mapping[str, Any]:
    """The filters of the list of Payments; what the form does not offer is left out."""
    search, last = filters.get("search", ""), _parse_day(filters, "to")
    choices = {"status": STATUSES, "intent": INTENTS}
    return {
        **{name: filters[name] for name, known in choices.items() if filters.get(name) in known},
        "reference": None if not search or is_identifier(search, "acct") else search,
        "created_after": _parse_day(filters, "from"),
        "created_before": None if last is None else last + timedelta(days=1),
    }


def _parse_day(filters: Mapping[str, str], name: str) -> datetime | None:
    """The start of a day in UTC. Raises ValidationFailed."""
    if name not in filters:
        return None
    try:
        return to_datetime(parse_iso(f"{filters[name]}T00:00:00Z"))
    except (ValueError, OverflowError):
        raise ValidationFailed.at(name, "must be a day such as 2026-09-21") from None


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


def may_cancel(payment: Payment) -> bool:
    """Whether the Payment can be cancelled as it is now."""
    try:
        lifecycle.cancel(payment, now=payment.updated_at_ms)
    except PaymentsError:
        return False
    return True
