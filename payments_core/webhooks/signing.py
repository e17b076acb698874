"""Signing secrets and the signature of a delivery (contract §8).

`x-service-signature: t=<unix>,v1=<hex>`: HMAC-SHA256, keyed with the UTF-8 bytes of the whole
secret, `whsec_` included, over `<t>.<raw body>`.
"""

from __future__ import annotations

import base64
import binascii
import hmac

from payments_core.entropy import Entropy

SECRET_PREFIX = "whsec_"
SECRET_BYTES = 32
HEADER = "x-service-signature"


def new_secret(entropy: Entropy) -> str:
    """A new signing secret: `whsec_` and 32 random bytes in standard base64."""
    return SECRET_PREFIX + base64.b64encode(entropy(SECRET_BYTES)).decode()


def is_secret(text: str) -> bool:
    """Whether a text has the form of a signing secret."""
    if not text.startswith(SECRET_PREFIX):
        return False
    try:
        key = base64.b64decode(text[len(SECRET_PREFIX) :], validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(key) == SECRET_BYTES


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """The hex code for a body sent at `timestamp`, which is the header's own text of it."""
    return hmac.digest(secret.encode(), timestamp.encode() + b"." + body, "sha256").hex()


def signature_header(secret: str, unix_s: int, body: bytes) -> str:
    """The value of `x-service-signature`."""
    return f"t={unix_s},v1={signature(secret, str(unix_s), body)}"
