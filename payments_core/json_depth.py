"""How deeply JSON nests, measured before it is parsed.

Parsers written in C go as deep as Python's recursion limit allows, and some libraries raise that
limit for the whole process (py_ecc does): a hundred thousand brackets then overflow the C stack,
and the process is gone. So untrusted input is checked first.
"""

from __future__ import annotations

import re

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NOT_STRUCTURE = bytes(byte for byte in range(256) if byte not in b'[]{}"')


def exceeds_depth(raw: bytes, limit: int) -> bool:
    """Whether arrays and objects of a JSON text are nested more than `limit` deep."""
    if raw.count(b"[") + raw.count(b"{") <= limit:  # true for nearly every text
        return False
    bare = raw if b"\\" in raw else raw.translate(None, _NOT_STRUCTURE)
    depth = 0
    for byte in _STRING.sub(b"", bare):
        if byte in b"[{":
            depth += 1
            if depth > limit:
                return True
        elif byte in b"]}":
            depth -= 1
    return False
