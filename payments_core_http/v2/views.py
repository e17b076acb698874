"""What v2 gives out: wire classes, and the functions that shape records into them.

Times and amounts are already strings here. The classes have no slots, since msgspec sorts the
fields of slotted ones, and these keep the order in which they are written.
"""

from __future__ import annotations

from typing import Literal

import attrs

from payments_core.client_sessions.operations import CreatedSession, ExchangedSession
from payments_core.client_sessions.record import ClientSession
from payments_core.clock import iso, iso_or_none
from payments_core.credentials.secrets import Mode
from payments_core_http.v2.webhook_views import DeliveryPolicyView


@attrs.frozen(kw_only=True, slots=False)
class WebhookCapabilities:
    """What a receiver of this deployment's webhooks may rely on."""

    deliveryPolicy: DeliveryPolicyView


@attrs.frozen(kw_only=True, slots=False)
class DeploymentCapabilities:
    """What this deployment can do."""

    webhooks: WebhookCapabilities


@attrs.frozen(kw_only=True, slots=False)
class PartnerConfig:
    """What a credential is, and what it reaches (interface "Runtime configuration")."""

    appId: str
    environmentId: str
    mode: Mode
    partnerId: str
    credentialType: Literal["standard", "restricted"]
    credentialMode: Literal["app_secret"] = "app_secret"
    apiVersion: str
    supportedApiVersions: tuple[str, ...]
    scopes: tuple[str, ...]
    products: tuple[str, ...]
    capabilities: DeploymentCapabilities


@attrs.frozen(kw_only=True, slots=False)
class CreatedClientSession:
    """A new session; its token is told only here."""

    clientSessionId: str
    clientSessionToken: str = attrs.field(repr=False)
    accountId: str
    permissions: tuple[str, ...]
    exchangeExpiresAt: str
    expiresAt: str
    createdAt: str


@attrs.frozen(kw_only=True, slots=False)
class ClientSessionView:
    """A session without its token."""

    clientSessionId: str
    accountId: str
    permissions: tuple[str, ...]
    exchangeExpiresAt: str
    expiresAt: str
    createdAt: str
    revokedAt: str | None


@attrs.frozen(kw_only=True, slots=False)
class AccessToken:
    """What the session token was exchanged for."""

    accessToken: str = attrs.field(repr=False)
    tokenType: Literal["Bearer"] = "Bearer"
    accountId: str
    permissions: tuple[str, ...]
    expiresAt: str


def created_client_session(created: CreatedSession) -> CreatedClientSession:
    """The answer of a creation."""
    session = created.session
    return CreatedClientSession(
        clientSessionId=session.id,
        clientSessionToken=created.token,
        accountId=session.account_id,
        permissions=session.permissions,
        exchangeExpiresAt=iso(session.exchange_expires_at),
        expiresAt=iso(session.expires_at),
        createdAt=iso(session.created_at),
    )


def client_session(session: ClientSession) -> ClientSessionView:
    """The answer of a revocation."""
    return ClientSessionView(
        clientSessionId=session.id,
        accountId=session.account_id,
        permissions=session.permissions,
        exchangeExpiresAt=iso(session.exchange_expires_at),
        expiresAt=iso(session.expires_at),
        createdAt=iso(session.created_at),
        revokedAt=iso_or_none(session.revoked_at),
    )


def access_token(exchanged: ExchangedSession) -> AccessToken:
    """The answer of an exchange."""
    return AccessToken(
        accessToken=exchanged.access_token,
        accountId=exchanged.session.account_id,
        permissions=exchanged.permissions,
        expiresAt=iso(exchanged.session.expires_at),
    )
