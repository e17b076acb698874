"""Identifiers: a prefix that names the kind, then 24 URL-safe characters (contract §1).

The first 8 characters are the time in milliseconds and the other 16 are 96 random bits,
in an alphabet whose order is that of its bytes: ids sort by the time they were made, roughly.
An id is a name and never a credential.
"""

from __future__ import annotations

import re

from payments_core.clock import Clock
from payments_core.entropy import Entropy

ALPHABET = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
LENGTH = 24

_TIME_CHARACTERS = 8
_RANDOM_BYTES = 12
_PAIRS = [first + second for first in ALPHABET for second in ALPHABET]

SHAPE = re.compile(rf"[A-Za-z0-9_-]{{{LENGTH}}}")


class Identifiers:
    """Draws identifiers; ids are drawn before a transaction so that its rerun uses the same."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy

    def new(self, prefix: str) -> str:
        """A new id such as `payment_...`; `prefix` is given without its underscore."""
        number = self._clock.now() & 0xFFFF_FFFF_FFFF
        number = (number << 96) | int.from_bytes(self._entropy(_RANDOM_BYTES), "big")
        pairs = [_PAIRS[(number >> shift) & 0xFFF] for shift in range(132, -1, -12)]
        return prefix + "_" + "".join(pairs)


def is_identifier(text: str, prefix: str) -> bool:
    """Whether `text` has the shape of an id of that kind; it says nothing of existence."""
    head = prefix + "_"
    return text.startswith(head) and SHAPE.fullmatch(text, len(head)) is not None
