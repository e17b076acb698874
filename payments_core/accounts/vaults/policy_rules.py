"""The rules of a vault's policy: chains, assets, destinations and limits. Pure."""

from __future__ import annotations

import attrs

from payments_core.accounts.vaults.record import AllowedDestination, Policy
from payments_core.errors import PolicyDenied, PolicyInactive
from payments_core.money import parse_amount
from payments_core.networks import Asset

LIMIT_DECIMALS = 6
"""The maximum number of decimals of a policy's limits, for any asset."""


@attrs.frozen
class Spend:
    """An amount about to leave a vault, and its final recipient: not the escrow on the way."""

    asset: Asset
    amount_atomic: int
    address: str
    account_id: str | None


def require_policy_allows(policy: Policy, spend: Spend, *, daily_spend: int) -> None:
    """Return if the policy lets the amount leave the vault.

    `daily_spend` is today's counted total, without this amount. Raises
    PolicyInactive, then PolicyDenied, which names the first rule that forbids it.
    """
    require_payee_allowed(policy, None)
    asset = spend.asset
    if policy.allowed_chains is not None and asset.chain_id not in policy.allowed_chains:
        raise PolicyDenied("allowedChains")
    if policy.allowed_assets is not None and asset.symbol not in policy.allowed_assets:
        raise PolicyDenied("allowedAssets")
    require_payee_allowed(policy, spend)
    if _exceeds_limit(policy.per_payment_limit, spend.amount_atomic, asset):
        raise PolicyDenied("perPaymentLimit")
    if _exceeds_limit(policy.daily_limit, daily_spend + spend.amount_atomic, asset):
        raise PolicyDenied("dailyLimit")


def require_payee_allowed(policy: Policy, spend: Spend | None) -> None:
    """Return if the policy is active and, if a spend is given, lets its recipient be paid.

    Raises PolicyInactive, PolicyDenied.
    """
    if policy.status != "active":
        raise PolicyInactive()
    allowed = policy.allowed_destinations
    if spend is None or allowed is None:
        return
    if not any(_is_payee(item, spend) for item in allowed):
        raise PolicyDenied("allowedDestinations")


def _exceeds_limit(limit: str | None, amount: int, asset: Asset) -> bool:
    """Whether an amount passes a limit, compared exactly for any number of decimals."""
    if limit is None:
        return False
    most: int = parse_amount(limit, LIMIT_DECIMALS) * 10**asset.decimals
    wanted: int = amount * 10**LIMIT_DECIMALS
    return wanted > most


def _is_payee(allowed: AllowedDestination, spend: Spend) -> bool:
    if allowed.type == "account":
        return allowed.account_id is not None and allowed.account_id == spend.account_id
    on_chain = allowed.chain_id in (None, spend.asset.chain_id)
    return on_chain and allowed.address == spend.address
