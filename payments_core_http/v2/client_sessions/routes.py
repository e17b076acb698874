"""Rows of client sessions."""

from __future__ import annotations

from payments_core.errors import AccountSuspended, ClientTokenExpired, EntitlementRequired, NotFound
from payments_core_http.routing import Route
from payments_core_http.v2.client_sessions import bodies, handlers, views
from payments_core_http.v2.requirements import STANDARD_KEY

CLIENT_SESSIONS = (
    Route(
        "POST", "/v2/client-sessions", handlers.create, needs=STANDARD_KEY,
        body=bodies.CreateClientSession, success=201,
        errors=(NotFound, AccountSuspended, EntitlementRequired),  # of a permission's product
        response=views.CreatedClientSession,
        summary="Give a browser or mobile app access to one account.",
    ),
    Route(
        "DELETE", "/v2/client-sessions/{clientSessionId}", handlers.revoke,
        needs=STANDARD_KEY, errors=(NotFound,),
        response=views.ClientSessionView,
        summary="End a client session and its tokens at once.",
    ),
    Route(
        "POST", "/v2/client/auth/exchange", handlers.exchange, needs=None,
        credential="session_token", errors=(ClientTokenExpired,),
        response=views.AccessToken,
        summary="Exchange a session token, once, for an access token.",
    ),
)  # fmt: skip
