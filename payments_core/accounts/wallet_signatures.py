"""Proof that a text was signed by a wallet (contract §10).

Pure: there is no clock, storage or chain here. So it cannot see what only a chain knows: contract
wallets (ERC-1271), which are for later, and Aptos accounts that rotated their key or sign with
more than one, whose address does not follow from a public key.
"""

from __future__ import annotations

import base64
import hashlib
import re

import attrs

from payments_core.addresses import base58_bytes, checksummed
from payments_core.assets import ChainType
from payments_core.errors import FieldError

_HALF_ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141 // 2
_RECOVERY_BYTES = {0: 0, 1: 1, 27: 0, 28: 1}
_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2})*)", re.ASCII)
_ONE_ED25519_KEY = b"\x00"  # the scheme's byte in Aptos addresses

_NOT_SIGNED = "is not this wallet's signature of the message"


@attrs.frozen(kw_only=True)
class SignedText:
    """A text, and what is said to be a wallet's signature of it.

    `address` is canonical. `nonce` and `public_key` are for Aptos, whose wallets sign more than
    the text and whose addresses hide the key; a public key for another chain type is a fault.
    """

    chain_type: ChainType
    address: str
    text: str
    nonce: str
    signature: str = attrs.field(repr=False)
    public_key: str | None = None


class SignatureFault(ValueError):
    """Why a signature proves nothing; the message completes "signature …"."""


def signature_faults(signed: SignedText) -> tuple[FieldError, ...]:
    """Nothing if the wallet signed the text, else what is wrong at `signature` and `publicKey`."""
    if signed.chain_type == "aptos":
        return tuple(_aptos_faults(signed))
    faults: list[FieldError] = []
    if signed.public_key is not None:
        faults.append(FieldError("publicKey", "is for Aptos wallets alone"))
    check = {"evm": _require_evm, "solana": _require_solana}[signed.chain_type]
    try:
        check(signed)
    except SignatureFault as fault:
        faults.append(FieldError("signature", str(fault)))
    return tuple(faults)


def evm_signer(digest: bytes, signature: str) -> str:
    """The address, with its EIP-55 checksum, whose key signed a digest of 32 bytes.

    `signature` is hex of 65 bytes: r, s, and a recovery byte of 0, 1, 27 or 28. A high s is
    refused (EIP-2), so that one signature has one text. Raises SignatureFault.
    """
    from coincurve import PublicKey  # loads a C library: only those who need it wait for it
    from eth_utils.crypto import keccak

    raw = _hex_bytes(signature, 65)
    if raw is None:
        raise SignatureFault("must be 65 bytes in hex")
    if raw[64] not in _RECOVERY_BYTES:
        raise SignatureFault("must end in a recovery byte of 0, 1, 27 or 28")
    if int.from_bytes(raw[32:64], "big") > _HALF_ORDER:
        raise SignatureFault("must have a low s (EIP-2)")
    recoverable = raw[:64] + bytes([_RECOVERY_BYTES[raw[64]]])
    try:
        key = PublicKey.from_signature_and_message(recoverable, digest, hasher=None)
    except ValueError:  # r or s is no number of the curve's
        raise SignatureFault(_NOT_SIGNED) from None
    return checksummed(keccak(key.format(compressed=False)[1:])[-20:])


def personal_digest(text: str) -> bytes:
    """What wallets sign for `personal_sign` (EIP-191, version 0x45)."""
    from eth_utils.crypto import keccak

    message = text.encode()
    return keccak(b"\x19Ethereum Signed Message:\n%d" % len(message) + message)


def aptos_message(text: str, nonce: str) -> str:
    """What wallets sign for `aptos:signMessage`: the `fullMessage` of the wallet standard (AIP-62).

    It is the form without the optional lines for address, application and chain id.
    """
    return f"APTOS\nmessage: {text}\nnonce: {nonce}"


def aptos_address(public_key: bytes) -> str:
    """The address of an account with a single Ed25519 key that was never rotated."""
    return "0x" + hashlib.sha3_256(public_key + _ONE_ED25519_KEY).hexdigest()


def _require_evm(signed: SignedText) -> None:
    if evm_signer(personal_digest(signed.text), signed.signature) != signed.address:
        raise SignatureFault(_NOT_SIGNED)


def _require_solana(signed: SignedText) -> None:
    """Wallets' `signMessage` signs the bytes of the text as they are; the address is the key."""
    signature = _solana_signature(signed.signature)
    if signature is None:
        raise SignatureFault("must be 64 bytes in base58 or base64")
    key = base58_bytes(signed.address, 32)
    if key is None or not _ed25519(key, signed.text.encode(), signature):
        raise SignatureFault(_NOT_SIGNED)


def _aptos_faults(signed: SignedText) -> list[FieldError]:
    faults: list[FieldError] = []
    signature = _hex_bytes(signed.signature, 64)
    key = _hex_bytes(signed.public_key or "", 32)
    if signature is None:
        faults.append(FieldError("signature", "must be 64 bytes in hex"))
    if key is None:
        faults.append(FieldError("publicKey", "must be 32 bytes in hex"))
    elif aptos_address(key) != signed.address:
        faults.append(FieldError("publicKey", "is not the key of this address"))
    elif signature is not None:
        message = aptos_message(signed.text, signed.nonce).encode()
        if not _ed25519(key, message, signature):
            faults.append(FieldError("signature", _NOT_SIGNED))
    return faults


def _ed25519(key: bytes, message: bytes, signature: bytes) -> bool:
    """libsodium refuses keys of small order and any second form of a signature."""
    from nacl.exceptions import BadSignatureError
    from nacl.signing import VerifyKey

    try:
        VerifyKey(key).verify(message, signature)
    except BadSignatureError:
        return False
    return True


def _solana_signature(text: str) -> bytes | None:
    if text.endswith("="):  # 64 bytes always end so in base64, and never in base58
        try:
            raw = base64.b64decode(text, validate=True)
        except ValueError:
            return None
        return raw if len(raw) == 64 else None
    return base58_bytes(text, 64)


def _hex_bytes(text: str, length: int) -> bytes | None:
    match = _HEX.fullmatch(text)
    raw = bytes.fromhex(match[1]) if match else b""
    return raw if len(raw) == length else None
