"""What your own tests use: a sandbox in process, its events, Payments in every state.

The pytest plugin in `plugin.py` makes fixtures of it; it needs the extras `client` and `server`.
Nothing is loaded before it is used, since pytest loads the plugin in each of its runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from payments_core_http.testing.events import CapturedEvents
    from payments_core_http.testing.sandbox import PaymentsSandbox, SandboxTime, open_sandbox

__all__ = ["CapturedEvents", "PaymentsSandbox", "SandboxTime", "open_sandbox"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from payments_core.extras import naming_extra

    with naming_extra("payments_core_http.testing"):
        from payments_core_http.testing import events, sandbox

    return getattr(events if name == "CapturedEvents" else sandbox, name)
