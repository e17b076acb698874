"""Records as they might be, for tests of the pure functions over them."""

from __future__ import annotations

from typing import Any

from payments_core.assets import asset_of
from payments_core.funding.record import FundingOperation
from payments_core.options.record import Option
from payments_core.payments.record import Destination, Payment
from payments_core.vaults.record import VaultBalance

NOW = 1_790_000_000_000
USDC = asset_of(8453, "USDC")


def a_payment(**given: Any) -> Payment:
    facts: dict[str, Any] = {
        "id": "payment_1",
        "status": "awaiting_payment",
        "status_version": 1,
        "account_id": "acct_1",
        "external_user_id": "user-1",
        "chain_id": 8453,
        "asset_symbol": "USDC",
        "amount": 1_000,
        "destination": Destination(type="account", address="0x1", account_id="acct_1"),
        "escrow_address": "0x2",
        "allowed_methods": ("vault",),
        "session_id": "ses_1",
        "api_version": "2026-09-09",
        "link_code": "sealed",
        "expires_at": NOW + 1_000,
        "monitoring_expires_at": NOW + 2_000,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Payment(**{**facts, **given})


def an_option(**given: Any) -> Option:
    facts: dict[str, Any] = {
        "id": "pay_option_1",
        "payment_id": "payment_1",
        "status": "pending",
        "selection_status": "selected",
        "payer_account_id": "acct_2",
        "vault_id": "vault_1",
        "vault_address": "0x3",
        "funding_operation_id": "pay_funding_1",
        "chain_id": 8453,
        "asset_symbol": "USDC",
        "required": 1_000,
        "action_id": "action_1",
        "action_expires_at": NOW + 300_000,
        "expires_at": NOW + 3_600_000,
        "created_at": NOW,
        "updated_at": NOW,
    }
    return Option(**{**facts, **given})


def an_operation(**given: Any) -> FundingOperation:
    facts: dict[str, Any] = {
        "id": "pay_funding_1",
        "payment_id": "payment_1",
        "option_id": "pay_option_1",
        "vault_id": "vault_1",
        "status": "awaiting_authorization",
        "status_version": 1,
        "amount": 1_000,
        "chain_id": 8453,
        "asset_symbol": "USDC",
        "created_at": NOW,
        "updated_at": NOW,
    }
    return FundingOperation(**{**facts, **given})


def a_balance(**given: Any) -> VaultBalance:
    return VaultBalance(**{"id": "vault_1/USDC", "asset_id": USDC.id, **given})
