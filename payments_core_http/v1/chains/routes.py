"""Rows of chains and balances."""

from __future__ import annotations

from payments_core import errors
from payments_core_http.routing import Route
from payments_core_http.v1.chains import bodies, views
from payments_core_http.v1.chains import handlers as chains
from payments_core_http.v1.requirements import ACCOUNTS_KEY

LEGACY_CHAINS = (
    Route(
        "GET", "/sdk/v1/supported-chains", chains.list_chains, needs=None,
        answers=views.SupportedChainsAnswer, operation="listLegacyChains",
        summary="List the chains and their tokens.",
    ),
    Route(
        "POST", "/sdk/v1/get-balance", chains.read_balance, needs=ACCOUNTS_KEY,
        body=bodies.ReadBalance, idempotency="ignored",
        errors=(errors.NotFound, errors.CapabilityNotActive, errors.DependencyFailed),
        answers=views.AddressBalanceAnswer, operation="readLegacyBalance",
        summary="What an account's vault, or any address, holds of USDC.",
    ),
)  # fmt: skip
