"""The payer of a quote, who signs with eth-account that it is paid from its vault."""

from __future__ import annotations

from typing import Any

from eth_account import Account as Key
from eth_account.messages import encode_typed_data

from tests.signers import EvmWallet

TYPES = {
    "Settlement": [
        {"name": "quoteId", "type": "string"},
        {"name": "nonce", "type": "uint256"},
        {"name": "deadline", "type": "uint256"},
    ]
}


def sign_settlement(
    payer: EvmWallet,
    vault: str,
    quote_id: str,
    deadline: int,
    nonce: int = 1,
    chain_id: int = 8453,
    **domain: str,
) -> str:
    """The signature over the settlement of a quote, made from the words of the typed data."""
    whole = {
        "name": "Money Accounts",
        "version": "1",
        "chainId": chain_id,
        "verifyingContract": vault,
        **domain,
    }
    message = {"quoteId": quote_id, "nonce": nonce, "deadline": deadline}
    signable = encode_typed_data(whole, TYPES, message)
    signed = Key.sign_message(signable, payer.number.to_bytes(32, "big"))
    return "0x" + bytes(signed.signature).hex()


def ask_to_settle(
    payer: EvmWallet,
    vault: str,
    quote_id: str,
    deadline: int,
    nonce: int = 1,
    chain_id: int = 8453,
) -> dict[str, Any]:
    """The body of `settle`."""
    return {
        "payload": {"quoteId": quote_id, "nonce": nonce, "deadline": deadline},
        "signature": sign_settlement(payer, vault, quote_id, deadline, nonce, chain_id),
        "domain": {
            "name": "Money Accounts",
            "version": "1",
            "chainId": chain_id,
            "verifyingContract": vault,
        },
        "types": TYPES,
    }
