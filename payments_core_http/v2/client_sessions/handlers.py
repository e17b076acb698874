"""Client sessions: made and revoked by the backend, exchanged by the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import ApiCall
from payments_core_http.v2.client_sessions import bodies, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def create(service: PaymentsService, call: ApiCall[bodies.CreateClientSession, None]) -> Response:
    """A session for an existing account."""
    body = call.body
    return call.run_idempotent(
        lambda idempotent: call.resources.client_sessions.create(
            account_id=body.accountId,
            external_user_id=body.externalUserId,
            expires_in_s=body.expiresInSeconds,
            permissions=body.permissions,
            idempotency_key=idempotent,
        ),
        views.created_client_session,
    )


def revoke(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """The end of a session and its tokens; ending it twice gives the same response."""
    return call.run_idempotent(
        lambda idempotent: call.resources.client_sessions.revoke(
            call.path["clientSessionId"], idempotency_key=idempotent
        ),
        views.client_session,
    )


def exchange(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """An access token for a session token, which is consumed."""
    exchanged = service.client_tokens.exchange(call.session_token, mode=call.mode)
    return call.respond(views.access_token(exchanged))
