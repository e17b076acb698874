"""Webhooks: endpoints, signed deliveries, the address rules, and the receiver's side.

A receiver imports `verify` and `process_once`. They are loaded when first used, so that
a receiver does not pay for the service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from payments_core.webhooks.received import ReceivedEvent
    from payments_core.webhooks.receiver import WebhookRefused, process_once, verify

__all__ = ["ReceivedEvent", "WebhookRefused", "process_once", "verify"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from payments_core.webhooks import receiver

    return getattr(receiver, name)
