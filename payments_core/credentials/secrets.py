"""Server secrets: how they are made, verified and stored (contract §2).

`sk_<mode>_` standard, `rk_<mode>_` restricted, `pk_<mode>_` publishable; then 256 random bits and
a checksum, so that a mistyped or invented secret is refused without a look-up and a scanner can
recognise a leaked one. Only a keyed digest is stored.
"""

from __future__ import annotations

import base64
import re
import zlib
from typing import Literal

from payments_core.credentials.tokens import TOKEN_PREFIXES
from payments_core.entropy import Entropy

SecretKind = Literal["standard", "restricted", "publishable"]
Mode = Literal["sandbox", "production"]

MODES: tuple[Mode, ...] = ("sandbox", "production")
PREFIXES: dict[SecretKind, str] = {"standard": "sk", "restricted": "rk", "publishable": "pk"}
DIGEST_PURPOSE = "credential"

_CREDENTIAL = re.compile(
    r"(?:sk|rk|pk)_(?:sandbox|production)_[\w-]{40}"
    rf"|(?:{'|'.join(TOKEN_PREFIXES.values())})[\w-]{{60}}"
    r"|whsec_[\w+/-]{40}"
    r"|payment_[\w-]{24}_secret_",
    re.ASCII,
)
_SHAPE = re.compile(r"((?:sk|rk|pk)_(?:sandbox|production)_[A-Za-z0-9_-]{43})([0-9a-f]{8})")


def new_secret(kind: SecretKind, mode: Mode, entropy: Entropy) -> str:
    """A new secret; show it once and store its digest."""
    random = base64.urlsafe_b64encode(entropy(32)).decode().rstrip("=")
    body = f"{PREFIXES[kind]}_{mode}_{random}"
    return body + _checksum(body)


def looks_like_secret(text: str) -> bool:
    """Whether the shape and the checksum are right."""
    match = _SHAPE.fullmatch(text)
    return match is not None and _checksum(match[1]) == match[2]


def mode_of(secret: str) -> str:
    """The mode of a secret of the right shape."""
    return secret.split("_", 2)[1]


def holds_credential(text: str) -> bool:
    """Whether a text contains a secret or a token of any kind."""
    return _CREDENTIAL.search(text) is not None


def _checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"
