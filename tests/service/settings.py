"""Payment settings, set in a line."""

from __future__ import annotations

from typing import Any

from payments_core.payment_settings.record import PaymentSettings, PaymentTerms
from tests.service.world import World

POLYGON = 137


def put(world: World, *, settings_version: int | None = None, **terms: Any) -> PaymentSettings:
    return world.resources.payment_settings.replace(
        PaymentTerms(**terms), settings_version=settings_version
    )
