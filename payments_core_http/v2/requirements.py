"""What several routes of v2 share: the credentials they accept, and the errors of spending."""

from __future__ import annotations

from payments_core import errors
from payments_core.tenants.authorization import Requirement

ANY_KEY = Requirement("server")
STANDARD_KEY = Requirement("server", standard_only=True)
ACCOUNTS_KEY = Requirement("server", scopes=("v2:accounts",))
PAYOUTS_KEY = Requirement("server", scopes=("v2:accounts",), products=("bank_payouts",))
FUNDING_KEY = Requirement("server", scopes=("v2:accounts",), products=("bank_funding",))
KYC_KEY = Requirement("server", scopes=("v2:kyc",))
PAYMENTS_KEY = Requirement("server", scopes=("v2:payments",))
CONSOLE_KEY = Requirement("server", scopes=("v2:webhooks", "v2:console"))
ACCOUNT_READS = Requirement("client", permissions=("account:read",))
RECIPIENT_READS = Requirement("client", permissions=("payments:read",))
RECIPIENT_WRITES = Requirement("client", permissions=("payments:write",))
PAYER_READS = Requirement("client", permissions=("payments:read",))
PAYER_WRITES = Requirement("client", permissions=("vault_payments:write",))

VAULT_SPENDING = (
    errors.PolicyInactive, errors.PolicyDenied, errors.InsufficientBalance,
    errors.DependencyFailed,
)  # fmt: skip
