"""Proof that a text was signed by a wallet (contract §10).

Pure: there is no clock, storage or chain here. So it cannot see what only a chain knows: contract
wallets (ERC-1271), of which it says what to ask them (`contract_claim`), and Aptos accounts that
rotated their key or sign with more than one, whose address does not follow from a public key.
"""

from __future__ import annotations

import base64
import hashlib
import re

import attrs

from payments_core.addresses import decode_base58
from payments_core.assets import ChainType
from payments_core.chains.signatures import (
    NOT_SIGNED,
    SignatureError,
    parse_contract_signature,
    recover_signer,
)
from payments_core.errors import FieldError

_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2})*)", re.ASCII)
_ONE_ED25519_KEY = b"\x00"  # the scheme's byte in Aptos addresses


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


@attrs.frozen
class ContractClaim:
    """A signature that the contract at an address is said to accept, of 32 bytes."""

    address: str
    digest: bytes
    signature: bytes = attrs.field(repr=False)


def find_signature_faults(signed: SignedText) -> tuple[FieldError, ...]:
    """Nothing if the wallet signed the text, else what is wrong at `signature` and `publicKey`."""
    if signed.chain_type == "aptos":
        return tuple(_find_aptos_faults(signed))
    faults: list[FieldError] = []
    if signed.public_key is not None:
        faults.append(FieldError("publicKey", "is for Aptos wallets only"))
    check = {"evm": _require_evm, "solana": _require_solana}[signed.chain_type]
    try:
        check(signed)
    except SignatureError as fault:
        faults.append(FieldError("signature", str(fault)))
    return tuple(faults)


def contract_claim(signed: SignedText) -> ContractClaim | None:
    """What to ask a contract wallet where `find_signature_faults` found no key's signature.

    None where no contract can have signed: for another chain type, and for what is no hex or too
    long. An empty signature (`0x`) is one: a Safe accepts it for what its owners signed on chain.
    """
    if signed.chain_type != "evm" or signed.public_key is not None:
        return None
    signature = parse_contract_signature(signed.signature)
    if signature is None:
        return None
    return ContractClaim(signed.address, personal_digest(signed.text), signature)


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
    if recover_signer(personal_digest(signed.text), signed.signature) != signed.address:
        raise SignatureError(NOT_SIGNED)


def _require_solana(signed: SignedText) -> None:
    """Wallets' `signMessage` signs the bytes of the text as they are; the address is the key."""
    signature = _parse_solana_signature(signed.signature)
    if signature is None:
        raise SignatureError("must be 64 bytes in base58 or base64")
    key = decode_base58(signed.address, 32)
    if key is None or not _is_ed25519_signature(key, signed.text.encode(), signature):
        raise SignatureError(NOT_SIGNED)


def _find_aptos_faults(signed: SignedText) -> list[FieldError]:
    faults: list[FieldError] = []
    signature = _parse_hex(signed.signature, 64)
    key = _parse_hex(signed.public_key or "", 32)
    if signature is None:
        faults.append(FieldError("signature", "must be 64 bytes in hex"))
    if key is None:
        faults.append(FieldError("publicKey", "must be 32 bytes in hex"))
    elif aptos_address(key) != signed.address:
        faults.append(FieldError("publicKey", "is not the key of this address"))
    elif signature is not None:
        message = aptos_message(signed.text, signed.nonce).encode()
        if not _is_ed25519_signature(key, message, signature):
            faults.append(FieldError("signature", NOT_SIGNED))
    return faults


def _is_ed25519_signature(key: bytes, message: bytes, signature: bytes) -> bool:
    """libsodium refuses keys of small order and any second form of a signature."""
    from nacl.exceptions import BadSignatureError
    from nacl.signing import VerifyKey

    try:
        VerifyKey(key).verify(message, signature)
    except BadSignatureError:
        return False
    return True


def _parse_solana_signature(text: str) -> bytes | None:
    if text.endswith("="):  # 64 bytes always end so in base64, and never in base58
        try:
            raw = base64.b64decode(text, validate=True)
        except ValueError:
            return None
        return raw if len(raw) == 64 else None
    return decode_base58(text, 64)


def _parse_hex(text: str, length: int) -> bytes | None:
    match = _HEX.fullmatch(text)
    raw = bytes.fromhex(match[1]) if match else b""
    return raw if len(raw) == length else None
