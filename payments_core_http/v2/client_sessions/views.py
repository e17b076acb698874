"""Client sessions as they are returned."""

from __future__ import annotations

from typing import Literal

import attrs

from payments_core.clock import format_iso, format_iso_or_none
from payments_core.tenants.client_sessions import CreatedSession, ExchangedSession
from payments_core.tenants.record import ClientSession
from payments_core_http.wire.classes import frozen_view


@frozen_view
class CreatedClientSession:
    """A new session; its token is shown only here."""

    clientSessionId: str
    clientSessionToken: str = attrs.field(repr=False)
    """The token to exchange once for an access token; shown only here."""
    accountId: str
    permissions: tuple[str, ...]
    exchangeExpiresAt: str
    expiresAt: str
    """When the session and its access token end."""
    createdAt: str
    updatedAt: str


@frozen_view
class ClientSessionView:
    """A session without its token."""

    clientSessionId: str
    accountId: str
    permissions: tuple[str, ...]
    exchangeExpiresAt: str
    expiresAt: str
    """When the session and its access token end."""
    createdAt: str
    updatedAt: str
    revokedAt: str | None


@frozen_view
class AccessToken:
    """What the session token was exchanged for."""

    accessToken: str = attrs.field(repr=False)
    """The client's bearer token for `/v2/client`."""
    tokenType: Literal["Bearer"] = "Bearer"
    """How the token is sent."""
    accountId: str
    permissions: tuple[str, ...]
    expiresAt: str


def created_client_session(created: CreatedSession) -> CreatedClientSession:
    """The response of a creation."""
    session = created.session
    return CreatedClientSession(
        clientSessionId=session.id,
        clientSessionToken=created.token,
        accountId=session.account_id,
        permissions=session.permissions,
        exchangeExpiresAt=format_iso(session.exchange_expires_at_ms),
        expiresAt=format_iso(session.expires_at_ms),
        createdAt=format_iso(session.created_at_ms),
        updatedAt=format_iso(session.updated_at_ms),
    )


def client_session(session: ClientSession) -> ClientSessionView:
    """The response of a revocation."""
    return ClientSessionView(
        clientSessionId=session.id,
        accountId=session.account_id,
        permissions=session.permissions,
        exchangeExpiresAt=format_iso(session.exchange_expires_at_ms),
        expiresAt=format_iso(session.expires_at_ms),
        createdAt=format_iso(session.created_at_ms),
        updatedAt=format_iso(session.updated_at_ms),
        revokedAt=format_iso_or_none(session.revoked_at_ms),
    )


def access_token(exchanged: ExchangedSession) -> AccessToken:
    """The response of an exchange."""
    return AccessToken(
        accessToken=exchanged.access_token,
        accountId=exchanged.session.account_id,
        permissions=exchanged.permissions,
        expiresAt=format_iso(exchanged.session.expires_at_ms),
    )
