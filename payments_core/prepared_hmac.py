"""HMAC-SHA-256 (RFC 2104) with a key that is hashed once and not for each message."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

_BLOCK_BYTES = 64


def prepare_hmac(key: bytes) -> Callable[[bytes], Any]:
    """A function that takes a message and gives a hash whose digest is the HMAC.

    The key is no longer than a block of 64 bytes. `hmac.digest` takes twice as long or more. It
    would also release the interpreter each time and, if many threads work, wait to get it back.
    """
    assert len(key) <= _BLOCK_BYTES
    block = key.ljust(_BLOCK_BYTES, b"\0")
    new_inner = sha256(bytes(byte ^ 0x36 for byte in block)).copy
    new_outer = sha256(bytes(byte ^ 0x5C for byte in block)).copy

    def hash_message(message: bytes) -> Any:
        inner = new_inner()
        inner.update(message)
        outer = new_outer()
        outer.update(inner.digest())
        return outer

    return hash_message
