"""The stored response to a request, and the idempotent part of a request."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar

import attrs
import msgspec
from msgspec import Meta

from payments_core.brief_repr import brief_repr
from payments_core.clock import DAY, HOUR, Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.errors import IdempotencyConflict
from payments_core.field_views import FieldView, instant_view
from payments_core.storage.records import Collection, Index, Record

RETENTION_MS = 30 * DAY
PUBLIC_RETENTION_MS = HOUR
"""The retention for public creation, whose keys anybody can make up."""

SEAL_PURPOSE = "idempotent answer"
_SEALED = "sealed"
_LENGTH_BYTES = 4
_COMPRESS_FROM_BYTES = 4_096


@attrs.frozen
class Response:
    """A status and the exact bytes of a body, with the headers of a read; none are stored.

    A response that may be long has `pieces` of a body instead, which are made while they are sent.
    """

    __repr__ = brief_repr

    status: int
    body: bytes = attrs.field(repr=False)
    api_version: str
    headers: Mapping[str, str] = attrs.field(factory=dict, hash=False)
    pieces: Iterator[bytes] | None = attrs.field(default=None, repr=False, hash=False)


class AlreadyResponded(Exception):
    """The request had a response before; here it is. Not an error, but an early return."""

    def __init__(self, response: Response) -> None:
        super().__init__("already responded")
        self.response = response


@attrs.frozen(kw_only=True, slots=False)
class StoredResponse(Record):
    """The response under an id made from principal and key; the body is sealed to that id.

    So is the request's fingerprint, together with the body: a reader of a bank account's rows
    knows all of the request except its number, and could try numbers until one matches.
    `fingerprint` is `sealed`, or the fingerprint itself in rows of earlier releases.
    """

    collection: ClassVar[Collection] = Collection(
        "idempotency",
        columns={"expires_at": int},
        indexes=(Index("by_expiry", order=("expires_at",)),),
        schema=2,
    )

    fingerprint: str
    status: int
    sealed_body: str = attrs.field(repr=False)
    api_version: str
    created_at_ms: Instant
    expires_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    expires_at: ClassVar[FieldView[datetime]] = instant_view("expires_at_ms")


def response_id(partition: str, principal: str, key: str) -> str:
    """The id of the response to a request with that key.

    It is made from environment, principal and key, never from a secret or token: a rotated key or
    a refreshed token must not break a retry.
    """
    scope = (partition, principal, key)
    return hashlib.sha256(b"1" + msgspec.json.encode(scope)).hexdigest()


@attrs.define
class IdempotentRequest:
    """The part of a request that makes it safe to repeat.

    `id` is made from the principal and the key, `fingerprint` from the request. `render` is pure:
    it turns the operation's result into the response, inside the transaction that stores both.
    `response` is the one that was stored.

    >>> def render(made):
    ...     return Response(201, made.payment.id.encode(), api_version="2026-09-09")
    >>> request = IdempotentRequest("client-7/order-9", "digest of the body", render)
    >>> shop.payments.receive(order, idempotency_key=request).payment.status
    'awaiting_payment'
    """

    __repr__ = brief_repr

    checked_by_class: ClassVar[bool] = True

    id: str
    fingerprint: str
    render: Callable[[Any], Response]
    retention_ms: int = RETENTION_MS
    response: Response | None = None

    def build_record(self, result: Any, now: Instant, key_ring: KeyRing) -> StoredResponse:
        """The record of this request's response."""
        response = self.response = self.render(result)
        sealed = key_ring.seal(SEAL_PURPOSE, self.id, _pack(self.fingerprint, response.body))
        return StoredResponse(
            id=self.id,
            fingerprint=_SEALED,
            status=response.status,
            sealed_body=base64.b64encode(sealed).decode(),
            api_version=response.api_version,
            created_at_ms=now,
            expires_at_ms=now + self.retention_ms,
        )

    def replay(self, stored: StoredResponse, key_ring: KeyRing) -> AlreadyResponded:
        """Return early with the stored response. Raises IdempotencyConflict for another request."""
        opened = key_ring.open(SEAL_PURPOSE, stored.id, base64.b64decode(stored.sealed_body))
        fingerprint, packed = stored.fingerprint, opened
        if fingerprint == _SEALED:
            fingerprint, packed = _unpack(opened)
        if fingerprint != self.fingerprint:
            raise IdempotencyConflict()
        return AlreadyResponded(Response(stored.status, _decompress(packed), stored.api_version))


KEY_PATTERN = "^[ -~]{1,256}$"
KEY_RULE = "1 to 256 printable ASCII characters"

IdempotencyKey = (
    Annotated[str, Meta(pattern=KEY_PATTERN, extra={"rule": KEY_RULE})] | IdempotentRequest | None
)
"""The key of a call, as its caller chose it, or None. An operation is `once_per_key`, so
its body receives the request made of it; a caller that renders responses itself passes that."""


def require_request(key: IdempotencyKey) -> IdempotentRequest | None:
    """The request; None for a call without a key."""
    assert not isinstance(key, str), "an operation that takes a key is `once_per_key`"
    return key


def _pack(fingerprint: str, body: bytes) -> bytes:
    text = fingerprint.encode()
    return len(text).to_bytes(_LENGTH_BYTES, "big") + text + _compress(body)


def _unpack(opened: bytes) -> tuple[str, bytes]:
    """The fingerprint, and the body as `_compress` made it."""
    end = _LENGTH_BYTES + int.from_bytes(opened[:_LENGTH_BYTES], "big")
    return opened[_LENGTH_BYTES:end].decode(), opened[end:]


def _compress(body: bytes) -> bytes:
    """Large responses are compressed: sealed and in base64, the largest would not fit a document,
    and those with much metadata would be most of what an environment stores."""
    if len(body) < _COMPRESS_FROM_BYTES:
        return b"-" + body
    return b"z" + zlib.compress(body, level=1)


def _decompress(packed: bytes) -> bytes:
    return packed[1:] if packed[:1] == b"-" else zlib.decompress(packed[1:])
