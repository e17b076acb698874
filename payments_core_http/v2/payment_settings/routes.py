"""Rows of the payment settings."""

from __future__ import annotations

from payments_core.errors import ResourceConflict
from payments_core_http.routing import Route
from payments_core_http.v2.payment_settings import bodies, views
from payments_core_http.v2.payment_settings import handlers as payment_settings
from payments_core_http.v2.requirements import STANDARD_KEY

PAYMENT_SETTINGS = (
    Route(
        "GET", "/v2/partners/payment-settings", payment_settings.read_payment_settings,
        needs=STANDARD_KEY, response=views.PaymentSettingsView,
        summary="Read the settings that apply to all Payments of the environment.",
    ),
    Route(
        "PUT", "/v2/partners/payment-settings", payment_settings.replace_payment_settings,
        needs=STANDARD_KEY, body=bodies.ReplacePaymentSettings, errors=(ResourceConflict,),
        response=views.PaymentSettingsView,
        summary="Replace all payment settings; existing Payments keep their settings.",
    ),
)  # fmt: skip
