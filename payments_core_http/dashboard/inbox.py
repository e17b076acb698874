"""The inbox, with which the dashboard begins: what waits for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.clock import Instant
from payments_core.engine.idempotency.record import Response
from payments_core.payments.record import Payment
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.rendering import render_page
from payments_core_http.dashboard.words import DIRECTION_WORDS, explain_attention, explain_hold

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def show_inbox(service: PaymentsService, call: PageCall) -> Response:
    """What waits, of each kind the oldest, with what happened, since when, and what to do."""
    waiting = call.resources.inbox.list()
    return render_page(
        call,
        "inbox.html",
        section="inbox",
        counts=waiting.counts,
        waiting=waiting,
        since=_find_since,
        explain_attention=explain_attention,
        directions=DIRECTION_WORDS,
        explain=explain_hold,
    )


def _find_since(payment: Payment) -> Instant:
    """When a Payment began to wait: with the first of the newest entries of its status."""
    since = payment.updated_at_ms
    for entry in reversed(payment.timeline):
        if entry.status != payment.status:
            break
        since = entry.at_ms
    return since
