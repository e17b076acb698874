"""The whole of v2: one row per route, by resource."""

from __future__ import annotations

from payments_core_http.routing import Route
from payments_core_http.v2.accounts.routes import ACCOUNTS
from payments_core_http.v2.audit.routes import AUDIT
from payments_core_http.v2.bank_accounts.routes import BANK_ACCOUNTS
from payments_core_http.v2.client.routes import OWN
from payments_core_http.v2.client_sessions.routes import CLIENT_SESSIONS
from payments_core_http.v2.deposits.routes import DEPOSITS
from payments_core_http.v2.disputes.routes import SESSIONS
from payments_core_http.v2.onramps.routes import ONRAMPS
from payments_core_http.v2.options.routes import PAYER
from payments_core_http.v2.partners import PARTNERS
from payments_core_http.v2.payment_settings.routes import PAYMENT_SETTINGS
from payments_core_http.v2.payments.routes import PAYMENTS
from payments_core_http.v2.public.routes import CHECKOUT
from payments_core_http.v2.public_creation import PUBLIC_CREATION
from payments_core_http.v2.reports.routes import REPORTS
from payments_core_http.v2.requests.routes import REQUESTS
from payments_core_http.v2.sandbox.routes import SANDBOX
from payments_core_http.v2.vaults.routes import VAULTS
from payments_core_http.v2.verifications.routes import VERIFICATIONS
from payments_core_http.v2.wallets.routes import WALLETS
from payments_core_http.v2.webhooks.routes import CONSOLE

ROUTES: tuple[Route, ...] = (
    *PARTNERS, *PAYMENT_SETTINGS, *CLIENT_SESSIONS, *ACCOUNTS, *WALLETS, *VERIFICATIONS,
    *BANK_ACCOUNTS, *ONRAMPS, *VAULTS, *DEPOSITS, *PAYMENTS, *SESSIONS, *OWN, *PAYER,
    *PUBLIC_CREATION, *CHECKOUT, *CONSOLE, *REQUESTS, *AUDIT, *REPORTS,
    *SANDBOX,
)  # fmt: skip
