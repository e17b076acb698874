"""Proof that a text was signed by a wallet (contract §10).

Pure: there is no clock, storage or chain here. So it cannot check what only a chain knows: contract
wallets (ERC-1271), for which it returns the query (`contract_claim`), and Aptos accounts that
rotated their key or sign with more than one, whose address does not follow from a public key.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Annotated

import attrs
import msgspec

from payments_core.addresses import decode_base58
from payments_core.brief_repr import brief_repr
from payments_core.chains.signatures import (
    NOT_SIGNED,
    SignatureError,
    parse_contract_signature,
    recover_signer,
)
from payments_core.errors import FieldError
from payments_core.networks import ChainType
from payments_core.validation.fields import Address, PublicKey, Signature

Message = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)]

_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2})*)", re.ASCII)
_OFFCHAIN_DOMAIN = b"\xffsolana offchain"
_MAX_LEDGER_BYTES, _MAX_OFFCHAIN_BYTES = 1_212, 65_515
_ONE_ED25519_KEY = b"\x00"  # the scheme's byte in Aptos addresses


@attrs.frozen(kw_only=True)
class SignedText:
    """A text, and its claimed signature by a wallet.

    `address` is canonical. `nonce` and `public_key` are for Aptos, whose wallets sign more than
    the text and whose addresses hide the key; without a nonce the text is the whole of what an
    Aptos wallet signed. A public key for another chain type is an error.
    """

    chain_type: ChainType
    address: str
    text: str
    nonce: str | None
    signature: str = attrs.field(repr=False)
    public_key: str | None = None


@attrs.frozen(kw_only=True)
class MessageSignature:
    """A text of the caller's own, and a signature by a wallet, not verified yet.

    `message` has 1 to 2,000 characters; for Aptos it is the whole of what the wallet signed, with
    its prefix. `address` may have any form of its chain type.

    >>> address, signature = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f", "0x" + "11" * 65
    >>> signed = MessageSignature(
    ...     chain_type="evm", address=address, message="I am bob.", signature=signature
    ... )
    >>> shop.wallets.add_by_message(bob.id, signed)
    Traceback (most recent call last):
    payments_core.errors.ValidationFailed: ...
    """

    __repr__ = brief_repr

    chain_type: ChainType
    address: Address
    message: Message
    signature: Signature = attrs.field(repr=False)
    public_key: PublicKey | None = None

    @property
    def signed_text(self) -> SignedText:
        """The text as signatures are checked against it; the address must be canonical."""
        return SignedText(
            chain_type=self.chain_type,
            address=self.address,
            text=self.message,
            nonce=None,
            signature=self.signature,
            public_key=self.public_key,
        )

    @property
    def message_id(self) -> str:
        """The digest of the text and the wallet, for any account; the address must be canonical."""
        named = (self.chain_type, self.address, self.message)
        return hashlib.sha256(msgspec.json.encode(named)).hexdigest()


@attrs.frozen
class ContractClaim:
    """A claim that the contract at an address accepts this signature of 32 bytes."""

    address: str
    digest: bytes
    signature: bytes = attrs.field(repr=False)


def find_signature_faults(signed: SignedText) -> tuple[FieldError, ...]:
    """The faults of `signature` and `publicKey`; none if the wallet signed the text."""
    if signed.chain_type == "aptos":
        return tuple(_find_aptos_faults(signed))
    faults: list[FieldError] = []
    if signed.public_key is not None:
        faults.append(FieldError("public_key", "is for Aptos wallets only"))
    check = {"evm": _require_evm, "solana": _require_solana}[signed.chain_type]
    try:
        check(signed)
    except SignatureError as fault:
        faults.append(FieldError("signature", str(fault)))
    return tuple(faults)


def contract_claim(signed: SignedText) -> ContractClaim | None:
    """The query to a contract wallet if `find_signature_faults` found no key's signature.

    None if no contract can have signed: for another chain type, and for a text that is not hex or
    too long. An empty signature (`0x`) is valid: a Safe accepts it for messages signed on chain.
    """
    if signed.chain_type != "evm" or signed.public_key is not None:
        return None
    signature = parse_contract_signature(signed.signature)
    if signature is None:
        return None
    return ContractClaim(signed.address, personal_digest(signed.text), signature)


def personal_digest(text: str) -> bytes:
    """The bytes that wallets sign for `personal_sign` (EIP-191, version 0x45)."""
    from eth_hash.auto import keccak

    message = text.encode()
    return keccak(b"\x19Ethereum Signed Message:\n%d" % len(message) + message)


def aptos_message(text: str, nonce: str) -> str:
    """The bytes that wallets sign for `aptos:signMessage`: the `fullMessage` of the wallet standard
    (AIP-62).

    It is the form without the optional lines for address, application and chain id.
    """
    return f"APTOS\nmessage: {text}\nnonce: {nonce}"


def offchain_messages(text: str) -> tuple[bytes, ...]:
    """The bytes that Solana's command line and hardware wallets sign: the text in an envelope,
    version 0.

    The envelope says the text's format, which the signer chooses; a text has at most two of them.
    Source: `offchain_message.rs` of the Solana SDK.
    """
    message = text.encode()
    if not message or len(message) > _MAX_OFFCHAIN_BYTES:
        return ()
    fits_ledger = len(message) <= _MAX_LEDGER_BYTES
    is_printable = all(0x20 <= byte <= 0x7E for byte in message)
    formats = (fits_ledger and is_printable, fits_ledger, not fits_ledger)
    length = len(message).to_bytes(2, "little")
    return tuple(
        _OFFCHAIN_DOMAIN + bytes([0, number]) + length + message
        for number, applies in enumerate(formats)
        if applies
    )


def aptos_address(public_key: bytes) -> str:
    """The address of an account with a single Ed25519 key that was never rotated."""
    return "0x" + hashlib.sha3_256(public_key + _ONE_ED25519_KEY).hexdigest()


def _require_evm(signed: SignedText) -> None:
    if recover_signer(personal_digest(signed.text), signed.signature) != signed.address:
        raise SignatureError(NOT_SIGNED)


def _require_solana(signed: SignedText) -> None:
    """Wallets' `signMessage` signs the bytes of the text as they are, and the command line in an
    envelope; the address is the key."""
    signature = _parse_solana_signature(signed.signature)
    if signature is None:
        raise SignatureError("must be 64 bytes in base58 or base64")
    key = decode_base58(signed.address, 32)
    forms = (signed.text.encode(), *offchain_messages(signed.text))
    if key is None or not any(_is_ed25519_signature(key, form, signature) for form in forms):
        raise SignatureError(NOT_SIGNED)


def _find_aptos_faults(signed: SignedText) -> list[FieldError]:
    faults: list[FieldError] = []
    signature = _parse_hex(signed.signature, 64)
    key = _parse_hex(signed.public_key or "", 32)
    if signature is None:
        faults.append(FieldError("signature", "must be 64 bytes in hex"))
    if key is None:
        faults.append(FieldError("public_key", "must be 32 bytes in hex"))
    elif aptos_address(key) != signed.address:
        faults.append(FieldError("public_key", "is not the key of this address"))
    elif signature is not None:
        text, nonce = signed.text, signed.nonce
        message = (text if nonce is None else aptos_message(text, nonce)).encode()
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
    if text.endswith("="):  # 64 bytes always end like this in base64, and never in base58
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
