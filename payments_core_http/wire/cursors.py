"""List cursors: opaque, tamper-evident, and valid only for the list that issued them
(contract §1).
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from payments_core.credentials.keyring import KeyRing
from payments_core.errors import ValidationFailed
from payments_core.storage.port import Position

_PURPOSE = "list cursor"
_TAG_BYTES = 16


def encode(key_ring: KeyRing, list_name: str, position: Position) -> str:
    """A cursor for a position in the list `list_name`: environment, route and filters."""
    packed = msgspec.json.encode(position)
    return _encode_text(key_ring.tag(_PURPOSE, _pack_signed(list_name, packed)) + packed)


def decode(key_ring: KeyRing, list_name: str, cursor: str, parameter: str = "cursor") -> Position:
    """The position. Raises ValidationFailed for every cursor that this list did not issue."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _invalid_cursor(parameter) from None
    tag, packed = raw[:_TAG_BYTES], raw[_TAG_BYTES:]
    # The spare bits of the last character would allow a second text for one cursor.
    if _encode_text(raw) != cursor or not key_ring.tag_matches(
        _PURPOSE, _pack_signed(list_name, packed), tag
    ):
        raise _invalid_cursor(parameter)
    return msgspec.json.decode(packed, type=tuple[str | int | None, ...])


def _encode_text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _pack_signed(list_name: str, packed: bytes) -> bytes:
    named = list_name.encode()
    return len(named).to_bytes(4, "big") + named + packed


def _invalid_cursor(parameter: str) -> ValidationFailed:
    return ValidationFailed.at(parameter, "is not a cursor of this list")
