"""Addresses of the three chain types, in one canonical text each.

EVM: EIP-55 checksummed. Solana: base58 of 32 bytes. Aptos: `0x` and 64 lower-case hex digits
(the long form of AIP-40).
"""

from __future__ import annotations

import re
from typing import Literal

ChainType = Literal["evm", "solana", "aptos"]

NATIVE_ADDRESS = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
"""Where a token's address is given, this one means an EVM chain's native coin (EIP-7528)."""

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_EVM = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
_APTOS = re.compile(r"0x[0-9a-fA-F]{1,64}", re.ASCII)


class AddressError(ValueError):
    """A text that is not an address of its chain type; the message completes "must be …"."""


def normalize_address(chain_type: ChainType, text: str) -> str:
    """The canonical form of an address. Raises AddressError, also for the zero address."""
    return {"evm": _normalize_evm, "solana": _normalize_solana, "aptos": _normalize_aptos}[
        chain_type
    ](text)


def identify_chain_type(text: str) -> ChainType:
    """The chain type whose form an address has. Raises AddressError for any other text.

    `0x` and 40 hex digits are an EVM address, never a short one of Aptos.
    """
    if _EVM.fullmatch(text):
        return "evm"
    if _APTOS.fullmatch(text):
        return "aptos"
    if decode_base58(text, 32) is not None:
        return "solana"
    raise AddressError("must be an EVM, Solana or Aptos address")


def encode_checksum_address(raw: bytes) -> str:
    """The EIP-55 text of 20 bytes: a letter is upper case if the hash has 8 or more."""
    # A Keccak takes a tenth of a second to import: only those who need it wait for it. The
    # `to_checksum_address` of eth-utils takes twice as long, since it checks what is known here.
    from eth_hash.auto import keccak

    if len(raw) != 20:
        raise ValueError(f"an EVM address has 20 bytes, not {len(raw)}")
    digits = raw.hex()
    marks = keccak(digits.encode()).hex()
    return "0x" + "".join(
        [digit.upper() if mark > "7" else digit for digit, mark in zip(digits, marks, strict=False)]
    )


def decode_base58(text: str, length: int) -> bytes | None:
    """The `length` bytes that a base58 text encodes; None for any other text."""
    if not length <= len(text) <= length * 2:  # a long number is slow to read
        return None
    number = 0
    for character in text:
        digit = _BASE58.find(character)
        if digit < 0:
            return None
        number = number * 58 + digit
    size = (number.bit_length() + 7) // 8
    zeros = len(text) - len(text.lstrip("1"))
    return number.to_bytes(length, "big") if zeros + size == length else None


def _normalize_evm(text: str) -> str:
    if not _EVM.fullmatch(text):
        raise AddressError("must be 0x and 40 hex digits")
    address = encode_checksum_address(bytes.fromhex(text[2:]))
    letters = text[2:]
    if letters not in (letters.lower(), letters.upper()) and text != address:
        raise AddressError("must have a correct checksum (EIP-55)")
    if int(letters, 16) == 0:
        raise AddressError("must not be the zero address")
    return address


def _normalize_solana(text: str) -> str:
    raw = decode_base58(text, 32)
    if raw is None:
        raise AddressError("must be base58 of 32 bytes")
    if not any(raw):
        raise AddressError("must not be the zero address")
    return text


def _normalize_aptos(text: str) -> str:
    if not _APTOS.fullmatch(text):
        raise AddressError("must be 0x and up to 64 hex digits")
    if int(text, 16) == 0:
        raise AddressError("must not be the zero address")
    return "0x" + text[2:].lower().rjust(64, "0")
