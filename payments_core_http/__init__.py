"""The WSGI application over `payments_core`: it translates, and decides nothing about money.

`create_app` is loaded on first use, so that `--help` on the command line does not pay for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from payments_core_http.app import create_app

__all__ = ["create_app"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from payments_core.extras import naming_extra, require_packages

    with naming_extra("payments_core_http.create_app"):
        # These are imported only for the first page; a payer should not be the one to find out.
        require_packages("payments_core_http.create_app", "jinja2", "segno", "babel", "pyotp")
        from payments_core_http import app

    return getattr(app, name)
