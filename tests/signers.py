"""Wallets that sign: keys of the three chain types, made from a number."""

from __future__ import annotations

import base64
import hashlib
from functools import cached_property

import attrs
from btclib_libsecp256k1 import keys, recovery
from eth_hash.auto import keccak
from eth_utils.address import to_checksum_address
from nacl.signing import SigningKey

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def sign_digest(key: int | bytes, digest: bytes) -> bytes:
    """r, s, and 0 or 1."""
    pair, parity = recovery.sign(digest, key)
    return pair + bytes([parity])


def base58(raw: bytes) -> str:
    number = int.from_bytes(raw, "big")
    text = ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    return "1" * (len(raw) - len(raw.lstrip(b"\0"))) + text


@attrs.frozen(slots=False)
class EvmWallet:
    """Signs as `personal_sign` does."""

    number: int
    chain_type = "evm"
    public_key = None

    @property
    def address(self) -> str:
        public = keys.pubkey_from_prvkey(self.number, compressed=False)
        return str(to_checksum_address(keccak(public[1:])[-20:]))

    def sign(self, text: str, nonce: str = "") -> str:
        message = text.encode()
        prefix = f"\x19Ethereum Signed Message:\n{len(message)}".encode()
        raw = sign_digest(self.number, keccak(prefix + message))
        return "0x" + raw[:64].hex() + f"{raw[64] + 27:02x}"


@attrs.frozen(slots=False)
class SolanaWallet:
    """Signs as `signMessage` does."""

    number: int
    chain_type = "solana"
    public_key = None

    @cached_property
    def _key(self) -> SigningKey:
        return SigningKey(hashlib.sha256(b"solana %d" % self.number).digest())

    @property
    def address(self) -> str:
        return base58(bytes(self._key.verify_key))

    def sign(self, text: str, nonce: str = "") -> str:
        return base58(self._key.sign(text.encode()).signature)

    def sign_in_base64(self, text: str) -> str:
        return base64.b64encode(self._key.sign(text.encode()).signature).decode()


@attrs.frozen(slots=False)
class AptosWallet:
    """Signs as `aptos:signMessage` does, with message and nonce alone."""

    number: int
    chain_type = "aptos"

    @cached_property
    def _key(self) -> SigningKey:
        return SigningKey(hashlib.sha256(b"aptos %d" % self.number).digest())

    @property
    def public_key(self) -> str:
        return "0x" + bytes(self._key.verify_key).hex()

    @property
    def address(self) -> str:
        raw = bytes(self._key.verify_key) + b"\0"
        return "0x" + hashlib.sha3_256(raw).hexdigest()

    def sign(self, text: str, nonce: str) -> str:
        full = f"APTOS\nmessage: {text}\nnonce: {nonce}"
        return "0x" + self._key.sign(full.encode()).signature.hex()


Signer = EvmWallet | SolanaWallet | AptosWallet
