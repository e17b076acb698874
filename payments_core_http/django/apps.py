"""The application, as `INSTALLED_APPS` finds it."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules

EVENTS_MODULE = "payment_events"
"""The module of an application with its handlers of events; each is imported at the start."""


class PaymentsConfig(AppConfig):
    """Registers the system checks, and imports the handlers of events. It opens nothing."""

    name = "payments_core_http.django"
    label = "payments_core"
    verbose_name = "Payments"

    def ready(self) -> None:
        """Called by Django once all models are loaded."""
        from payments_core_http.django import checks

        checks.register_all()
        autodiscover_modules(EVENTS_MODULE)
