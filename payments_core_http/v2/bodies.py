"""What v2 takes in: wire classes with the wire's own names.

Types and `Meta` are the whole rule: the bodies are read by it and the schemas printed from it.
Absent and null are the same where the type says `| None`, and null is refused elsewhere.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import attrs
from msgspec import Meta

AccountId = Annotated[str, Meta(min_length=1, max_length=64)]
ExternalUserId = Annotated[str, Meta(min_length=1, max_length=128)]
Amount = Annotated[
    str,
    Meta(
        pattern=r"^(0|[1-9][0-9]*)(\.[0-9]+)?$",
        max_length=80,
        extra={"rule": "a decimal string such as 25.00, with no sign or exponent"},
    ),
]
ChainId = Annotated[int, Meta(ge=1)]
AssetSymbol = Annotated[str, Meta(min_length=1, max_length=16)]


@attrs.frozen(kw_only=True)
class CreateClientSession:
    """Access for a browser or mobile app to one existing account."""

    exactly_one_of: ClassVar = (("externalUserId", "accountId"),)

    externalUserId: ExternalUserId | None = None
    accountId: AccountId | None = None
    expiresInSeconds: Annotated[int, Meta(ge=60, le=86_400)] = 900
    permissions: (
        Annotated[
            tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...],
            Meta(min_length=1, max_length=20),
        ]
        | None
    ) = None
