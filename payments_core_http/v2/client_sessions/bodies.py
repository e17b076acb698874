"""Delete client sessions older than this."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from payments_core.validation.fields import AccountId, ExternalUserId
from payments_core_http.wire.classes import frozen_body


@frozen_body
class CreateClientSession:
    """Access for a browser or mobile app to one existing account."""

    exactly_one_of: ClassVar[tuple[tuple[str, ...], ...]] = (("externalUserId", "accountId"),)

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
