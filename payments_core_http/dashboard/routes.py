"""The rows of the dashboard.

Each is the same operation that the API has, with the same checks; a form is checked to be this
browser's own before anything else of it is read (`payments_core_http/formats.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from payments_core import errors
from payments_core.engine.idempotency.record import Response
from payments_core.errors import PaymentsError
from payments_core.tenants.authorization import Requirement
from payments_core_http.dashboard.navigation import (
    ACCOUNTS,
    ANY,
    DEPOSITS,
    PAYMENTS,
    VERIFICATIONS,
    WEBHOOKS,
)
from payments_core_http.errors import FormRefused
from payments_core_http.routing import Method, PageRoute, Row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from payments_core.service import PaymentsService


def _handle(name: str) -> Callable[[PaymentsService, Any], Response]:
    """A handler by its module and name. Templates load with the first page: a start is fast."""
    module, _, function = name.partition(".")

    def handle(service: PaymentsService, call: Any) -> Response:
        found = getattr(import_module(f"{__package__}.{module}"), function)
        answer: Response = found(service, call)
        return answer

    return handle


def _show_error(error: PaymentsError, request_id: str, environ: Mapping[str, Any]) -> Response:
    from payments_core_http.dashboard.rendering import show_error

    return show_error(error, request_id, environ)


def _complete(answer: Response, path: str, public_url: str) -> Response:
    from payments_core_http.dashboard.rendering import complete

    return complete(answer, path, public_url)


def _export(path: str, handler: str, needs: Requirement, what: str) -> PageRoute:
    """The file of the list at a path."""
    return _page(
        "GET", f"{path}/export", handler, needs, f"{what} as CSV.", policy="operator_export"
    )


def _page(
    method: Method, path: str, handler: str, needs: Requirement | None, summary: str, **more: Any
) -> PageRoute:
    own_errors = (errors.NotFound,) if "{" in path else ()
    return PageRoute(
        method,
        f"/dashboard{path}",
        _handle(handler),
        needs=needs,
        summary=summary,
        errors=own_errors if method == "GET" else (*own_errors, FormRefused),
        render_error=_show_error,
        complete=_complete,
        **{"policy": None if needs is None else "operator_minute", **more},
    )


_ACCOUNT = "/accounts/{accountId}"
_PAYMENT = "/payments/{paymentId}"
_WEBHOOK = "/webhooks/{webhookId}"
_DELIVERY = f"{_WEBHOOK}/deliveries/{{deliveryId}}"

ROUTES: tuple[Row, ...] = (
    _page("GET", "", "logins.show_home", ANY, "Lead to the inbox."),
    _page("GET", "/login", "logins.show_login", None, "Show the log-in."),
    _page(
        "POST", "/login", "logins.log_in", None, "Log in.",
        policy="operator_login", name_policy="operator_name",
    ),
    _page("POST", "/logout", "logins.log_out", ANY, "Log out.", has_key=False),
    _page("GET", "/inbox", "inbox.show_inbox", ANY, "List what waits for a person."),
    _page("GET", "/search", "search.search", ANY, "Find what a text names."),
    _page("GET", "/payments", "payments.list_payments", PAYMENTS, "List the Payments."),
    _export("/payments", "payments.export_payments", PAYMENTS, "Export the Payments"),
    _page("GET", _PAYMENT, "payments.show_payment", PAYMENTS, "Show one Payment's history."),
    _page("GET", f"{_PAYMENT}/refund", "decisions.show_refund", PAYMENTS, "Review a refund."),
    _page("POST", f"{_PAYMENT}/refund", "decisions.refund", PAYMENTS, "Refund."),
    _page(
        "GET", f"{_PAYMENT}/reconcile", "decisions.show_reconcile", PAYMENTS,
        "Review a decision.",
    ),
    _page("POST", f"{_PAYMENT}/reconcile", "decisions.reconcile", PAYMENTS, "Reconcile."),
    _page("GET", f"{_PAYMENT}/cancel", "decisions.show_cancel", PAYMENTS, "Review the end."),
    _page("POST", f"{_PAYMENT}/cancel", "decisions.cancel", PAYMENTS, "Cancel."),
    _page("GET", "/links", "links.list_links", PAYMENTS, "List the payment links."),
    _export("/links", "links.export_links", PAYMENTS, "Export the payment links"),
    _page("GET", "/links/new", "links.show_new", PAYMENTS, "Prepare a payment link."),
    _page("POST", "/links/new", "links.create", PAYMENTS, "Make a payment link."),
    _page("GET", "/links/{paymentId}", "links.show_link", PAYMENTS, "Show a payment link."),
    _page("GET", "/accounts", "accounts.list_accounts", ACCOUNTS, "List the accounts."),
    _export("/accounts", "accounts.export_accounts", ACCOUNTS, "Export the accounts"),
    _page("GET", _ACCOUNT, "accounts.show_account", ACCOUNTS, "Show an account."),
    _page("GET", f"{_ACCOUNT}/deposits", "accounts.list_deposits", DEPOSITS, "List its deposits."),
    _export(f"{_ACCOUNT}/deposits", "accounts.export_deposits", DEPOSITS, "Export its deposits"),
    _page("GET", "/payouts", "payouts.list_payouts", PAYMENTS, "List the payouts."),
    _export("/payouts", "payouts.export_payouts", PAYMENTS, "Export the payouts"),
    _page("GET", "/payouts/{paymentId}", "payouts.show_payout", PAYMENTS, "Show a payout."),
    _page("GET", "/onramps", "onramps.list_incoming", ACCOUNTS, "List transfers to on-ramps."),
    _export("/onramps", "onramps.export_incoming", ACCOUNTS, "Export transfers to on-ramps"),
    _page(
        "GET", "/onramps/{bankTransactionId}", "onramps.show_incoming", ACCOUNTS,
        "Show a transfer to an on-ramp.",
    ),
    _page("GET", "/activity", "activity.show_activity", PAYMENTS, "Show the volume."),
    _page(
        "GET", "/verifications", "verifications.list_pending", VERIFICATIONS,
        "List the verifications that wait.",
    ),
    _page(
        "GET", "/verifications/{verificationId}", "verifications.show_decision", VERIFICATIONS,
        "Review a verification.",
    ),
    _page(
        "POST", "/verifications/{verificationId}", "verifications.decide", VERIFICATIONS,
        "Decide a verification.",
    ),
    _page("GET", "/screening", "screening.list_held", PAYMENTS, "List what screening holds."),
    _page(
        "GET", "/screening/{heldTransferId}", "screening.show_decision", PAYMENTS,
        "Review a held transfer.",
    ),
    _page(
        "POST", "/screening/{heldTransferId}", "screening.decide", PAYMENTS,
        "Decide a held transfer.",
    ),
    _page("GET", "/webhooks", "webhooks.list_endpoints", WEBHOOKS, "List the endpoints."),
    _page("GET", "/webhooks/new", "endpoints.show_new", WEBHOOKS, "Prepare an endpoint."),
    _page("POST", "/webhooks/new", "endpoints.create", WEBHOOKS, "Add an endpoint."),
    _page("GET", f"{_WEBHOOK}/change", "endpoints.show_change", WEBHOOKS, "Edit an endpoint."),
    _page("POST", f"{_WEBHOOK}/change", "endpoints.change", WEBHOOKS, "Change an endpoint."),
    _page("GET", f"{_WEBHOOK}/status", "endpoints.show_status", WEBHOOKS, "Review a status."),
    _page("POST", f"{_WEBHOOK}/status", "endpoints.change_status", WEBHOOKS, "Set a status."),
    _page("GET", _WEBHOOK, "webhooks.show_endpoint", WEBHOOKS, "Show an endpoint."),
    _export(f"{_WEBHOOK}", "webhooks.export_deliveries", WEBHOOKS, "Export its deliveries"),
    _page("GET", f"{_WEBHOOK}/health", "activity.show_health", WEBHOOKS, "Show its health."),
    _page("POST", f"{_WEBHOOK}/test", "webhooks.test", WEBHOOKS, "Send a test event."),
    _page("GET", f"{_WEBHOOK}/rotate", "webhooks.show_rotate", WEBHOOKS, "Review a rotation."),
    _page("POST", f"{_WEBHOOK}/rotate", "webhooks.rotate", WEBHOOKS, "Rotate the secret."),
    _page("GET", f"{_WEBHOOK}/recover", "webhooks.show_recover", WEBHOOKS, "Review a recovery."),
    _page("POST", f"{_WEBHOOK}/recover", "webhooks.recover", WEBHOOKS, "Recover."),
    _page("GET", _DELIVERY, "webhooks.show_delivery", WEBHOOKS, "Show a delivery."),
    _page("POST", f"{_DELIVERY}/retry", "webhooks.retry", WEBHOOKS, "Retry a delivery."),
    _page("GET", "/events", "events.list_events", WEBHOOKS, "List the events."),
    _export("/events", "events.export_events", WEBHOOKS, "Export the events"),
    _page("GET", "/events/{eventId}", "events.show_event", WEBHOOKS, "Show an event."),
    _page("POST", "/events/{eventId}/resend", "events.resend", WEBHOOKS, "Send an event again."),
    _page("GET", "/requests", "requests.list_requests", ANY, "List the API requests."),
    _export("/requests", "requests.export_requests", ANY, "Export the API requests"),
    _page("GET", "/requests/{requestId}", "requests.show_request", ANY, "Show an API request."),
    _page("GET", "/settings", "settings.show_settings", ANY, "Show the payment settings."),
    _page("POST", "/settings", "settings.replace", ANY, "Replace the payment settings."),
    _page("GET", "/keys", "keys.list_keys", ANY, "List the keys."),
    _page("GET", "/keys/new", "keys.show_new", ANY, "Prepare a restricted key."),
    _page("POST", "/keys/new", "keys.create", ANY, "Make a restricted key."),
    _page("GET", "/keys/{keyId}/revoke", "keys.show_revoke", ANY, "Review a revocation."),
    _page("POST", "/keys/{keyId}/revoke", "keys.revoke", ANY, "Revoke a restricted key."),
    _page("GET", "/audit", "audit.list_entries", ANY, "List who changed what."),
    _page("GET", "/security", "security.show", ANY, "Show the second factor and the log-ins."),
    _page(
        "POST", "/security/begin", "security.begin", ANY, "Set up a second factor.",
        has_key=False, policy="operator_login",
    ),
    _page("POST", "/security/confirm", "security.confirm", ANY, "Turn the second factor on."),
    _page(
        "POST", "/security/recovery-codes", "security.renew", ANY, "Make new recovery codes."
    ),
    _page("POST", "/security/turn-off", "security.turn_off", ANY, "Turn the second factor off."),
)  # fmt: skip
"""The dashboard's pages are not part of the API, so the OpenAPI document does not have them."""
