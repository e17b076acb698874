"""Verifications that wait, and an operator's decision of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from payments_core.accounts.verification.lifecycle import DECISIONS
from payments_core.accounts.verification.record import Verification
from payments_core.engine.idempotency.record import Response
from payments_core.storage.port import Page, Position
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.choices import require_choice
from payments_core_http.dashboard.lists import read_list
from payments_core_http.dashboard.rendering import redirect, render_page, run_form

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

_HOME = "/dashboard/verifications"


def list_pending(service: PaymentsService, call: PageCall) -> Response:
    """The verifications that wait for a decision, the oldest first."""
    listed = read_list(call, _read_pending)
    return render_page(call, "verifications.html", section="verifications", listed=listed)


def show_decision(service: PaymentsService, call: PageCall) -> Response:
    """The form of a decision."""
    verification = _find(call)
    account = call.resources.accounts.read(verification.account_id).account
    return render_page(
        call,
        "verification.html",
        section="verifications",
        verification=verification,
        account=account,
        is_newest=account.verification_id == verification.id,
    )


def decide(service: PaymentsService, call: PageCall) -> Response:
    """The decision, which stays."""
    verification, status = _find(call), require_choice(call.body, "status", DECISIONS)
    return run_form(
        call,
        lambda idempotent: call.resources.verifications.decide(
            verification.account_id,
            status,
            verification_id=verification.id,
            idempotency_key=idempotent,
        ),
        lambda _: redirect(call, _HOME, "decide"),
    )


def _read_pending(
    call: PageCall, filters: Mapping[str, str], after: Position | None, limit: int
) -> Page[Verification]:
    return call.resources.verifications.list_pending(after=after, limit=limit)


def _find(call: PageCall) -> Verification:
    return call.resources.verifications.read(call.path["verificationId"])
