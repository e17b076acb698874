"""Rows of the partner configuration and of client sessions."""

from __future__ import annotations

from payments_core.errors import ClientTokenExpired, NotFound
from payments_core_http.routing import Route
from payments_core_http.v2 import client_sessions, partners, views
from payments_core_http.v2.bodies import client_sessions as bodies
from payments_core_http.v2.routes.requirements import ANY_KEY, STANDARD_KEY

PARTNERS = (
    Route(
        "GET", "/v2/partners/config", partners.config, needs=ANY_KEY,
        answers=views.PartnerConfig,
        summary="What this credential is, and what it reaches.",
    ),
)  # fmt: skip

CLIENT_SESSIONS = (
    Route(
        "POST", "/v2/client-sessions", client_sessions.create, needs=STANDARD_KEY,
        body=bodies.CreateClientSession, success=201, errors=(NotFound,),
        answers=views.CreatedClientSession,
        summary="Give a browser or mobile app access to one account.",
    ),
    Route(
        "DELETE", "/v2/client-sessions/{clientSessionId}", client_sessions.revoke,
        needs=STANDARD_KEY, errors=(NotFound,),
        answers=views.ClientSessionView,
        summary="End a client session and its tokens at once.",
    ),
    Route(
        "POST", "/v2/client/auth/exchange", client_sessions.exchange, needs=None,
        credential="session_token", errors=(ClientTokenExpired,),
        answers=views.AccessToken,
        summary="Exchange a session token, once, for an access token.",
    ),
)  # fmt: skip
