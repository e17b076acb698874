"""Typed data (EIP-712): the digests of the structs that we rebuild ourselves.

Domain and types are ours, never the client's: a signature is compared with the digest that we make
from the values alone. Only flat structs are supported, since ours are not nested.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

ZERO_ADDRESS = "0x" + "0" * 40

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)


class InvalidTypedData(ValueError):
    """A value that does not fit its type; the message names the field."""


@attrs.frozen
class StructType:
    """A struct of EIP-712: its name, and the names and types of its fields in order."""

    name: str
    fields: tuple[tuple[str, str], ...]

    @property
    def encoded_type(self) -> str:
        """The struct as encoded for its type hash."""
        listed = ",".join(f"{type} {name}" for name, type in self.fields)
        return f"{self.name}({listed})"


SETTLEMENT = StructType(
    "Settlement", (("quoteId", "string"), ("nonce", "uint256"), ("deadline", "uint256"))
)
"""The struct that a payer signs for `settle` (interface, the older generation)."""

VAULT_EXECUTE = StructType(
    "Execute",
    (
        ("to", "address"),
        ("value", "uint256"),
        ("data", "bytes"),
        ("operation", "uint8"),
        ("nonce", "uint256"),
    ),
)
"""The struct that a vault's owner signs for `execute` of contracts/src/Vault.sol."""

VAULT_NAME = "payments-core vault"
VAULT_VERSION = "1"

SAFE_TX = StructType(
    "SafeTx",
    (
        ("to", "address"),
        ("value", "uint256"),
        ("data", "bytes"),
        ("operation", "uint8"),
        ("safeTxGas", "uint256"),
        ("baseGas", "uint256"),
        ("gasPrice", "uint256"),
        ("gasToken", "address"),
        ("refundReceiver", "address"),
        ("nonce", "uint256"),
    ),
)
"""The struct that a Safe's owners sign for `execTransaction`, since Safe 1.0."""

_DOMAIN_FIELDS = {
    "name": "string",
    "version": "string",
    "chainId": "uint256",
    "verifyingContract": "address",
}


def typed_digest(domain: Mapping[str, Any], form: StructType, message: Mapping[str, Any]) -> bytes:
    """The 32 bytes that are signed.

    A domain has one or more of `name`, `version`, `chainId` and `verifyingContract`, a message
    all fields of its struct; addresses are text, `bytes` are bytes. Raises InvalidTypedData.
    """
    from eth_hash.auto import keccak

    return keccak(typed_message(domain, form, message))


def typed_message(domain: Mapping[str, Any], form: StructType, message: Mapping[str, Any]) -> bytes:
    """The 66 bytes that `typed_digest` hashes. Raises InvalidTypedData."""
    present = tuple(item for item in _DOMAIN_FIELDS.items() if item[0] in domain)
    domain_hash = _hash_struct(StructType("EIP712Domain", present), domain)
    return b"\x19\x01" + domain_hash + _hash_struct(form, message)


def settlement_digest(
    *,
    name: str,
    version: str,
    chain_id: int,
    verifying_contract: str,
    quote_id: str,
    nonce: int,
    deadline: int,
) -> bytes:
    """The digest that a payer signs to settle a quote. Raises InvalidTypedData."""
    domain = {
        "name": name,
        "version": version,
        "chainId": chain_id,
        "verifyingContract": verifying_contract,
    }
    message = {"quoteId": quote_id, "nonce": nonce, "deadline": deadline}
    return typed_digest(domain, SETTLEMENT, message)


def vault_execute_digest(
    *, chain_id: int, vault: str, nonce: int, to: str, value: int, data: bytes, operation: int
) -> bytes:
    """What a vault's owner signs: the vault's own `executeDigest`. Raises InvalidTypedData."""
    domain = {
        "name": VAULT_NAME,
        "version": VAULT_VERSION,
        "chainId": chain_id,
        "verifyingContract": vault,
    }
    message = {"to": to, "value": value, "data": data, "operation": operation, "nonce": nonce}
    return typed_digest(domain, VAULT_EXECUTE, message)


def safe_transaction_message(
    *, chain_id: int, safe: str, nonce: int, to: str, value: int, data: bytes, operation: int
) -> bytes:
    """The bytes that `safe_transaction_digest` hashes without gas fields: `encodeTransactionData`.

    A Safe passes them to its owners that are contracts. Raises InvalidTypedData.
    """
    message = {
        "to": to,
        "value": value,
        "data": data,
        "operation": operation,
        "safeTxGas": 0,
        "baseGas": 0,
        "gasPrice": 0,
        "gasToken": ZERO_ADDRESS,
        "refundReceiver": ZERO_ADDRESS,
        "nonce": nonce,
    }
    return typed_message({"chainId": chain_id, "verifyingContract": safe}, SAFE_TX, message)


def safe_transaction_digest(
    *,
    chain_id: int,
    safe: str,
    nonce: int,
    to: str,
    value: int,
    data: bytes,
    operation: int = 0,
    safe_tx_gas: int = 0,
    base_gas: int = 0,
    gas_price: int = 0,
    gas_token: str = ZERO_ADDRESS,
    refund_receiver: str = ZERO_ADDRESS,
) -> bytes:
    """The digest that a Safe's owners sign, the same as `getTransactionHash`. Raises
    InvalidTypedData.

    Without gas fields the Safe refunds nobody. A Safe's domain has no name and no version.
    """
    message = {
        "to": to,
        "value": value,
        "data": data,
        "operation": operation,
        "safeTxGas": safe_tx_gas,
        "baseGas": base_gas,
        "gasPrice": gas_price,
        "gasToken": gas_token,
        "refundReceiver": refund_receiver,
        "nonce": nonce,
    }
    return typed_digest({"chainId": chain_id, "verifyingContract": safe}, SAFE_TX, message)


def _hash_struct(form: StructType, values: Mapping[str, Any]) -> bytes:
    from eth_hash.auto import keccak

    if not form.fields or set(values) != {name for name, _ in form.fields}:
        raise InvalidTypedData(f"{form.name} has other fields")
    words = [_ENCODERS[type](name, values[name]) for name, type in form.fields]
    return keccak(keccak(form.encoded_type.encode()) + b"".join(words))


def _unsigned_encoder(bits: int) -> Callable[[str, Any], bytes]:
    def encode_word(name: str, number: Any) -> bytes:
        if type(number) is not int or not 0 <= number < 1 << bits:
            raise InvalidTypedData(f"{name} must be an integer of up to {bits} bits")
        return number.to_bytes(32, "big")

    return encode_word


def _encode_address(name: str, text: Any) -> bytes:
    if not isinstance(text, str) or not _ADDRESS.fullmatch(text):
        raise InvalidTypedData(f"{name} must be 0x and 40 hex digits")
    return bytes.fromhex(text[2:]).rjust(32, b"\0")


def _encode_string(name: str, text: Any) -> bytes:
    from eth_hash.auto import keccak

    if not isinstance(text, str):
        raise InvalidTypedData(f"{name} must be text")
    try:
        return keccak(text.encode())
    except UnicodeEncodeError:
        raise InvalidTypedData(f"{name} must be valid Unicode text") from None


def _encode_bytes(name: str, raw: Any) -> bytes:
    from eth_hash.auto import keccak

    if not isinstance(raw, bytes):
        raise InvalidTypedData(f"{name} must be bytes")
    return keccak(raw)


_ENCODERS: Mapping[str, Callable[[str, Any], bytes]] = {
    "address": _encode_address,
    "bytes": _encode_bytes,
    "string": _encode_string,
    "uint8": _unsigned_encoder(8),
    "uint256": _unsigned_encoder(256),
}
