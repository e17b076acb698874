"""Opens a limiter by its URL."""

from __future__ import annotations

from payments_core.adapters import Opener
from payments_core.limiters.port import Limiter

open_limiter = Opener[Limiter]("payments_core.limiters", Limiter, "limiter")
"""`memory:`, or a Redis such as `redis://localhost/0`."""
