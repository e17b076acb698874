"""Rows of chains and balances."""

from __future__ import annotations

from payments_core import errors
from payments_core_http.routing import Route
from payments_core_http.v1.chains import bodies, views
from payments_core_http.v1.chains import handlers as chains
from payments_core_http.v1.requirements import ACCOUNTS_KEY, ANYBODY

LEGACY_CHAINS = (
    Route(
        "GET", "/sdk/v1/supported-chains", chains.list_chains, needs=None,
        response=views.SupportedChainsResponse, operation="listLegacyChains",
        summary="List the chains and their tokens.",
    ),
    Route(
        "POST", "/sdk/v1/get-balance", chains.read_balance, needs=ACCOUNTS_KEY,
        body=bodies.ReadBalance, idempotency="ignored",
        errors=(errors.NotFound, errors.CapabilityNotActive, errors.DependencyFailed),
        response=views.AddressBalanceResponse, operation="readLegacyBalance",
        summary="Read the USDC balance of an account's vault, or of any address.",
    ),
    Route(
        "GET", "/sdk/v1/get-balances", chains.read_balances, needs=ANYBODY,
        credential="basic_app_id", query=bodies.ReadBalances, policy="legacy_chain_reads",
        errors=(errors.CapabilityNotActive, errors.DependencyFailed),
        response=views.AddressHoldingsResponse, operation="readLegacyBalances",
        summary="Read an address's balances on every chain of its type, valued in US dollars.",
    ),
)  # fmt: skip
