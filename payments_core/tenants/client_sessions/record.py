"""A client session as it is stored; its tokens are sealed, so none is stored."""

from __future__ import annotations

from typing import ClassVar

import attrs

from payments_core.clock import Instant
from payments_core.storage.records import Collection, Record


@attrs.frozen(kw_only=True, slots=False)
class ClientSession(Record):
    """Access to one account, made by one key, until `expires_at` or its revocation."""

    collection: ClassVar[Collection] = Collection("client_sessions")

    account_id: str
    issuer_key_id: str
    permissions: tuple[str, ...]
    api_version: str
    created_at: Instant
    exchange_expires_at: Instant
    expires_at: Instant
    revoked_at: Instant | None = None

    @property
    def updated_at(self) -> Instant:
        """When it last changed: only its revocation changes it."""
        return self.created_at if self.revoked_at is None else self.revoked_at


@attrs.frozen(kw_only=True, slots=False)
class SessionExchange(Record):
    """The one exchange of a session, under the session's id; `nonce` identifies the call."""

    collection: ClassVar[Collection] = Collection("session_exchanges")

    nonce: str
    exchanged_at: Instant
