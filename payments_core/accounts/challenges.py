"""Challenges: the text that a wallet signs to be linked to an account (contract §5)."""

from __future__ import annotations

from payments_core.accounts.record import WalletChallenge
from payments_core.clock import MINUTE, format_iso
from payments_core.errors import FieldError
from payments_core.networks import ChainType, Networks

CHALLENGE_TTL_MS = 10 * MINUTE

NONCE_BYTES = 16
"""128 random bits: no two challenges have the same text, and nobody can sign one beforehand."""

CHAIN_NAMES = {"evm": "EVM", "solana": "Solana", "aptos": "Aptos"}


def challenge_text(challenge: WalletChallenge, service: str, app: str, networks: Networks) -> str:
    """The text that the wallet shows and signs: account, service, chain and validity.

    `service` and `app` are names that people know; they cannot add lines of their own.
    """
    wallet = f"{challenge.address} ({CHAIN_NAMES[challenge.chain_type]})"
    on_chain = () if challenge.chain_id is None else (_name_chain(challenge.chain_id, networks),)
    return "\n".join(
        (
            f"{_to_one_line(service)} asks you to prove that this wallet is yours.",
            "",
            "Signing links the wallet to the account below. It moves no funds and costs nothing.",
            "",
            f"App: {_to_one_line(app)}",
            f"Account: {challenge.account_id}",
            f"Wallet: {wallet}",
            *on_chain,
            f"Nonce: {challenge.nonce}",
            f"Expires: {format_iso(challenge.expires_at_ms)}",
        )
    )


def find_chain_faults(chain_type: ChainType, chain_id: int | None) -> list[FieldError]:
    """The error of a challenge that names a chain for a wallet of another type."""
    if chain_id is None or chain_type == "evm":
        return []
    return [FieldError("chain_id", "is for EVM wallets only")]


def _name_chain(chain_id: int, networks: Networks) -> str:
    network = networks.get(chain_id)
    return f"Chain: {chain_id}" if network is None else f"Chain: {network.name} ({chain_id})"


def _to_one_line(name: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in name)
