"""The envelope of every success: `{success: true, data, message?, requestId}`.

A route's response is its own class that adds its `data`, and its `message` if it has one.
Errors have the form of `payments_core_http/errors.py: encode_flat_error`.
"""

from __future__ import annotations

from typing import Literal

from payments_core_http.wire.classes import frozen_view


@frozen_view
class Success:
    """What every success has."""

    success: Literal[True] = True
    requestId: str
