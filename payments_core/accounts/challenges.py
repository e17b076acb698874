"""Challenges: the text that a wallet signs to be linked to an account (contract §5)."""

from __future__ import annotations

from payments_core.accounts.record import WalletChallenge
from payments_core.clock import MINUTE, format_iso

CHALLENGE_TTL_MS = 10 * MINUTE

NONCE_BYTES = 16
"""128 random bits: no two challenges have the same text, and nobody can sign one beforehand."""

CHAIN_NAMES = {"evm": "EVM", "solana": "Solana", "aptos": "Aptos"}


def challenge_text(challenge: WalletChallenge, service: str, app: str) -> str:
    """The text that the wallet shows and signs: account, service and validity.

    `service` and `app` are names that people know; they cannot add lines of their own.
    """
    wallet = f"{challenge.address} ({CHAIN_NAMES[challenge.chain_type]})"
    return "\n".join(
        (
            f"{_to_one_line(service)} asks you to prove that this wallet is yours.",
            "",
            "Signing links the wallet to the account below. It moves no funds and costs nothing.",
            "",
            f"App: {_to_one_line(app)}",
            f"Account: {challenge.account_id}",
            f"Wallet: {wallet}",
            f"Nonce: {challenge.nonce}",
            f"Expires: {format_iso(challenge.expires_at)}",
        )
    )


def _to_one_line(name: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in name)
