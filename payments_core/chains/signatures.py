"""The signer of a digest with an EVM key: recovery, and the checks before it.

Of the two signatures (r, s) and (r, n - s) of one key only the low one counts (EIP-2), so that a
signature has one text. Wallets' own message forms are in `accounts/wallet_signatures.py`.

A contract wallet that is not deployed yet signs too: its signature comes with the call that deploys
it (ERC-6492).
"""

from __future__ import annotations

import re

import attrs

from payments_core.addresses import encode_checksum_address

ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
"""The order of secp256k1."""

HALF_ORDER = ORDER // 2

MAX_CONTRACT_SIGNATURE_BYTES = 4_096
"""A contract's signature may have any length; this is enough for 63 owners of a Safe."""

NOT_SIGNED = "is not this wallet's signature of the message"

WRAPPED_SUFFIX = bytes.fromhex("6492" * 16)
"""The last 32 bytes of a signature that is wrapped (ERC-6492). No key's signature ends in it."""

_RECOVERY_BYTES = {0: 0, 1: 1, 27: 0, 28: 1}
_NOT_WRAPPED = "ends as a wrapped one (ERC-6492), and has another form"
_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2})*)", re.ASCII)


class SignatureError(ValueError):
    """Why a signature proves nothing; the message completes "signature …"."""


def recover_signer(digest: bytes, signature: str) -> str:
    """The address, with its EIP-55 checksum, whose key signed a digest of 32 bytes.

    `signature` is hex of 65 bytes: r, s, and a recovery byte of 0, 1, 27 or 28. Raises
    SignatureError, also for a high s.
    """
    match = _HEX.fullmatch(signature)
    raw = bytes.fromhex(match[1]) if match else b""
    if len(raw) != 65:
        raise SignatureError("must be 65 bytes in hex")
    if raw[64] not in _RECOVERY_BYTES:
        raise SignatureError("must end in a recovery byte of 0, 1, 27 or 28")
    return recover_signer_from_bytes(digest, raw[:64] + bytes([_RECOVERY_BYTES[raw[64]]]))


def parse_contract_signature(text: str) -> bytes | None:
    """The bytes of hex, to be checked by a contract; None for other text or too many.

    `0x` has no bytes: a Safe accepts it for messages that its owners signed on chain.
    """
    match = _HEX.fullmatch(text)
    if not text or match is None or len(match[1]) > 2 * MAX_CONTRACT_SIGNATURE_BYTES:
        return None
    return bytes.fromhex(match[1])


@attrs.frozen
class WrappedSignature:
    """A contract's signature, with the call to a factory that deploys the contract (ERC-6492)."""

    factory: str
    factory_data: bytes = attrs.field(repr=False)
    signature: bytes = attrs.field(repr=False)


def unwrap_signature(raw: bytes) -> WrappedSignature | None:
    """The parts of a wrapped signature; None if it is not wrapped.

    The form is the ABI's of (address, bytes, bytes), and then `WRAPPED_SUFFIX`. Raises
    SignatureError for another one before this suffix.
    """
    if not raw.endswith(WRAPPED_SUFFIX):
        return None
    body = raw[: -len(WRAPPED_SUFFIX)]
    factory = _word_at(body, 0)
    if factory >> 160:
        raise SignatureError(_NOT_WRAPPED)
    return WrappedSignature(
        encode_checksum_address(factory.to_bytes(20, "big")),
        _bytes_at(body, 32),
        _bytes_at(body, 64),
    )


def _bytes_at(body: bytes, pointer: int) -> bytes:
    """The `bytes` of the ABI whose place is in the word at `pointer`. Raises SignatureError."""
    start = _word_at(body, pointer)
    length = _word_at(body, start)
    found = body[start + 32 : start + 32 + length]
    if len(found) != length:
        raise SignatureError(_NOT_WRAPPED)
    return found


def _word_at(body: bytes, at: int) -> int:
    word = body[at : at + 32]
    if len(word) != 32:
        raise SignatureError(_NOT_WRAPPED)
    return int.from_bytes(word, "big")


def recover_signer_from_bytes(digest: bytes, signature: bytes) -> str:
    """The address that signed, by 65 bytes whose last is 0 or 1. Raises SignatureError."""
    # It loads a C library: only its users wait for it.
    from btclib_libsecp256k1 import recovery

    if len(signature) != 65 or signature[64] > 1:
        raise SignatureError("must be 65 bytes that end in 0 or 1")
    if int.from_bytes(signature[32:64], "big") > HALF_ORDER:
        raise SignatureError("must have a low s (EIP-2)")
    try:
        key = recovery.recover(digest, signature[:64], signature[64], compressed=False)
    except ValueError:  # r or s is out of the curve's range
        raise SignatureError(NOT_SIGNED) from None
    return address_of(key)


def address_of(public_key: bytes) -> str:
    """The address of a public key of 65 bytes, the uncompressed form."""
    from eth_hash.auto import keccak

    return encode_checksum_address(keccak(public_key[1:])[-20:])
