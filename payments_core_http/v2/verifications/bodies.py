"""Verifications."""

from __future__ import annotations

import attrs

from payments_core.validation.fields import Url


@attrs.frozen(kw_only=True)
class StartVerification:
    """Where the provider sends the user in the end."""

    returnUrl: Url | None = None
