"""The whole of v2: one row per route, by resource."""

from __future__ import annotations

from payments_core_http.routing import Route
from payments_core_http.v2.routes.accounts import ACCOUNTS
from payments_core_http.v2.routes.client import PAYER
from payments_core_http.v2.routes.console import CONSOLE
from payments_core_http.v2.routes.partners import CLIENT_SESSIONS, PARTNERS
from payments_core_http.v2.routes.payments import PAYMENTS
from payments_core_http.v2.routes.sandbox import SANDBOX

ROUTES: tuple[Route, ...] = (
    *PARTNERS, *CLIENT_SESSIONS, *ACCOUNTS, *PAYMENTS, *PAYER, *CONSOLE, *SANDBOX,
)  # fmt: skip
