"""The whole of v1 that is served: one row per route, by resource."""

from __future__ import annotations

from payments_core_http.routing import Route
from payments_core_http.v1.accounts.routes import LEGACY_ACCOUNTS
from payments_core_http.v1.chains.routes import LEGACY_CHAINS
from payments_core_http.v1.quotes.routes import LEGACY_QUOTES
from payments_core_http.v1.role_modules.routes import LEGACY_ROLE_MODULES
from payments_core_http.v1.settlements.routes import LEGACY_SETTLEMENTS
from payments_core_http.v1.transactions.routes import LEGACY_TRANSACTIONS

ROUTES: tuple[Route, ...] = (
    *LEGACY_ACCOUNTS,
    *LEGACY_CHAINS,
    *LEGACY_QUOTES,
    *LEGACY_SETTLEMENTS,
    *LEGACY_TRANSACTIONS,
    *LEGACY_ROLE_MODULES,
)
