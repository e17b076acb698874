"""The operator's own access: the second factor, recovery codes, the history of log-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core.tenants.operator_sessions import LOG_IN
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.rendering import redirect, render_page, run_form
from payments_core_http.pages.qr_codes import render_qr_code

if TYPE_CHECKING:
    from payments_core.service import PaymentsService
    from payments_core.tenants.second_factor import RecoveryCodes

PAGE = "/dashboard/security"
_LOG_INS = 20


def show(service: PaymentsService, call: PageCall) -> Response:
    """Whether there is a second factor, how to set one up, and the newest log-ins."""
    factor = service.parts.second_factors.read(call.authority)
    log_ins = call.resources.audit.list(operation=LOG_IN, limit=_LOG_INS)
    return render_page(
        call,
        "security.html",
        section="security",
        factor=factor,
        qr_code=None if factor.enrolment is None else render_qr_code(factor.enrolment.uri),
        log_ins=log_ins.records,
    )


def begin(service: PaymentsService, call: PageCall) -> Response:
    """A new secret for an app, which the page then shows until it is confirmed."""
    service.parts.second_factors.begin(call.authority, call.body.get("password", ""))
    return redirect(call, PAGE)


def confirm(service: PaymentsService, call: PageCall) -> Response:
    """The recovery codes, on the one page that shows them."""
    factors, code = service.parts.second_factors, call.body.get("code", "")
    return run_form(
        call,
        lambda key: factors.confirm(call.authority, code, idempotency_key=key),
        lambda codes: _show_codes(call, codes),
    )


def renew(service: PaymentsService, call: PageCall) -> Response:
    """New recovery codes."""
    factors, code = service.parts.second_factors, call.body.get("code", "")
    return run_form(
        call,
        lambda key: factors.renew_recovery_codes(call.authority, code, idempotency_key=key),
        lambda codes: _show_codes(call, codes),
    )


def turn_off(service: PaymentsService, call: PageCall) -> Response:
    """No second factor any more."""
    factors, code = service.parts.second_factors, call.body.get("code", "")
    return run_form(
        call,
        lambda key: factors.turn_off(call.authority, code, idempotency_key=key),
        lambda _: redirect(call, PAGE, "second_factor_off"),
    )


def _show_codes(call: PageCall, codes: RecoveryCodes) -> Response:
    return render_page(call, "recovery_codes.html", section="security", codes=codes.codes)
