"""Keys whose bytes sort as column values do, for databases that order only bytes."""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.storage.records import Value

_BACKWARDS = bytes(reversed(range(256)))
_BEYOND = 2**64


def make_sort_key(values: Sequence[Value], *, descending: bool = False) -> bytes:
    """The key of some values: in the order of `find`, reversed for a descending index.

    The key of the first values is a prefix of the key of all. Integers may have any size, since a
    query may compare with values that no column holds: those beyond 64 bits sort before or after
    all others. UTF-8 keeps the order of texts; a text with U+0000, which no column holds, may
    collide.
    """
    key = b"".join(map(_encode, values))
    return key.translate(_BACKWARDS) if descending else key


def _encode(value: Value) -> bytes:
    if value is None:
        return b"\0"
    if isinstance(value, int):
        return (min(max(value, -_BEYOND), _BEYOND) + 2 * _BEYOND).to_bytes(9, "big") + b"\0"
    return b"\4" + value.encode(errors="surrogatepass") + b"\0"
