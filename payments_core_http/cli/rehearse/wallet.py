"""The wallet of a rehearsal: its key is in a file, and it pays as a payer's wallet does.

The key is in no text and no `repr`. One rehearsal at a time holds the file, because two would sign
for the same nonce.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from payments_core.chains.signatures import ORDER, address_of

_KEY = re.compile(r"\s*(?:0x)?([0-9a-fA-F]{64})\s*", re.ASCII)
_MAX_FILE_BYTES = 200


class KeyFileRefused(Exception):
    """Why a key file cannot be used; the text has no part of its content."""


class Wallet:
    """An address and its key."""

    def __init__(self, key: bytes) -> None:
        from btclib_libsecp256k1 import keys

        if not 0 < int.from_bytes(key, "big") < ORDER:
            raise KeyFileRefused("its number is not a key of secp256k1")
        self._key = key
        self.address: str = address_of(keys.pubkey_from_prvkey(key, compressed=False))

    def __repr__(self) -> str:
        return f"Wallet({self.address})"

    def sign(self, digest: bytes) -> bytes:
        """A signature of 65 bytes: r, s, and 0 or 1."""
        from btclib_libsecp256k1 import recovery

        pair, parity = recovery.sign(digest, self._key)
        return pair + bytes([parity])


@contextmanager
def open_wallet(path: Path) -> Iterator[Wallet]:
    """The wallet of a file with 64 hex digits, which no other rehearsal may use meanwhile.

    Raises KeyFileRefused, also for a file that other users may read.
    """
    try:
        # In case it is a pipe: `O_NONBLOCK`.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise KeyFileRefused(f"it cannot be read: {error.strerror}") from None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise KeyFileRefused("it is not a file")
        if found.st_uid != os.geteuid():
            raise KeyFileRefused("it belongs to another user")
        if found.st_mode & 0o077:
            raise KeyFileRefused(f"other users may read it: chmod 600 {path}")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise KeyFileRefused("another rehearsal uses it") from None
        text = os.read(file, _MAX_FILE_BYTES).decode("ascii", "replace")
        match = _KEY.fullmatch(text)
        if match is None:
            raise KeyFileRefused("it must have the 64 hex digits of a key, and nothing else")
        yield Wallet(bytes.fromhex(match[1]))
    finally:
        os.close(file)
