"""The service inside a Django project: an application for `INSTALLED_APPS`.

Its settings are those of a deployment, by the names of their environment variables. Nothing is
loaded before it is used, and nothing is opened before the first call, so a fork is safe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from payments_core_http.django.admin import payment_link
    from payments_core_http.django.events import on_event
    from payments_core_http.django.process import get_resources, get_service

__all__ = ["get_resources", "get_service", "on_event", "payment_link"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from payments_core.extras import naming_extra

    with naming_extra(f"payments_core_http.django.{name}"):
        from payments_core_http.django import admin, events, process

    home = {"on_event": events, "payment_link": admin}.get(name, process)
    return getattr(home, name)
