"""List cursors: opaque, tamper-evident, and good only for the list that gave them (contract §1)."""

from __future__ import annotations

import base64
import binascii

import msgspec

from payments_core.credentials.keyring import KeyRing
from payments_core.errors import ValidationFailed
from payments_core.storage.port import Position

_PURPOSE = "list cursor"
_TAG_BYTES = 16


def encode(key_ring: KeyRing, scope: str, position: Position) -> str:
    """A cursor for a position in the list that `scope` names: environment, route and filters."""
    packed = msgspec.json.encode(position)
    return _text(key_ring.tag(_PURPOSE, _message(scope, packed)) + packed)


def decode(key_ring: KeyRing, scope: str, cursor: str) -> Position:
    """The position. Raises ValidationFailed for every cursor that this list did not give."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _foreign() from None
    tag, packed = raw[:_TAG_BYTES], raw[_TAG_BYTES:]
    # The spare bits of the last character would be a second text for one cursor.
    if _text(raw) != cursor or not key_ring.tag_matches(_PURPOSE, _message(scope, packed), tag):
        raise _foreign()
    return msgspec.json.decode(packed, type=tuple[str | int | None, ...])


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _message(scope: str, packed: bytes) -> bytes:
    named = scope.encode()
    return len(named).to_bytes(4, "big") + named + packed


def _foreign() -> ValidationFailed:
    return ValidationFailed.at("cursor", "is not one that this list gave")
