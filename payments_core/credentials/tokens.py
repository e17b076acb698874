"""Sealed tokens for browsers. They contain their environment, encrypted and authenticated.

A token is `prefix` + URL-safe base64 of a sealed JSON claim. The prefix is authenticated, so one
kind of token never passes for another. The order of checks: authentic, right kind; then the caller
checks consumed or revoked, and expiry last.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime
from typing import ClassVar

import attrs
import msgspec

from payments_core.clock import Instant
from payments_core.credentials.keyring import KeyRing, SealBroken
from payments_core.field_views import FieldView, instant_view

CLIENT_SESSION_PREFIX = "cst_"
ACCESS_PREFIX = "cat_"
OPERATOR_PREFIX = "ops_"
TOKEN_PREFIXES = {
    "session token": CLIENT_SESSION_PREFIX,
    "access token": ACCESS_PREFIX,
    "operator token": OPERATOR_PREFIX,
}
"""The prefix of each kind of token. Logs hide what follows one."""
_PAYMENT_SECRET_INFIX = "_secret_"
_SAFE = re.compile(r"[A-Za-z0-9_-]+")
_MAX_TOKEN = 1_000


class TokenInvalid(Exception):
    """Malformed, forged, or of another kind; the error does not say which."""


@attrs.frozen
class Claims:
    """The claims of a token: its environment, its subject, its API version, its expiry.

    >>> environment, claims = service.checkout.authenticate(link.client_secret, mode="sandbox")
    >>> claims.subject == payment.id
    True
    """

    environment_id: str
    subject: str
    api_version: str
    expires_at_ms: Instant

    expires_at: ClassVar[FieldView[datetime]] = instant_view("expires_at_ms")


class Tokens:
    """Makes and reads sealed tokens."""

    def __init__(self, key_ring: KeyRing) -> None:
        self._key_ring = key_ring

    def mint(self, prefix: str, claims: Claims) -> str:
        """A token of the kind of `prefix`."""
        return prefix + _encode(self._key_ring.seal("token", prefix, _pack(claims)))

    def read(self, prefix: str, token: str) -> Claims:
        """The claims of an authentic token of that kind, expired or not. Raises TokenInvalid."""
        if not token.startswith(prefix):
            raise TokenInvalid
        return self._open(prefix, token.removeprefix(prefix))

    def payment_secret(self, claims: Claims) -> str:
        """`<paymentId>_secret_...`: the same text for the same Payment under the same key."""
        head = claims.subject + _PAYMENT_SECRET_INFIX
        return head + _encode(self._key_ring.seal_repeatably("token", head, _pack(claims)))

    def read_payment_secret(self, secret: str) -> Claims:
        """The claims of a Payment client secret. Raises TokenInvalid."""
        payment_id, infix, rest = secret.partition(_PAYMENT_SECRET_INFIX)
        claims = self._open(payment_id + infix, rest)
        if claims.subject != payment_id:
            raise TokenInvalid
        return claims

    def _open(self, context: str, text: str) -> Claims:
        try:
            packed = self._key_ring.open("token", context, _decode(text))
            return _unpack(packed)
        except (SealBroken, msgspec.MsgspecError, UnicodeEncodeError):
            raise TokenInvalid from None


def _pack(claims: Claims) -> bytes:
    # `attrs.astuple` takes as long as the encryption.
    known = (claims.environment_id, claims.subject, claims.api_version, claims.expires_at_ms)
    return msgspec.json.encode(known)


def _unpack(packed: bytes) -> Claims:
    return Claims(*msgspec.json.decode(packed, type=tuple[str, str, str, int]))


def _encode(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def _decode(text: str) -> bytes:
    if len(text) > _MAX_TOKEN or not _SAFE.fullmatch(text):
        raise TokenInvalid
    try:
        sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise TokenInvalid from None
    if _encode(sealed) != text:  # spare bits would allow a second text for one token
        raise TokenInvalid
    return sealed
