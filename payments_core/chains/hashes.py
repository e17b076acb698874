"""Transaction hashes of the three chain types, in one canonical text each.

EVM and Aptos: `0x` and 64 lower-case hex digits. Solana: base58 of a signature's 64 bytes.
"""

from __future__ import annotations

import re

from payments_core.addresses import decode_base58
from payments_core.networks import ChainType

_HEX = re.compile(r"0x[0-9a-fA-F]{64}", re.ASCII)


class HashError(ValueError):
    """A text that is not a transaction hash; the message completes "must be …"."""


def canonical_hash(chain_type: ChainType, text: str) -> str:
    """The canonical form of a transaction's hash. Raises HashError."""
    if chain_type == "solana":
        if decode_base58(text, 64) is None:
            raise HashError("must be base58 of 64 bytes")
        return text
    if not _HEX.fullmatch(text):
        raise HashError("must be 0x and 64 hex digits")
    return text.lower()
