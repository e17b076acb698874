"""Wallets and their challenges as v2 returns them."""

from __future__ import annotations

from payments_core.accounts.record import Wallet, WalletChallenge
from payments_core.clock import format_iso, format_iso_or_none
from payments_core.networks import ChainType
from payments_core_http.wire.classes import frozen_view


@frozen_view
class WalletView:
    """A wallet address of an account.

    `verifiedChainIds` has the EVM chains on which the contract at the address has proven it, and is
    null for a wallet that is verified on every chain, or on none.
    """

    id: str
    walletId: str
    """The wallet's id."""
    accountId: str
    address: str
    chainType: ChainType
    label: str | None
    verified: bool
    """Whether a signature has proven who owns the wallet."""
    verifiedAt: str | None
    verifiedChainIds: tuple[int, ...] | None
    """The EVM chains on which its contract has proven it; null if it is verified on every chain,
    or on none."""
    createdAt: str
    updatedAt: str


@frozen_view
class ChallengeView:
    """A text for a wallet to sign; an Aptos wallet takes the nonce beside it."""

    id: str
    challengeId: str
    accountId: str
    address: str
    """The address whose owner must sign."""
    chainType: ChainType
    chainId: int | None
    """The EVM chain on which a contract's answer counts; null for every served one."""
    message: str
    """The text for the wallet to sign."""
    nonce: str
    """A value that makes the message unique; an Aptos wallet takes it as a separate input."""
    expiresAt: str
    """When the signature is no longer accepted."""
    createdAt: str


def wallet(record: Wallet) -> WalletView:
    """A wallet (contract §5)."""
    return WalletView(
        id=record.id,
        walletId=record.id,
        accountId=record.account_id,
        address=record.address,
        chainType=record.chain_type,
        label=record.label,
        verified=record.verified,
        verifiedAt=format_iso_or_none(record.verified_at_ms),
        verifiedChainIds=None if record.is_verified_everywhere else record.contract_chains or None,
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
    )


def challenge(record: WalletChallenge) -> ChallengeView:
    """A challenge."""
    return ChallengeView(
        id=record.id,
        challengeId=record.id,
        accountId=record.account_id,
        address=record.address,
        chainType=record.chain_type,
        chainId=record.chain_id,
        message=record.message,
        nonce=record.nonce,
        expiresAt=format_iso(record.expires_at_ms),
        createdAt=format_iso(record.created_at_ms),
    )
