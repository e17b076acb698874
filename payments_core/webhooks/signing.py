"""Signing secrets and the two signatures of a delivery (contract §8).

Ours is `x-service-signature: t=<unix>,v1=<hex>`: HMAC-SHA256, keyed with the UTF-8 bytes of the
whole secret, `whsec_` included, over `<t>.<raw body>`.

Standard Webhooks' is `webhook-signature: v1,<base64>`: HMAC-SHA256, keyed with the 32 bytes that
the secret encodes, over `<webhook-id>.<webhook-timestamp>.<raw body>`. Its `webhook-id` names the
message, the same at every attempt and endpoint: it is the event's id.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Sequence
from functools import lru_cache

import attrs

from payments_core.entropy import Entropy

SECRET_PREFIX = "whsec_"
SECRET_BYTES = 32
SIGNATURE_HEADER = "x-service-signature"
TIMESTAMP_HEADER = "x-service-timestamp"
STANDARD_ID_HEADER = "webhook-id"
STANDARD_TIMESTAMP_HEADER = "webhook-timestamp"
STANDARD_SIGNATURE_HEADER = "webhook-signature"

# 32 bytes in standard base64: 43 characters and one of padding.
_SECRET = re.compile(SECRET_PREFIX + "[A-Za-z0-9+/]{43}=")


def new_secret(entropy: Entropy) -> str:
    """A new signing secret: `whsec_` and 32 random bytes in standard base64."""
    return SECRET_PREFIX + base64.b64encode(entropy(SECRET_BYTES)).decode()


def is_secret(text: str) -> bool:
    """Whether a text has the form of a signing secret."""
    return _SECRET.fullmatch(text) is not None


def sign_headers(secrets: Sequence[str], event_id: str, unix_s: int, body: bytes) -> dict[str, str]:
    """The signature headers of a delivery sent at `unix_s`, in both schemes.

    Each of `secrets` signs, in the order given: the newest comes first.
    """
    timestamp = str(unix_s)
    return {
        TIMESTAMP_HEADER: timestamp,
        SIGNATURE_HEADER: signature_header(secrets, unix_s, body),
        STANDARD_ID_HEADER: event_id,
        STANDARD_TIMESTAMP_HEADER: timestamp,
        STANDARD_SIGNATURE_HEADER: " ".join(
            f"v1,{standard_signature(secret, event_id, timestamp, body)}" for secret in secrets
        ),
    }


def signature_header(secrets: str | Sequence[str], unix_s: int, body: bytes) -> str:
    """The value of `x-service-signature`, signed with one secret or with several."""
    each = (secrets,) if isinstance(secrets, str) else secrets
    codes = (f",v1={signature(secret, str(unix_s), body)}" for secret in each)
    return f"t={unix_s}{''.join(codes)}"


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """The hex code for a body sent at `timestamp`, which is the header's own text of it."""
    code: str = keys_of(secret).service_hmac(timestamp.encode() + b"." + body).hexdigest()
    return code


def standard_signature(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    """The base64 code of Standard Webhooks, for the texts of its own two headers."""
    message = f"{message_id}.{timestamp}.".encode() + body
    return base64.b64encode(keys_of(secret).standard_hmac(message).digest()).decode()


def decode_secret(secret: str) -> bytes:
    """The 32 bytes that a secret encodes."""
    return base64.b64decode(secret[len(SECRET_PREFIX) :])


@attrs.frozen(repr=False)
class SigningKeys:
    """A secret's two keys of HMAC-SHA-256: its whole text, and the bytes that it encodes.

    Each key is hashed once, and not for each message.
    """

    _by_text: hmac.HMAC
    _by_bytes: hmac.HMAC

    @classmethod
    def of(cls, secret: str) -> SigningKeys:
        """The keys of a well-formed secret."""
        text = hmac.new(secret.encode(), digestmod="sha256")
        return cls(text, hmac.new(decode_secret(secret), digestmod="sha256"))

    def service_hmac(self, message: bytes) -> hmac.HMAC:
        """The HMAC of a message by the text."""
        code = self._by_text.copy()
        code.update(message)
        return code

    def standard_hmac(self, message: bytes) -> hmac.HMAC:
        """The HMAC of a message by the bytes."""
        code = self._by_bytes.copy()
        code.update(message)
        return code


@lru_cache(maxsize=1_000)
def keys_of(secret: str) -> SigningKeys:
    """The keys of a secret that signs."""
    return SigningKeys.of(secret)
