"""Which credentials the routes of v1 accept (interface "v1 credentials by route", contract §2).

With a secret it is a standard key; with the app id alone it is anyone. Each requires the product
`legacy_sdk`, and the product of what it touches: v1 gives access to nothing that is disabled.
"""

from __future__ import annotations

from payments_core.tenants.authorization import Requirement

ACCOUNTS_KEY = Requirement("server", products=("legacy_sdk", "accounts"), standard_only=True)
PAYMENTS_KEY = Requirement(
    "server", products=("legacy_sdk", "accounts", "payments"), standard_only=True
)
VAULTS_KEY = Requirement(
    "server", products=("legacy_sdk", "accounts", "vaults"), standard_only=True
)
ANYBODY = Requirement("public", products=("legacy_sdk", "accounts"))
ANYBODY_DEPOSITS = Requirement("public", products=("legacy_sdk", "deposit_addresses"))
ANYBODY_PAYMENTS = Requirement("public", products=("legacy_sdk", "payments"))
ANYBODY_VAULTS = Requirement("public", products=("legacy_sdk", "payments", "vaults"))
