"""Verifications."""

from __future__ import annotations

from payments_core.validation.fields import Url
from payments_core_http.wire.classes import frozen_body


@frozen_body
class StartVerification:
    """Where the provider sends the user afterwards."""

    returnUrl: Url | None = None
