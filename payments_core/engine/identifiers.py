"""Identifiers: a prefix that names the kind, then 24 URL-safe characters (contract §1).

The first 8 characters are the time in milliseconds and the other 16 are 96 random bits, in an
alphabet in byte order: ids sort roughly by the time they were made. An id is a name and never a
credential.
"""

from __future__ import annotations

import binascii
import re

from payments_core.clock import Clock
from payments_core.entropy import Entropy

ALPHABET = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
LENGTH = 24

_TIME_BYTES = 6
_RANDOM_BYTES = 12
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_FROM_BASE64 = bytes.maketrans(_BASE64, ALPHABET.encode())

SHAPE = re.compile(rf"[A-Za-z0-9_-]{{{LENGTH}}}")


class Identifiers:
    """Draws identifiers; ids are drawn before a transaction so that its rerun uses the same."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy

    def new(self, prefix: str) -> str:
        """A new id such as `payment_...`; `prefix` is given without its underscore."""
        number = self._clock.now() & 0xFFFF_FFFF_FFFF
        drawn = number.to_bytes(_TIME_BYTES, "big") + self._entropy(_RANDOM_BYTES)
        text = binascii.b2a_base64(drawn, newline=False).translate(_FROM_BASE64)
        return f"{prefix}_{text.decode()}"


class IdSequence:
    """Ids for one operation: when its work runs again, it draws the same ids in the same order.

    A row that the transaction inserts can then be looked up after a COMMIT whose answer was lost.
    """

    def __init__(self, identifiers: Identifiers) -> None:
        self._identifiers = identifiers
        self._drawn: dict[tuple[str, int], str] = {}
        self._counts: dict[str, int] = {}

    def reset(self) -> None:
        """Start again with the first id."""
        self._counts = {}

    def issue(self, prefix: str) -> str:
        """The next id of that kind."""
        count = self._counts.get(prefix, 0)
        self._counts[prefix] = count + 1
        if (prefix, count) not in self._drawn:
            self._drawn[prefix, count] = self._identifiers.new(prefix)
        return self._drawn[prefix, count]

    def has_issued(self, id: str) -> bool:
        """Whether this id was drawn here."""
        return id in self._drawn.values()


def id_pattern(prefix: str) -> str:
    """A regular expression for an id of that kind."""
    return f"^{prefix}_{SHAPE.pattern}$"


def is_identifier(text: str, prefix: str) -> bool:
    """Whether `text` has the shape of an id of that kind; the record need not exist."""
    head = prefix + "_"
    return text.startswith(head) and SHAPE.fullmatch(text, len(head)) is not None
