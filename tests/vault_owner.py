"""The owner of a vault, who signs with eth-account what the vault is to do."""

from __future__ import annotations

from typing import Any

from eth_account import Account as Key
from eth_account.messages import encode_typed_data
from eth_hash.auto import keccak

from payments_core.chains.port import Chain
from tests.signers import EvmWallet

BASE = 8453
_FIELDS = ("to address", "value uint256", "data bytes", "operation uint8", "nonce uint256")


def sign_execute(owner: EvmWallet, vault: str, **message: Any) -> str:
    """The signature over a vault's call, made from the words of the typed data."""
    domain = {
        "name": "payments-core vault",
        "version": "1",
        "chainId": message.pop("chain_id", BASE),
        "verifyingContract": vault,
    }
    types = [dict(zip(("name", "type"), field.split(), strict=True)) for field in _FIELDS]
    whole = {"to": vault, "value": 0, "operation": 0, "nonce": 0, **message}
    signable = encode_typed_data(domain, {"Execute": types}, whole)
    signed = Key.sign_message(signable, owner.number.to_bytes(32, "big"))
    return "0x" + bytes(signed.signature).hex()


def encode_enabling(module: str) -> bytes:
    """The calldata of `enableModule`."""
    return keccak(b"enableModule(address)")[:4] + bytes(12) + bytes.fromhex(module[2:])


def ask_for_module(
    chain: Chain, environment_id: str, vault: str, tokens: tuple[str, ...], owner: EvmWallet
) -> dict[str, Any]:
    """The body of `deploy-role-module` without the user, and the module's address."""
    module = chain.find_module(environment_id, vault, tokens)  # type: ignore[attr-defined]
    data = encode_enabling(module)
    call = {"to": vault, "value": "0", "data": "0x" + data.hex(), "operation": 0}
    return {"module": module, "txData": call, "signature": sign_execute(owner, vault, data=data)}
