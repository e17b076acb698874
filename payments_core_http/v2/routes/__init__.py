"""The whole of v2: one row per route, by resource."""

from __future__ import annotations

from payments_core_http.routing import Route
from payments_core_http.v2.routes.accounts import ACCOUNTS
from payments_core_http.v2.routes.client import OWN, PAYER
from payments_core_http.v2.routes.console import CONSOLE
from payments_core_http.v2.routes.deposits import DEPOSITS
from payments_core_http.v2.routes.disputes import SESSIONS
from payments_core_http.v2.routes.partners import CLIENT_SESSIONS, PARTNERS
from payments_core_http.v2.routes.payment_settings import PAYMENT_SETTINGS
from payments_core_http.v2.routes.payments import PAYMENTS
from payments_core_http.v2.routes.public import CHECKOUT
from payments_core_http.v2.routes.public_creation import PUBLIC_CREATION
from payments_core_http.v2.routes.sandbox import SANDBOX
from payments_core_http.v2.routes.vaults import VAULTS
from payments_core_http.v2.routes.verifications import VERIFICATIONS
from payments_core_http.v2.routes.wallets import WALLETS

ROUTES: tuple[Route, ...] = (
    *PARTNERS, *PAYMENT_SETTINGS, *CLIENT_SESSIONS, *ACCOUNTS, *WALLETS, *VERIFICATIONS, *VAULTS,
    *DEPOSITS, *PAYMENTS, *SESSIONS, *OWN, *PAYER, *PUBLIC_CREATION, *CHECKOUT, *CONSOLE,
    *SANDBOX,
)  # fmt: skip
