"""Each form of the dashboard carries out an operation that leaves an entry in the audit trail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from payments_core import resources
from payments_core.operation import OpenResource
from payments_core.tenants.operator_sessions import LOG_IN, LOG_OUT
from payments_core_http.dashboard.routes import ROUTES

FORMS: Mapping[str, str] = {
    "/login": LOG_IN,
    "/logout": LOG_OUT,
    "/payments/{paymentId}/refund": "payments.refund",
    "/payments/{paymentId}/reconcile": "payments.reconcile",
    "/payments/{paymentId}/cancel": "payments.cancel",
    "/links/new": "payments.receive",
    "/verifications/{verificationId}": "verifications.decide",
    "/screening/{heldTransferId}": "screening.decide",
    "/webhooks/new": "webhooks.create",
    "/webhooks/{webhookId}/change": "webhooks.change",
    "/webhooks/{webhookId}/status": "webhooks.change",
    "/webhooks/{webhookId}/test": "webhooks.test",
    "/webhooks/{webhookId}/rotate": "webhooks.rotate_secret",
    "/webhooks/{webhookId}/recover": "webhooks.recover",
    "/webhooks/{webhookId}/deliveries/{deliveryId}/retry": "webhooks.retry_delivery",
    "/events/{eventId}/resend": "events.resend",
    "/settings": "payment_settings.replace",
    "/keys/new": "keys.create",
    "/keys/{keyId}/revoke": "keys.revoke",
    "/security/begin": "second_factor.begin",
    "/security/confirm": "second_factor.confirm",
    "/security/recovery-codes": "second_factor.renew_recovery_codes",
    "/security/turn-off": "second_factor.turn_off",
}
"""The operation of each form, whose entry the tests of its page or of the operation see."""

OF_OPERATORS = (LOG_IN, LOG_OUT, "second_factor.")
"""The operations that are no resource's: test_security_pages.py sees their entries."""


def list_traced() -> Iterator[str]:
    """The operations of resources that leave an entry."""
    for kind in vars(resources).values():
        if isinstance(kind, type) and issubclass(kind, OpenResource):
            found = (getattr(one, "traced_as", None) for one in vars(kind).values())
            yield from filter(None, found)


def test_every_form_has_an_operation_with_an_entry() -> None:
    forms = [row.path.removeprefix("/dashboard") for row in ROUTES if row.method != "GET"]
    assert sorted(forms) == sorted(FORMS)
    named = {operation for operation in FORMS.values() if not operation.startswith(OF_OPERATORS)}
    assert named - set(list_traced()) == set()
