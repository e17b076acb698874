"""Transfers that screening holds or has blocked, and an operator's decision of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from payments_core.engine.idempotency.record import Response
from payments_core.screening.judging import Decided
from payments_core.screening.record import HeldTransfer, HoldStatus
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.choices import require_choice
from payments_core_http.dashboard.lists import read_list
from payments_core_http.dashboard.rendering import redirect, render_page, run_form
from payments_core_http.dashboard.words import DIRECTION_WORDS, explain_hold

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

_HOME = "/dashboard/screening"
_PAYMENT_PREFIX = "payment_"
_STATUSES: tuple[HoldStatus, ...] = get_args(HoldStatus)
_DECISIONS: tuple[Decided, ...] = get_args(Decided)


def list_held(service: PaymentsService, call: PageCall) -> Response:
    """The transfers in review, or with `status` those that are blocked, the oldest first."""
    given = {"status": call.query.get("status") or _STATUSES[0]}
    status = require_choice(given, "status", _STATUSES)
    listed = read_list(
        call,
        lambda call, _, after, limit: call.resources.screening.list_held(
            status, after=after, limit=limit
        ),
        given={"status": status},
    )
    return render_page(
        call,
        "screening.html",
        section="screening",
        held_as=status,
        choices=_STATUSES,
        directions=DIRECTION_WORDS,
        explain=explain_hold,
        listed=listed,
    )


def show_decision(service: PaymentsService, call: PageCall) -> Response:
    """One held transfer, with the form of a decision."""
    held = _find(call)
    payment = None
    if held.resource.startswith(_PAYMENT_PREFIX):
        payment = call.resources.payments.read(held.resource).payment
    return render_page(
        call,
        "screening_decision.html",
        section="screening",
        held=held,
        payment=payment,
        directions=DIRECTION_WORDS,
        explain=explain_hold,
    )


def decide(service: PaymentsService, call: PageCall) -> Response:
    """The decision, with the operator's name. The job of the transfer follows it at once."""
    held_id, outcome = call.path["heldTransferId"], require_choice(call.body, "outcome", _DECISIONS)
    operator = call.caller.operator
    assert operator is not None, "a page of the dashboard has an operator"
    return run_form(
        call,
        lambda idempotent: call.resources.screening.decide(
            held_id, outcome, operator=operator.username, idempotency_key=idempotent
        ),
        lambda _: redirect(call, _HOME, "screen"),
    )


def _find(call: PageCall) -> HeldTransfer:
    return call.resources.screening.read_held(call.path["heldTransferId"])
